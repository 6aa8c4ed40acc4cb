/* rows: clang asan */
/*
 * test_backend_record.c: when the instructions of a plan are recorded, and when a recording is dropped and made again
 * (plan/plan_record.h). The plan is made by hand; each of its instructions fills one tensor on the emulated device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "backend/emulated/emulated.h"
#include "plan/plan_record.h"
#include "test_util.h"

enum { N = 100, INSTR = 8 };

static const cvy_gpu_source source = {"gpu_faulty", ""};
static cvy_backend_def backend; /* of the emulated device, whose slots a test may replace */
static cvy_space space;
static cvy_instr instr[INSTR];
static cvy_plan plan;
static float *data[2][INSTR]; /* the tensors, and others */
static void *dst[INSTR];
static float value; /* with which the tensors are filled */
static int runs;    /* how often the host has run an instruction */

static cvy_status fill(void *state, void *const *src, void *const *to, void *scratch)
{
    struct faulty {
        int64_t n;
        int fault;
    } f = {N, 0};
    cvy_gpu_kernel kernel;
    (void)state, (void)src, (void)scratch;
    runs++;
    CVY_TRY(cvy_gpu_kernel_get(&space, &source, "faulty_fill", CVY_DTYPE_F32, &kernel));
    return CVY_GPU_LAUNCH(&kernel, 1, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(to[0]), CVY_GPU_VALUE(value),
                          CVY_GPU_VALUE(f));
}

static cvy_status do_nothing(void *state, void *const *src, void *const *to, void *scratch)
{
    (void)state, (void)src, (void)to, (void)scratch;
    runs++;
    return CVY_OK;
}

static void begin(void)
{
    cvy_emulated_reset();
    backend = cvy_emulated_backend;
    EXPECT_OK(cvy_space_open_def(&backend, NULL, &space));
    plan = (cvy_plan){.opts.space = &space, .instr = instr, .ninstr = INSTR, .update.first = INSTR};
    for (int i = 0; i < INSTR; i++) {
        for (int k = 0; k < 2; k++)
            EXPECT_OK(cvy_space_alloc(&space, N * sizeof(float), 0, &data[k][i]));
        dst[i] = data[0][i];
        instr[i] = (cvy_instr){.kind = CVY_CALL_ZERO, .run = fill, .dst = &dst[i], .ndst = 1};
    }
    EXPECT_OK(cvy_plan_make_records(&plan));
    value = 0;
    runs = 0;
}

static void end(void)
{
    EXPECT_OK(cvy_space_sync_all(&space));
    cvy_plan_free_records(&plan);
    for (int i = 0; i < INSTR; i++)
        for (int k = 0; k < 2; k++)
            cvy_space_free(&space, &data[k][i], N * sizeof(float));
    cvy_space_close(&space);
    EXPECT_INT(cvy_emulated_done_now.allocations, 0);
}

/* Runs them as the executor does. Returns whether a recording has. */
static int run(int first, int last)
{
    int is_done = 0;
    value++;
    EXPECT_OK(cvy_plan_replay(&plan, first, last, &is_done));
    for (int i = first; i < last && !is_done; i++)
        if (cvy_instr_runs(&instr[i]))
            EXPECT_OK(instr[i].run(instr[i].state, instr[i].src, instr[i].dst, instr[i].scratch));
    return is_done;
}

/* The value of a tensor. */
static int of(const float *tensor)
{
    float first = -1;
    EXPECT_OK(cvy_space_read(&space, &first, tensor, sizeof first));
    return (int)first;
}

/* What it fills with is an argument, which a recording keeps; so the values tell what ran. */
static void recorded_when_run_twice(void)
{
    cvy_recorded recorded;
    const int64_t before = cvy_emulated_done_now.replays;
    EXPECT(!run(0, INSTR) && !run(0, INSTR));
    EXPECT_INT(of(data[0][3]), 2);
    EXPECT(!cvy_plan_recorded(&plan, &recorded));
    EXPECT(run(0, INSTR));
    EXPECT_INT(of(data[0][3]), 3);
    EXPECT_INT(runs, 3 * INSTR);
    EXPECT(!cvy_plan_recorded(&plan, &recorded));
    EXPECT(run(0, INSTR) && run(0, INSTR));
    EXPECT_INT(of(data[0][3]), 3);
    EXPECT_INT(runs, 3 * INSTR);
    EXPECT_INT(cvy_emulated_done_now.replays, before + 3);
    EXPECT(cvy_plan_recorded(&plan, &recorded));
    EXPECT(recorded.recordings == 1 && recorded.parts == INSTR && !recorded.why);
    EXPECT(!cvy_plan_recorded(&plan, &recorded));
}

static void cut_where_the_host_takes_part(void)
{
    int n = 0;
    instr[2].kind = CVY_CALL_BARRIER;
    instr[3].kind = CVY_CALL_STAGED;
    instr[5].kind = CVY_CALL_COMM;
    EXPECT_OK(cvy_plan_make_records(&plan));
    EXPECT_INT(cvy_plan_record_end(&plan, 0, INSTR), 2);
    EXPECT_INT(cvy_plan_record_end(&plan, 2, INSTR), 3);
    EXPECT_INT(cvy_plan_record_end(&plan, 3, INSTR), 4);
    EXPECT_INT(cvy_plan_record_end(&plan, 4, INSTR), 5);
    EXPECT_INT(cvy_plan_record_end(&plan, 6, INSTR), INSTR);
    EXPECT_INT(cvy_plan_record_end(&plan, 6, 7), 7);
    EXPECT_INT(cvy_plan_count_records(&plan, &n), 2);
    EXPECT_INT(n, 4);
    plan.update.first = 7;
    EXPECT_INT(cvy_plan_count_records(&plan, &n), 1);
}

static void dropped_when_an_address_changes(void)
{
    for (int i = 1; i <= 4; i++)
        EXPECT(run(0, INSTR) == (i > 2));
    dst[5] = data[1][5];
    EXPECT(!run(0, INSTR)); /* the recording is kept: the change may not last */
    EXPECT_INT(of(data[1][5]), 5);
    dst[5] = data[0][5];
    EXPECT(run(0, INSTR));
    EXPECT_INT(of(data[0][5]), 3);
    dst[5] = data[1][5];
    EXPECT(!run(0, INSTR) && !run(0, INSTR) && !run(0, INSTR));
    EXPECT_INT(of(data[1][5]), 9);
    EXPECT(run(0, INSTR) && run(0, INSTR));
    EXPECT_INT(of(data[1][5]), 10);
    EXPECT_INT(of(data[0][5]), 3);
    EXPECT(!run(0, 5)); /* other instructions */
    EXPECT_INT(of(data[0][4]), 12);
}

static void not_worth_it(void)
{
    for (int i = 1; i < INSTR; i++)
        instr[i].run = do_nothing;
    for (int i = 1; i <= 5; i++)
        EXPECT(!run(0, INSTR));
    EXPECT_INT(of(data[0][0]), 5);
    EXPECT(!run(0, 1) && !run(0, 1) && !run(0, 1)); /* one instruction */
}

/* The shadow copy of a weight is made if it is stale, which is no reason to drop a recording unless it lasts. A copy
 * after an instruction that writes the weight begins another recording. */
static void shadow_copies(void)
{
    const cvy_call reorder = {.kind = CVY_CALL_REORDER};
    cvy_variable weight = {.written = 1, .shadow_of = 1};
    instr[2] = (cvy_instr){.kind = CVY_CALL_REORDER, .run = fill, .dst = &dst[2], .ndst = 1, .call = &reorder};
    instr[2].weight = instr[6].weight = &weight;
    EXPECT_OK(cvy_plan_make_records(&plan));
    EXPECT_INT(cvy_plan_record_end(&plan, 0, INSTR), INSTR);
    for (int i = 1; i <= 4; i++)
        EXPECT(run(0, INSTR) == (i > 2));
    EXPECT_INT(of(data[0][2]), 0);
    weight.written++;
    EXPECT(!run(0, INSTR));
    EXPECT_INT(of(data[0][2]), 5);
    weight.shadow_of = weight.written;
    EXPECT(run(0, INSTR));
    EXPECT_INT(of(data[0][2]), 5);
    instr[1].weight = &weight;
    EXPECT_OK(cvy_plan_make_records(&plan));
    EXPECT_INT(cvy_plan_record_end(&plan, 0, INSTR), 2);
    EXPECT_INT(cvy_plan_record_end(&plan, 2, INSTR), INSTR);
}

static cvy_status refuse_end(void *state, const char *what, cvy_recording **out, int *parts_out)
{
    CVY_TRY(cvy_emulated_backend.record_end(state, what, out, parts_out));
    cvy_emulated_backend.recording_destroy(state, *out);
    return cvy_error_set(CVY_NOT_APPLICABLE, "no room for %s", what);
}

static void driver_refuses(void)
{
    cvy_recorded recorded;
    backend.record_end = refuse_end;
    for (int i = 1; i <= 5; i++)
        EXPECT(!run(0, INSTR));
    EXPECT_INT(of(data[0][7]), 5);
    EXPECT_INT(runs, 6 * INSTR); /* it is tried once */
    EXPECT(cvy_plan_recorded(&plan, &recorded));
    EXPECT(recorded.why && strstr(recorded.why, "no room for one of a recording, from zero to zero"));
    EXPECT(!cvy_plan_recorded(&plan, &recorded));
}

static void switched_off(void)
{
    EXPECT_INT(setenv("CONVOY_RECORD", "off", 1), 0);
    EXPECT_OK(cvy_plan_make_records(&plan));
    unsetenv("CONVOY_RECORD");
    EXPECT(!plan.records);
    for (int i = 1; i <= 5; i++)
        EXPECT(!run(0, INSTR));
    EXPECT_INT(cvy_plan_record_end(&plan, 2, INSTR), INSTR);
    backend.record_begin = NULL;
    EXPECT(!cvy_records_are_wanted(&space));
}

int main(void)
{
    TEST_WITH(begin, recorded_when_run_twice, end);
    TEST_WITH(begin, cut_where_the_host_takes_part, end);
    TEST_WITH(begin, dropped_when_an_address_changes, end);
    TEST_WITH(begin, not_worth_it, end);
    TEST_WITH(begin, shadow_copies, end);
    TEST_WITH(begin, driver_refuses, end);
    TEST_WITH(begin, switched_off, end);
    return test_end();
}

/* rows: clang asan minimal mpich */
/*
 * test_selftest.c: the checks of `convoy selftest` find planted faults: a kernel that is wrong, that fails, or
 * that writes beside its buffer, and sums with wrong elements. Its result is a struct, lines and JSON, and wrong
 * options are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>

#include "health/health.h"
#include "health/selftest/selftest.h"
#include "kernel/kernel.h"
#include "test_util.h"

/* ---- kernels ---- */

static const cvy_kernel_def *real; /* the kernel that is spoiled */
static enum { ADD, NAN_AT_END, OUTSIDE, FAULT } fault;
static int64_t elems_of_dst;

static cvy_status wrong_offer(cvy_kernel_ask *ask)
{
    elems_of_dst = cvy_shape_elems(&ask->node->dst[0]->shape);
    return ask->node->dst[0]->dtype == CVY_DTYPE_F32 ? real->offer(ask) : CVY_NOT_APPLICABLE;
}

static cvy_status wrong_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    float *out = dst[0];
    CVY_TRY(real->run(state, src, dst, scratch));
    if (fault == ADD)
        out[0] += 0.01f;
    if (fault == NAN_AT_END)
        out[elems_of_dst - 1] = NAN;
    if (fault == OUTSIDE)
        out[-1] = 1;
    if (fault == FAULT)
        CVY_FAIL(CVY_E_UNSUPPORTED, "this kernel has failed on purpose");
    return CVY_OK;
}

static cvy_selftest_kernels_found run_wrong(int which)
{
    cvy_kernel_def def = *real;
    const cvy_kernel_def *table[] = {&def};
    cvy_selftest_kernels_found found = {0};
    fault = which;
    def.offer = wrong_offer;
    def.run = wrong_run;
    EXPECT_OK(cvy_selftest_compare_kernels(NULL, table, 1, 1e9, &found));
    EXPECT(found.runs > 0);
    EXPECT_INT(found.samples, found.of_samples);
    return found;
}

static void a_wrong_kernel_is_found(void)
{
    real = cvy_kernel_find("native.relu");
    EXPECT(real != NULL);
    if (!real)
        return;
    cvy_selftest_kernels_found found = run_wrong(ADD);
    EXPECT(found.wrong > 0);
    EXPECT(strstr(found.first, "relu(") && strstr(found.first, " in f32: native.relu on ") &&
           strstr(found.first, "destination 0, element 0 of ") && strstr(found.first, ", expected "));
    found = run_wrong(NAN_AT_END);
    EXPECT(found.wrong > 0 && strstr(found.first, "nan"));
    found = run_wrong(OUTSIDE);
    EXPECT(found.wrong > 0 && strstr(found.first, "wrote outside of its buffers"));
    found = run_wrong(FAULT);
    EXPECT(found.wrong > 0 && strstr(found.first, "this kernel has failed on purpose"));
}

static void the_right_kernel_is_not(void)
{
    cvy_selftest_kernels_found found = {0};
    real = cvy_kernel_find("native.relu");
    EXPECT_OK(cvy_selftest_compare_kernels(NULL, &real, 1, 1e9, &found));
    EXPECT(found.runs > 0);
    EXPECT_INT(found.wrong, 0);
}

static void no_time_tries_nothing(void)
{
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    cvy_selftest_kernels_found found = {0};
    EXPECT_OK(cvy_selftest_compare_kernels(NULL, table, count, -1, &found));
    EXPECT_INT(found.samples, 0);
    EXPECT_INT(found.runs, 0);
    EXPECT(found.of_samples > 100);
}

/* ---- sums ---- */

static void wrong_sums_are_found(void)
{
    enum { N = 1000, RANKS = 5 };
    static const cvy_dtype wires[] = {CVY_DTYPE_F32, CVY_DTYPE_F64, CVY_DTYPE_BF16};
    for (int w = 0; w < CVY_COUNT(wires); w++) {
        const int is_f64 = wires[w] == CVY_DTYPE_F64;
        static double sum64[N], part64[N];
        static float sum32[N], part32[N];
        void *sum = is_f64 ? (void *)sum64 : sum32, *part = is_f64 ? (void *)part64 : part32;
        int64_t first = 0;
        memset(sum64, 0, sizeof sum64);
        memset(sum32, 0, sizeof sum32);
        for (int r = 0; r < RANKS; r++) {
            cvy_selftest_sum_fill(wires[w], part, N, r);
            for (int i = 0; i < N; i++) {
                sum64[i] += part64[i];
                sum32[i] += part32[i];
            }
        }
        EXPECT_INT(cvy_selftest_sum_check(wires[w], sum, N, RANKS, &first), 0);
        EXPECT_INT(first, -1);
        EXPECT(cvy_selftest_sum_check(wires[w], sum, N, RANKS - 1, &first) > N / 2); /* a rank is missing */
        sum64[777] += 1e-9;
        sum32[777] += 1e-3f;
        sum64[999] = sum32[999] = NAN;
        EXPECT_INT(cvy_selftest_sum_check(wires[w], sum, N, RANKS, &first), 2);
        EXPECT_INT(first, 777);
    }
}

/* ---- the call ---- */

static int lines;
static void count_line(void *user, const char *line)
{
    if (lines++ == 0)
        EXPECT(strncmp(line, "FAILED   ranks  ", 16) == 0);
    EXPECT(user == &lines && *line);
}

static void the_result_has_all_checks(void)
{
    cvy_context *context = NULL;
    cvy_selftest_opts opts = cvy_selftest_opts_default();
    cvy_selftest_result result;
    char *text = NULL;
    EXPECT_OK(cvy_context_create(NULL, &context));
    opts.only = "ranks,versions,system,node-memory,signals";
    opts.ranks = 2;
    opts.line = count_line;
    opts.user = &lines;
    EXPECT_OK(cvy_run_selftest(context, &opts, &result));
    EXPECT_INT(result.nchecks, 5);
    EXPECT_INT(lines, 5);
    EXPECT_INT(result.failed, 1); /* one rank is not two */
    EXPECT_INT(result.passed, 2);
    EXPECT_INT(result.skipped, 2); /* no other rank, and no signal handlers */
    EXPECT_INT(result.ranks, 1);
    EXPECT_TEXT(result.check[0].name, "ranks");
    EXPECT_INT(result.check[0].verdict, CVY_SELFTEST_FAILED);
    EXPECT(strstr(result.check[0].text, "there is 1 rank, and --ranks asks for 2") != NULL);
    EXPECT_OK(cvy_selftest_result_json(&result, &text));
    EXPECT(text && strncmp(text, "{\"passed\": 2, \"failed\": 1, \"skipped\": 2, \"ranks\": 1, ", 53) == 0);
    cvy_text_release(&text);
    cvy_selftest_result_release(&result);
    cvy_selftest_result_release(&result);
    EXPECT_INT(result.nchecks, 0);
    cvy_context_destroy(&context);
    EXPECT_INT(cvy_memory_bytes(), 0);
}

static void wrong_options_are_refused(void)
{
    cvy_context *context = NULL;
    cvy_selftest_opts opts = cvy_selftest_opts_default();
    cvy_selftest_result result;
    EXPECT_OK(cvy_context_create(NULL, &context));
    opts.only = "ranks,kernel";
    EXPECT_FAULT(cvy_run_selftest(context, &opts, &result), CVY_E_ARGUMENT,
                 "there is no check 'kernel', did you mean 'kernels'?");
    opts.only = NULL;
    opts.size = 0;
    EXPECT_FAULT(cvy_run_selftest(context, &opts, &result), CVY_E_ARGUMENT, "cvy_selftest_opts");
    cvy_context_destroy(&context);
}

/* Someone stops the job before the check of signals. */
static void a_stop_ends_it(void)
{
    cvy_context *context = NULL;
    cvy_train_control *control = NULL;
    cvy_selftest_opts opts = cvy_selftest_opts_default();
    cvy_selftest_result result;
    EXPECT_OK(cvy_context_create(NULL, &context));
    EXPECT_OK(cvy_train_control_create(&control));
    cvy_train_control_request(control, CVY_TRAIN_STOP);
    opts.control = control;
    opts.only = "ranks,versions";
    EXPECT_INT(cvy_run_selftest(context, &opts, &result), CVY_STOPPED);
    EXPECT_INT(result.nchecks, 0);
    cvy_train_control_destroy(&control);
    cvy_context_destroy(&context);
}

/* No memory for the call itself is a fault; no memory for a check is a check that fails. */
static cvy_context *few;
static cvy_status run_few(void)
{
    cvy_selftest_opts opts = cvy_selftest_opts_default();
    cvy_selftest_result result;
    opts.only = "ranks,versions,system,training";
    const cvy_status status = cvy_run_selftest(few, &opts, &result);
    const int failed = result.failed;
    if (status == CVY_OK && failed)
        EXPECT(strstr(result.check[3].text, "bytes") || strstr(result.check[3].text, "memory"));
    cvy_selftest_result_release(&result);
    return status == CVY_OK && failed ? CVY_E_MEMORY : status;
}

static void it_survives_no_memory(void)
{
    EXPECT_OK(cvy_context_create(NULL, &few));
    cvy_status status = CVY_E_MEMORY;
    for (int64_t k = 1; status != CVY_OK && k < 200000; k += 1 + k / 12) {
        cvy_mem_fail_at(k, 1);
        status = run_few();
        cvy_mem_fail_at(0, 0);
        EXPECT(status == CVY_OK || status == CVY_E_MEMORY);
    }
    EXPECT_INT(status, CVY_OK);
    cvy_context_destroy(&few);
    EXPECT_INT(cvy_memory_bytes(), 0);
}

int main(void)
{
    TEST(a_wrong_kernel_is_found);
    TEST(the_right_kernel_is_not);
    TEST(no_time_tries_nothing);
    TEST(wrong_sums_are_found);
    TEST(the_result_has_all_checks);
    TEST(wrong_options_are_refused);
    TEST(a_stop_ends_it);
    TEST(it_survives_no_memory);
    return test_end();
}

/* rows: clang asan onednn3 */
/*
 * test_program_shadow.c: bf16 shadow copies of weights, which are kept from step to step.
 *
 * The optimiser writes them, and all graphs that share the weights read them. A copy is made again if something else
 * wrote the weights. The test is skipped, with the reason, if no kernel keeps a copy (our own kernels need AMX).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/native/amx/native_amx.h"
#include "program/program_view.h"
#include "test_util.h"

enum { SKIPPED = 77, BATCH = 10, INPUTS = 70, HIDDEN = 40, CLASSES = 5, PARTS = 3 };

static cvy_context *context;

static const char *const optimisers[] = {"sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta"};

/* Step 0 trains whole batches, step 1 trains in micro-batches of 4, 3 and 3 samples, step 2 evaluates. */
static cvy_program *new_program(const char *optimiser, const char *kernels)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_BF16, .seed = 3, .kernels = kernels};
    const char *options = strcmp(optimiser, "sgd") == 0 ? "momentum: 0" : NULL;
    const cvy_training_opts whole = {.size = sizeof whole, .optimizer = optimiser, .optimizer_options = options},
                            parts = {.size = sizeof parts,
                                     .optimizer = optimiser,
                                     .optimizer_options = options,
                                     .accumulate = PARTS};
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_model_create("two", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "fc", "fc1", "channels: 40", "x"));
    EXPECT_OK(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc2", "channels: 5", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc2, label"));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &whole, &step));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &parts, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, BATCH, "fc2", &step));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    for (int s = 0; s < 3; s++) {
        float *x = cvy_program_feed(p, s, "x");
        int32_t *label = cvy_program_feed(p, s, "label");
        for (int i = 0; i < BATCH * INPUTS; i++)
            x[i] = sinf(0.7f * (float)i);
        for (int i = 0; label && i < BATCH; i++)
            label[i] = i % CLASSES;
    }
    return p;
}

/* Copies count wherever the program says what memory it needs and holds. */
static void test_memory(void)
{
    cvy_program *p = new_program("sgd", NULL);
    const cvy_memory_use use = cvy_program_memory_use(p, &(int){0}, 1);
    EXPECT(use.copies >= 2 * (INPUTS * HIDDEN + HIDDEN * CLASSES));
    EXPECT_INT(use.total, use.arena + use.weights + use.copies + use.statistics + use.states + use.feeds);
    EXPECT_INT(cvy_program_bytes(p), use.total);
    cvy_program_destroy(&p);
}

static void run(cvy_program *p, int step, int times)
{
    for (int i = 0; i < times; i++)
        EXPECT_OK(cvy_program_step(p, step, 0.05));
}

static cvy_variable *weight_of(cvy_program *p)
{
    return cvy_vars_find(cvy_program_vars(p), "fc1.weight");
}

/* Counts the reorders that make a copy which is kept, and those of them that would run now. */
static void count_copies(const cvy_program *p, int step, int *kept_out, int *due_out)
{
    const cvy_plan *plan = cvy_program_task_plan(p, step);
    *kept_out = *due_out = 0;
    for (int i = 0; i < plan->ninstr; i++) {
        *kept_out += cvy_call_reorders(plan->instr[i].call) && plan->instr[i].weight;
        *due_out += cvy_call_reorders(plan->instr[i].call) && plan->instr[i].weight && cvy_instr_runs(&plan->instr[i]);
    }
}

static void expect_due(const cvy_program *p, int due)
{
    for (int step = 0; step < 3; step++) {
        int kept = 0, now = 0;
        count_copies(p, step, &kept, &now);
        EXPECT_INT(kept, 2);
        EXPECT_INT(now, due);
    }
}

/* Returns whether the copy holds each element of the weight, rounded. */
static int copy_is_right(const cvy_variable *v)
{
    const float *wide = v->data;
    const cvy_bf16 *narrow = v->shadow;
    int same = 1, moved = 0;
    for (size_t i = 0; i < v->bytes / sizeof *wide; i++) {
        same &= narrow[i] == cvy_bf16_of(wide[i]);
        moved += wide[i] != 0;
    }
    return same && moved >= HIDDEN * INPUTS / 2;
}

static const float *evaluate(cvy_program *p)
{
    const void *out = NULL;
    run(p, 2, 1);
    EXPECT_OK(cvy_program_output(p, 2, "fc2", &out, NULL));
    return out;
}

/* An evaluation must give what a program gives that has just loaded these weights. With sgd, which has no state without
 * momentum, this must also hold after two more training steps. */
static void expect_as_new(cvy_program *p, const char *optimiser)
{
    char path[64];
    cvy_program *fresh = new_program(optimiser, NULL);
    snprintf(path, sizeof path, "rounded-%d.safetensors", (int)getpid());
    EXPECT_OK(cvy_program_save(p, path));
    EXPECT_OK(cvy_program_load(fresh, path));
    unlink(path);
    EXPECT(memcmp(evaluate(p), evaluate(fresh), BATCH * CLASSES * sizeof(float)) == 0);
    if (strcmp(optimiser, "sgd") == 0) {
        run(p, 0, 2);
        run(fresh, 0, 2);
    }
    EXPECT(memcmp(weight_of(p)->data, weight_of(fresh)->data, weight_of(p)->bytes) == 0);
    cvy_program_destroy(&fresh);
}

static void test_optimiser(const char *optimiser)
{
    cvy_program *p = new_program(optimiser, NULL);
    expect_due(p, 2); /* no copy has been made yet */
    run(p, 0, 3);
    expect_due(p, 0);
    EXPECT(copy_is_right(weight_of(p)));
    expect_as_new(p, optimiser);
    run(p, 1, 2);
    expect_due(p, 0);
    EXPECT(copy_is_right(weight_of(p)));
    expect_as_new(p, optimiser);
    cvy_program_destroy(&p);
}

/* Weights that are set from outside are used as they are now. */
static void test_set(void)
{
    static float ones[HIDDEN * INPUTS];
    float before[BATCH * CLASSES];
    cvy_program *p = new_program("sgd", NULL);
    for (int i = 0; i < CVY_COUNT(ones); i++)
        ones[i] = 0.01f;
    run(p, 0, 1);
    memcpy(before, evaluate(p), sizeof before);
    EXPECT_OK(cvy_program_set(p, "fc1.weight", ones, CVY_COUNT(ones)));
    for (int step = 0; step < 3; step++) {
        int kept = 0, due = 0;
        count_copies(p, step, &kept, &due);
        EXPECT(kept == 2 && due == 1);
    }
    EXPECT(memcmp(before, evaluate(p), sizeof before) != 0);
    EXPECT(copy_is_right(weight_of(p)));
    expect_as_new(p, "sgd");
    cvy_program_destroy(&p);
}

/* The copy is read and not made again: if the test alters it, the result changes. An update in between corrects it. */
static void test_read(void)
{
    float before[BATCH * CLASSES];
    cvy_program *p = new_program("sgd", NULL);
    run(p, 0, 1);
    memcpy(before, evaluate(p), sizeof before);
    memset(weight_of(p)->shadow, 0, cvy_variable_shadow_bytes(weight_of(p)));
    EXPECT(memcmp(before, evaluate(p), sizeof before) != 0);
    run(p, 0, 1);
    EXPECT(copy_is_right(weight_of(p)));
    cvy_program_destroy(&p);
}

/* An update that writes no copy makes it stale: here it is one of the reference kernels. */
static void test_stale(void)
{
    cvy_program *p = new_program("sgd", NULL);
    cvy_plan *plan = cvy_program_task_plan(p, 0);
    run(p, 0, 1);
    for (int i = 0; i < plan->ninstr; i++)
        if (cvy_call_kernel(plan->instr[i].call))
            plan->instr[i].writes_shadow = 0;
    run(p, 0, 1);
    expect_due(p, 2);
    EXPECT_OK(cvy_program_step(p, 2, 0));
    expect_due(p, 0);
    EXPECT(copy_is_right(weight_of(p)));
    cvy_program_destroy(&p);
    p = new_program("sgd", "reference");
    run(p, 0, 1);
    EXPECT(!weight_of(p)->shadow && cvy_variable_shadow_bytes(weight_of(p)) == 0);
    cvy_program_destroy(&p);
}

int main(void)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 2};
    const cvy_amx *amx = NULL;
    if (cvy_amx_get(&amx) != CVY_OK) {
        printf("skipped: %s\n", cvy_error_text());
        return SKIPPED;
    }
    EXPECT_OK(cvy_context_create(&opts, &context));
    for (int i = 0; i < CVY_COUNT(optimisers); i++)
        test_optimiser(optimisers[i]);
    test_set();
    test_read();
    test_stale();
    test_memory();
    cvy_context_destroy(&context);
    return test_end();
}

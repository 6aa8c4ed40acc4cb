/* rows: clang asan onednn3 minimal */
/*
 * test_pass_fuse_update.c: with fused updates of fully connected weights a program makes the same weights as without,
 * and the plan keeps no gradient for them. Nothing is fused if something else needs the gradient, or if it is small.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <math.h>
#include <string.h>

#include "program/program_view.h"
#include "test_util.h"

enum { IN = 600, OUT = 500, LAST = 7, BATCH = 5, STEPS = 4 };

static cvy_context *context;

static const char *large = "channels: 500"; /* options of the large layer */
static int pictures;                        /* its source comes from a pooling, with channels in blocks */
static const char *kernels;                 /* those that are allowed; NULL: all */

/* x [IN] -> fc of OUT, whose weight is large -> relu -> fc of LAST -> mean squared error. */
static cvy_program *new_program(const char *off, cvy_dtype dtype, const cvy_training_opts *training, int64_t batch)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .seed = 5, .dtype = dtype, .passes_off = off, .kernels = kernels, .wisdom = "off"};
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_model_create("net", &m));
    EXPECT_OK(
        cvy_model_add_input(m, "x", CVY_DTYPE_F32, pictures ? &(cvy_shape){3, {6, 10, 10}} : &(cvy_shape){1, {IN}}));
    EXPECT_OK(cvy_model_add_input(m, "t", CVY_DTYPE_F32, &(cvy_shape){1, {LAST}}));
    if (pictures) {
        EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 24, kernel: 3, pad: 1", "x"));
        EXPECT_OK(cvy_model_add(m, "max_pool", "pool", "kernel: 2", NULL));
    }
    EXPECT_OK(cvy_model_add(m, "fc", "large", large, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "relu", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "small", "channels: 7", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "small, t"));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, training, &step));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    return p;
}

static int count(const cvy_program *p, const char *op)
{
    const cvy_plan *plan = cvy_program_task_plan(p, 0);
    int found = 0;
    for (int i = 0; i < plan->ninstr; i++)
        found +=
            plan->instr[i].call && plan->instr[i].call->node && strcmp(plan->instr[i].call->node->op->name, op) == 0;
    return found;
}

static void train(cvy_program *p, int64_t batch)
{
    for (int step = 0; step < STEPS; step++) {
        float *x = cvy_program_feed(p, 0, "x"), *t = cvy_program_feed(p, 0, "t");
        for (int64_t i = 0; i < batch * IN; i++)
            x[i] = (float)((i * 37 + step * 11) % 101) / 101 - 0.5F;
        for (int64_t i = 0; i < batch * LAST; i++)
            t[i] = (float)((i * 13 + step) % 17) / 17;
        EXPECT_OK(cvy_program_step(p, 0, 0.05));
    }
}

/* Trains with and without the pass, and compares all weights. */
static void same_weights(const char *optimizer_options, cvy_dtype dtype, double clip_weights, double tolerance)
{
    static const char *const names[] = {"large.weight", "large.bias", "small.weight", "small.bias"};
    static const int64_t elems[] = {OUT * IN, OUT, LAST * OUT, LAST};
    static float weight[2][OUT * IN];
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = "sgd",
                                        .optimizer_options = optimizer_options,
                                        .weight_decay = 0.01,
                                        .clip_weights = clip_weights};
    cvy_program *fused = new_program(NULL, dtype, &training, BATCH),
                *plain = new_program("fuse-update", dtype, &training, BATCH);
    EXPECT_INT(count(fused, "fc_grad_sgd"), 1);
    EXPECT_INT(count(plain, "fc_grad_sgd"), 0);
    EXPECT_INT(count(fused, "fc_grad_bias"), strstr(large, "bias: false") == NULL);
    EXPECT(cvy_program_task_plan(fused, 0)->head.bytes + OUT * IN * sizeof(float) <=
           cvy_program_task_plan(plain, 0)->head.bytes);
    train(fused, BATCH);
    train(plain, BATCH);
    EXPECT(cvy_program_task_plan(fused, 0)->arena_bytes < cvy_program_task_plan(plain, 0)->arena_bytes);
    for (int n = 0; n < CVY_COUNT(names); n++) {
        double worst = 0, largest = 0;
        if (strcmp(names[n], "large.bias") == 0 && strstr(large, "bias: false"))
            continue;
        EXPECT_OK(cvy_program_get(fused, names[n], weight[0], (size_t)elems[n]));
        EXPECT_OK(cvy_program_get(plain, names[n], weight[1], (size_t)elems[n]));
        for (int64_t i = 0; i < elems[n]; i++) {
            worst = CVY_MAX(worst, fabs((double)weight[0][i] - (double)weight[1][i]));
            largest = CVY_MAX(largest, fabs((double)weight[0][i]));
        }
        EXPECT_NEAR(worst, 0, tolerance);
        EXPECT(largest > 0 && (clip_weights == 0 || largest <= clip_weights * 1.000001));
    }
    cvy_program_destroy(&fused);
    cvy_program_destroy(&plain);
}

static void weights(void)
{
    same_weights("momentum: 0.9", CVY_DTYPE_F32, 0, 2e-6);
    same_weights("momentum: 0", CVY_DTYPE_F32, 0, 2e-6);
    same_weights("{momentum: 0.9, nesterov: true}", CVY_DTYPE_F32, 0.05, 2e-6);
    same_weights("{momentum: 0.9, lr_inside: true}", CVY_DTYPE_F32, 0, 2e-6);
}

static void after_pooling(void)
{
    pictures = 1;
    same_weights("momentum: 0.9", CVY_DTYPE_F32, 0, 2e-6);
    same_weights("momentum: 0.9", CVY_DTYPE_BF16, 0, 2e-3);
    pictures = 0;
}

static void without_bias(void)
{
    large = "{channels: 500, bias: false}";
    same_weights("momentum: 0.9", CVY_DTYPE_F32, 0, 2e-6);
    large = "channels: 500";
}

static void weights_bf16(void)
{
    same_weights("momentum: 0.9", CVY_DTYPE_BF16, 0, 2e-3);
}

static void not_fused(void)
{
    const cvy_training_opts base = {.size = sizeof base, .optimizer = "sgd"};
    cvy_training_opts cases[6] = {base, base, base, base, base, base};
    int64_t batch[6] = {4, 4, 4, 4, 4, 4};
    cases[0].optimizer = "adam";
    cases[1].clip_norm = 1;
    cases[2].clip_value = 1;
    cases[3].l1 = 0.01;
    cases[4].optimizer_options = "average: 0.9";
    cases[5].accumulate = 2;
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        cvy_program *p = new_program(NULL, CVY_DTYPE_F32, &cases[i], batch[i]);
        EXPECT_INT(count(p, "fc_grad_sgd"), 0);
        train(p, batch[i]);
        cvy_program_destroy(&p);
    }
}

/* Nor if the kernel is not allowed, or if there are so many samples that keeping them costs more than the gradient. */
static void not_fused_either(void)
{
    const cvy_training_opts training = {.size = sizeof training};
    static const char *const words[] = {"reference", CVY_HAVE_ONEDNN ? "onednn" : "reference"};
    cvy_program *p = NULL;
    for (int i = 0; i < CVY_COUNT(words); i++) {
        kernels = words[i];
        p = new_program(NULL, CVY_DTYPE_F32, &training, BATCH);
        EXPECT_INT(count(p, "fc_grad_sgd"), 0);
        cvy_program_destroy(&p);
    }
    kernels = NULL;
    p = new_program(NULL, CVY_DTYPE_F32, &training, 80);
    EXPECT_INT(count(p, "fc_grad_sgd"), 0);
    cvy_program_destroy(&p);
}

int main(void)
{
    EXPECT_OK(cvy_context_create(NULL, &context));
    TEST(weights);
    TEST(after_pooling);
    TEST(without_bias);
    TEST(weights_bf16);
    TEST(not_fused);
    TEST(not_fused_either);
    cvy_context_destroy(&context);
    return test_end();
}

/* rows: clang asan aarch64 minimal */
/*
 * test_kernel_fc_small.c: small fully connected layers keep a transposed copy of their weight, and see each change of
 * it: by the caller, by a file, and by training steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "program/program_view.h"
#include "test_util.h"

enum { BATCH = 9, INPUTS = 7, OUTPUTS = 21 }; /* neither is a whole number of vectors or tiles */

static cvy_context *context;
static cvy_program *program;
static int train, apply;
static float x[BATCH * INPUTS], y[BATCH * OUTPUTS], weight[OUTPUTS * INPUTS], bias[OUTPUTS];

static void make_program(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .seed = 1, .wisdom = "off"};
    const cvy_training_opts training = {.size = sizeof training, .optimizer_options = "momentum: 0"};
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("small", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {OUTPUTS}}));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 21", "x"));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
    EXPECT_OK(cvy_program_create(context, &opts, &program));
    EXPECT_OK(cvy_program_add_training(program, m, BATCH, &training, &train));
    EXPECT_OK(cvy_program_add_forward(program, m, BATCH, "fc", &apply));
    EXPECT_OK(cvy_program_plan(program));
    cvy_model_destroy(&m);
}

static int uses_small_kernel(void)
{
    const cvy_lowered *u = cvy_program_task_plan(program, apply)->lowered[0];
    for (int i = 0; i < u->ncall; i++)
        if (u->call[i].kernel && strcmp(u->call[i].kernel->name, "native.fc_small") == 0)
            return 1;
    return 0;
}

/* The outputs must be those of the present weights. */
static void check_outputs(const char *what)
{
    double worst = 0;
    EXPECT_OK(cvy_program_get(program, "fc.weight", weight, OUTPUTS * INPUTS));
    EXPECT_OK(cvy_program_get(program, "fc.bias", bias, OUTPUTS));
    EXPECT_OK(cvy_program_write_input(program, apply, "x", CVY_DTYPE_F32, x, BATCH * INPUTS));
    EXPECT_OK(cvy_program_step(program, apply, 0));
    EXPECT_OK(cvy_program_read_output(program, apply, "fc", CVY_DTYPE_F32, y, BATCH * OUTPUTS));
    for (int n = 0; n < BATCH; n++)
        for (int k = 0; k < OUTPUTS; k++) {
            double sum = bias[k];
            for (int i = 0; i < INPUTS; i++)
                sum += (double)x[n * INPUTS + i] * weight[k * INPUTS + i];
            worst = fmax(worst, fabs(sum - y[n * OUTPUTS + k]));
        }
    if (worst > 1e-5)
        printf("%s: an output is wrong by %g\n", what, worst);
    EXPECT(worst <= 1e-5);
}

static void set_weight(float factor)
{
    for (int i = 0; i < OUTPUTS * INPUTS; i++)
        weight[i] = factor * (float)((i * 37 % 19) - 9);
    EXPECT_OK(cvy_program_set(program, "fc.weight", weight, OUTPUTS * INPUTS));
}

static void changes_are_seen(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/convoy-fc-small-%ld.safetensors", (long)getpid());
    check_outputs("first values");
    set_weight(0.1f);
    check_outputs("set by the caller");
    EXPECT_OK(cvy_program_save(program, path));
    set_weight(-0.3f);
    check_outputs("set again");
    EXPECT_OK(cvy_program_load(program, path));
    check_outputs("loaded");
    unlink(path);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(cvy_program_write_input(program, train, "x", CVY_DTYPE_F32, x, BATCH * INPUTS));
        EXPECT_OK(cvy_program_step(program, train, 0.05));
        check_outputs("trained");
    }
}

int main(void)
{
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &context));
    for (int i = 0; i < BATCH * INPUTS; i++)
        x[i] = (float)sin(0.7 * i);
    make_program();
    EXPECT(uses_small_kernel());
    TEST(changes_are_seen);
    cvy_program_destroy(&program);
    cvy_context_destroy(&context);
    return test_end();
}

/* ranks: 1 2 */
/* rows: mpich asan */
/*
 * test_program_host_loss.c: a loss that the caller computes, value and gradient, trains as the same loss of the library
 * does: the gradient is given as the target of a loss that is linear in the output (docs/guide/in-your-code.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>

#include "test_util.h"

enum { INPUTS = 4, OUTPUTS = 3, ROWS = 6, STEPS = 25, WEIGHTS = 8 * INPUTS };

static cvy_context *context;

/* By a loss of the library, or by one of the caller; both tasks train the outputs of the same layers. */
static void begin(const char *loss, const char *target, cvy_program **program, int *train, int *apply)
{
    const cvy_program_opts opts = {.size = sizeof opts, .seed = 2, .wisdom = "off"};
    const int64_t batch = ROWS * cvy_context_nranks(context);
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("host", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add_input(m, target, CVY_DTYPE_F32, &(cvy_shape){1, {OUTPUTS}}));
    EXPECT_OK(cvy_model_add(m, "fc", "hidden", "channels: 8", "x"));
    EXPECT_OK(cvy_model_add(m, "tanh", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, loss, "loss", NULL, strcmp(loss, "mse") == 0 ? "out, y" : "out, gradient"));
    EXPECT_OK(cvy_program_create(context, &opts, program));
    EXPECT_OK(cvy_program_add_training(*program, m, batch, NULL, train));
    EXPECT_OK(cvy_program_add_forward(*program, m, batch, "out", apply));
    EXPECT_OK(cvy_program_plan(*program));
    cvy_model_destroy(&m);
}

static void trains_alike(void)
{
    cvy_program *own = NULL, *ours = NULL;
    int train[2], apply[2];
    float x[ROWS * INPUTS], y[ROWS * OUTPUTS], out[ROWS * OUTPUTS], gradient[ROWS * OUTPUTS], a[WEIGHTS], b[WEIGHTS];
    double first = 0, last = 0;
    begin("mse", "y", &ours, &train[0], &apply[0]);
    begin("wasserstein", "gradient", &own, &train[1], &apply[1]);
    for (int i = 0; i < ROWS * INPUTS; i++)
        x[i] = (float)sin(0.7 * i + 3 * cvy_context_rank(context));
    for (int i = 0; i < ROWS * OUTPUTS; i++)
        y[i] = (float)cos(0.4 * i + cvy_context_rank(context));
    for (int step = 0; step < STEPS; step++) {
        double value = 0;
        EXPECT_OK(cvy_program_write_input(ours, train[0], "x", CVY_DTYPE_F32, x, ROWS * INPUTS));
        EXPECT_OK(cvy_program_write_input(ours, train[0], "y", CVY_DTYPE_F32, y, ROWS * OUTPUTS));
        EXPECT_OK(cvy_program_step(ours, train[0], 0.05));
        EXPECT_OK(cvy_program_write_input(own, apply[1], "x", CVY_DTYPE_F32, x, ROWS * INPUTS));
        EXPECT_OK(cvy_program_step(own, apply[1], 0));
        EXPECT_OK(cvy_program_read_output(own, apply[1], "out", CVY_DTYPE_F32, out, ROWS * OUTPUTS));
        for (int i = 0; i < ROWS * OUTPUTS; i++) {
            const float wrong = out[i] - y[i];
            value += (double)(wrong * wrong) / (ROWS * OUTPUTS); /* the mean of the squares, as mse */
            gradient[i] = -2 * wrong; /* minus the derivative of a sample's loss, times the number of its outputs */
        }
        EXPECT_OK(cvy_program_write_input(own, train[1], "x", CVY_DTYPE_F32, x, ROWS * INPUTS));
        EXPECT_OK(cvy_program_write_input(own, train[1], "gradient", CVY_DTYPE_F32, gradient, ROWS * OUTPUTS));
        EXPECT_OK(cvy_program_step(own, train[1], 0.05));
        first = step == 0 ? value : first;
        last = value;
        EXPECT_OK(cvy_program_get(ours, "hidden.weight", a, WEIGHTS));
        EXPECT_OK(cvy_program_get(own, "hidden.weight", b, WEIGHTS));
        for (int i = 0; i < WEIGHTS; i++)
            EXPECT_NEAR(b[i], a[i], 1e-5);
    }
    EXPECT(last < first / 2);
    cvy_program_destroy(&own);
    cvy_program_destroy(&ours);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD,
                                     &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &context));
    TEST(trains_alike);
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

/* ranks: 1 2 3 */
/* rows: mpich asan */
/*
 * test_program_rows.c: ranks with different numbers of samples in each step, none among them, train the same weights as
 * one rank that has all these samples. Losses and outputs leave padding out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>
#include <stdio.h>

#include "test_util.h"

enum { INPUTS = 5, MOST = 6, STEPS = 8, RANKS_MAX = 3, WEIGHTS = 4 * INPUTS };

struct training {
    cvy_context *context;
    cvy_program *program;
    int train, apply;
};

static int rank, nranks;

static void begin(struct training *t, MPI_Comm comm, int64_t batch)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    const cvy_program_opts program = {.size = sizeof program, .seed = 5, .wisdom = "off", .precise = 1};
    const cvy_training_opts training = {.size = sizeof training, .optimizer = "adam", .outputs = "fc"};
    cvy_model *m = NULL;
    *t = (struct training){0};
    EXPECT_OK(cvy_context_create_mpi(comm, &opts, &t->context));
    EXPECT_OK(cvy_model_create("rows", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add_input(m, "weight", CVY_DTYPE_F32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "fc", "hidden", "channels: 4", "x"));
    EXPECT_OK(cvy_model_add(m, "tanh", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label, weight"));
    EXPECT_OK(cvy_program_create(t->context, &program, &t->program));
    EXPECT_OK(cvy_program_add_training(t->program, m, batch, &training, &t->train));
    EXPECT_OK(cvy_program_add_forward(t->program, m, batch, "fc", &t->apply));
    EXPECT_OK(cvy_program_plan(t->program));
    cvy_model_destroy(&m);
}

static void end(struct training *t)
{
    cvy_program_destroy(&t->program);
    cvy_context_destroy(&t->context);
}

/* Each rank has from 0 to MOST samples in a step; in step 3 no rank has any. */
static int64_t count(int step, int of_rank)
{
    return step == 3 ? 0 : (3 * step + 5 * of_rank) % (MOST + 1);
}

static int64_t fill(int step, int of_rank, float *x, int32_t *label)
{
    const int64_t n = count(step, of_rank);
    for (int64_t i = 0; i < n * INPUTS; i++)
        x[i] = (float)sin(0.9 * (double)i + step + 7.0 * of_rank);
    for (int64_t i = 0; i < n; i++)
        label[i] = (int32_t)((i + step + of_rank) % 3);
    return n;
}

static double step(struct training *t, int64_t n, const float *x, const int32_t *label)
{
    double loss = 0;
    EXPECT_OK(cvy_program_set_rows(t->program, t->train, n));
    EXPECT_OK(cvy_program_write_input(t->program, t->train, "x", CVY_DTYPE_F32, x, n * INPUTS));
    EXPECT_OK(cvy_program_write_input(t->program, t->train, "label", CVY_DTYPE_I32, label, n));
    EXPECT_OK(cvy_program_step(t->program, t->train, 0.05));
    EXPECT_OK(cvy_program_loss(t->program, t->train, "loss", &loss));
    return loss;
}

static void as_one_rank(void)
{
    struct training mine, whole;
    float x[MOST * INPUTS], all[RANKS_MAX * MOST * INPUTS], a[WEIGHTS], b[WEIGHTS];
    int32_t label[MOST], labels[RANKS_MAX * MOST];
    begin(&mine, MPI_COMM_WORLD, (int64_t)MOST * nranks);
    begin(&whole, MPI_COMM_SELF, (int64_t)MOST * nranks);
    for (int i = 1; i <= STEPS; i++) {
        int64_t n = 0;
        for (int r = 0; r < nranks; r++)
            n += fill(i, r, all + n * INPUTS, labels + n);
        const double together = step(&whole, n, all, labels);
        EXPECT(n == 0 ? together == 0 : together > 0);
        n = fill(i, rank, x, label);
        EXPECT_NEAR(step(&mine, n, x, label), together, 1e-6);
        EXPECT_OK(cvy_program_get(mine.program, "hidden.weight", a, WEIGHTS));
        EXPECT_OK(cvy_program_get(whole.program, "hidden.weight", b, WEIGHTS));
        for (int w = 0; w < WEIGHTS; w++)
            EXPECT_NEAR(a[w], b[w], 1e-5);
    }
    end(&mine);
    end(&whole);
}

static void arrays_have_samples(void)
{
    struct training t;
    float x[MOST * INPUTS], y[MOST * 3], first[MOST * 3];
    int32_t label[MOST];
    begin(&t, MPI_COMM_SELF, MOST);
    for (int i = 0; i < MOST * INPUTS; i++)
        x[i] = (float)cos(0.4 * i);
    EXPECT_OK(cvy_program_write_input(t.program, t.apply, "x", CVY_DTYPE_F32, x, MOST * INPUTS));
    EXPECT_OK(cvy_program_step(t.program, t.apply, 0));
    EXPECT_OK(cvy_program_read_output(t.program, t.apply, "fc", CVY_DTYPE_F32, first, MOST * 3));
    EXPECT_OK(cvy_program_set_rows(t.program, t.apply, 2)); /* a forward task needs no weight */
    EXPECT_FAULT(cvy_program_write_input(t.program, t.apply, "x", CVY_DTYPE_F32, x, MOST * INPUTS), CVY_E_SHAPE,
                 "with 2 rows of samples: that is 10 elements, not 30");
    EXPECT_OK(cvy_program_write_input(t.program, t.apply, "x", CVY_DTYPE_F32, x, 2 * INPUTS));
    EXPECT_OK(cvy_program_step(t.program, t.apply, 0));
    EXPECT_OK(cvy_program_read_output(t.program, t.apply, "fc", CVY_DTYPE_F32, y, 2 * 3));
    for (int i = 0; i < 2 * 3; i++)
        EXPECT(y[i] == first[i]);
    EXPECT_FAULT(cvy_program_set_rows(t.program, t.train, MOST + 1), CVY_E_ARGUMENT,
                 "7 rows of task 0, but this rank has planned 6");
    EXPECT_FAULT(cvy_program_set_rows(t.program, 9, 1), CVY_E_ARGUMENT, "task 9 is not planned");
    EXPECT(fill(1, 0, x, label) == 3);
    EXPECT(step(&t, 3, x, label) > 0);
    EXPECT_OK(cvy_program_set_rows(t.program, t.train, 1));
    EXPECT_INT(cvy_program_samples(t.program, t.train), 1);
    const float *feed = cvy_program_feed(t.program, t.train, "x"),
                *weight = cvy_program_feed(t.program, t.train, "weight");
    for (int i = INPUTS; i < MOST * INPUTS; i++)
        EXPECT(feed[i] == 0);
    for (int i = 0; i < MOST; i++)
        EXPECT(weight[i] == (i < 1));
    EXPECT(step(&t, 1, x, label) > 0);
    end(&t);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    TEST(as_one_rank);
    TEST(arrays_have_samples);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

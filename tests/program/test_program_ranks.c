/* ranks: 2 3 5 */
/* rows: mpich asan onednn3 */
/*
 * test_program_ranks.c: the public program on several ranks: weighted losses, ignored labels and micro-batches give the
 * weights of one rank, for shares of any size, even empty ones; and a fault in planning on one rank is reported on all
 * ranks, and no rank is left waiting.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_view.h"
#include "program/ranks_util.h"

enum { STEPS = 20 };

static cvy_model *new_model(void)
{
    cvy_model *m = new_network("ranks");
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {8}}));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "classes",
                            "class_weights: [1, 0.5, 2], ignore_label: 7, label_smoothing: 0.02", "fc, label, weight"));
    EXPECT_OK(cvy_model_add(m, "global_avg_pool", "means", NULL, "drop"));
    EXPECT_OK(cvy_model_add(m, "huber", "values", "loss_weight: 0.3", "means, y, weight"));
    return m;
}

/* One sample in five is ignored, and one in four has weight 0. */
static void fill(cvy_program *p, int step, cvy_dtype dtype)
{
    const int64_t rows = cvy_program_rows(p, step);
    const int64_t *id = cvy_program_feed(p, step, "sample_id");
    const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, "x")},
                   y = {.dtype = dtype, .data = cvy_program_feed(p, step, "y")},
                   weight = {.dtype = dtype, .data = cvy_program_feed(p, step, "weight")};
    int32_t *label = cvy_program_feed(p, step, "label");
    EXPECT(id && x.data && y.data && weight.data && label);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t n = id[r], class = n % 3;
        fill_sample(&x, r, n);
        for (int64_t i = 0; i < 8; i++)
            cvy_set(&y, r * 8 + i, 0.5 + 0.5 * wave(class * 8 + i));
        cvy_set(&weight, r, n % 4 == 3 ? 0 : 1 + 0.25 * (double)(n % 2));
        label[r] = n % 5 == 4 ? 7 : (int32_t) class;
    }
}

struct outcome {
    double loss[STEPS], first[2], last[2];
    double weights[WEIGHTS];
};

static void train(cvy_context *context, int64_t batch, int64_t accumulate, int64_t group, cvy_dtype dtype,
                  struct outcome *o)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = dtype, .batch_norm_group = group, .bucket_bytes = 512};
    const cvy_training_opts sgd = {
        .size = sizeof sgd, .optimizer_options = "momentum: 0.8", .accumulate = accumulate, .weight_decay = 1e-3};
    cvy_model *m = new_model();
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &sgd, &step));
    EXPECT_OK(cvy_program_plan(p));
    fill(p, step, dtype);
    for (int i = 0; i < STEPS; i++) {
        double values = 0;
        EXPECT_OK(cvy_program_step(p, step, 0.05));
        EXPECT_OK(cvy_program_loss(p, step, "classes", &o->loss[i]));
        EXPECT_OK(cvy_program_loss(p, step, "values", &values));
        o->loss[i] += values;
    }
    read_weights(p, dtype, o->weights);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void compare(const struct outcome *got, const struct outcome *expected, double first, double rest)
{
    EXPECT_NEAR(got->loss[0], expected->loss[0], first * fabs(expected->loss[0]));
    for (int i = 1; i < STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], rest * fabs(expected->loss[0]));
    for (int i = 0; i < WEIGHTS; i++)
        EXPECT_NEAR(got->weights[i], expected->weights[i], rest);
}

static void as_on_one_rank(void)
{
    static const struct {
        int64_t batch, accumulate, group;
    } ways[] = {
        {13, 1, 4},  /* groups span ranks */
        {13, 2, -2}, /* micro-batches of 7 and 6, each one group */
        {3, 1, -2},  /* with four ranks one has no sample */
        {5, 3, 2},   /* micro-batches of 2, 2 and 1 */
        {5, 2, -2},  /* micro-batches of 3 and 2; with five ranks the third has rows in the second only */
    };
    static struct outcome one, many;
    for (int i = 0; i < CVY_COUNT(ways); i++)
        for (int d = 0; d < 2; d++) {
            const cvy_dtype dtype = d ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
            train(alone, ways[i].batch, ways[i].accumulate, ways[i].group, dtype, &one);
            train(all, ways[i].batch, ways[i].accumulate, ways[i].group, dtype, &many);
            if (d)
                compare(&many, &one, 1e-12, 1e-10);
            else
                compare(&many, &one, 1e-5, 1e-3);
            EXPECT(one.loss[STEPS - 1] < 0.6 * one.loss[0]);
        }
}

/* The shares of the ranks are consecutive, differ by at most one sample and together are the batch. */
static void shares(void)
{
    cvy_model *m = new_model();
    cvy_program *p = NULL;
    int train_step = 0, forward = 0;
    const int rank = cvy_context_rank(all), nranks = cvy_context_nranks(all);
    EXPECT_OK(cvy_program_create(all, NULL, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 2, NULL, &train_step));
    EXPECT_OK(cvy_program_add_forward(p, m, 11, NULL, &forward));
    EXPECT_OK(cvy_program_plan(p));
    int64_t mine[2] = {cvy_program_rows(p, train_step), cvy_program_rows(p, forward)}, sum[2];
    MPI_Allreduce(mine, sum, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_INT(sum[0], 2);
    EXPECT_INT(sum[1], 11);
    EXPECT(mine[1] == 11 / nranks || mine[1] == 11 / nranks + 1);
    EXPECT_INT(cvy_program_first_row(p, forward), 11 * rank / nranks);
    EXPECT(nranks <= 2 || sum[0] < nranks);
    /* A rank without rows still has its feeds and takes part. */
    EXPECT(cvy_program_feed(p, train_step, "x") != NULL);
    EXPECT_OK(cvy_program_step(p, train_step, 0.1));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* The last rank runs out of memory somewhere in planning. Every rank gets that status, and the message of the others
 * names the failing rank. */
static void fault_of_one_rank(void)
{
    const int last = cvy_context_rank(all) == cvy_context_nranks(all) - 1;
    int failed = 0;
    cvy_status status = CVY_E_MEMORY;
    /* The number of allocations in planning depends on the kernels. The loop ends after the last of them. */
    for (int k = 2; status != CVY_OK && k < 1000000; k *= 2) {
        cvy_model *m = new_model();
        cvy_program *p = NULL;
        int step = 0;
        EXPECT_OK(cvy_program_create(all, NULL, &p));
        EXPECT_OK(cvy_program_add_training(p, m, 6, NULL, &step));
        cvy_mem_fail_at(last ? k : 0, 1);
        status = cvy_program_plan(p);
        cvy_mem_fail_at(0, 0);
        if (status != CVY_OK) {
            EXPECT_INT(status, CVY_E_MEMORY);
            EXPECT(last || strstr(cvy_error_text(), "rank ") != NULL);
            failed++;
        }
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
    }
    EXPECT_INT(status, CVY_OK);
    EXPECT(failed >= 5);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    TEST(as_on_one_rank);
    TEST(shares);
    TEST(fault_of_one_rank);
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

/* ranks: 1 2 3 5 */
/*
 * test_program_batch_norm.c: after a step, the running statistics of batch norm are those that its definition gives for
 * the whole batch, for any batch, remainder, number of micro-batches and ranks, and with samples of weight 0; a batch
 * that leaves a group with one value is refused on all ranks.
 *
 * The definition is written down here once more, in double. tests/cmd/pytorch_batch_norm.sh compares it with PyTorch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "program/program_view.h"
#include "test_util.h"

enum { C = 2, BATCH_MAX = 130 };

static cvy_context *context;

struct job {
    int64_t batch, accumulate, group, positions;
    int weighted; /* samples have weights, and some have 0; 2: a mask, with a weight for each position */
};

static double value_of(int64_t n, int64_t c, int64_t p)
{
    return (c ? 3 : 1) * sin(0.9 * (double)(n * n + 7 * c + 3 * p)) + 5 + (double)(n % 3);
}

/* Of the samples 32 .. 63 none counts, and two in five of the others do not. */
static int counts(const struct job *j, int64_t n)
{
    return !j->weighted || (n / 32 != 1 && n * n % 5 != 1);
}

/* ---- the definition ---- */

static int64_t groups_of(const struct job *j, int64_t n)
{
    const int64_t size = j->group == -2 ? n : j->group ? j->group : 32, fewest = (n + size - 1) / size;
    return CVY_MAX(size > 1 && n < 2 * fewest ? n / size : fewest, 1);
}

/* The samples of a group: first .. *end_out - 1. A micro-batch begins at sample `at` and has n of them. */
static int64_t group_range(const struct job *j, int64_t at, int64_t n, int64_t g, int64_t *end_out)
{
    const int64_t total = groups_of(j, n);
    *end_out = at + n * (g + 1) / total;
    return at + n * g / total;
}

/* Whether some group has a single value for each channel, even if all samples count. */
static int has_lone_value(const struct job *j)
{
    const int64_t least = j->batch / j->accumulate;
    return j->positions * (least / groups_of(j, least)) == 1;
}

/* Sums w mean, w unbiased variance and w of a group, where w is the number of values that count. */
static void add_group(const struct job *j, int64_t first, int64_t end, int64_t c, double sum[3])
{
    double mean = 0, squares = 0, values = 0;
    for (int64_t n = first; n < end; n++)
        for (int64_t p = 0; p < j->positions && counts(j, n); p++) {
            mean += value_of(n, c, p);
            values++;
        }
    mean /= CVY_MAX(values, 1);
    for (int64_t n = first; n < end; n++)
        for (int64_t p = 0; p < j->positions && counts(j, n); p++)
            squares += pow(value_of(n, c, p) - mean, 2);
    if (values < 2)
        return;
    sum[0] += values * mean;
    sum[1] += values * squares / (values - 1);
    sum[2] += values;
}

/* The mean and the variance of a step. Returns 0 if no group counts. */
static int define(const struct job *j, int64_t c, double out[2])
{
    double sum[3] = {0, 0, 0};
    int64_t at = 0;
    for (int64_t m = 0; m < j->accumulate; m++) {
        const int64_t n = j->batch / j->accumulate + (m < j->batch % j->accumulate);
        for (int64_t g = 0; g < groups_of(j, n); g++) {
            int64_t end;
            const int64_t first = group_range(j, at, n, g, &end);
            add_group(j, first, end, c, sum);
        }
        at += n;
    }
    for (int s = 0; s < 2; s++)
        out[s] = sum[2] > 0 ? sum[s] / sum[2] : 0;
    return sum[2] > 0;
}

/* ---- a step ---- */

static cvy_model *new_model(const struct job *j)
{
    cvy_model *m = NULL;
    const int ndim = j->positions > 1 ? 2 : 1;
    EXPECT_OK(cvy_model_create("norm", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){ndim, {C, j->positions}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){ndim, {C, j->positions}}));
    if (j->weighted)
        EXPECT_OK(cvy_model_add_input(m, "weight", CVY_DTYPE_F32, &(cvy_shape){j->weighted - 1, {j->positions}}));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "norm", NULL, "x"));
    EXPECT_OK(cvy_model_add(m, "relu", "relu", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, j->weighted ? "relu, y, weight" : "relu, y"));
    return m;
}

/* The rows of this rank are its shares of the micro-batches, one after the other. */
static void fill(const struct job *j, cvy_program *p, int step)
{
    const int rank = context->comm->rank, nranks = context->comm->nranks;
    float *x = cvy_program_feed(p, step, "x"), *y = cvy_program_feed(p, step, "y"),
          *weight = j->weighted ? cvy_program_feed(p, step, "weight") : NULL;
    int64_t at = 0, row = 0;
    for (int64_t m = 0; m < j->accumulate; m++) {
        const int64_t micro = j->batch / j->accumulate + (m < j->batch % j->accumulate);
        const cvy_batch share = cvy_batch_share(micro, rank, nranks);
        for (int64_t n = at + share.first; n < at + share.first + share.local_n; n++, row++) {
            for (int64_t i = 0; i < C * j->positions; i++) {
                /* what does not count may be anything */
                x[row * C * j->positions + i] =
                    counts(j, n) ? (float)value_of(n, i / j->positions, i % j->positions) : NAN;
                y[row * C * j->positions + i] = 1;
            }
            for (int64_t i = 0; i < (j->weighted == 2 ? j->positions : 1) && j->weighted; i++)
                weight[row * (j->weighted == 2 ? j->positions : 1) + i] =
                    counts(j, n) && (j->weighted == 1 || i == j->positions - 1) ? 0.25F + (float)(n % 4) : 0;
        }
        at += micro;
    }
    EXPECT_INT(row, cvy_program_rows(p, step));
}

static void try_job(const struct job *j)
{
    const cvy_program_opts opts = {.size = sizeof opts, .batch_norm_group = j->group};
    const cvy_training_opts sgd = {.size = sizeof sgd, .accumulate = j->accumulate};
    cvy_model *m = new_model(j);
    cvy_program *p = NULL;
    int step = 0;
    float running[2][C];
    double loss = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, j->batch, &sgd, &step));
    const cvy_status status = cvy_program_plan(p);
    EXPECT_INT(status, has_lone_value(j) ? CVY_E_CONFIG : CVY_OK);
    if (status == CVY_OK) {
        fill(j, p, step);
        EXPECT_OK(cvy_program_step(p, step, 1e-9));
        EXPECT_OK(cvy_program_loss(p, step, "loss", &loss));
        EXPECT(isfinite(loss));
        EXPECT_OK(cvy_program_get(p, "norm.running_mean", running[0], C));
        EXPECT_OK(cvy_program_get(p, "norm.running_var", running[1], C));
        for (int64_t c = 0; c < C; c++) {
            double of_step[2];
            const int any = define(j, c, of_step);
            for (int s = 0; s < 2; s++)
                EXPECT_NEAR(running[s][c], any ? 0.9 * s + 0.1 * of_step[s] : s, 1e-6);
        }
    }
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void all_batches(void)
{
    const int64_t stride = context->comm->nranks > 1 ? 26 : 5;
    for (int64_t batch = 1; batch <= BATCH_MAX; batch++)
        for (int weighted = 0; weighted < 3 && (batch < 8 || batch % 32 < 2 || batch % stride == 0); weighted++)
            try_job(&(struct job){batch, 1, 0, 1 + (batch + weighted) % 3, weighted});
}

/* Micro-batches of unequal sizes, groups that end with a remainder, and ranks with unequal shares. */
static void micro_batches(void)
{
    static const struct job jobs[] = {
        {66, 2, 0, 1, 1}, {67, 3, 0, 1, 1}, {130, 4, 0, 1, 1}, {97, 2, 0, 4, 2}, {35, 2, 4, 1, 0},  {10, 3, -2, 1, 0},
        {11, 4, 3, 2, 1}, {5, 5, 0, 2, 0},  {5, 5, 0, 1, 0},   {7, 4, 2, 1, 0},  {128, 2, 0, 1, 1}, {6, 1, 1, 1, 0},
        {6, 1, 1, 3, 1},  {9, 1, 2, 1, 0},  {3, 1, 2, 1, 0},   {65, 1, 0, 1, 1}, {97, 1, 0, 9, 1},  {33, 1, -2, 1, 1},
    };
    for (int i = 0; i < CVY_COUNT(jobs); i++)
        try_job(&jobs[i]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    TEST(all_batches);
    TEST(micro_batches);
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

/* ranks: 1 2 3 */
/*
 * test_update_deterministic.c: a program in shards has the bits of one rank on any number of ranks and threads.
 *
 * It compares weights, losses, outputs and running statistics, with losses that are divided by the weights of all
 * samples, dropout, and steps with fewer samples than shards. What does not work with shards is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_view.h"
#include "program/ranks_util.h"

enum { STEPS = 4, FORWARD = 21 };

static cvy_model *new_model(void)
{
    cvy_model *m = new_network("shards");
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "classes", "class_weights: [1, 0.5, 2]", "fc, label, weight"));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "plainly", "loss_weight: 0.3", "fc, label"));
    return m;
}

static void fill(cvy_program *p, int step, cvy_dtype dtype)
{
    const int64_t *id = cvy_program_feed(p, step, "sample_id");
    const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, "x")},
                   weight = {.dtype = dtype, .data = cvy_program_feed(p, step, "weight")};
    int32_t *label = cvy_program_feed(p, step, "label");
    for (int64_t r = 0; r < cvy_program_rows(p, step); r++) {
        const int64_t n = id ? id[r] : cvy_program_first_row(p, step) + r;
        fill_sample(&x, r, n);
        cvy_set(&weight, r, 1 + 0.3 * (double)(n % 5));
        label[r] = (int32_t)(n % 3);
    }
}

struct outcome {
    double loss[STEPS][2], weights[WEIGHTS];
    int64_t first, rows;
    float output[FORWARD][3];
    cvy_shape shape;
};

static void train(cvy_context *context, int64_t batch, const cvy_program_opts *opts, const char *optimizer,
                  struct outcome *o)
{
    const cvy_training_opts training = {
        .size = sizeof training, .optimizer = optimizer, .weight_decay = 1e-3, .clip_norm = 2};
    cvy_model *m = new_model();
    cvy_program *p = NULL;
    int step = 0, forward = 0;
    const void *output = NULL;
    memset(o, 0, sizeof *o);
    EXPECT_OK(cvy_program_create(context, opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &training, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, FORWARD, "fc", &forward));
    EXPECT_OK(cvy_program_plan(p));
    fill(p, step, CVY_DTYPE_F32);
    fill(p, forward, CVY_DTYPE_F32);
    for (int i = 0; i < STEPS; i++) {
        EXPECT_OK(cvy_program_step(p, step, 0.05));
        EXPECT_OK(cvy_program_loss(p, step, "classes", &o->loss[i][0]));
        EXPECT_OK(cvy_program_loss(p, step, "plainly", &o->loss[i][1]));
    }
    EXPECT_OK(cvy_program_step(p, forward, 0));
    o->first = cvy_program_first_row(p, forward);
    o->rows = cvy_program_rows(p, forward);
    EXPECT_OK(cvy_program_output(p, forward, "fc", &output, &o->shape));
    memcpy(o->output, output, sizeof o->output[0] * (size_t)o->rows);
    read_weights(p, CVY_DTYPE_F32, o->weights);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* The contexts of this file: one with two threads on all ranks, and one with three threads on one rank. */
static cvy_context *all_by_two, *alone_by_three;

static int differ(const struct outcome *got, const struct outcome *expected)
{
    EXPECT(got->shape.ndim == 2 && got->shape.dim[0] == got->rows && got->shape.dim[1] == 3);
    return (memcmp(got->loss, expected->loss, sizeof got->loss) != 0) +
           2 * (memcmp(got->weights, expected->weights, sizeof got->weights) != 0) +
           4 * (memcmp(got->output, expected->output[got->first], sizeof got->output[0] * (size_t)got->rows) != 0);
}

static void as_on_one_rank(void)
{
    static const struct {
        int64_t batch, shards, group;
        const char *optimizer, *kernels;
    } ways[] = {
        {24, 8, -2, "sgd", NULL},     {29, 8, 2, "adam", NULL},
        {5, 8, -2, "adam", NULL}, /* shards without samples */
        {37, 16, -2, "sgd", NULL},    {29, 8, -2, "sgd", "reference"},
        {26, 8, 0, "adam", "native"},
    };
    static struct outcome one, other;
    for (int i = 0; i < CVY_COUNT(ways); i++) {
        const cvy_program_opts opts = {.size = sizeof opts,
                                       .shards = ways[i].shards,
                                       .batch_norm_group = ways[i].group,
                                       .kernels = ways[i].kernels,
                                       .bucket_bytes = 512};
        train(alone, ways[i].batch, &opts, ways[i].optimizer, &one);
        EXPECT(one.loss[STEPS - 1][0] < one.loss[0][0]);
        EXPECT(one.first == 0 && one.rows == FORWARD);
        train(alone_by_three, ways[i].batch, &opts, ways[i].optimizer, &other);
        EXPECT_INT(differ(&other, &one), 0);
        train(all, ways[i].batch, &opts, ways[i].optimizer, &other);
        EXPECT_INT(differ(&other, &one), 0);
        train(all_by_two, ways[i].batch, &opts, ways[i].optimizer, &other);
        EXPECT_INT(differ(&other, &one), 0);
    }
}

/* One shard on one rank is an ordinary step. Shards without batch norm are an ordinary step but for rounding. */
static void as_without_shards(void)
{
    static struct outcome plain, sharded;
    const cvy_program_opts none = {.size = sizeof none, .batch_norm_group = 3, .wisdom = "off"},
                           eight = {.size = sizeof eight, .batch_norm_group = 3, .shards = 8};
    train(alone, 24, &none, "sgd", &plain); /* the groups of three are the shards */
    train(alone, 24, &eight, "sgd", &sharded);
    for (int i = 0; i < STEPS; i++)
        EXPECT_NEAR(sharded.loss[i][0], plain.loss[i][0], 1e-4);
    for (int i = 0; i < WEIGHTS; i++)
        EXPECT_NEAR(sharded.weights[i], plain.weights[i], 1e-4);
}

static void refused(void)
{
    const struct {
        cvy_program_opts opts;
        const char *part;
    } rows[] = {
        {{.shards = 6}, "opts.shards is 6, expected a power of two"},
        {{.shards = 16, .update_mode = CVY_UPDATE_ZERO1},
         "opts.update_mode is zero1, which does not go with deterministic updates"},
        {{.shards = 16, .overlap = CVY_OVERLAP_FORWARD}, "opts.overlap is forward"},
        {{.shards = 16, .reduce_wire = CVY_DTYPE_BF16}, "opts.reduce_wire is bf16"},
        {{.shards = 16, .reduce = "ring"}, "opts.reduce is ring"},
        {{.shards = 16, .planning = "measure"}, "opts.planning is measure"},
    };
    const cvy_training_opts two = {.size = sizeof two, .accumulate = 2};
    cvy_program *p = NULL;
    cvy_model *m = new_model();
    int step = 0;
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        cvy_program_opts opts = rows[i].opts;
        opts.size = sizeof opts;
        EXPECT_FAULT(cvy_program_create(alone, &opts, &p), CVY_E_CONFIG, rows[i].part);
    }
    EXPECT_OK(cvy_program_create(alone, &(cvy_program_opts){.size = sizeof(cvy_program_opts), .shards = 4}, &p));
    EXPECT_FAULT(cvy_program_add_training(p, m, 8, &two, &step), CVY_E_ARGUMENT,
                 "deterministic training computes a step in shards already");
    cvy_program_destroy(&p);
    if (cvy_context_nranks(all) > 4)
        EXPECT_FAULT(cvy_program_create(all, &(cvy_program_opts){.size = sizeof(cvy_program_opts), .shards = 4}, &p),
                     CVY_E_CONFIG, "4 shards, but there are");
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

int main(int argc, char **argv)
{
    const cvy_context_opts by_two = {.size = sizeof by_two, .threads = 2},
                           by_three = {.size = sizeof by_three, .threads = 3};
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &by_two, &all_by_two));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    EXPECT_OK(cvy_context_create(&by_three, &alone_by_three));
    TEST(as_on_one_rank);
    TEST(as_without_shards);
    TEST(refused);
    cvy_context_destroy(&alone_by_three);
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all_by_two);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

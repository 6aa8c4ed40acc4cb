/* ranks: 2 3 4 */
/*
 * test_program_stages.c: a pipeline gives the losses and weights of one rank: with skip connections across stages,
 * batch norm, dropout, losses on several stages, both orders of micro-batches, several optimisers, clipping, and with
 * stages of several ranks; each stage has memory for its own weights only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program.h"
#include "program/ranks_util.h"

enum { STEPS = 10 };

static void add(cvy_model *m, const char *op, const char *name, const char *options, const char *from)
{
    EXPECT_OK(cvy_model_add(m, op, name, options, from));
}

/* The results of a and s1 are read by much later layers too, and the loss `early` is not at the end. */
static cvy_model *make_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("stages", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    add(m, "conv", "a", "channels: 8, kernel: 3, pad: 1, bias: false", "x");
    add(m, "batch_norm", "bn", NULL, "a");
    add(m, "relu", "r", NULL, "bn");
    add(m, "conv", "b", "channels: 8, kernel: 3, pad: 1", "r");
    add(m, "add", "s1", NULL, "a, b");
    add(m, "global_avg_pool", "early_pool", NULL, "s1");
    add(m, "fc", "early_fc", "channels: 3", "early_pool");
    add(m, "softmax_cross_entropy", "early", "loss_weight: 0.3", "early_fc, label");
    add(m, "relu", "r2", NULL, "s1");
    add(m, "conv", "c", "channels: 8, kernel: 3, pad: 1, bias: false", "r2");
    add(m, "batch_norm", "bn2", NULL, "c");
    add(m, "add", "s2", NULL, "s1, bn2, a");
    add(m, "max_pool", "pool", "kernel: 2", "s2");
    add(m, "dropout", "drop", "p: 0.1", "pool");
    add(m, "fc", "fc", "channels: 3, bias: false", "drop");
    add(m, "softmax_cross_entropy", "late", NULL, "fc, label");
    return m;
}

static void fill(cvy_program *p, int step, cvy_dtype dtype)
{
    const int64_t rows = cvy_program_rows(p, step);
    const int64_t *id = cvy_program_feed(p, step, "sample_id");
    const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, "x")};
    int32_t *label = cvy_program_feed(p, step, "label");
    EXPECT(id && x.data && label);
    for (int64_t r = 0; r < rows; r++) {
        fill_sample(&x, r, id[r]);
        label[r] = (int32_t)(id[r] % 3);
    }
}

struct way {
    int64_t batch, accumulate;
    const char *optimizer, *order;
    double clip_norm;
};

struct trained {
    cvy_model *model;
    cvy_program *program;
    double loss[STEPS];
};

static void train(cvy_context *context, const struct way *w, int64_t stages, cvy_dtype dtype, struct trained *t)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = dtype,
                                   .batch_norm_group = -2,
                                   .bucket_bytes = 512,
                                   .pipeline = stages,
                                   .pipeline_order = w->order};
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = w->optimizer,
                                        .accumulate = w->accumulate,
                                        .weight_decay = 1e-3,
                                        .clip_norm = w->clip_norm};
    int step = 0;
    t->model = make_model();
    EXPECT_OK(cvy_program_create(context, &opts, &t->program));
    EXPECT_OK(cvy_program_add_training(t->program, t->model, w->batch, &training, &step));
    EXPECT_OK(cvy_program_plan(t->program));
    fill(t->program, step, dtype);
    for (int i = 0; i < STEPS; i++) {
        double early = 0;
        EXPECT_OK(cvy_program_step(t->program, step, 0.01));
        EXPECT_OK(cvy_program_loss(t->program, step, "early", &early));
        EXPECT_OK(cvy_program_loss(t->program, step, "late", &t->loss[i]));
        t->loss[i] += early;
    }
}

static void end(struct trained *t)
{
    cvy_program_destroy(&t->program);
    cvy_model_destroy(&t->model);
}

/* Compares the variables of this stage; returns their number. */
static int compare(const struct trained *got, const struct trained *expected, double tolerance)
{
    static double here[4096], there[4096];
    int count = 0;
    for (int i = 0; i < STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], tolerance * fabs(expected->loss[0]));
    EXPECT_INT(got->program->vars->count, expected->program->vars->count);
    for (int i = 0; i < got->program->vars->count; i++) {
        const cvy_variable *v = got->program->vars->at[i], *w = cvy_vars_find(expected->program->vars, v->name);
        if (v->elsewhere) {
            EXPECT(!v->data);
            EXPECT_FAULT(cvy_program_get(got->program, v->name, here, cvy_shape_elems(&v->shape)), CVY_E_ARGUMENT,
                         "is on another stage of the pipeline");
            continue;
        }
        count += v->role == CVY_ROLE_WEIGHT;
        EXPECT(w && v->data);
        const int64_t n = cvy_shape_elems(&v->shape);
        const cvy_span x = {.dtype = v->dtype, .data = here}, y = {.dtype = v->dtype, .data = there};
        EXPECT_OK(cvy_variable_read(v, here));
        EXPECT_OK(cvy_variable_read(w, there));
        for (int64_t k = 0; k < n; k++)
            EXPECT_NEAR(cvy_get(&x, k), cvy_get(&y, k), 10 * tolerance);
    }
    return count;
}

static void as_on_one_rank(int64_t stages)
{
    static const struct way ways[] = {
        {12, 4, "sgd", "1f1b", 0}, {12, 4, "adam", "gpipe", 0}, {13, 5, "sgd", NULL, 0.05},
        {12, 1, "lars", NULL, 0},  {3, 2, "adam", NULL, 0.5}, /* micro-batches of 2 and 1: with several ranks a stage,
                                                                 one of them has no sample */
    };
    static struct trained one, many;
    for (int i = 0; i < CVY_COUNT(ways); i++)
        for (int d = 0; d < 2; d++) {
            const cvy_dtype dtype = d ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
            train(alone, &ways[i], 1, dtype, &one);
            train(all, &ways[i], stages, dtype, &many);
            int mine = compare(&many, &one, d ? 1e-12 : 1e-4), sum = 0;
            MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            EXPECT_INT(sum, 11 * cvy_context_nranks(all) / (int)stages); /* each weight is on one stage */
            const cvy_checkpoint_opts save = {.size = sizeof save, .folder = "stages-checkpoint"};
            EXPECT_FAULT(cvy_checkpoint_write(many.program, &save), CVY_E_UNSUPPORTED, "programs with one stage only");
            end(&many);
            end(&one);
        }
}

static void refused(void)
{
    const int nranks = cvy_context_nranks(all);
    cvy_program_opts opts = {.size = sizeof opts, .pipeline = nranks + 1};
    cvy_program *p = NULL;
    EXPECT_FAULT(cvy_program_create(all, &opts, &p), CVY_E_CONFIG, "the number of ranks must be a multiple");
    opts.pipeline = nranks;
    opts.update_mode = CVY_UPDATE_DELAYED;
    EXPECT_FAULT(cvy_program_create(all, &opts, &p), CVY_E_CONFIG, "update mode sync only");
    opts.update_mode = CVY_UPDATE_SYNC;
    opts.pipeline_order = "2f2b";
    EXPECT_FAULT(cvy_program_create(all, &opts, &p), CVY_E_CONFIG, "expected 1f1b or gpipe");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    EXPECT_OK(cvy_context_create(NULL, &alone));
    const int nranks = cvy_context_nranks(all);
    for (int stages = 2; stages <= nranks; stages++)
        if (nranks % stages == 0)
            as_on_one_rank(stages);
    TEST(refused);
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

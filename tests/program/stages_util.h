/*
 * stages_util.h: what the tests of pipelines share: a network with skip connections across stages and losses on several
 * stages, its training in f32 or f64, and a comparison with the same training on one rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_STAGES_UTIL_H
#define CVY_TEST_STAGES_UTIL_H

#include "program/program_impl.h"
#include "program/ranks_util.h"

enum { STEPS = 6 };

static inline void add(cvy_model *m, const char *op, const char *name, const char *options, const char *from)
{
    EXPECT_OK(cvy_model_add(m, op, name, options, from));
}

/* The results of a and s1 are read by much later layers too, and the loss `early` is not at the end. */
static inline cvy_model *make_model(void)
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

static inline void fill(cvy_program *p, int step, cvy_dtype dtype)
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

/* Plans the model for training with these options, which need not have a dtype. */
static inline cvy_status plan(cvy_context *context, const struct way *w, const cvy_program_opts *given, cvy_dtype dtype,
                              struct trained *t)
{
    cvy_program_opts opts = *given;
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = w->optimizer,
                                        .accumulate = w->accumulate,
                                        .weight_decay = 1e-3,
                                        .clip_norm = w->clip_norm};
    int step = 0;
    opts.size = sizeof opts;
    opts.dtype = dtype;
    opts.batch_norm_group = -2;
    opts.bucket_bytes = 512;
    opts.pipeline_order = w->order;
    CVY_TRY(cvy_program_create(context, &opts, &t->program));
    CVY_TRY(cvy_program_add_training(t->program, t->model, w->batch, &training, &step));
    return cvy_program_plan(t->program);
}

static inline void run(struct trained *t, cvy_dtype dtype)
{
    fill(t->program, 0, dtype);
    for (int i = 0; i < STEPS; i++) {
        double early = 0;
        EXPECT_OK(cvy_program_step(t->program, 0, 0.01));
        EXPECT_OK(cvy_program_loss(t->program, 0, "early", &early));
        EXPECT_OK(cvy_program_loss(t->program, 0, "late", &t->loss[i]));
        t->loss[i] += early;
    }
    EXPECT_OK(cvy_program_flush(t->program));
}

static inline void train(cvy_context *context, const struct way *w, const cvy_program_opts *opts, cvy_dtype dtype,
                         struct trained *t)
{
    t->model = make_model();
    EXPECT_OK(plan(context, w, opts, dtype, t));
    run(t, dtype);
}

static inline void end(struct trained *t)
{
    cvy_program_destroy(&t->program);
    cvy_model_destroy(&t->model);
}

/* Compares the variables of this stage; returns the number of its weights. With zero1 the first rank of a stage
 * collects the optimiser's states. */
static inline int compare(const struct trained *got, const struct trained *expected, double tolerance)
{
    static double here[4096], there[4096];
    const int collects = got->program->update.shape.state_elsewhere;
    cvy_vars *pending = NULL;
    int count = 0;
    EXPECT_OK(cvy_program_collect(got->program, &pending));
    EXPECT(!pending);
    for (int i = 0; i < STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], tolerance * fabs(expected->loss[0]));
    EXPECT_INT(cvy_program_vars(got->program)->count, cvy_program_vars(expected->program)->count);
    for (int i = 0; i < cvy_program_vars(got->program)->count; i++) {
        const cvy_variable *v = cvy_program_vars(got->program)->at[i],
                           *w = cvy_vars_find(cvy_program_vars(expected->program), v->name);
        if (v->elsewhere) {
            EXPECT(!v->data);
            EXPECT_FAULT(cvy_program_get(got->program, v->name, here, cvy_shape_elems(&v->shape)), CVY_E_ARGUMENT,
                         "is on another stage of the pipeline");
            continue;
        }
        count += v->role == CVY_ROLE_WEIGHT;
        EXPECT(w && v->data);
        if (v->role == CVY_ROLE_STATE && collects && cvy_program_grid(got->program)->data_rank != 0)
            continue;
        const int64_t n = cvy_shape_elems(&v->shape);
        const cvy_span x = {.dtype = v->dtype, .data = here}, y = {.dtype = v->dtype, .data = there};
        EXPECT_OK(cvy_variable_read(v, here));
        EXPECT_OK(cvy_variable_read(w, there));
        for (int64_t k = 0; k < n; k++)
            EXPECT_NEAR(cvy_get(&x, k), cvy_get(&y, k), 10 * tolerance);
    }
    return count;
}

#endif

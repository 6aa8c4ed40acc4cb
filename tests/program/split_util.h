/*
 * split_util.h: what the tests of tensor and spatial parallelism share: two networks, their samples, training on a grid
 * of ranks, and a comparison of a rank's parts with the training of one rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_SPLIT_UTIL_H
#define CVY_TEST_SPLIT_UTIL_H

#include "program/program_impl.h"
#include "program/ranks_util.h"

enum { STEPS = 6 };

static inline void add(cvy_model *m, const char *op, const char *name, const char *options, const char *from)
{
    EXPECT_OK(cvy_model_add(m, op, name, options, from));
}

/* A residual network with fully connected layers at its end. */
static inline cvy_model *residual(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("residual", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 9, 8}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    add(m, "conv", "a", "channels: 8, kernel: 3, pad: 1, bias: false", "x");
    add(m, "batch_norm", "bn", NULL, "a");
    add(m, "relu", "r", NULL, "bn");
    add(m, "conv", "b", "channels: 8, kernel: 3, pad: 1", "r");
    add(m, "add", "s1", NULL, "a, b");
    add(m, "relu", "r2", NULL, "s1");
    add(m, "conv", "c", "channels: 9, kernel: 3, stride: 2, pad: 1, bias: false", "r2");
    add(m, "batch_norm", "bn2", NULL, "c");
    add(m, "conv", "d", "channels: 8, kernel: 1", "bn2");
    add(m, "max_pool", "pool", "kernel: 3, stride: 2, ceil: true", "d");
    add(m, "fc", "fc1", "channels: 10", "pool");
    add(m, "relu", "r3", NULL, "fc1");
    add(m, "dropout", "drop", "p: 0.1", "r3");
    add(m, "fc", "fc2", "channels: 3", "drop");
    add(m, "softmax_cross_entropy", "loss", NULL, "fc2, label");
    return m;
}

/* Fields in and fields out. */
static inline cvy_model *decoder(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("decoder", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 9, 8}}));
    EXPECT_OK(cvy_model_add_input(m, "x2", CVY_DTYPE_F32, &(cvy_shape){3, {2, 11, 8}}));
    add(m, "conv", "a", "channels: 8, kernel: [3, 2], stride: 2, pad: [1, 0]", "x");
    add(m, "leaky_relu", "r", NULL, "a");
    add(m, "conv", "g", "channels: 8, kernel: 3, pad: 2, dilation: 2, groups: 4, bias: false", "r");
    add(m, "avg_pool", "pool", "kernel: 3, stride: 1, pad: 1", "g");
    add(m, "lrn", "lrn", NULL, "pool");
    add(m, "deconv", "u", "channels: 6, kernel: 4, stride: 2, pad: 1, output_pad: [1, 0]", "lrn");
    add(m, "relu", "r2", NULL, "u");
    add(m, "dropout", "drop", "p: 0.1", "r2");
    add(m, "deconv", "v", "channels: 2, kernel: 3, pad: 1", "drop");
    add(m, "mse", "loss", NULL, "v, x2");
    return m;
}

/* Labels for each position, targets with weights, and both global poolings. */
static inline cvy_model *maps(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("maps", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 9, 8}}));
    EXPECT_OK(cvy_model_add_input(m, "map", CVY_DTYPE_I32, &(cvy_shape){2, {9, 8}}));
    EXPECT_OK(cvy_model_add_input(m, "w", CVY_DTYPE_F32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    add(m, "conv", "a", "channels: 8, kernel: 3, pad: 1", "x");
    add(m, "relu", "r", NULL, "a");
    add(m, "dropout", "drop", "p: 0.1", "r");
    add(m, "conv", "classes", "channels: 3, kernel: 1", "drop");
    add(m, "softmax_cross_entropy", "loss_of_map", "ignore_label: 2, loss_weight: 0.5", "classes, map");
    add(m, "conv", "values", "channels: 2, kernel: 3, pad: 1", "drop");
    add(m, "mae", "loss_of_values", NULL, "values, x, w");
    add(m, "global_max_pool", "largest", NULL, "r");
    add(m, "global_avg_pool", "mean", NULL, "r");
    add(m, "add", "both", NULL, "largest, mean");
    add(m, "fc", "fc", "channels: 3", "both");
    add(m, "softmax_cross_entropy", "loss", NULL, "fc, label");
    return m;
}

typedef cvy_model *(*make_fn)(void);

/* The number of a sample; a task without dropout has no such input. */
static inline int64_t sample_of(const cvy_program *p, int step, const int64_t *id, int64_t row)
{
    return id ? id[row] : cvy_program_first_row(p, step) + row;
}

/* Fills the rank's part of the inputs. */
static inline void fill(cvy_program *p, int step, cvy_dtype dtype)
{
    const int64_t rows = cvy_program_rows(p, step), *id = cvy_program_feed(p, step, "sample_id");
    int32_t *label = cvy_program_feed(p, step, "label"), *map = cvy_program_feed(p, step, "map");
    const cvy_span w = {.dtype = dtype, .data = cvy_program_feed(p, step, "w")};
    for (int64_t r = 0; r < rows && map; r++)
        for (int64_t i = 0; i < 9 * 8; i++)
            map[r * 9 * 8 + i] = (int32_t)((sample_of(p, step, id, r) + i * i) % 3);
    for (int64_t r = 0; r < rows && w.data; r++)
        cvy_set(&w, r, 0.5 + (double)(sample_of(p, step, id, r) % 4));
    for (int f = 0; f < 2; f++) {
        const char *name = f ? "x2" : "x";
        const cvy_value *v = cvy_graph_find(cvy_program_task_plan(p, step)->lowered[0]->graph, name);
        if (!v)
            continue;
        const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, name)};
        const cvy_shape sample = cvy_shape_make(v->shape.ndim - 1, v->shape.dim + 1);
        cvy_tile tile;
        EXPECT_OK(cvy_program_part(p, step, name, &tile.whole, tile.first));
        const int64_t n = cvy_shape_elems(&sample), all_n = cvy_shape_elems(&tile.whole);
        for (int64_t r = 0; r < rows; r++) {
            const int64_t number = sample_of(p, step, id, r);
            for (int64_t i = 0; i < n; i++) {
                const int64_t at = cvy_tile_index(&tile, &sample, i);
                cvy_set(&x, r * n + i, wave(number * all_n + at + f) + (at % 3 == number % 3 ? 2 : 0));
            }
        }
    }
    for (int64_t r = 0; r < rows && label; r++)
        label[r] = (int32_t)(sample_of(p, step, id, r) % 3);
}

struct grid {
    int64_t pipeline, tensor, spatial[2];
};

struct way {
    int64_t batch, accumulate;
    const char *optimizer;
    double clip_norm;
    cvy_program_opts opts; /* other than dtype and grid */
};

struct trained {
    cvy_model *model;
    cvy_program *program;
    double loss[STEPS];
};

/* Plans t->model for training, and for evaluation. */
static inline cvy_status plan(cvy_context *context, const struct way *w, const struct grid *grid, cvy_dtype dtype,
                              struct trained *t)
{
    cvy_program_opts opts = w->opts;
    opts.size = sizeof opts;
    opts.dtype = dtype;
    opts.batch_norm_group = opts.batch_norm_group ? opts.batch_norm_group : -2;
    opts.bucket_bytes = 512;
    opts.pipeline = grid->pipeline;
    opts.tensor = grid->tensor;
    opts.spatial[0] = grid->spatial[0];
    opts.spatial[1] = grid->spatial[1];
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = w->optimizer,
                                        .accumulate = w->accumulate,
                                        .weight_decay = 1e-3,
                                        .clip_norm = w->clip_norm};
    int step = 0, forward = 0;
    CVY_TRY(cvy_program_create(context, &opts, &t->program));
    CVY_TRY(cvy_program_add_training(t->program, t->model, w->batch, &training, &step));
    CVY_TRY(cvy_program_add_forward(t->program, t->model, w->batch, NULL, &forward));
    return cvy_program_plan(t->program);
}

static inline void run(struct trained *t, cvy_dtype dtype)
{
    fill(t->program, 0, dtype);
    for (int i = 0; i < STEPS; i++) {
        EXPECT_OK(cvy_program_step(t->program, 0, 0.01));
        EXPECT_OK(cvy_program_loss(t->program, 0, "loss", &t->loss[i]));
    }
    EXPECT_OK(cvy_program_flush(t->program));
}

static inline void train(cvy_context *context, make_fn make, const struct way *w, const struct grid *grid,
                         cvy_dtype dtype, struct trained *t)
{
    t->model = make();
    EXPECT_OK(plan(context, w, grid, dtype, t));
    run(t, dtype);
}

static inline void end(struct trained *t)
{
    cvy_program_destroy(&t->program);
    cvy_model_destroy(&t->model);
}

/* Compares this rank's parts of the variables; returns the number of its elements of weights. With zero1 the first rank
 * of a data axis collects the optimiser's states. */
static inline int64_t compare(const struct trained *got, const struct trained *expected, double tolerance)
{
    static double here[8192], there[8192];
    const int collects = got->program->update.shape.state_elsewhere;
    int64_t count = 0;
    cvy_vars *pending = NULL;
    EXPECT_OK(cvy_program_collect(got->program, &pending));
    EXPECT(!pending);
    for (int i = 0; i < STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], tolerance * fabs(expected->loss[0]));
    for (int i = 0; i < cvy_program_vars(expected->program)->count; i++)
        EXPECT(cvy_program_vars(expected->program)->at[i]->role == CVY_ROLE_STATE ||
               cvy_vars_find(cvy_program_vars(got->program), cvy_program_vars(expected->program)->at[i]->name));
    for (int i = 0; i < cvy_program_vars(got->program)->count; i++) {
        const cvy_variable *v = cvy_program_vars(got->program)->at[i],
                           *w = cvy_vars_find(cvy_program_vars(expected->program), v->name);
        if (v->elsewhere) {
            EXPECT(!v->data);
            continue;
        }
        if (v->role == CVY_ROLE_STATE && collects && cvy_program_grid(got->program)->data_rank != 0)
            continue;
        EXPECT(w && v->data && cvy_shape_elems(&w->shape) <= CVY_COUNT(there));
        const int64_t n = cvy_shape_elems(&v->shape);
        const cvy_span x = {.dtype = v->dtype, .data = here}, y = {.dtype = v->dtype, .data = there};
        count += v->role == CVY_ROLE_WEIGHT ? n : 0;
        EXPECT_OK(cvy_variable_read(v, here));
        EXPECT_OK(cvy_variable_read(w, there));
        cvy_tile tile;
        EXPECT_OK(cvy_program_part(got->program, 0, v->name, &tile.whole, tile.first));
        EXPECT(cvy_shape_equal(&tile.whole, &w->shape));
        for (int64_t k = 0; k < n; k++)
            EXPECT_NEAR(cvy_get(&x, k), cvy_get(&y, cvy_tile_index(&tile, &v->shape, k)), 10 * tolerance);
    }
    return count;
}

#endif

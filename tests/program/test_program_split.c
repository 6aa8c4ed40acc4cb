/* ranks: 2 3 4 8 */
/*
 * test_program_split.c: ranks that share layers (tensor) or samples (spatial), alone, with each other, with stages of a
 * pipeline and with a data axis, give the losses and weights of one rank: convolutions with strides, dilation and
 * groups, transposed convolutions, pooling, batch norm, dropout, skip connections, losses over positions, sizes that do
 * not divide, clipping and several optimisers. Each rank has memory for its part only. Overlap of halo exchanges
 * changes the order of the nodes and no bit.
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

/* A residual network with fully connected layers at its end. */
static cvy_model *residual(void)
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
    add(m, "max_pool", "pool", "kernel: 3, stride: 2, pad: 1", "d");
    add(m, "fc", "fc1", "channels: 10", "pool");
    add(m, "relu", "r3", NULL, "fc1");
    add(m, "dropout", "drop", "p: 0.1", "r3");
    add(m, "fc", "fc2", "channels: 3", "drop");
    add(m, "softmax_cross_entropy", "loss", NULL, "fc2, label");
    return m;
}

/* Fields in and fields out. */
static cvy_model *decoder(void)
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
static cvy_model *maps(void)
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

/* Fills the rank's part of the inputs. */
static void fill(cvy_program *p, int step, cvy_dtype dtype)
{
    const int64_t rows = cvy_program_rows(p, step), *id = cvy_program_feed(p, step, "sample_id");
    int32_t *label = cvy_program_feed(p, step, "label"), *map = cvy_program_feed(p, step, "map");
    const cvy_span w = {.dtype = dtype, .data = cvy_program_feed(p, step, "w")};
    for (int64_t r = 0; r < rows && map; r++)
        for (int64_t i = 0; i < 9 * 8; i++)
            map[r * 9 * 8 + i] = (int32_t)((id[r] + i * i) % 3);
    for (int64_t r = 0; r < rows && w.data; r++)
        cvy_set(&w, r, 0.5 + (double)(id[r] % 4));
    for (int f = 0; f < 2; f++) {
        const char *name = f ? "x2" : "x";
        const cvy_value *v = cvy_graph_find(p->task[step]->split.graph[0], name);
        if (!v)
            continue;
        const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, name)};
        const cvy_shape sample = cvy_shape_make(v->shape.ndim - 1, v->shape.dim + 1);
        cvy_tile tile;
        EXPECT_OK(cvy_program_part(p, step, name, &tile.whole, tile.first));
        const int64_t n = cvy_shape_elems(&sample), all_n = cvy_shape_elems(&tile.whole);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < n; i++) {
                const int64_t at = cvy_tile_index(&tile, &sample, i);
                cvy_set(&x, r * n + i, wave(id[r] * all_n + at + f) + (at % 3 == id[r] % 3 ? 2 : 0));
            }
    }
    for (int64_t r = 0; r < rows && label; r++)
        label[r] = (int32_t)(id[r] % 3);
}

struct grid {
    int64_t pipeline, tensor, spatial[2];
};

struct way {
    int64_t batch, accumulate;
    const char *optimizer;
    double clip_norm;
    const char *passes_off;
};

struct trained {
    cvy_model *model;
    cvy_program *program;
    double loss[STEPS];
};

static void train(cvy_context *context, make_fn make, const struct way *w, const struct grid *grid, cvy_dtype dtype,
                  struct trained *t)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = dtype,
                                   .batch_norm_group = -2,
                                   .bucket_bytes = 512,
                                   .passes_off = w->passes_off,
                                   .pipeline = grid->pipeline,
                                   .tensor = grid->tensor,
                                   .spatial = {grid->spatial[0], grid->spatial[1]}};
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = w->optimizer,
                                        .accumulate = w->accumulate,
                                        .weight_decay = 1e-3,
                                        .clip_norm = w->clip_norm};
    int step = 0;
    t->model = make();
    EXPECT_OK(cvy_program_create(context, &opts, &t->program));
    EXPECT_OK(cvy_program_add_training(t->program, t->model, w->batch, &training, &step));
    EXPECT_OK(cvy_program_plan(t->program));
    fill(t->program, step, dtype);
    for (int i = 0; i < STEPS; i++) {
        EXPECT_OK(cvy_program_step(t->program, step, 0.01));
        EXPECT_OK(cvy_program_loss(t->program, step, "loss", &t->loss[i]));
    }
}

static void end(struct trained *t)
{
    cvy_program_destroy(&t->program);
    cvy_model_destroy(&t->model);
}

/* Compares this rank's parts of the variables; returns the number of its elements of weights. */
static int64_t compare(const struct trained *got, const struct trained *expected, double tolerance)
{
    static double here[8192], there[8192];
    int64_t count = 0;
    for (int i = 0; i < STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], tolerance * fabs(expected->loss[0]));
    for (int i = 0; i < expected->program->vars->count; i++)
        EXPECT(expected->program->vars->at[i]->role == CVY_ROLE_STATE ||
               cvy_vars_find(got->program->vars, expected->program->vars->at[i]->name));
    for (int i = 0; i < got->program->vars->count; i++) {
        const cvy_variable *v = got->program->vars->at[i], *w = cvy_vars_find(expected->program->vars, v->name);
        if (v->elsewhere) {
            EXPECT(!v->data);
            continue;
        }
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

static void as_on_one_rank(const struct grid *grid)
{
    static const struct way ways[] = {{12, 1, "sgd", 0, NULL}, {12, 2, "adam", 0, NULL}, {5, 2, "sgd", 0.05, NULL}};
    static const struct grid none = {1, 1, {1, 1}};
    static const make_fn networks[] = {residual, decoder, maps};
    static struct trained one, many;
    const int ncut = grid->spatial[0] * grid->spatial[1]; /* maps are about positions */
    for (int n = 0; n < CVY_COUNT(networks) - (ncut == 1); n++)
        for (int i = n == 2 ? 1 : 0; i < (n == 2 ? 2 : CVY_COUNT(ways)); i++)
            for (int d = i == 0 ? 0 : 1; d < 2; d++) { /* f32 with the first way only: the test takes long */
                const cvy_dtype dtype = d ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
                train(alone, networks[n], &ways[i], &none, dtype, &one);
                train(all, networks[n], &ways[i], grid, dtype, &many);
                compare(&many, &one, d ? 1e-12 : 1e-4);
                end(&many);
                end(&one);
            }
}

/* The computing nodes between the starts of halo exchanges and their waits. */
static int count_between(const cvy_graph *g)
{
    int n = 0, under_way = 0;
    for (int i = 0; i < g->nnode; i++) {
        const cvy_node *node = g->node[i];
        if (node->removed)
            continue;
        under_way += node->op == cvy_op_find("redistribute_start");
        under_way -= node->op == cvy_op_find("redistribute_wait");
        n += under_way > 0 && !node->op->comm;
    }
    EXPECT(under_way == 0);
    return n;
}

/* With overlap the gradient of each weight of a convolution is computed beside the exchange of its source's gradient;
 * the bits are those without overlap. */
static void with_overlap(void)
{
    static const struct grid halves = {1, 1, {2, 1}};
    static struct trained on, off;
    train(all, residual, &(struct way){4, 1, "sgd", 0, NULL}, &halves, CVY_DTYPE_F32, &on);
    train(all, residual, &(struct way){4, 1, "sgd", 0, "overlap"}, &halves, CVY_DTYPE_F32, &off);
    for (int i = 0; i < STEPS; i++)
        EXPECT(on.loss[i] == off.loss[i]);
    EXPECT(count_between(on.program->task[0]->plan->lowered[0]->graph) >= 2); /* of the layers b and c */
    EXPECT(count_between(off.program->task[0]->plan->lowered[0]->graph) == 0);
    end(&off);
    end(&on);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    EXPECT_OK(cvy_context_create(NULL, &alone));
    const int nranks = cvy_context_nranks(all);
    if (nranks == 2)
        with_overlap();
    for (int64_t pipeline = 1; pipeline <= nranks; pipeline++)
        for (int64_t tensor = 1; tensor <= nranks; tensor++)
            for (int64_t height = 1; height <= nranks; height++)
                for (int64_t width = 1; width <= nranks; width++) {
                    const struct grid grid = {pipeline, tensor, {height, width}};
                    const int axes = (pipeline > 1) + (tensor > 1) + (height * width > 1);
                    if (nranks % (pipeline * tensor * height * width) == 0 && tensor * height * width > 1 &&
                        (nranks < 8 || (axes == 3 && height * width == 2)))
                        as_on_one_rank(&grid);
                }
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

/* ranks: 2 4 */
/* rows: mpich */
/*
 * test_program_zoo_grids.c: networks of the zoo at reduced width, and one with transposed convolutions, have the losses
 * and weights of one rank over ten steps of Adam on grids of 2, 3, 4 and 8 ranks: to 1e-4 relative in f32, to 1e-12 in
 * f64, and to the rounding of activations in bf16.
 *
 * ctest runs a few of them; at CONVOY_TEST_LEVEL=2 also each network on one grid, in f32 or f64, which CONVOY_TEST_SEED
 * chooses. All: `CONVOY_TEST_LEVEL=3 mpiexec -n N test_program_zoo_grids` with 2, 3, 4 and 8 ranks
 * (tests/program/zoo_grids.sh). CONVOY_TEST_NETWORK and CONVOY_TEST_DTYPE choose one network or dtype.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/text/base_tree.h"
#include "model/model.h"
#include "program/program_impl.h"
#include "program/ranks_util.h"

enum { STEPS = 10, BATCH = 8, CLASSES = 4, VARIABLES_MAX = 2000 };

struct grid {
    int64_t pipeline, tensor, spatial[2];
};

struct network {
    const char *name, *options;
    cvy_shape input;
    int64_t divisor; /* of the channels of all layers but the last */
    int has_eight;   /* it is tried on 8 ranks */
    double rate;     /* of Adam */
};

static const struct network networks[] = {
    {"vgg-a", "dropout: 0.2", {3, {3, 32, 32}}, 16, 0, 1e-3},
    {"resnet-20", NULL, {3, {3, 16, 16}}, 4, 1, 3e-4},
    {"resnet-110", NULL, {3, {3, 8, 8}}, 4, 0, 1e-4},
    {"googlenet", "aux: false", {3, {3, 48, 48}}, 16, 0, 1e-3},
    {"hep-cnn", "filters: 128", {3, {3, 33, 30}}, 16, 0, 1e-3},
    {"unet", "depth: 2, filters: 8, residual: true, attention: true", {3, {2, 20, 16}}, 1, 1, 3e-4},
    {"unet", "depth: 1, filters: 8, norm: group, up: resize", {4, {2, 6, 8, 6}}, 1, 0, 1e-3},
    {"decoder", NULL, {3, {2, 18, 16}}, 1, 1, 1e-3},
};

static const struct grid grids[] = {
    {2, 1, {1, 1}}, {3, 1, {1, 1}}, {4, 1, {1, 1}}, {1, 2, {1, 1}}, {1, 4, {1, 1}}, {1, 1, {2, 1}},
    {1, 1, {1, 2}}, {1, 1, {2, 2}}, {2, 2, {1, 1}}, {2, 1, {2, 1}}, {2, 2, {2, 1}}, {1, 2, {2, 1}},
};

static int level = 1, seed = 1;

/* ---- the networks ---- */

static void decoder(cvy_model *m)
{
    EXPECT_OK(cvy_model_add(m, "conv", "a", "channels: 8, kernel: 3, stride: 2, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "leaky_relu", "r", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "b", "channels: 12, kernel: 3, pad: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "r2", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "deconv", "u", "channels: 6, kernel: 4, stride: 2, pad: 1, bias: false", NULL));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn2", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "r3", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "deconv", "v", "channels: 2, kernel: 3, pad: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "v, x"));
}

/* Divides a number among the options of a layer. */
static void divide(cvy_model *m, cvy_tree *options, const char *key, int64_t divisor)
{
    const cvy_tree *given = cvy_tree_get(options, key);
    cvy_tree *scalar = NULL;
    int64_t n = 0;
    char text[24];
    if (!given)
        return;
    EXPECT_OK(cvy_tree_int(given, &n));
    snprintf(text, sizeof text, "%lld", (long long)(n > 0 && n / divisor == 0 ? 1 : n / divisor));
    EXPECT_OK(cvy_tree_new_scalar(m->pool, "options", text, &scalar));
    EXPECT_OK(cvy_tree_set(m->pool, options, key, scalar));
}

/* A layer of the zoo's network with fewer channels; the last one has the classes. */
static void add_narrow(cvy_model *m, const cvy_layer *layer, int64_t divisor, int is_last)
{
    static const char *const keys[] = {"channels", "first", "whole"}; /* the last two: of a shortcut (pad_slice) */
    cvy_tree *options = NULL;
    EXPECT_OK(cvy_tree_new_map(m->pool, "options", &options));
    for (int i = 0; layer->options && i < layer->options->count; i++)
        EXPECT_OK(cvy_tree_set(m->pool, options, layer->options->key[i], layer->options->child[i]));
    for (int i = 0; i < CVY_COUNT(keys) && !is_last; i++)
        divide(m, options, keys[i], divisor);
    EXPECT_OK(cvy_model_add_tree(m, layer->op, layer->name, options, layer->output, layer->from, layer->nfrom));
}

/* The options of its layers belong to *zoo_out, which may be NULL. */
static cvy_model *make(const struct network *net, cvy_model **zoo_out)
{
    cvy_model *m = NULL, *zoo = NULL;
    EXPECT_OK(cvy_model_create(net->name, &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &net->input));
    if (strcmp(net->name, "decoder") == 0) {
        decoder(m);
        return m;
    }
    const cvy_shape label =
        strcmp(net->name, "unet") == 0 ? cvy_shape_make(net->input.ndim - 1, net->input.dim + 1) : (cvy_shape){0};
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &label));
    EXPECT_OK(cvy_model_zoo(net->name, net->options, &net->input, CLASSES, &zoo));
    const char *last = cvy_model_output(zoo);
    for (int i = 0; i < zoo->nlayer; i++)
        add_narrow(m, &zoo->layer[i], net->divisor, strcmp(zoo->layer[i].output, last) == 0);
    char from[160];
    snprintf(from, sizeof from, "%s, label", last);
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, from));
    *zoo_out = zoo;
    return m;
}

/* ---- training ---- */

/* The number of a row's sample in the batch; micro-batches are consecutive parts of it. */
static int64_t sample_of(const cvy_program *p, int64_t row)
{
    const cvy_program_task *s = p->task[0];
    int64_t before = 0;
    for (int m = 0; m < s->nmicro; m++) {
        const cvy_batch share = cvy_program_share(p, s, m, 0);
        if (row < share.local_n)
            return before + share.first + row;
        row -= share.local_n;
        before += share.global_n;
    }
    return -1;
}

/* The part of a sample of an input that the rank has, and its place in the whole. */
static cvy_shape part_of(cvy_program *p, const char *input, cvy_tile *tile_out)
{
    const cvy_value *v = cvy_graph_find(cvy_program_task_plan(p, 0)->lowered[0]->graph, input);
    EXPECT_OK(cvy_program_part(p, 0, input, &tile_out->whole, tile_out->first));
    return cvy_shape_make(v->shape.ndim - 1, v->shape.dim + 1);
}

static void fill_labels(cvy_program *p, int32_t *label)
{
    cvy_tile tile;
    const cvy_shape sample = part_of(p, "label", &tile);
    const int64_t n = cvy_shape_elems(&sample);
    for (int64_t r = 0; r < cvy_program_rows(p, 0); r++)
        for (int64_t i = 0; i < n; i++)
            label[r * n + i] = (int32_t)((sample_of(p, r) + (n > 1 ? cvy_tile_index(&tile, &sample, i) : 0)) % CLASSES);
}

/* Fills the rank's part of the inputs that it reads. */
static void fill(cvy_program *p, cvy_dtype dtype)
{
    const int64_t rows = cvy_program_rows(p, 0);
    const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, 0, "x")};
    if (cvy_program_feed(p, 0, "label"))
        fill_labels(p, cvy_program_feed(p, 0, "label"));
    if (!x.data)
        return;
    cvy_tile tile;
    const cvy_shape sample = part_of(p, "x", &tile);
    const int64_t n = cvy_shape_elems(&sample), all_n = cvy_shape_elems(&tile.whole);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = cvy_tile_index(&tile, &sample, i), id = sample_of(p, r);
            cvy_set(&x, r * n + i, wave(id * all_n + at) + (at % CLASSES == id % CLASSES ? 1 : 0));
        }
}

static cvy_program *train(cvy_context *context, const struct network *net, const struct grid *grid, cvy_dtype dtype,
                          double *loss)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = dtype,
                                   .batch_norm_group = -2,
                                   .bucket_bytes = 4096,
                                   .pipeline = grid->pipeline,
                                   .tensor = grid->tensor,
                                   .spatial = {grid->spatial[0], grid->spatial[1]}};
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = "adam",
                                        .optimizer_options = "eps: 1e-3",
                                        .accumulate = 2,
                                        .weight_decay = 1e-4};
    cvy_model *zoo = NULL, *m = make(net, &zoo);
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &step));
    const cvy_status planned = cvy_program_plan(p);
    EXPECT_OK(planned);
    if (planned == CVY_OK)
        fill(p, dtype == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32);
    for (int i = 0; i < STEPS && planned == CVY_OK; i++) {
        EXPECT_OK(cvy_program_step(p, step, net->rate));
        EXPECT_OK(cvy_program_loss(p, step, "loss", &loss[i]));
    }
    cvy_model_destroy(&m);
    cvy_model_destroy(&zoo);
    return p;
}

/* ---- comparison ---- */

/* What one rank has found; all ranks get a copy. */
struct found {
    double loss[STEPS];
    int count;
    struct {
        char name[120];
        int64_t elems, first; /* in value */
    } variable[VARIABLES_MAX];
    double *value;
    int64_t elems;
};

static void list(const cvy_program *p, struct found *f)
{
    f->count = 0;
    f->elems = 0;
    for (int i = 0; i < cvy_program_vars(p)->count && f->count < VARIABLES_MAX; i++) {
        const cvy_variable *v = cvy_program_vars(p)->at[i];
        snprintf(f->variable[f->count].name, sizeof f->variable[0].name, "%s", v->name);
        f->variable[f->count].elems = cvy_shape_elems(&v->shape);
        f->variable[f->count++].first = f->elems;
        f->elems += cvy_shape_elems(&v->shape);
    }
    EXPECT_INT(f->count, cvy_program_vars(p)->count);
}

/* Rank 0 trains alone, and tells the others. */
static void train_alone(const struct network *net, cvy_dtype dtype, struct found *f)
{
    static const struct grid none = {1, 1, {1, 1}};
    cvy_program *p = NULL;
    if (cvy_context_rank(all) == 0) {
        p = train(alone, net, &none, dtype, f->loss);
        list(p, f);
    }
    MPI_Bcast(f, sizeof *f, MPI_BYTE, 0, MPI_COMM_WORLD);
    f->value = calloc((size_t)f->elems + 1, sizeof *f->value);
    EXPECT(f->value);
    for (int i = 0; p && i < cvy_program_vars(p)->count; i++) {
        const cvy_variable *v = cvy_program_vars(p)->at[i];
        void *raw = malloc((size_t)cvy_shape_elems(&v->shape) * sizeof(double));
        const cvy_span span = {.dtype = v->dtype, .data = raw};
        EXPECT_OK(cvy_variable_read(v, raw));
        for (int64_t k = 0; k < f->variable[i].elems; k++)
            f->value[f->variable[i].first + k] = cvy_get(&span, k);
        free(raw);
    }
    MPI_Bcast(f->value, (int)f->elems, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    cvy_program_destroy(&p);
}

static int find(const struct found *f, const char *name)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->variable[i].name, name) == 0)
            return i;
    return -1;
}

/* The difference of a rank's part of a variable: the largest one relative to the largest element of the whole variable;
 * *squares: sums of squares of the differences and of the elements. */
static double difference(const cvy_program *p, const cvy_variable *v, const struct found *f, double *squares)
{
    const int at = find(f, v->name);
    const int64_t n = cvy_shape_elems(&v->shape);
    double worst = 0, largest = 0;
    cvy_tile tile;
    void *raw = malloc((size_t)n * sizeof(double));
    const cvy_span span = {.dtype = v->dtype, .data = raw};
    EXPECT(at >= 0 && raw);
    EXPECT_OK(cvy_variable_read(v, raw));
    EXPECT_OK(cvy_program_part(p, 0, v->name, &tile.whole, tile.first));
    EXPECT_INT(cvy_shape_elems(&tile.whole), f->variable[at].elems);
    const double *whole = f->value + f->variable[at].first;
    for (int64_t k = 0; k < f->variable[at].elems; k++)
        largest = CVY_MAX(largest, fabs(whole[k]));
    for (int64_t k = 0; k < n; k++) {
        const double expected = whole[cvy_tile_index(&tile, &v->shape, k)], d = cvy_get(&span, k) - expected;
        worst = CVY_MAX(worst, fabs(d));
        squares[0] += d * d;
        squares[1] += expected * expected;
    }
    free(raw);
    return worst / CVY_MAX(largest, 1e-3);
}

/* In f64 each variable must agree. In f32 an activation near zero, of which ReLU changes the sign, or an equal maximum
 * of a pool changes some gradients by more than rounding, so the weights are compared as a whole (2-norm, 1e-3): with
 * AVX2 resnet-110 has 2e-5 and unet 2e-4. In bf16 losses are compared with the error of bf16 itself on one rank,
 * `rounding`: a layer that is split rounds its partial sums, their sum and its gradients, up to three times where one
 * rank rounds once. */
static void compare(const struct network *net, const struct grid *g, cvy_dtype dtype, const struct found *f,
                    double rounding)
{
    const double tolerance = dtype == CVY_DTYPE_F64   ? 1e-12
                             : dtype == CVY_DTYPE_F32 ? 1e-4
                                                      : 4 * rounding + ldexp(1, -8);
    double loss[STEPS] = {0}, losses = 0, worst = 0, squares[2] = {0, 0};
    const char *name = "";
    cvy_program *p = train(all, net, g, dtype, loss);
    for (int i = 0; i < STEPS; i++)
        losses = CVY_MAX(losses, fabs(loss[i] - f->loss[i]) / f->loss[0]);
    for (int i = 0; i < cvy_program_vars(p)->count && loss[0] != 0; i++) {
        const cvy_variable *v = cvy_program_vars(p)->at[i];
        const double d = v->role == CVY_ROLE_STATE || v->elsewhere ? 0 : difference(p, v, f, squares);
        name = d > worst ? v->name : name;
        worst = CVY_MAX(worst, d);
    }
    const double norm = sqrt(squares[0] / CVY_MAX(squares[1], 1e-300));
    const int good = losses <= tolerance && (dtype == CVY_DTYPE_F64   ? worst <= tolerance
                                             : dtype == CVY_DTYPE_F32 ? norm <= 10 * tolerance
                                                                      : 1);
    if (level > 1 || !good)
        printf("%s %s: %d ranks, pipeline %lld, tensor %lld, spatial %lldx%lld, %s: losses %.1e, weights %.1e, worst "
               "%.1e (%s), tolerance %.1e\n",
               good ? "same" : "DIFFERS", net->name, cvy_context_nranks(all), (long long)g->pipeline,
               (long long)g->tensor, (long long)g->spatial[0], (long long)g->spatial[1], cvy_dtype_text(dtype), losses,
               norm, worst, name, tolerance);
    EXPECT(good);
    cvy_program_destroy(&p);
}

/* ---- which ones ---- */

static int applies(const struct network *net, const struct grid *g)
{
    const int nranks = cvy_context_nranks(all);
    const int64_t product = g->pipeline * g->tensor * g->spatial[0] * g->spatial[1];
    const int axes = (g->pipeline > 1) + (g->tensor > 1) + (g->spatial[0] > 1);
    return nranks % product == 0 && (nranks == 8 ? net->has_eight && axes > 1 : nranks / product <= 2);
}

/* A network on a grid with a tensor axis and on one with spatial axes, and in bf16, within seconds. */
static int is_short(const struct network *net, const struct grid *g, cvy_dtype dtype)
{
    const int nranks = cvy_context_nranks(all), squares = g->spatial[0] * g->spatial[1] == nranks && g->spatial[1] == 2;
    const int pairs = g->tensor == 2 && g->pipeline * g->tensor == nranks;
    return strcmp(net->name, "decoder") == 0
               ? dtype == CVY_DTYPE_BF16 && nranks == 2 && (pairs || squares)
               : strcmp(net->name, "googlenet") == 0 && dtype == CVY_DTYPE_F32 && (pairs || squares);
}

/* The grid and the dtype that the seed chooses for a network. */
static int is_sampled(const struct network *net, const struct grid *g, cvy_dtype dtype)
{
    const int n = (int)(net - networks) + seed;
    int count = 0, place = -1;
    for (int i = 0; i < CVY_COUNT(grids); i++) {
        if (&grids[i] == g)
            place = count;
        count += applies(net, &grids[i]);
    }
    return place == n % count && dtype == (n / count % 2 ? CVY_DTYPE_F64 : CVY_DTYPE_F32);
}

static int is_tried(const struct network *net, const struct grid *g, cvy_dtype dtype)
{
    if (!applies(net, g))
        return 0;
    if (level > 2)
        return 1;
    return is_short(net, g, dtype) || (level == 2 && is_sampled(net, g, dtype));
}

static void try_all(void)
{
    static const cvy_dtype dtypes[] = {CVY_DTYPE_F32, CVY_DTYPE_F64, CVY_DTYPE_BF16};
    const char *only = getenv("CONVOY_TEST_NETWORK"), *only_dtype = getenv("CONVOY_TEST_DTYPE");
    static struct found f, exact;
    for (int n = 0; n < CVY_COUNT(networks); n++)
        for (int d = 0; d < CVY_COUNT(dtypes); d++) {
            int known = 0;
            double rounding = 0;
            if ((only && strcmp(only, networks[n].name) != 0) ||
                (only_dtype && strcmp(only_dtype, cvy_dtype_text(dtypes[d])) != 0))
                continue;
            for (int g = 0; g < CVY_COUNT(grids); g++) {
                if (!is_tried(&networks[n], &grids[g], dtypes[d]))
                    continue;
                if (!known)
                    train_alone(&networks[n], dtypes[d], &f);
                if (!known && dtypes[d] == CVY_DTYPE_BF16) {
                    train_alone(&networks[n], CVY_DTYPE_F32, &exact);
                    free(exact.value);
                    for (int i = 0; i < STEPS; i++)
                        rounding = CVY_MAX(rounding, fabs(f.loss[i] - exact.loss[i]) / f.loss[0]);
                }
                known = 1;
                compare(&networks[n], &grids[g], dtypes[d], &f, rounding);
            }
            if (known)
                free(f.value);
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    level = getenv("CONVOY_TEST_LEVEL") ? atoi(getenv("CONVOY_TEST_LEVEL")) : 1;
    seed = getenv("CONVOY_TEST_SEED") ? abs(atoi(getenv("CONVOY_TEST_SEED"))) : 1;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    TEST(try_all);
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

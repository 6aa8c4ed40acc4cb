/* seconds: 5 */
/*
 * test_context_traps_operators.c: a host program that traps every exception of floating-point numbers, in all its
 * threads, trains and applies each operator, loss and optimiser, with ordinary numbers and with those that overflow or
 * are not finite. No trap is sprung, and the host's traps are as before, also after an error. Inexact results are
 * trapped, too: so a single operation outside of the library's environment ends the test.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>

#include "context/traps.h"
#include "graph/graph_op.h"

#if defined(__GLIBC__)
enum { BATCH = 48, SOURCES = 4, ELEMS_MAX = 1 << 20, FOLLOWERS = 3 };

struct layer {
    const char *op, *name, *options, *from;
};

/* A sample of an operator, as a network: its sources, without those that a program adds by itself. */
struct net {
    const cvy_op_def *op;
    const cvy_sample *sample;
    const struct layer *layers; /* in place of the operator; NULL: none */
    int nsrc, is_real[SOURCES];
    cvy_shape shape[SOURCES];
};

static struct {
    int steps, numeric, refused;
    char *seen; /* by operator of the table: it was a node of a plan */
} all;

/* ---- networks ---- */

/* Reads the sources. Returns 0 if a model cannot name them. */
static int read_sources(struct net *n)
{
    n->nsrc = 0;
    for (const char *at = n->sample->src; at && *at;) {
        char text[64], *colon;
        cvy_shape shape;
        const size_t length = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        at += length + (at[length] == ',');
        colon = strchr(text, ':');
        if (strncmp(text, "scalar", 6) == 0)
            break; /* a normaliser or a step number; sample weights follow it */
        if (n->nsrc > 0 && colon && strcmp(colon, ":i64") == 0)
            break; /* the numbers of the samples */
        if (colon)
            *colon = 0;
        if (n->nsrc == SOURCES || cvy_shape_parse(text, &shape) != CVY_OK || shape.ndim < 1)
            return 0;
        n->is_real[n->nsrc] = !colon;
        n->shape[n->nsrc].ndim = shape.ndim - 1;
        memcpy(n->shape[n->nsrc].dim, shape.dim + 1, sizeof shape.dim - sizeof shape.dim[0]);
        n->nsrc++;
    }
    return n->nsrc > 0;
}

/* What is added after a layer to train it: a fully connected layer, or a loss on its results. */
static cvy_status add_rest(cvy_model *m, const struct net *n, int follower)
{
    static const char *const loss[FOLLOWERS] = {"mse", "mse", "bce"};
    static const cvy_shape one = {1, {1}}, none = {0};
    if (n->op->flags & CVY_OP_LOSS)
        return CVY_OK;
    CVY_TRY(cvy_model_add_input(m, "y", CVY_DTYPE_F32, follower == 1 ? &none : &one));
    if (follower != 1)
        CVY_TRY(cvy_model_add(m, "fc", "follower", "channels: 1", "layer"));
    return cvy_model_add(m, loss[follower], "loss", NULL, follower == 1 ? "layer, y" : "follower, y");
}

/* A network of several layers, for operators that passes make of them, or that layers need before or after them. */
static cvy_status add_layers(cvy_model *m, const struct layer *layer)
{
    for (; layer->op; layer++)
        CVY_TRY(cvy_model_add(m, layer->op, layer->name, layer->options, layer->from));
    return CVY_OK;
}

static cvy_status make_model(const struct net *n, int follower, cvy_model **out)
{
    char from[200] = "", name[40], layer[40];
    cvy_status status = cvy_model_create("traps", out);
    for (int i = 0; i < n->nsrc && status == CVY_OK; i++) {
        snprintf(name, sizeof name, "x%d", i);
        status = cvy_model_add_input(*out, name, n->is_real[i] ? CVY_DTYPE_F32 : CVY_DTYPE_I32, &n->shape[i]);
        /* A source with a weight has a gradient; a target has none. */
        if (status == CVY_OK && !n->layers && n->is_real[i] && n->shape[i].ndim > 0 &&
            !(n->op->flags & CVY_OP_INDICES) && (i == 0 || !(n->op->flags & CVY_OP_LOSS))) {
            snprintf(layer, sizeof layer, "first%d", i);
            status = cvy_model_add(*out, "affine", layer, NULL, name);
            snprintf(name, sizeof name, "%s", layer);
        }
        snprintf(from + strlen(from), sizeof from - strlen(from), "%s%s", i ? ", " : "", name);
    }
    if (status == CVY_OK && n->layers)
        return add_layers(*out, n->layers);
    if (status == CVY_OK)
        status = cvy_model_add(*out, n->op->name, "layer", n->sample->options, from);
    return status == CVY_OK ? add_rest(*out, n, follower) : status;
}

/* ---- values ---- */

static const double wild[] = {1e38, -3e38, 1e-40, -1e-45, 0,      INFINITY,  -1e20,
                              NAN,  88.8,  -104,  1e-30,  3.4e38, -INFINITY, 1e19};
enum { WILD = sizeof wild / sizeof *wild };

static float values[ELEMS_MAX];
static int32_t labels[ELEMS_MAX];

static void fill(int64_t elems, int is_wild, int64_t bound)
{
    for (int64_t i = 0; i < elems; i++) {
        values[i] = is_wild ? (float)wild[i % WILD] : 0.1F + (float)(i * 37 % 101) / 113;
        labels[i] = (int32_t)(i * 5 % (bound ? bound : 2));
    }
}

static void write_sources(const struct net *n, cvy_program *p, int task, int is_wild)
{
    for (int i = 0; i < n->nsrc; i++) {
        char name[16];
        int64_t elems = BATCH;
        for (int d = 0; d < n->shape[i].ndim; d++)
            elems *= n->shape[i].dim[d];
        if (elems > ELEMS_MAX)
            continue;
        fill(elems, is_wild, n->sample->int_bound);
        for (int64_t k = 0; (n->op->flags & CVY_OP_INDICES) && i == 0 && k < elems; k++)
            values[k] = (float)labels[k];
        snprintf(name, sizeof name, "x%d", i);
        if (n->is_real[i])
            TRAPPED_OK(cvy_program_write_input(p, task, name, CVY_DTYPE_F32, values, elems));
        else
            TRAPPED_OK(cvy_program_write_input(p, task, name, CVY_DTYPE_I32, labels, elems));
    }
}

/* ---- programs ---- */

static const char *const optimizers[] = {"sgd", "adam", "adamw", "lamb", "lars", "rmsprop", "adagrad", "adadelta"};

static void note_operators(const cvy_program *p, int task)
{
    char *text = NULL;
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    TRAPPED_OK(cvy_program_print(p, task, "text", &text));
    for (int i = 0; i < count && text; i++) {
        char word[80];
        snprintf(word, sizeof word, " %s(", table[i]->name);
        all.seen[i] |= strstr(text, word) != NULL;
    }
    cvy_text_release(&text);
}

/* Runs steps of a task that may refuse the numbers, but not end the program. */
static void run(cvy_program *p, int task, double rate, int steps)
{
    for (int i = 0; i < steps; i++) {
        cvy_status status = CVY_OK;
        TRAPPED(status, cvy_program_step(p, task, rate));
        all.steps++;
        all.numeric += status == CVY_E_NUMERIC;
        all.refused += status != CVY_OK && status != CVY_E_NUMERIC;
    }
}

/* Returns 0 if the network cannot be planned, for example because its result has no axis of channels. */
static int try_net(cvy_context *context, const struct net *n, int follower, cvy_dtype dtype, const char *kernels,
                   int number)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .seed = 1, .wisdom = "off", .dtype = dtype, .kernels = kernels, .batch_norm_group = 4};
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = optimizers[number % (int)CVY_COUNT(optimizers)],
                                        .clip_norm = number % 2,
                                        .clip_value = number % 3,
                                        .l1 = number % 5 == 4 ? 1e-3 : 0,
                                        .weight_decay = 1e-4};
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int train = -1, apply = -1;
    cvy_status status = CVY_OK;
    TRAPPED(status, make_model(n, follower, &m));
    if (status == CVY_OK)
        TRAPPED(status, cvy_program_create(context, &opts, &p));
    if (status == CVY_OK)
        TRAPPED(status, cvy_program_add_training(p, m, BATCH, &training, &train));
    if (status == CVY_OK && !(n->op->flags & CVY_OP_LOSS))
        TRAPPED(status, cvy_program_add_forward(p, m, BATCH, "layer", &apply));
    if (status == CVY_OK)
        TRAPPED(status, cvy_program_plan(p));
    if (status == CVY_OK) {
        note_operators(p, train);
        if (apply >= 0)
            note_operators(p, apply);
        for (int is_wild = 0; is_wild < 2; is_wild++) {
            write_sources(n, p, train, is_wild);
            run(p, train, 1e-3, 2);
            if (apply >= 0) {
                write_sources(n, p, apply, is_wild);
                run(p, apply, 0, 1);
            }
        }
    }
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    return status == CVY_OK;
}

/* Sources: x0 of 4x6x6, x1 of 1, x2 of a number, which is a weight. */
static const cvy_sample pictures = {.src = "2x4x6x6,2x1,2"};
static const struct layer by_layer[] = {{"fc", "a", "channels: 12", "x0"},
                                        {"layer_norm", NULL, NULL, NULL},
                                        {"tanh", NULL, NULL, NULL},
                                        {"fc", "score", "channels: 1, spectral_norm: true", NULL},
                                        {"mse", "loss", NULL, "score, x1"},
                                        {"gradient_penalty", "slope", NULL, "score, x0"},
                                        {0}};
static const struct layer by_group[] = {{"conv", "a", "channels: 4, kernel: 3, pad: 1", "x0"},
                                        {"group_norm", NULL, "groups: 2", NULL},
                                        {"tanh", NULL, NULL, NULL},
                                        {"fc", "score", "channels: 1", NULL},
                                        {"mse", "loss", NULL, "score, x1"},
                                        {"gradient_penalty", "slope", NULL, "score, x0"},
                                        {0}};
static const struct layer residual[] = {{"conv", "a", "channels: 4, kernel: 3, pad: 1", "x0"},
                                        {"batch_norm", "b", NULL, NULL},
                                        {"relu", "c", NULL, NULL},
                                        {"conv", "d", "channels: 4, kernel: 3, pad: 1", "c"},
                                        {"add", "e", NULL, "c, d"},
                                        {"global_avg_pool", "f", NULL, NULL},
                                        {"fc", "g", "channels: 4", NULL},
                                        {"sigmoid", "h", NULL, NULL},
                                        {"multiply", "i", NULL, "e, h"},
                                        {"fc", "score", "channels: 1", NULL},
                                        {"mse", "loss", NULL, "score, x1, x2"},
                                        {0}};
static const struct layer wide[] = {{"fc", "a", "channels: 600", "x0"},
                                    {"relu", NULL, NULL, NULL},
                                    {"fc", "b", "channels: 600", NULL},
                                    {"relu", NULL, NULL, NULL},
                                    {"fc", "score", "channels: 1", NULL},
                                    {"hinge", "loss", NULL, "score, x1"},
                                    {0}};
static const struct layer *const several[] = {by_layer, by_group, residual, wide};

static void train_several(cvy_context *context, cvy_dtype dtype, const char *kernels)
{
    const int n_several = (int)CVY_COUNT(several) - (dtype != CVY_DTYPE_F32); /* wide takes long by reference kernels */
    for (int k = 0; k < n_several; k++) {
        struct net n = {.op = cvy_op_find("mse"), .sample = &pictures, .layers = several[k % CVY_COUNT(several)]};
        snprintf(trap_doing, sizeof trap_doing, "network %d, dtype %d, kernels %s", k, (int)dtype, kernels);
        EXPECT(read_sources(&n));
        EXPECT(try_net(context, &n, 0, dtype, kernels, 0));
    }
}

static int is_layer(const cvy_op_def *op)
{
    return op->samples && !(op->flags & (CVY_OP_HIDDEN | CVY_OP_COMM | CVY_OP_ASSIGNS));
}

/* Trains the operators of the table with one kind of number. */
static void train_all(int threads, cvy_dtype dtype, const char *kernels)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = threads};
    cvy_context *context = NULL;
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    TRAPPED_OK(cvy_context_create(&opts, &context));
    for (int i = 0; context && i < count; i++) {
        const int wanted = dtype == CVY_DTYPE_F32 ? 2 : 1;
        int planned = 0;
        for (const cvy_sample *s = table[i]->samples; is_layer(table[i]) && s->src && planned < wanted; s++) {
            struct net n = {.op = table[i], .sample = s};
            snprintf(trap_doing, sizeof trap_doing,
                     "%s, sample \"%s\", options \"%s\", %d threads, dtype %d, kernels %s", table[i]->name, s->src,
                     s->options ? s->options : "", threads, (int)dtype, kernels);
            int done = s->flags & CVY_SAMPLE_TIMING || !read_sources(&n);
            for (int f = 0; f < FOLLOWERS && !done; f++) {
                done = try_net(context, &n, f, dtype, kernels, i);
                planned += done;
            }
        }
    }
    train_several(context, dtype, kernels);
    cvy_context_destroy(&context);
}

/* They exist in other plans only: on several ranks, in networks that are larger than these, or with frozen statistics.
 */
static const char *const elsewhere[] = {"bn_infer_grad", "bn_infer_grad_params", "conv_grad_src_add",
                                        "lamb_rate",     "lamb_squares",         "lars_rate",
                                        "lars_squares"};

/* A layer of several nodes has no node of its own. */
static int must_be_seen(const cvy_op_def *op)
{
    int is_elsewhere = 0;
    for (int i = 0; i < (int)CVY_COUNT(elsewhere); i++)
        is_elsewhere |= strcmp(op->name, elsewhere[i]) == 0;
    return op->infer && !(op->flags & CVY_OP_COMM) && !is_elsewhere;
}

static void each_operator(void)
{
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    all.seen = calloc((size_t)count, 1);
    trap_in_team(FE_ALL_EXCEPT);
    train_all(THREADS, CVY_DTYPE_F32, "auto");
    train_all(THREADS, CVY_DTYPE_BF16, "auto");
    train_all(1, CVY_DTYPE_F64, "reference");
    trap_in_team(0);
    for (int i = 0; i < count; i++)
        if (!all.seen[i] && must_be_seen(table[i])) {
            printf("FAILED no plan has %s\n", table[i]->name);
            test_failures++;
        }
    printf("%d steps, %d not finite, %d refused\n", all.steps, all.numeric, all.refused);
    free(all.seen);
}
#endif

int main(void)
{
#if defined(__GLIBC__)
    if (!traps_begin())
        return test_end();
    TEST(each_operator);
#endif
    return test_end();
}

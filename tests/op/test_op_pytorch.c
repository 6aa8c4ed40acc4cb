/*
 * test_op_pytorch.c: results and gradients of layers equal PyTorch's in f64 to 1e-12: sums, products, quotients and
 * maxima with and without broadcasting, softmax over any axis, functions of each element, global_max_pool, prelu,
 * matmul, embedding.
 *
 * op_pytorch.py computed the numbers in op_pytorch_*.h. Element i of variable v (the sources, then the layer's own
 * variables) is sin(1 + 1.3 i + 5 v), rounded to a multiple of 1 / grid if there is a grid, so that some elements are
 * equal. Element i of a source of integers is (3 + 7 i^2) modulo the grid. The loss is the sum over the result of
 * element i times cos(0.7 i). `number` has the result and then the gradient of each variable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "op/graph_eval.h"
#include "optim/optim.h"
#include "pass/pass.h"

struct pytorch_case {
    const char *op, *options, *src;
    double grid;
    int count;
    const double *number;
};

#include "op/op_pytorch_broadcast.h"
#include "op/op_pytorch_function.h"
#include "op/op_pytorch_layer.h"

struct layer {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *integers; /* the source of integers, or NULL */
    cvy_value *dst, *loss, *weights;
    cvy_gradients gradients;
    cvy_eval e;
};

static cvy_status add_sources(const struct pytorch_case *c, struct layer *l, cvy_value **src, int *nsrc_out)
{
    static const cvy_init zeros = {.method = "constant"};
    const char *at = c->src;
    int n = 0;
    for (int used = 0; *at; at += used + (at[used] == ','), n++) {
        char text[32], name[16];
        cvy_shape shape;
        cvy_variable *v = NULL;
        used = (int)strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)strcspn(at, ":,"), at);
        snprintf(name, sizeof name, "src%d", n);
        CVY_TRY(cvy_shape_parse(text, &shape));
        if (at[strlen(text)] == ':') {
            cvy_dtype dtype;
            snprintf(text, sizeof text, "%.*s", used - (int)strlen(text) - 1, at + strlen(text) + 1);
            CVY_TRY(cvy_dtype_parse(text, &dtype));
            CVY_TRY(cvy_graph_feed(l->graph, name, dtype, &shape, 1, &src[n]));
            l->integers = src[n];
            continue;
        }
        CVY_TRY(cvy_vars_declare(l->vars, name, CVY_ROLE_WEIGHT, CVY_DTYPE_F64, &shape, &zeros, &v));
        CVY_TRY(cvy_graph_read_variable(l->graph, v, &src[n]));
    }
    *nsrc_out = n;
    return CVY_OK;
}

static cvy_status open_layer(const struct pytorch_case *c, struct layer *l)
{
    const cvy_graph_opts opts = {
        .name = c->op, .batch = cvy_batch_share(atoi(c->src), 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    cvy_value *src[CVY_NODE_SRC_MAX] = {NULL};
    cvy_tree *options = NULL;
    cvy_node *node = NULL;
    int nsrc = 0;
    CVY_TRY(cvy_vars_create(&l->vars));
    CVY_TRY(cvy_graph_create(l->vars, &opts, &l->graph));
    CVY_TRY(add_sources(c, l, src, &nsrc));
    CVY_TRY(cvy_sample_options(l->graph->pool, c->options, &options));
    CVY_TRY(cvy_graph_layer(l->graph, c->op, "layer", options, src, nsrc, &l->dst));
    CVY_TRY(cvy_graph_feed(l->graph, "weights", CVY_DTYPE_F64, &l->dst->shape, 1, &l->weights));
    cvy_value *const from[] = {l->dst, l->weights};
    CVY_TRY(
        cvy_graph_add_parsed(l->graph, &cvy_weighted_sum_op, "loss", "loss", NULL, from, 2, CVY_PHASE_MICRO, &node));
    l->loss = node->dst[0];
    CVY_TRY(cvy_pass_autodiff(l->graph, &l->loss, 1, NULL, NULL, &l->gradients));
    return cvy_eval_create(l->graph, &l->e);
}

static void close_layer(struct layer *l)
{
    cvy_eval_destroy(&l->e);
    cvy_graph_destroy(&l->graph);
    cvy_vars_destroy(&l->vars);
}

static void fill(const struct pytorch_case *c, const struct layer *l)
{
    for (int v = 0; v < l->vars->count; v++) {
        cvy_value *value = NULL;
        EXPECT_OK(cvy_graph_read_variable(l->graph, l->vars->at[v], &value));
        for (int64_t i = 0; i < cvy_eval_of(&l->e, value)->elems; i++) {
            const double x = sin(1 + 1.3 * (double)i + 5 * v);
            cvy_set(cvy_eval_of(&l->e, value), i, c->grid > 0 ? floor(x * c->grid + 0.5) / c->grid : x);
        }
    }
    for (int64_t i = 0; l->integers && i < cvy_eval_of(&l->e, l->integers)->elems; i++)
        cvy_set(cvy_eval_of(&l->e, l->integers), i, (double)((3 + 7 * i * i) % (int64_t)c->grid));
    for (int64_t i = 0; i < cvy_eval_of(&l->e, l->weights)->elems; i++)
        cvy_set(cvy_eval_of(&l->e, l->weights), i, cos(0.7 * (double)i));
}

/* Compares a tensor with the next numbers. Returns how many it has compared. */
static int compare(const struct pytorch_case *c, const char *what, const cvy_span *is, int at)
{
    for (int i = 0; i < (int)is->elems && at + i < c->count; i++) {
        const double got = cvy_get(is, i), expected = c->number[at + i];
        test_checks++;
        if (fabs(got - expected) > 1e-12)
            TEST_FAIL("%s(%s; %s): %s, element %d is %.17g, expected %.17g", c->op, c->src, c->options, what, i, got,
                      expected);
    }
    return (int)is->elems;
}

static const cvy_value *gradient_of(const struct layer *l, const cvy_variable *v)
{
    for (int i = 0; i < l->gradients.count; i++)
        if (l->gradients.at[i].variable == v)
            return l->gradients.at[i].value;
    return NULL;
}

static void check_cases(const struct pytorch_case *cases, int count)
{
    for (int k = 0; k < count; k++) {
        const struct pytorch_case *c = &cases[k];
        struct layer l = {0};
        EXPECT_OK(open_layer(c, &l));
        fill(c, &l);
        EXPECT_OK(cvy_eval_run(&l.e, 1));
        int at = compare(c, "the result", cvy_eval_of(&l.e, l.dst), 0);
        for (int v = 0; v < l.vars->count; v++) {
            const cvy_value *d = gradient_of(&l, l.vars->at[v]);
            EXPECT(d != NULL);
            if (d)
                at += compare(c, l.vars->at[v]->name, cvy_eval_of(&l.e, d), at);
        }
        EXPECT_INT(at, c->count);
        close_layer(&l);
    }
}

static void layers_equal_pytorch(void)
{
    check_cases(pytorch_broadcast, CVY_COUNT(pytorch_broadcast));
    check_cases(pytorch_function, CVY_COUNT(pytorch_function));
    check_cases(pytorch_layer, CVY_COUNT(pytorch_layer));
}

/* As PyTorch's documentation recommends, its weight has no decay. */
static void prelu_begins_as_in_pytorch(void)
{
    const struct pytorch_case c = {.op = "prelu", .options = "per_channel: true", .src = "2x3x2"};
    struct layer l = {0};
    EXPECT_OK(open_layer(&c, &l));
    const cvy_variable *weight = cvy_vars_find(l.vars, "layer.weight");
    double start[3] = {0};
    EXPECT(weight != NULL);
    if (weight) {
        EXPECT_OK(cvy_init_fill(weight, 1, 0, 3, start));
        EXPECT(start[0] == 0.25 && start[2] == 0.25);
        EXPECT(!weight->decay);
    }
    close_layer(&l);
}

static void shapes_that_do_not_fit(void)
{
    static const struct {
        struct pytorch_case layer;
        const char *part;
    } wrong[] = {
        {{.op = "multiply", .src = "2x3x4,2x5"}, "multiply: sources 2x3x4 and 2x5 do not fit"},
        {{.op = "multiply", .src = "2x3,2x3,2x2"}, "multiply: sources 2x3 and 2x2 do not fit"},
        {{.op = "subtract", .src = "2x3,2x4x2"}, "subtract: sources 2x3 and 2x4x2 do not fit"},
        {{.op = "global_max_pool", .src = "2x3"}, "got 2x3"},
        {{.op = "prelu", .options = "per_channel: true", .src = "4"}, "needs a source [N, C, ...], got 4"},
        {{.op = "matmul", .src = "3x4,4x3"}, "needs two sources [N, ..., rows, columns]"},
        {{.op = "matmul", .src = "2x3x4,2x3x4"}, "the first matrix has 4 columns, the second has 3 rows"},
        {{.op = "matmul", .src = "2x2x3x4,2x3x4x3"}, "axis 1 of the sources is 2 and 3"},
        {{.op = "embedding", .options = "rows: 257, channels: 2", .src = "4:u8"}, "indices in u8 can name 256 rows"},
    };
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        struct layer l = {0};
        EXPECT_FAULT(open_layer(&wrong[i].layer, &l), CVY_E_SHAPE, wrong[i].part);
        close_layer(&l);
    }
}

/* An index beyond the table, and one that is not a whole number. */
static void wrong_indices_are_named(void)
{
    static const double wrong[] = {5, -1, 1.5, NAN};
    const struct pytorch_case c = {.op = "embedding", .options = "rows: 5, channels: 3", .src = "2x4:f64", .grid = 5};
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        struct layer l = {0};
        EXPECT_OK(open_layer(&c, &l));
        fill(&c, &l);
        EXPECT_OK(cvy_eval_run(&l.e, 1));
        cvy_set(cvy_eval_of(&l.e, l.integers), 6, wrong[i]);
        EXPECT_FAULT(cvy_eval_run(&l.e, 1), CVY_E_FORMAT,
                     "layer layer (embedding): row 1 of this rank's share has index");
        close_layer(&l);
    }
}

int main(void)
{
    TEST(layers_equal_pytorch);
    TEST(prelu_begins_as_in_pytorch);
    TEST(shapes_that_do_not_fit);
    TEST(wrong_indices_are_named);
    return test_end();
}

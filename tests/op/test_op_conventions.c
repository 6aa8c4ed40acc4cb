/* rows: clang asan onednn3 minimal */
/*
 * test_op_conventions.c: operators on small numbers, where conventions differ between libraries: what pooling counts at
 * the borders, the orientation of a transposed filter, the divisor of LRN.
 *
 * The expected values are PyTorch's. The last test checks the messages for shapes that do not fit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "base/base_status.h"
#include "op/graph_eval.h"

struct value_case {
    const char *op, *options, *src; /* the source and every variable hold 1, 2, 3, ...; the source times `factor` */
    double factor;
    const char *dst;
    double expected[20];
};

static const struct value_case cases[] = {
    {"avg_pool", "kernel: 3, stride: 2, pad: 1, ceil: true", "1x1x6", 1, "1x1x4", {1, 3, 5, 3}},
    {"avg_pool",
     "kernel: 3, stride: 2, pad: 1, ceil: true, count_include_pad: false",
     "1x1x6",
     1,
     "1x1x4",
     {1.5, 3, 5, 6}},
    {"avg_pool", "kernel: 2, ceil: true", "1x1x3x3", 1, "1x1x2x2", {3, 4.5, 7.5, 9}},
    {"max_pool", "kernel: 2, stride: 3, pad: 1, ceil: true", "1x1x6", 1, "1x1x3", {1, 4, 6}},
    {"max_pool", "kernel: 3, stride: 2, pad: 1", "1x1x4x5", -1, "1x1x2x3", {-1, -2, -4, -6, -7, -9}},
    {"max_pool", "kernel: 3, stride: 2, ceil: true", "1x1x2", 1, "1x1x1", {2}},
    {"conv",
     "kernel: 2, channels: 2, stride: 2, pad: 1, groups: 2",
     "1x2x3x3",
     1,
     "1x2x2x2",
     {5, 19, 37, 78, 82, 175, 208, 425}},
    {"deconv",
     "kernel: 3, channels: 2, stride: 2, pad: 1, output_pad: 1, groups: 2",
     "1x2x3",
     1,
     "1x2x6",
     {3, 6, 5, 10, 7, 10, 22, 46, 27, 56, 32, 38}},
    {"deconv",
     "kernel: [2, 1], channels: 2, stride: [1, 2]",
     "1x1x2x2",
     1,
     "1x2x3x3",
     {2, 1, 3, 6, 1, 9, 7, 1, 9, 5, 2, 8, 15, 2, 22, 14, 2, 18}},
    {"lrn",
     "size: 3, alpha: 0.5, beta: 0.5, k: 2",
     "1x4x1",
     1,
     "1x4x1",
     {0.594088525786, 0.960768922831, 1.147638083514, 1.610774532514}},
    {"fc", "channels: 2", "2x3", 1, "2x2", {15, 34, 33, 79}},
    {"global_avg_pool", "", "1x2x2x2", 1, "1x2", {2.5, 6.5}},
    {"pad", "before: [0, 1], after: 1", "1x1x1x2", 1, "1x1x2x4", {0, 1, 2, 0, 0, 0, 0, 0}},
    {"crop", "before: [0, 1], after: [1, 0]", "1x1x2x3", 1, "1x1x1x2", {2, 3}},
    {"slice", "first: 1, count: 1", "2x2x2", 1, "2x1x2", {3, 4, 7, 8}},
    {"pad_slice", "first: 1, whole: 3", "2x1", 1, "2x3", {0, 1, 0, 0, 2, 0}},
};

/* A graph in f64 with one layer on the source "x". */
struct layer {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *src, *dst;
};

static cvy_status open_layer(const char *op, const char *options, const char *src, struct layer *out)
{
    cvy_shape shape;
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_shape_parse(src, &shape));
    const cvy_graph_opts opts = {
        .name = "test", .batch = cvy_batch_share(shape.dim[0], 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    *out = (struct layer){0};
    CVY_TRY(cvy_vars_create(&out->vars));
    CVY_TRY(cvy_graph_create(out->vars, &opts, &out->graph));
    CVY_TRY(cvy_sample_options(out->graph->pool, options, &tree));
    CVY_TRY(cvy_graph_feed(out->graph, "x", CVY_DTYPE_F64, &shape, 1, &out->src));
    return cvy_graph_layer(out->graph, op, "layer", tree, &out->src, 1, &out->dst);
}

static void close_layer(struct layer *l)
{
    cvy_graph_destroy(&l->graph);
    cvy_vars_destroy(&l->vars);
}

static void check_values(const struct value_case *c)
{
    struct layer l;
    cvy_eval e = {0};
    const int failures = test_failures;
    EXPECT_OK(open_layer(c->op, c->options, c->src, &l));
    if (test_failures == failures) {
        EXPECT_TEXT(cvy_shape_text(&l.dst->shape), c->dst);
        EXPECT_OK(cvy_eval_create(l.graph, &e));
        for (int v = 0; v < l.graph->nvalue; v++)
            for (int64_t i = 0; !l.graph->value[v]->producer && i < e.at[v].elems; i++)
                cvy_set(&e.at[v], i, (double)(i + 1) * (l.graph->value[v] == l.src ? c->factor : 1));
        EXPECT_OK(cvy_eval_run(&e, 1));
        const cvy_span *dst = cvy_eval_of(&e, l.dst);
        for (int64_t i = 0; i < dst->elems; i++)
            EXPECT_NEAR(cvy_get(dst, i), c->expected[i], 1e-11);
        cvy_eval_destroy(&e);
    }
    if (test_failures != failures)
        printf("       that was %s(%s; %s)\n", c->op, c->src, c->options);
    close_layer(&l);
}

static void values(void)
{
    for (int i = 0; i < CVY_COUNT(cases); i++)
        check_values(&cases[i]);
}

static void views(void)
{
    static const struct {
        const char *op, *options, *src, *dst;
    } shapes[] = {
        {"flatten", "", "2x3x4x5", "2x60"},
        {"flatten", "", "3", "3x1"},
        {"reshape", "shape: [4, -1]", "2x3x8", "2x4x6"},
        {"reshape", "shape: []", "3x1", "3"},
    };
    for (int i = 0; i < CVY_COUNT(shapes); i++) {
        struct layer l;
        EXPECT_OK(open_layer(shapes[i].op, shapes[i].options, shapes[i].src, &l));
        EXPECT_TEXT(cvy_shape_text(&l.dst->shape), shapes[i].dst);
        close_layer(&l);
    }
}

/* Each message must say what is wrong and show the numbers. */
static void faults(void)
{
    static const struct {
        const char *op, *options, *src, *part;
        cvy_status code;
    } wrong[] = {
        {"conv", "kernel: 5, channels: 2", "1x1x4x4", "does not fit spatial dimension 0 of source 1x1x4x4",
         CVY_E_SHAPE},
        {"conv", "kernel: [3, 3], channels: 2", "1x1x4x4x4", "`kernel` has 2 entries", CVY_E_SHAPE},
        {"conv", "kernel: 1, channels: 3, groups: 2", "1x4x4x4", "`groups` 2 must divide", CVY_E_SHAPE},
        {"conv", "kernel: 1, channels: 3", "1x4", "one to three spatial dimensions, got 1x4", CVY_E_SHAPE},
        {"conv", "kernel: 0, channels: 3", "1x4x4", "kernel", CVY_E_CONFIG},
        {"conv", "kernal: 3, channels: 3", "1x4x4", "kernel", CVY_E_CONFIG},
        {"deconv", "kernel: 3, channels: 3, output_pad: 1", "1x4x4", "`output_pad` 1 must be smaller", CVY_E_SHAPE},
        {"deconv", "kernel: 1, channels: 3, pad: 2", "1x4x4", "would become 0 positions", CVY_E_SHAPE},
        {"max_pool", "kernel: 2, pad: 2", "1x4x4", "`pad` 2 must be smaller than the kernel (2)", CVY_E_SHAPE},
        {"global_avg_pool", "", "2x3", "got 2x3", CVY_E_SHAPE},
        {"batch_norm", "", "2", "got 2", CVY_E_SHAPE},
        {"slice", "first: 2, count: 2", "1x3", "entries 2 to 3", CVY_E_SHAPE},
        {"reshape", "shape: [2, 2]", "1x3", "has 3 elements", CVY_E_SHAPE},
        {"reshape", "shape: [-1, -1]", "1x4", "two entries -1", CVY_E_SHAPE},
        {"crop", "before: 4", "1x1x4", "nothing is left", CVY_E_SHAPE},
        {"lrn", "size: 4", "1x4x1", "odd", CVY_E_CONFIG},
        {"relu", "slope: 0.1", "1x4", "unknown key \"slope\"", CVY_E_CONFIG},
        {"tanh", "slope: 0.1", "1x4", "unknown key \"slope\"", CVY_E_CONFIG},
        {"group_norm", "", "2", "got 2", CVY_E_SHAPE},
        {"group_norm", "groups: 4", "1x6x2", "`groups` 4 must divide the 6 channels of source 1x6x2", CVY_E_SHAPE},
        {"instance_norm", "", "2x3", "got 2x3", CVY_E_SHAPE},
        {"layer_norm", "", "2", "at least two axes, got 2", CVY_E_SHAPE},
        {"layer_norm", "axes: [1, 0]", "2x3x4", "entry 1 of `axes` is 0, expected 1 to 2 or -2 to -1", CVY_E_SHAPE},
        {"layer_norm", "axes: [2, -1]", "2x3x4", "names axis 2 of source 2x3x4 twice", CVY_E_SHAPE},
        {"layer_norm", "axes: [1, 3]", "2x3x4x5", "leaves out an axis of source 2x3x4x5", CVY_E_SHAPE},
        {"layer_norm", "axes: []", "2x3", "`axes` is empty", CVY_E_SHAPE},
        {"resize", "", "1x1x2x2", "either `size` or `scale`, got neither", CVY_E_CONFIG},
        {"resize", "size: 4, scale: 2", "1x1x2x2", "got both", CVY_E_CONFIG},
        {"resize", "scale: 2", "1x1x2", "needs a source [N, C, H, W], got 1x1x2", CVY_E_SHAPE},
        {"resize", "scale: 0.3", "1x1x4x3", "dimension 3 of source 1x1x4x3 would have 0 positions", CVY_E_SHAPE},
        {"resize", "size: [1, 2, 3]", "1x1x4x3", "`size` has 3 entries", CVY_E_CONFIG},
        {"resize", "scale: 2, align_corners: true", "1x1x4x3", "`align_corners` is for mode: bilinear and bicubic",
         CVY_E_CONFIG},
    };
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        struct layer l;
        EXPECT_FAULT(open_layer(wrong[i].op, wrong[i].options, wrong[i].src, &l), wrong[i].code, wrong[i].part);
        close_layer(&l);
    }
}

int main(void)
{
    TEST(values);
    TEST(views);
    TEST(faults);
    return test_end();
}

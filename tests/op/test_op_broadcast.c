/* rows: clang asan minimal */
/*
 * test_op_broadcast.c: layers on several tensors broadcast samples of different shapes as NumPy does, and shapes that
 * do not fit are named.
 *
 * The expected values are computed here from the positions of the elements. Gradients are checked by the samples of
 * expand and of the operators themselves (test_op).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "op/graph_eval.h"

enum { SOURCES = 3, SAMPLES = 2 };

static const struct broadcast_case {
    const char *op, *src[SOURCES], *dst; /* shapes of samples */
} cases[] = {
    {"add", {"3x1x4", "5x1"}, "3x5x4"},      {"add", {"1", "2x3", "4x1x1"}, "4x2x3"},
    {"subtract", {"3x1", "4x1x5"}, "4x3x5"}, {"multiply", {"3x5x4", "1x5x1"}, "3x5x4"},
    {"multiply", {"4", "2x3x4"}, "2x3x4"}, /* 4 is not the number of channels */
    {"divide", {"2x1x3", "4x1"}, "2x4x3"},   {"maximum", {"4x1", "1x3"}, "4x3"},
};

struct broadcast {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *src[SOURCES], *dst;
    int nsrc;
};

/* A shape of samples with the batch before it. */
static cvy_shape with_batch(const char *sample)
{
    cvy_shape shape, all = {.ndim = 1, .dim = {SAMPLES}};
    EXPECT_OK(cvy_shape_parse(sample, &shape));
    for (int d = 0; d < shape.ndim; d++)
        all.dim[all.ndim++] = shape.dim[d];
    return all;
}

static cvy_status open_layer(const char *op, const char *const *src, struct broadcast *b)
{
    const cvy_graph_opts opts = {
        .name = "test", .batch = cvy_batch_share(SAMPLES, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    *b = (struct broadcast){0};
    CVY_TRY(cvy_vars_create(&b->vars));
    CVY_TRY(cvy_graph_create(b->vars, &opts, &b->graph));
    for (; b->nsrc < SOURCES && src[b->nsrc]; b->nsrc++) {
        const cvy_shape shape = with_batch(src[b->nsrc]);
        char name[8];
        snprintf(name, sizeof name, "x%d", b->nsrc);
        CVY_TRY(cvy_graph_feed(b->graph, name, CVY_DTYPE_F64, &shape, 1, &b->src[b->nsrc]));
    }
    return cvy_graph_layer(b->graph, op, "layer", NULL, b->src, b->nsrc, &b->dst);
}

static void close_layer(struct broadcast *b)
{
    cvy_graph_destroy(&b->graph);
    cvy_vars_destroy(&b->vars);
}

static double number(int source, int64_t i)
{
    return 1 + source + 0.125 * (double)((i * 7 + source * 3) % 11);
}

/* The element of a source that belongs to element i of the result: axes of samples are aligned at the last one. */
static int64_t element(const cvy_shape *src, const cvy_shape *dst, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = dst->ndim - 1; d >= 0; d--) {
        const int64_t k = i % dst->dim[d];
        const int s = d == 0 ? 0 : d - dst->ndim + src->ndim;
        i /= dst->dim[d];
        if (s < 0 || (s == 0 && d > 0))
            continue;
        at += (src->dim[s] == 1 ? 0 : k) * step;
        step *= src->dim[s];
    }
    return at;
}

static double combined(const char *op, double a, double b)
{
    return *op == 'a' ? a + b : *op == 's' ? a - b : *op == 'd' ? a / b : op[1] == 'u' ? a * b : fmax(a, b);
}

static void values(void)
{
    for (int c = 0; c < CVY_COUNT(cases); c++) {
        struct broadcast b;
        cvy_eval e = {0};
        const cvy_shape shape = with_batch(cases[c].dst);
        EXPECT_OK(open_layer(cases[c].op, cases[c].src, &b));
        EXPECT_TEXT(cvy_shape_text(&b.dst->shape), cvy_shape_text(&shape));
        EXPECT_OK(cvy_eval_create(b.graph, &e));
        for (int s = 0; s < b.nsrc; s++)
            for (int64_t i = 0; i < cvy_eval_of(&e, b.src[s])->elems; i++)
                cvy_set(cvy_eval_of(&e, b.src[s]), i, number(s, i));
        EXPECT_OK(cvy_eval_run(&e, 1));
        for (int64_t i = 0; i < cvy_shape_elems(&shape); i++) {
            double expected = number(0, element(&b.src[0]->shape, &shape, i));
            for (int s = 1; s < b.nsrc; s++)
                expected = combined(cases[c].op, expected, number(s, element(&b.src[s]->shape, &shape, i)));
            EXPECT_NEAR(cvy_get(cvy_eval_of(&e, b.dst), i), expected, 1e-14);
        }
        cvy_eval_destroy(&e);
        close_layer(&b);
    }
}

static void refused(void)
{
    static const struct {
        const char *op, *src[SOURCES], *message;
    } bad[] = {
        {"add", {"3x4", "3"}, "add: sources 2x3x4 and 2x3 do not fit"},
        {"divide", {"2x3", "4x3"}, "divide: sources 2x2x3 and 2x4x3 do not fit"},
        {"multiply", {"2x3", "3x2"}, "lengths must be equal, or 1"},
    };
    for (int i = 0; i < CVY_COUNT(bad); i++) {
        struct broadcast b;
        EXPECT_FAULT(open_layer(bad[i].op, bad[i].src, &b), CVY_E_SHAPE, bad[i].message);
        close_layer(&b);
    }
}

int main(void)
{
    TEST(values);
    TEST(refused);
    return test_end();
}

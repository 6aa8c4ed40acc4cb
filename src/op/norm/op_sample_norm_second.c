/*
 * layer_norm_second, group_norm_second: the gradients of layer_norm_grad and group_norm_grad, for the second
 * derivatives of a gradient penalty. op_sample_norm.h has the formulas that are differentiated here.
 *
 *     g = ddst * scale, e = gradient of dsrc, m(..) = mean over the set of n elements, r = inv_std
 *     p(e)    = e - m(e) - xhat * m(e * xhat)
 *     dddst   = scale * r * p(e)              dscale = sum(ddst * r * p(e))
 *     q       = -m(e * xhat) * g - m(g * xhat) * e
 *     dsrc    = r^2 * p(q) - r^2 * xhat * (m(e * g) - m(e) * m(g) - m(e * xhat) * m(g * xhat))
 *
 * Nodes: src, ddst, stats, e, [scale] -> dsrc, dddst, [dscale]. Samples test the
 * kernels for GPUs, and tests/op/test_op_gradient_penalty.c tests the formulas.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_sample_norm.h"

cvy_status cvy_sample_norm_second(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_sample_norm_opts *o = fwd->options;
    const cvy_sample_norm_def *family = fwd->op->family;
    cvy_value *e = cvy_grad_of(g, fwd->dst[0]), *d[3] = {NULL, NULL, NULL};
    if (!e)
        return CVY_OK;
    cvy_value *const from[] = {fwd->src[0], fwd->src[1], fwd->src[2], e, o->scale_shift ? fwd->src[3] : NULL};
    const int n = o->scale_shift ? 3 : 2;
    CVY_TRY(cvy_grad_emit(g, fwd, family->second, o, from, 2 + n, d, n));
    CVY_TRY(cvy_grad_add(g, fwd->src[0], d[0]));
    CVY_TRY(cvy_grad_add(g, fwd->src[1], d[1]));
    return o->scale_shift ? cvy_grad_add(g, fwd->src[3], d[2]) : CVY_OK;
}

static cvy_status second_infer(cvy_node *node)
{
    const cvy_sample_norm_opts *o = node->options;
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0)));
    CVY_TRY(cvy_node_set_dst(node, 1, node->src[1]->dtype, cvy_node_src(node, 1)));
    return o->scale_shift ? cvy_node_set_dst(node, 2, node->src[4]->dtype, cvy_node_src(node, 4)) : CVY_OK;
}

static void second_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 40 * n, .read_elems = 9 * n, .write_elems = 2 * n};
}

/* The elements of one set. */
struct set {
    const cvy_sample_sets *sets;
    const cvy_span *x, *ddst, *e, *scale; /* scale NULL: 1 */
    int64_t first;                        /* element 0 of the set */
    double mean, inv_std;
};

static int64_t place_of(const struct set *s, int64_t i)
{
    return s->first + i * s->sets->inner;
}

static int64_t number_of(const struct set *s, int64_t i)
{
    return place_of(s, i) / s->sets->repeat % s->sets->params;
}

static double scale_of(const struct set *s, int64_t i)
{
    return s->scale ? cvy_get(s->scale, number_of(s, i)) : 1;
}

static void run_set(const struct set *s, const cvy_span *dst)
{
    const int64_t n = s->sets->size;
    const double r = s->inv_std;
    double g1 = 0, e1 = 0, gx = 0, ex = 0, eg = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = place_of(s, i);
        const double x = (cvy_get(s->x, at) - s->mean) * r, g = cvy_get(s->ddst, at) * scale_of(s, i),
                     e = cvy_get(s->e, at);
        g1 += g / (double)n;
        e1 += e / (double)n;
        gx += g * x / (double)n;
        ex += e * x / (double)n;
        eg += e * g / (double)n;
    }
    /* The means of q and of q * xhat follow from those above. */
    const double q1 = -ex * g1 - gx * e1, qx = -2 * ex * gx, along = eg - e1 * g1 - ex * gx;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = place_of(s, i);
        const double x = (cvy_get(s->x, at) - s->mean) * r, ddst = cvy_get(s->ddst, at), e = cvy_get(s->e, at),
                     q = -ex * ddst * scale_of(s, i) - gx * e, p = e - e1 - x * ex;
        cvy_set(&dst[0], at, r * r * (q - q1 - x * qx - x * along));
        cvy_set(&dst[1], at, scale_of(s, i) * r * p);
        if (s->scale)
            cvy_set(&dst[2], number_of(s, i), cvy_get(&dst[2], number_of(s, i)) + ddst * r * p);
    }
}

static cvy_status second_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_sample_norm_opts *o = node->options;
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    for (int64_t k = 0; o->scale_shift && k < dst[2].elems; k++)
        cvy_set(&dst[2], k, 0);
    for (int64_t k = 0; k < sets.outer * sets.inner; k++) {
        const struct set s = {.sets = &sets,
                              .x = &src[0],
                              .ddst = &src[1],
                              .e = &src[3],
                              .scale = o->scale_shift ? &src[4] : NULL,
                              .first = k / sets.inner * sets.size * sets.inner + k % sets.inner,
                              .mean = cvy_get(&src[2], 2 * k),
                              .inv_std = cvy_get(&src[2], 2 * k + 1)};
        run_set(&s, dst);
    }
    return CVY_OK;
}

static const cvy_sample layer_norm_second_samples[] = {
    {.src = "4x5x7,4x5x7,4x5x2:f32,4x5x7,7:f32"},
    {.src = "3x7x4x5,3x7x4x5,3x4x5x2:f32,3x7x4x5,7:f32", .options = "axes: 1"},
    {.src = "2x3x70,2x3x70,2x3x2:f32,2x3x70", .options = "scale_shift: false"},
    {.src = "33x70,33x70,33x2:f32,33x70,70:f32"},
    {0},
};

static const cvy_sample group_norm_second_samples[] = {
    {.src = "3x6x4x5,3x6x4x5,3x2x2:f32,3x6x4x5,6:f32", .options = "groups: 2"},
    {.src = "2x32x9x9,2x32x9x9,2x4x2:f32,2x32x9x9,32:f32", .options = "groups: 4"},
    {.src = "3x12,3x12,3x3x2:f32,3x12", .options = "groups: 3, scale_shift: false"},
    {0},
};

#define SECOND(forward)                                                                                                \
    .summary = "gradient of the gradient of " forward, .options_size = sizeof(cvy_sample_norm_opts), .nsrc_min = 4,    \
    .nsrc_max = 5, .ndst = 3, .flags = CVY_OP_HIDDEN, .infer = second_infer, .cost = second_cost,                      \
    .reference = second_reference, .summands = cvy_sample_norm_summands

CVY_OP_DEFINE(layer_norm_second) = {.name = "layer_norm_second",
                                    .options = cvy_layer_norm_rows,
                                    .family = &cvy_layer_norm_family,
                                    .samples = layer_norm_second_samples,
                                    SECOND("layer_norm")};

CVY_OP_DEFINE(group_norm_second) = {.name = "group_norm_second",
                                    .options = cvy_group_norm_rows,
                                    .family = &cvy_group_norm_family,
                                    .samples = group_norm_second_samples,
                                    SECOND("group_norm")};

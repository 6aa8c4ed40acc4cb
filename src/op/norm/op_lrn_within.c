/*
 * lrn_within: local response normalisation within each channel, over neighbouring positions.
 * Caffe's networks for CIFAR-10 have it after pooling. lrn is the same across channels.
 * Source: Krizhevsky's cuda-convnet (rnorm); Caffe's LRN with norm_region WITHIN_CHANNEL: at the edge the sum is still
 * divided by the full size of the window.
 *
 *     scale[x] = k + alpha / taps * sum src[y]^2     over |y - x| <= size / 2 in each spatial dimension
 *     dst      = src * scale^-beta                   taps = size^dimensions
 *     dsrc[x]  = ddst[x] * scale[x]^-beta - 2 alpha beta / taps * src[x] * sum part[y]
 *     part     = ddst * src * scale^(-beta - 1)
 *
 * Forward keeps the scale for the gradient. The gradient is tested with the samples of lrn_within.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_grad.h"
#include "op/conv/op_window.h"
#include "op/norm/op_lrn.h"

static const cvy_option lrn_within_rows[] = {
    {"size", CVY_TYPE_INT, CVY_FIELD(cvy_lrn_opts, size), "3", "odd 1..", "positions",
     "width of the window in each dimension"},
    {"alpha", CVY_TYPE_REAL, CVY_FIELD(cvy_lrn_opts, alpha), "5e-5", "0..", "", "weight of the window's mean square"},
    {"beta", CVY_TYPE_REAL, CVY_FIELD(cvy_lrn_opts, beta), "0.75", "0..", "", "exponent"},
    {"k", CVY_TYPE_REAL, CVY_FIELD(cvy_lrn_opts, k), "1", ">0", "", "offset"},
    {0},
};

static cvy_status lrn_within_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(src->ndim >= 3 && src->ndim <= 2 + CVY_SPACE_MAX, CVY_E_SHAPE,
              "lrn_within needs a source [N, C, positions...] of one to three dimensions, got %s", cvy_shape_text(src));
    CVY_TRY(cvy_node_set_saved(node, 1, node->src[0]->dtype, src));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, src);
}

static cvy_status lrn_within_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *scale = NULL, *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_saved(g, fwd, 1, &scale));
    cvy_value *const from[] = {fwd->src[0], ddst, scale};
    CVY_TRY(cvy_grad_emit(g, fwd, "lrn_within_grad", fwd->options, from, 3, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static int64_t taps_of(const cvy_node *node)
{
    const cvy_lrn_opts *o = node->options;
    int64_t taps = 1;
    for (int d = 2; d < cvy_node_src(node, 0)->ndim; d++)
        taps *= o->size;
    return taps;
}

static void lrn_within_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n * (2 * taps_of(node) + 4), .read_elems = n, .write_elems = n};
}

static int64_t lrn_within_summands(const cvy_node *node)
{
    return 2 * taps_of(node) + 8;
}

/* The sizes of one channel; dimensions that the tensor does not have are 1. */
struct plane {
    int64_t dim[CVY_SPACE_MAX], elems;
};

static struct plane plane_of(const cvy_span *x)
{
    struct plane p = {{1, 1, 1}, 1};
    for (int d = 2; d < x->ndim; d++)
        p.elems *= p.dim[CVY_SPACE_MAX - x->ndim + d] = x->dim[d];
    return p;
}

/* Sum of x, or of its squares, over the window around element i. */
static double window_sum(const struct plane *p, const cvy_span *x, int64_t i, int64_t size, int squared)
{
    const int64_t channel = i / p->elems * p->elems, half = size / 2;
    int64_t at[CVY_SPACE_MAX], low[CVY_SPACE_MAX], high[CVY_SPACE_MAX];
    double sum = 0;
    cvy_window_split(p->dim, i - channel, at);
    for (int d = 0; d < CVY_SPACE_MAX; d++) {
        low[d] = CVY_MAX(at[d] - half, 0);
        high[d] = CVY_MIN(at[d] + half, p->dim[d] - 1);
    }
    for (int64_t a = low[0]; a <= high[0]; a++)
        for (int64_t b = low[1]; b <= high[1]; b++)
            for (int64_t c = low[2]; c <= high[2]; c++) {
                const double y = cvy_get(x, channel + (a * p->dim[1] + b) * p->dim[2] + c);
                sum += squared ? y * y : y;
            }
    return sum;
}

static cvy_status lrn_within_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_lrn_opts *o = node->options;
    const struct plane p = plane_of(src);
    const double weight = o->alpha / (double)taps_of(node);
    for (int64_t i = 0; i < dst->elems; i++) {
        const double scale = o->k + weight * window_sum(&p, src, i, o->size, 1);
        cvy_set(dst, i, cvy_get(src, i) * pow(scale, -o->beta));
        if (dst[1].data)
            cvy_set(&dst[1], i, scale);
    }
    return CVY_OK;
}

static const cvy_sample lrn_within_samples[] = {
    {.src = "2x7x3x5", .options = "alpha: 0.5"},
    {.src = "1x1x1x1", .options = "alpha: 1"},
    {.src = "2x3x6x4", .options = "size: 5, beta: 0.5, alpha: 0.3, k: 2"},
    {.src = "2x16x5", .options = "alpha: 0.1"},
    {.src = "1x2x3x4x3", .options = "alpha: 0.4"},
    {.src = "128x32x16x16", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(lrn_within) = {
    .name = "lrn_within",
    .summary = "local response normalisation within each channel",
    .options = lrn_within_rows,
    .options_size = sizeof(cvy_lrn_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 2,
    .nsaved = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = lrn_within_infer,
    .grad = lrn_within_grad,
    .cost = lrn_within_cost,
    .reference = lrn_within_reference,
    .summands = lrn_within_summands,
    .samples = lrn_within_samples,
};

/* lrn_within_grad: src, ddst, scale -> dsrc, and part, which no other node reads. */
static cvy_status lrn_within_grad_infer(cvy_node *node)
{
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0)));
    return cvy_node_set_dst(node, 1, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status lrn_within_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_lrn_opts *o = node->options;
    const struct plane p = plane_of(src);
    const cvy_span *ddst = &src[1], *scale = &src[2], *part = &dst[1];
    const double weight = 2 * o->alpha * o->beta / (double)taps_of(node);
    for (int64_t i = 0; i < dst->elems; i++) {
        const double power = cvy_get(ddst, i) * pow(cvy_get(scale, i), -o->beta);
        cvy_set(dst, i, power);
        cvy_set(part, i, power * cvy_get(src, i) / cvy_get(scale, i));
    }
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(dst, i) - weight * cvy_get(src, i) * window_sum(&p, part, i, o->size, 0));
    return CVY_OK;
}

static void lrn_within_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n * (taps_of(node) + 8), .read_elems = 3 * n, .write_elems = 2 * n};
}

CVY_OP_DEFINE(lrn_within_grad) = {
    .name = "lrn_within_grad",
    .summary = "gradient of lrn_within",
    .options = lrn_within_rows,
    .options_size = sizeof(cvy_lrn_opts),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = lrn_within_grad_infer,
    .cost = lrn_within_grad_cost,
    .reference = lrn_within_grad_reference,
    .summands = lrn_within_summands,
};

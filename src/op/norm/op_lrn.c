/*
 * lrn: local response normalisation across channels. AlexNet, CaffeNet and GoogLeNet have it before or after pooling.
 * Source: Krizhevsky, Sutskever and Hinton 2012, section 3.3; alpha is divided by the window as Caffe and PyTorch do.
 *
 *     scale[n,c,x] = k + alpha / size * sum src[n,c',x]^2              over |c' - c| <= size / 2, x any position
 *     dst          = src * scale^-beta
 *     dsrc[c]      = ddst[c] * scale[c]^-beta
 *                    - 2 alpha beta / size * src[c] * sum ddst[c'] * src[c'] * scale[c']^(-beta - 1)
 *
 * The gradient computes the scale again, because that costs less than keeping it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/norm/op_lrn.h"

#include "graph/graph_grad.h"

static const cvy_option lrn_rows[] = {
    {"size", CVY_TYPE_INT, CVY_FIELD(cvy_lrn_opts, size), "5", "odd 1..", "channels", "width of the window"},
    {"alpha", CVY_TYPE_REAL, CVY_FIELD(cvy_lrn_opts, alpha), "1e-4", "0..", "", "weight of the window's mean square"},
    {"beta", CVY_TYPE_REAL, CVY_FIELD(cvy_lrn_opts, beta), "0.75", "0..", "", "exponent"},
    {"k", CVY_TYPE_REAL, CVY_FIELD(cvy_lrn_opts, k), "1", ">0", "", "offset"},
    {0},
};

static cvy_status lrn_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(src->ndim >= 3, CVY_E_SHAPE, "lrn needs a source [N, C, positions...], got %s", cvy_shape_text(src));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, src);
}

static cvy_status lrn_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {fwd->src[0], ddst};
    CVY_TRY(cvy_grad_emit(g, fwd, "lrn_grad", fwd->options, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void lrn_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    const cvy_lrn_opts *o = node->options;
    *cost_out = (cvy_cost){.flop = n * (2 * o->size + 4), .read_elems = n, .write_elems = n};
}

static int64_t lrn_summands(const cvy_node *node)
{
    return 2 * ((const cvy_lrn_opts *)node->options)->size + 8;
}

/* The scale at element i of channel c of C; neighbouring channels are `step` elements apart. */
static double lrn_scale(const cvy_lrn_opts *o, const cvy_span *src, int64_t i, int64_t c, int64_t C, int64_t step)
{
    const int64_t half = o->size / 2;
    double sum = 0;
    for (int64_t near = CVY_MAX(c - half, 0); near <= CVY_MIN(c + half, C - 1); near++) {
        const double x = cvy_get(src, i + (near - c) * step);
        sum += x * x;
    }
    return o->k + o->alpha / (double)o->size * sum;
}

static cvy_status lrn_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_lrn_opts *o = node->options;
    const int64_t C = src->dim[1], step = cvy_span_prod(src, 2, src->ndim);
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(src, i) * pow(lrn_scale(o, src, i, i / step % C, C, step), -o->beta));
    return CVY_OK;
}

static const cvy_sample lrn_samples[] = {
    {.src = "2x7x3x5", .options = "alpha: 0.5"},
    {.src = "1x1x1x1", .options = "alpha: 1"},
    {.src = "2x32x3x3", .options = "size: 3, beta: 0.5, alpha: 0.3, k: 2"},
    {.src = "2x16x5", .options = "alpha: 0.1"},
    {.src = "64x96x27x27", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(lrn) = {
    .name = "lrn",
    .summary = "local response normalisation across channels",
    .options = lrn_rows,
    .options_size = sizeof(cvy_lrn_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_SPACE,
    .infer = lrn_infer,
    .grad = lrn_grad,
    .cost = lrn_cost,
    .reference = lrn_reference,
    .summands = lrn_summands,
    .samples = lrn_samples,
};

/* lrn_grad: src, ddst -> dsrc. */
static cvy_status lrn_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_lrn_opts *o = node->options;
    const cvy_span *ddst = &src[1];
    const int64_t C = src->dim[1], step = cvy_span_prod(src, 2, src->ndim), half = o->size / 2;
    for (int64_t i = 0; i < dst->elems; i++) {
        const int64_t c = i / step % C;
        double sum = 0;
        for (int64_t near = CVY_MAX(c - half, 0); near <= CVY_MIN(c + half, C - 1); near++) {
            const int64_t j = i + (near - c) * step;
            sum += cvy_get(ddst, j) * cvy_get(src, j) * pow(lrn_scale(o, src, j, near, C, step), -o->beta - 1);
        }
        cvy_set(dst, i,
                cvy_get(ddst, i) * pow(lrn_scale(o, src, i, c, C, step), -o->beta) -
                    2 * o->alpha * o->beta / (double)o->size * cvy_get(src, i) * sum);
    }
    return CVY_OK;
}

static void lrn_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    const cvy_lrn_opts *o = node->options;
    *cost_out = (cvy_cost){.flop = n * (4 * o->size + 8), .read_elems = 2 * n, .write_elems = n};
}

static const cvy_sample lrn_grad_samples[] = {
    {.src = "2x7x3x5,2x7x3x5"}, {.src = "1x16x2x2,1x16x2x2", .options = "size: 3, alpha: 0.3"}, {0}};

CVY_OP_DEFINE(lrn_grad) = {
    .name = "lrn_grad",
    .summary = "gradient of lrn",
    .options = lrn_rows,
    .options_size = sizeof(cvy_lrn_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_SPACE,
    .infer = lrn_infer,
    .cost = lrn_grad_cost,
    .reference = lrn_grad_reference,
    .summands = lrn_summands,
    .samples = lrn_grad_samples,
};

/*
 * multiply_channels: product of an activation and one factor for each sample and channel. The layer multiply becomes
 * this operator if its sources have different shapes (op_multiply.c).
 *
 *     dst[n,c,x]   = src[n,c,x] * factor[n,c]
 *     dsrc         = ddst * factor                         (the same operator)
 *     dfactor[n,c] = sum of ddst[n,c,x] * src[n,c,x] over x
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_multiply.h"

int cvy_multiply_is_factor(const cvy_shape *src, const cvy_shape *factor)
{
    int fits = src->ndim >= 3 && (factor->ndim == 2 || factor->ndim == src->ndim);
    for (int d = 0; fits && d < factor->ndim; d++)
        fits = factor->dim[d] == (d < 2 ? src->dim[d] : 1);
    return fits;
}

static cvy_status multiply_channels_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0), *factor = cvy_node_src(node, 1);
    CVY_CHECK(cvy_multiply_is_factor(src, factor) && node->src[0]->dtype == node->src[1]->dtype, CVY_E_SHAPE,
              "multiply_channels needs [N, C, positions...] and [N, C] of one dtype, got %s %s and %s %s",
              cvy_dtype_text(node->src[0]->dtype), cvy_shape_text(src), cvy_dtype_text(node->src[1]->dtype),
              cvy_shape_text(factor));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, src);
}

static cvy_status multiply_channels_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL, *dfactor = NULL;
    if (ddst && cvy_grad_wanted(g, fwd->src[0])) {
        cvy_value *const from[] = {ddst, fwd->src[1]};
        CVY_TRY(cvy_grad_emit(g, fwd, "multiply_channels", NULL, from, 2, &dsrc, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[0], dsrc));
    }
    if (ddst && cvy_grad_wanted(g, fwd->src[1])) {
        const cvy_multiply_channels_grad_opts opts = {*cvy_node_src(fwd, 1)};
        cvy_value *const from[] = {ddst, fwd->src[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, "multiply_channels_grad", &opts, from, 2, &dfactor, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[1], dfactor));
    }
    return CVY_OK;
}

static void multiply_channels_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n + cvy_shape_elems(cvy_node_src(node, 1)), .write_elems = n};
}

static cvy_status multiply_channels_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t positions = cvy_shape_positions(cvy_node_src(node, 0));
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(&src[0], i) * cvy_get(&src[1], i / positions));
    return CVY_OK;
}

/* A factor [N, C, 1, ...] cannot be cut along a position. */
static unsigned multiply_channels_splits(const cvy_node *node)
{
    const cvy_multiply_channels_grad_opts *o = node->options;
    const int ndim = node->op->options_size ? o->factor.ndim : cvy_node_src(node, 1)->ndim;
    return ndim == 2 ? CVY_SPLIT_SPACE : 0;
}

static const cvy_sample multiply_channels_samples[] = {
    {.src = "2x3x5x4,2x3"},       {.src = "2x3x5x4,2x3x1x1"},   {.src = "1x1x1,1x1"},
    {.src = "2x16x4x4,2x16"},     {.src = "2x33x7,2x33x1"},     {.src = "2x2x3x4x5,2x2"},
    {.src = "2x80x3x3,2x80x1x1"}, {.src = "1x128x17x16,1x128"}, {0},
};

CVY_OP_DEFINE(multiply_channels) = {
    .name = "multiply_channels",
    .summary = "product of an activation and one factor for each channel",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .node_splits = multiply_channels_splits,
    .infer = multiply_channels_infer,
    .grad = multiply_channels_grad,
    .cost = multiply_channels_cost,
    .reference = multiply_channels_reference,
    .samples = multiply_channels_samples,
};

/* multiply_channels_grad: ddst, src -> dfactor. It is tested with the samples of multiply_channels, through its
 * gradient. */
static cvy_status multiply_channels_grad_infer(cvy_node *node)
{
    const cvy_multiply_channels_grad_opts *o = node->options;
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &o->factor);
}

static void multiply_channels_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 2 * n, .read_elems = 2 * n, .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t multiply_channels_grad_summands(const cvy_node *node)
{
    return cvy_shape_positions(cvy_node_src(node, 0));
}

static cvy_status multiply_channels_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t positions = cvy_shape_positions(cvy_node_src(node, 0));
    for (int64_t o = 0; o < dst->elems; o++) {
        double sum = 0;
        for (int64_t i = o * positions; i < (o + 1) * positions; i++)
            sum += cvy_get(&src[0], i) * cvy_get(&src[1], i);
        cvy_set(dst, o, sum);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(multiply_channels_grad) = {
    .name = "multiply_channels_grad",
    .summary = "gradient of multiply_channels for its factor",
    .options_size = sizeof(cvy_multiply_channels_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .node_splits = multiply_channels_splits,
    .infer = multiply_channels_grad_infer,
    .cost = multiply_channels_grad_cost,
    .reference = multiply_channels_grad_reference,
    .summands = multiply_channels_grad_summands,
};

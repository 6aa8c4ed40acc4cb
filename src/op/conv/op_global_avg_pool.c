/*
 * global_avg_pool: mean over all positions of a channel. Networks have it between the last convolution and the
 * classifier. Source: Lin, Chen and Yan 2014, "Network in network".
 *
 *     dst[n,c]    = mean of src[n,c,x] over x
 *     dsrc[n,c,x] = ddst[n,c] / positions
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/comm/op_redistribute.h"
#include "op/conv/op_pool.h"

static cvy_status global_avg_pool_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(src->ndim >= 3, CVY_E_SHAPE, "global_avg_pool needs a source [N, C, positions...], got %s",
              cvy_shape_text(src));
    const cvy_shape dst = cvy_shape_make(2, src->dim);
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status global_avg_pool_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    const cvy_global_pool_grad_opts opts = {*cvy_node_src(fwd, 0)};
    CVY_TRY(cvy_grad_emit(g, fwd, "global_avg_pool_grad", &opts, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void global_avg_pool_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t global_avg_pool_summands(const cvy_node *node)
{
    return cvy_shape_positions(cvy_node_src(node, 0)) + 1;
}

static cvy_status global_avg_pool_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t positions = cvy_shape_positions(cvy_node_src(node, 0));
    for (int64_t o = 0; o < dst->elems; o++) {
        double sum = 0;
        for (int64_t i = 0; i < positions; i++)
            sum += cvy_get(src, o * positions + i);
        cvy_set(dst, o, sum / (double)positions);
    }
    return CVY_OK;
}

static const cvy_sample global_avg_pool_samples[] = {
    {.src = "2x3x5x4"}, {.src = "1x1x1"}, {.src = "3x16x4x4"}, {.src = "2x33x7"}, {.src = "1x2x3x4x5"}, {0},
};

/* Along a spatial dimension the means of the parts are added, each with its share of the positions. */
static cvy_status global_avg_pool_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    (void)options;
    if (part->split != CVY_SPLIT_SPACE)
        return CVY_OK;
    const int64_t n = part->dim < src->ndim ? src->dim[part->dim] : 0;
    if (n < part->parts)
        return CVY_NOT_APPLICABLE;
    part->share = cvy_part_fraction(part, n);
    return CVY_OK;
}

CVY_OP_DEFINE(global_avg_pool) = {
    .name = "global_avg_pool",
    .summary = "mean over all positions of a channel",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .part_splits = CVY_SPLIT_SPACE,
    .part = global_avg_pool_part,
    .infer = global_avg_pool_infer,
    .grad = global_avg_pool_grad,
    .cost = global_avg_pool_cost,
    .reference = global_avg_pool_reference,
    .summands = global_avg_pool_summands,
    .samples = global_avg_pool_samples,
};

/* global_avg_pool_grad: ddst -> dsrc. It is tested with the samples of global_avg_pool, through its gradient. */
static cvy_status global_avg_pool_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_global_pool_grad_opts *)node->options)->src);
}

static cvy_status global_avg_pool_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t positions = cvy_shape_positions(cvy_node_dst(node, 0));
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(src, i / positions) / (double)positions);
    return CVY_OK;
}

CVY_OP_DEFINE(global_avg_pool_grad) = {
    .name = "global_avg_pool_grad",
    .summary = "gradient of global_avg_pool",
    .options_size = sizeof(cvy_global_pool_grad_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = global_avg_pool_grad_infer,
    .reference = global_avg_pool_grad_reference,
};

/*
 * global_max_pool: maximum over all positions of a channel.
 *
 *     dst[n,c]    = max of src[n,c,x] over x; NaN if there is a NaN
 *     index[n,c]  = row-major position of the maximum (the first of equal ones)
 *     dsrc[n,c,x] = ddst[n,c] at that position, else 0
 *
 * So of equal maxima the first gets the whole gradient, as in max_pool, and as in PyTorch's max and
 * adaptive_max_pool2d. (PyTorch's amax divides it among them.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_grad.h"
#include "op/conv/op_pool.h"

static cvy_status global_max_pool_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(src->ndim >= 3, CVY_E_SHAPE, "global_max_pool needs a source [N, C, positions...], got %s",
              cvy_shape_text(src));
    const cvy_shape dst = cvy_shape_make(2, src->dim);
    CVY_CHECK(cvy_shape_positions(src) <= INT32_MAX, CVY_E_SHAPE, "global_max_pool: %s has more than %d positions",
              cvy_shape_text(src), INT32_MAX);
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst));
    return cvy_node_set_saved(node, 1, CVY_DTYPE_I32, &dst);
}

static cvy_status global_max_pool_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *index = NULL, *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_saved(g, fwd, 1, &index));
    const cvy_global_pool_grad_opts opts = {*cvy_node_src(fwd, 0)};
    cvy_value *const from[] = {ddst, index};
    CVY_TRY(cvy_grad_emit(g, fwd, "global_max_pool_grad", &opts, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void global_max_pool_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t one_summand(const cvy_node *node)
{
    (void)node;
    return 1;
}

static cvy_status global_max_pool_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t positions = cvy_shape_positions(cvy_node_src(node, 0));
    for (int64_t o = 0; o < dst->elems; o++) {
        int64_t winner = 0;
        double max = cvy_get(src, o * positions);
        for (int64_t i = 1; i < positions; i++) {
            const double v = cvy_get(src, o * positions + i);
            if (v > max || (isnan(v) && !isnan(max))) {
                max = v;
                winner = i;
            }
        }
        cvy_set(&dst[0], o, max);
        if (dst[1].data)
            cvy_set(&dst[1], o, (double)winner);
    }
    return CVY_OK;
}

static const cvy_sample global_max_pool_samples[] = {
    {.src = "2x3x5x4"},
    {.src = "1x1x1"},
    {.src = "3x16x4x4"},
    {.src = "2x33x7"},
    {.src = "1x2x3x4x5"},
    {.src = "2x80x3x5"},
    {.src = "2x20x9x11", .flags = CVY_SAMPLE_TIES},
    {.src = "3x72x2x3", .flags = CVY_SAMPLE_TIES},
    {0},
};

/* Along a spatial dimension the whole maximum is that of the parts. If several positions have it, the gradient goes to
 * the first one of the first part. */
static cvy_status global_max_pool_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    (void)options;
    part->maxima = part->split == CVY_SPLIT_SPACE;
    return !part->maxima || (part->dim < src->ndim && src->dim[part->dim] >= part->parts) ? CVY_OK : CVY_NOT_APPLICABLE;
}

CVY_OP_DEFINE(global_max_pool) = {
    .name = "global_max_pool",
    .summary = "maximum over all positions of a channel",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 2,
    .nsaved = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .part_splits = CVY_SPLIT_SPACE,
    .part = global_max_pool_part,
    .infer = global_max_pool_infer,
    .grad = global_max_pool_grad,
    .cost = global_max_pool_cost,
    .reference = global_max_pool_reference,
    .summands = one_summand,
    .samples = global_max_pool_samples,
};

/* global_max_pool_grad: ddst, index -> dsrc. It is tested with the samples of global_max_pool, through its gradient. */
static cvy_status global_max_pool_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_global_pool_grad_opts *)node->options)->src);
}

static cvy_status global_max_pool_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t positions = cvy_shape_positions(cvy_node_dst(node, 0));
    for (int64_t i = 0; i < dst->elems; i++) {
        const int64_t o = i / positions;
        cvy_set(dst, i, (int64_t)cvy_get(&src[1], o) == i % positions ? cvy_get(&src[0], o) : 0);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(global_max_pool_grad) = {
    .name = "global_max_pool_grad",
    .summary = "gradient of global_max_pool",
    .options_size = sizeof(cvy_global_pool_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = global_max_pool_grad_infer,
    .reference = global_max_pool_grad_reference,
    .summands = one_summand,
};

/*
 * subtract: difference of two tensors; shapes that differ are broadcast (op_combine.c).
 *
 *     dst = src0 - src1
 *     dsrc0 = ddst;  dsrc1 = -ddst
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_combine.h"
#include "op/pointwise/op_scale.h"

static cvy_status subtract_grad(cvy_grad *g, const cvy_node *fwd)
{
    static const cvy_scale_opts minus = {.by = -1};
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *negative = NULL;
    if (!ddst)
        return CVY_OK;
    CVY_TRY(cvy_grad_add(g, fwd->src[0], ddst));
    if (!cvy_grad_wanted(g, fwd->src[1]))
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, "scale", &minus, &ddst, 1, &negative, 1));
    return cvy_grad_add(g, fwd->src[1], negative);
}

static cvy_status subtract_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(&src[0], i) - cvy_get(&src[1], i));
    return CVY_OK;
}

static const cvy_sample subtract_samples[] = {
    {.src = "2x3x5x4,2x3x5x4"}, {.src = "1,1"}, {.src = "3x16x4x4,3x16x4x4"}, {.src = "2x33x3,2x33x3"}, {0}};

CVY_OP_DEFINE(subtract) = {
    .name = "subtract",
    .summary = "difference of two tensors, broadcast as in NumPy",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = cvy_combine_infer,
    .build = cvy_combine_build,
    .grad = subtract_grad,
    .cost = cvy_combine_cost,
    .reference = subtract_reference,
    .summands = cvy_combine_summands,
    .samples = subtract_samples,
};

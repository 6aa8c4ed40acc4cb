/*
 * add: sum of two to eight tensors, for residual connections; shapes that differ are broadcast (op_combine.c). Autodiff
 * adds up the gradients of several consumers with it. Source: He et al. 2016.
 *
 *     dst = src0 + src1 + ...
 *     dsrc_i = ddst                     (the same value: nothing is copied)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_combine.h"

static cvy_status add_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    for (int i = 0; ddst && i < fwd->nsrc; i++)
        CVY_TRY(cvy_grad_add(g, fwd->src[i], ddst));
    return CVY_OK;
}

static cvy_status add_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    for (int64_t i = 0; i < dst->elems; i++) {
        double sum = 0;
        for (int s = 0; s < node->nsrc; s++)
            sum += cvy_get(&src[s], i);
        cvy_set(dst, i, sum);
    }
    return CVY_OK;
}

static const cvy_sample add_samples[] = {
    {.src = "2x3x5x4,2x3x5x4"},
    {.src = "1,1,1"},
    {.src = "2x33,2x33,2x33,2x33,2x33,2x33,2x33,2x33"},
    {.src = "3x16x4x4,3x16x4x4"},
    {0},
};

CVY_OP_DEFINE(add) = {
    .name = "add",
    .summary = "sum of tensors, broadcast as in NumPy",
    .nsrc_min = 2,
    .nsrc_max = 8,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = cvy_combine_infer,
    .build = cvy_combine_build,
    .grad = add_grad,
    .cost = cvy_combine_cost,
    .reference = add_reference,
    .summands = cvy_combine_summands,
    .samples = add_samples,
};

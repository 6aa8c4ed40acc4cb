/*
 * divide: quotient of two tensors, element by element.
 *
 *     dst   = src0 / src1
 *     dsrc0 = ddst / src1
 *     dsrc1 = -(ddst * dst) / src1
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_combine.h"
#include "op/pointwise/op_scale.h"

static cvy_status divide_grad(cvy_grad *g, const cvy_node *fwd)
{
    static const cvy_scale_opts minus = {.by = -1};
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *product = NULL, *quotient = NULL, *dsrc = NULL;
    if (ddst && cvy_grad_wanted(g, fwd->src[0])) {
        cvy_value *const from[] = {ddst, fwd->src[1]};
        CVY_TRY(cvy_grad_emit(g, fwd, "divide", NULL, from, 2, &dsrc, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[0], dsrc));
    }
    if (ddst && cvy_grad_wanted(g, fwd->src[1])) {
        cvy_value *const both[] = {ddst, fwd->dst[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, "multiply", NULL, both, 2, &product, 1));
        cvy_value *const from[] = {product, fwd->src[1]};
        CVY_TRY(cvy_grad_emit(g, fwd, "divide", NULL, from, 2, &quotient, 1));
        CVY_TRY(cvy_grad_emit(g, fwd, "scale", &minus, &quotient, 1, &dsrc, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[1], dsrc));
    }
    return CVY_OK;
}

static cvy_status divide_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(&src[0], i) / cvy_get(&src[1], i));
    return CVY_OK;
}

static const cvy_sample divide_samples[] = {
    {.src = "2x3x5x4,2x3x5x4", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "1,1", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x16x4x4,3x16x4x4", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x33x3,2x33x3", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(divide) = {
    /* not CVY_OP_ELEMENTWISE: 0 / 0 does not stay 0 in the padding of a blocked layout */
    .name = "divide",
    .summary = "quotient of two tensors, broadcast as in NumPy",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = cvy_combine_infer,
    .build = cvy_combine_build,
    .grad = divide_grad,
    .cost = cvy_combine_cost,
    .reference = divide_reference,
    .summands = cvy_combine_summands,
    .samples = divide_samples,
};

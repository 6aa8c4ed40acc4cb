/*
 * multiply: product of two to eight tensors, element by element, for gates; or of an activation [N, C, positions...]
 * and one factor for each channel, [N, C] or [N, C, 1, ...], in either order (op_multiply_channels.c), as
 * squeeze-and-excitation does (Hu, Shen and Sun 2018). Other shapes that differ are broadcast (op_combine.c).
 *
 *     dst    = src0 * src1 * ...
 *     dsrc_i = ddst * product of the other sources
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_multiply.h"

#include "graph/graph_grad.h"
#include "op/pointwise/op_combine.h"

static cvy_status multiply_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                 cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    const int differ = nsrc == 2 && !cvy_shape_equal(&src[0]->shape, &src[1]->shape);
    const int first = differ && cvy_multiply_is_factor(&src[1]->shape, &src[0]->shape);
    cvy_node *node = NULL;
    if (!differ || (!first && !cvy_multiply_is_factor(&src[0]->shape, &src[1]->shape)))
        return cvy_combine_build(g, op, name, options, src, nsrc, dst_out);
    cvy_value *const from[] = {src[first], src[1 - first]};
    CVY_TRY(cvy_graph_add(g, "multiply_channels", name, name, NULL, from, 2, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

static cvy_status multiply_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *from[CVY_NODE_SRC_MAX] = {cvy_grad_of(g, fwd->dst[0])}, *dsrc = NULL;
    for (int i = 0; from[0] && i < fwd->nsrc; i++) {
        int count = 1;
        if (!cvy_grad_wanted(g, fwd->src[i]))
            continue;
        for (int k = 0; k < fwd->nsrc; k++)
            if (k != i)
                from[count++] = fwd->src[k];
        CVY_TRY(cvy_grad_emit(g, fwd, "multiply", NULL, from, count, &dsrc, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[i], dsrc));
    }
    return CVY_OK;
}

static cvy_status multiply_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    for (int64_t i = 0; i < dst->elems; i++) {
        double product = cvy_get(&src[0], i);
        for (int s = 1; s < node->nsrc; s++)
            product *= cvy_get(&src[s], i);
        cvy_set(dst, i, product);
    }
    return CVY_OK;
}

static const cvy_sample multiply_samples[] = {
    {.src = "2x3x5x4,2x3x5x4"},
    {.src = "1,1,1"},
    {.src = "2x33,2x33,2x33,2x33,2x33,2x33,2x33,2x33"},
    {.src = "3x16x4x4,3x16x4x4"},
    {0},
};

CVY_OP_DEFINE(multiply) = {
    .name = "multiply",
    .summary =
        "product of tensors, broadcast as in NumPy, or of [N, C, positions...] and a factor for each channel, [N, C]",
    .nsrc_min = 2,
    .nsrc_max = 8,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = cvy_combine_infer,
    .grad = multiply_grad,
    .build = multiply_build,
    .cost = cvy_combine_cost,
    .reference = multiply_reference,
    .summands = cvy_combine_summands,
    .samples = multiply_samples,
};

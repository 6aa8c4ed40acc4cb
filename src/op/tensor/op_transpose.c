/*
 * transpose: permutes the axes of each sample, as PyTorch's permute. Networks have it around layers that work on the
 * last axis (ConvNeXt), to shuffle channels (ShuffleNet), and to split attention into heads.
 *
 *     dst[n, i_1, i_2, ...] = src with index i_k at axis order[k]
 *     dsrc                  = ddst, with the inverse permutation
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_transpose.h"

#include "graph/graph_grad.h"

static const cvy_option transpose_rows[] = {
    {"order", CVY_TYPE_INTS, CVY_FIELD(cvy_transpose_opts, order), NULL, "1..", "",
     "the source's axes in their new order; 1 is the channels, and axis 0, the batch, stays first"},
    {0},
};

static cvy_status transpose_infer(cvy_node *node)
{
    const cvy_ints *order = &((const cvy_transpose_opts *)node->options)->order;
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_shape dst = *src;
    unsigned seen = 0;
    CVY_CHECK(order->count == src->ndim - 1, CVY_E_SHAPE,
              "transpose: `order` has %d axes, expected the %d axes of a sample of %s", order->count,
              CVY_MAX(src->ndim - 1, 0), cvy_shape_text(src));
    for (int i = 0; i < order->count; i++) {
        const int64_t axis = order->at[i];
        CVY_CHECK(axis >= 1 && axis < src->ndim && !(seen >> axis & 1), CVY_E_SHAPE,
                  "transpose: entry %d of `order` is %lld; expected each of the axes 1 to %d once", i, (long long)axis,
                  src->ndim - 1);
        seen |= 1U << axis;
        dst.dim[i + 1] = src->dim[axis];
    }
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status transpose_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_ints *order = &((const cvy_transpose_opts *)fwd->options)->order;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    cvy_transpose_opts back = {.order.count = order->count};
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    for (int i = 0; i < order->count; i++)
        back.order.at[order->at[i] - 1] = i + 1;
    CVY_TRY(cvy_grad_emit(g, fwd, "transpose", &back, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void transpose_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.read_elems = n, .write_elems = n};
}

static int64_t transpose_summands(const cvy_node *node)
{
    (void)node;
    return 1;
}

static cvy_status transpose_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_ints *order = &((const cvy_transpose_opts *)node->options)->order;
    for (int64_t i = 0; i < dst->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0}, rest = i, from = 0;
        for (int d = dst->ndim - 1; d > 0; d--) {
            at[order->at[d - 1]] = rest % dst->dim[d];
            rest /= dst->dim[d];
        }
        at[0] = rest;
        for (int d = 0; d < src->ndim; d++)
            from = from * src->dim[d] + at[d];
        cvy_set(dst, i, cvy_get(src, from));
    }
    return CVY_OK;
}

static const cvy_sample transpose_samples[] = {
    {.src = "2x3x4x5", .options = "order: [2, 3, 1]"},
    {.src = "2x4x5x3", .options = "order: [3, 1, 2]"},
    {.src = "2x7x9", .options = "order: [2, 1]"},
    {.src = "3x6", .options = "order: 1"},
    {.src = "2x2x3x4x5", .options = "order: [2, 1, 3, 4]"},
    {.src = "2x16x5x7", .options = "order: [1, 3, 2]"},
    {.src = "2x2x3x2x3x2", .options = "order: [5, 3, 1, 4, 2]"},
    {.src = "2x1x3x1", .options = "order: [3, 2, 1]"},
    {.src = "16x56x56x96", .options = "order: [3, 1, 2]", .flags = CVY_SAMPLE_TIMING},
    {.src = "16x2x58x28x28", .options = "order: [2, 1, 3, 4]", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(transpose) = {
    .name = "transpose",
    .summary = "permutes the axes of each sample",
    .options = transpose_rows,
    .options_size = sizeof(cvy_transpose_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = transpose_infer,
    .grad = transpose_grad,
    .cost = transpose_cost,
    .reference = transpose_reference,
    .summands = transpose_summands,
    .samples = transpose_samples,
};

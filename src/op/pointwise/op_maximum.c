/*
 * maximum: element by element the largest of two to eight tensors, as in maxout networks (Goodfellow et al. 2013);
 * shapes that differ are broadcast (op_combine.c).
 *
 *     dst    = max(src0, src1, ...); NaN if one of them is NaN
 *     dsrc_i = ddst / (number of sources that are equal to dst) if src_i = dst, else 0
 *
 * So sources that tie share the gradient equally, as in PyTorch's maximum (of two tensors) and amax.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_combine.h"

static cvy_status maximum_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *from[CVY_NODE_SRC_MAX] = {cvy_grad_of(g, fwd->dst[0])}, *dsrc[CVY_NODE_DST_MAX] = {NULL};
    if (!from[0])
        return CVY_OK;
    for (int i = 0; i < fwd->nsrc; i++)
        from[1 + i] = fwd->src[i];
    CVY_TRY(cvy_grad_emit(g, fwd, "maximum_grad", NULL, from, 1 + fwd->nsrc, dsrc, fwd->nsrc));
    for (int i = 0; i < fwd->nsrc; i++)
        CVY_TRY(cvy_grad_add(g, fwd->src[i], dsrc[i]));
    return CVY_OK;
}

static cvy_status maximum_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    for (int64_t i = 0; i < dst->elems; i++) {
        double max = cvy_get(&src[0], i);
        for (int s = 1; s < node->nsrc; s++)
            max = cvy_maximum(max, cvy_get(&src[s], i));
        cvy_set(dst, i, max);
    }
    return CVY_OK;
}

static const cvy_sample maximum_samples[] = {
    {.src = "2x3x5x4,2x3x5x4"},
    {.src = "1,1"},
    {.src = "2x33,2x33,2x33,2x33,2x33,2x33,2x33,2x33"},
    {.src = "3x16x4x4,3x16x4x4"},
    {.src = "2x19x3x4,2x19x3x4,2x19x3x4", .flags = CVY_SAMPLE_TIES},
    {0},
};

CVY_OP_DEFINE(maximum) = {
    .name = "maximum",
    .summary = "maximum of tensors, element by element, broadcast as in NumPy",
    .nsrc_min = 2,
    .nsrc_max = 8,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = cvy_combine_infer,
    .build = cvy_combine_build,
    .grad = maximum_grad,
    .cost = cvy_combine_cost,
    .reference = maximum_reference,
    .summands = cvy_combine_summands,
    .samples = maximum_samples,
};

/* maximum_grad: ddst, src0, src1, ... -> dsrc0, dsrc1, ... It is tested with the samples of maximum, through its
 * gradient. */
static cvy_status maximum_grad_infer(cvy_node *node)
{
    for (int i = 0; i + 1 < node->nsrc; i++)
        CVY_TRY(cvy_node_set_dst(node, i, node->src[0]->dtype, cvy_node_src(node, 0)));
    return CVY_OK;
}

static void maximum_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0)), sources = node->nsrc - 1;
    *cost_out = (cvy_cost){.flop = 3 * n * sources, .read_elems = n * node->nsrc, .write_elems = n * sources};
}

static cvy_status maximum_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int sources = node->nsrc - 1;
    for (int64_t i = 0; i < src->elems; i++) {
        const double ddst = cvy_get(&src[0], i);
        double max = cvy_get(&src[1], i);
        int equal = 0;
        for (int s = 1; s < sources; s++)
            max = cvy_maximum(max, cvy_get(&src[1 + s], i));
        for (int s = 0; s < sources; s++)
            equal += cvy_get(&src[1 + s], i) == max;
        for (int s = 0; s < sources; s++)
            cvy_set(&dst[s], i, cvy_get(&src[1 + s], i) == max ? ddst / equal : 0);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(maximum_grad) = {
    .name = "maximum_grad",
    .summary = "gradient of maximum",
    .nsrc_min = 3,
    .nsrc_max = 9,
    .ndst = 8,
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = maximum_grad_infer,
    .cost = maximum_grad_cost,
    .reference = maximum_grad_reference,
};

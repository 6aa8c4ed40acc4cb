/*
 * add: sum of two to eight tensors of one shape, for residual connections. Autodiff adds up the gradients of several
 * consumers with it. Source: He et al. 2016.
 *
 *     dst = src0 + src1 + ...
 *     dsrc_i = ddst                     (the same value: nothing is copied)
 */
#include "graph/graph_grad.h"

static cvy_status add_infer(cvy_node *node)
{
    const cvy_shape *first = cvy_node_src(node, 0);
    for (int i = 1; i < node->nsrc; i++)
        CVY_CHECK(cvy_shape_equal(first, cvy_node_src(node, i)) && node->src[i]->dtype == node->src[0]->dtype,
                  CVY_E_SHAPE, "add needs sources of one shape and dtype, got %s %s and %s %s",
                  cvy_dtype_text(node->src[0]->dtype), cvy_shape_text(first), cvy_dtype_text(node->src[i]->dtype),
                  cvy_shape_text(cvy_node_src(node, i)));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, first);
}

static cvy_status add_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    for (int i = 0; ddst && i < fwd->nsrc; i++)
        CVY_TRY(cvy_grad_add(g, fwd->src[i], ddst));
    return CVY_OK;
}

static void add_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.flop = n * (node->nsrc - 1), .read_elems = n * node->nsrc, .write_elems = n};
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

static int64_t add_summands(const cvy_node *node)
{
    return node->nsrc;
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
    .summary = "sum of tensors of one shape",
    .nsrc_min = 2,
    .nsrc_max = 8,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_CHEAP,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = add_infer,
    .grad = add_grad,
    .cost = add_cost,
    .reference = add_reference,
    .summands = add_summands,
    .samples = add_samples,
};

/*
 * op_activation.c: the functions that all activations of one source share, see op_activation.h.
 *
 *     dst  = value(src)
 *     dsrc = ddst * slope(src), or ddst * slope(dst)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_activation.h"

#include "graph/graph_grad.h"

cvy_status cvy_activation_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

cvy_status cvy_activation_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_activation_def *def = fwd->op->family;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, def->from_dst ? fwd->dst[0] : fwd->src[0]};
    CVY_TRY(cvy_grad_emit(g, fwd, def->grad, fwd->options, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

void cvy_activation_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_activation_def *def = node->op->family;
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = def->flop * n, .read_elems = n, .write_elems = n};
}

void cvy_activation_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_activation_def *def = node->op->family;
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = (def->slope_flop + 1) * n, .read_elems = 2 * n, .write_elems = n};
}

cvy_status cvy_activation_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_activation_def *def = node->op->family;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, def->value(node->options, cvy_get(src, i)));
    return CVY_OK;
}

cvy_status cvy_activation_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_activation_def *def = node->op->family;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(&src[0], i) * def->slope(node->options, cvy_get(&src[1], i)));
    return CVY_OK;
}

cvy_status cvy_activation_grad_again(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *d = cvy_grad_of(g, fwd->dst[0]), *dddst = NULL;
    if (!d || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {d, fwd->src[1]};
    CVY_TRY(cvy_grad_emit_op(g, fwd, fwd->op, fwd->options, from, 2, &dddst, 1));
    return cvy_grad_add(g, fwd->src[0], dddst);
}

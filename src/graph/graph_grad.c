/*
 * graph_grad.c: records during differentiation which values need a gradient and what was added up for each so far, and
 * adds the nodes that operators emit. pass/pass_autodiff.c walks over the nodes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"

#include <stdio.h>

#include "base/base_index.h"

int cvy_grad_wanted(const cvy_grad *g, const cvy_value *v)
{
    return v->index < g->nforward && g->wanted[v->index];
}

cvy_value *cvy_grad_of(cvy_grad *g, const cvy_value *dst)
{
    return dst && dst->index < g->nforward ? g->sum[dst->index] : NULL;
}

cvy_status cvy_grad_saved(cvy_grad *g, const cvy_node *fwd, int i, cvy_value **out)
{
    cvy_node *node = g->g->node[fwd->index];
    CVY_EXPECT(node == fwd && i < node->ndst);
    if (!node->dst[i]) {
        char name[160];
        snprintf(name, sizeof name, "%s:%d", node->name, i);
        CVY_TRY(cvy_graph_new_value(g->g, name, node->saved[i].dtype, &node->saved[i].shape, &node->dst[i]));
        node->dst[i]->producer = node;
    }
    *out = node->dst[i];
    return CVY_OK;
}

cvy_status cvy_grad_emit(cvy_grad *g, const cvy_node *fwd, const char *op_name, const void *options,
                         cvy_value *const *src, int nsrc, cvy_value **dst_out, int ndst_out)
{
    const cvy_op_def *op = cvy_op_find(op_name);
    CVY_CHECK(op, CVY_E_INTERNAL, "%s: its gradient needs the operator '%s', which does not exist", fwd->name, op_name);
    return cvy_grad_emit_op(g, fwd, op, options, src, nsrc, dst_out, ndst_out);
}

cvy_status cvy_grad_emit_op(cvy_grad *g, const cvy_node *fwd, const cvy_op_def *op, const void *options,
                            cvy_value *const *src, int nsrc, cvy_value **dst_out, int ndst_out)
{
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(g->g->pool, &name, "%s.%s", fwd->name, op->name));
    for (int again = 2; cvy_index_find(&g->g->node_names, name) >= 0 || cvy_graph_find(g->g, name);
         again++) /* a concat has a slice for each source, and a value with three consumers has two additions */
        CVY_TRY(cvy_pool_printf(g->g->pool, &name, "%s.%s%d", fwd->name, op->name, again));
    cvy_node *node = NULL;
    CVY_TRY(cvy_graph_add_parsed(g->g, op, name, fwd->layer, options, src, nsrc, CVY_PHASE_MICRO, &node));
    node->backward = 1;
    node->split = fwd->split;
    for (int i = 0; i < ndst_out; i++)
        dst_out[i] = node->dst[i];
    return CVY_OK;
}

/* *sum += contribution. A contribution that is the sum of another value, too, is not owned. */
static cvy_status add_to(cvy_grad *g, cvy_value **sum, const cvy_value *target, cvy_value *contribution)
{
    if (!*sum) {
        /* `add` passes its gradient on unchanged: then several targets share one value. */
        const int at = contribution->index - g->nforward;
        for (; g->ngiven <= at; g->ngiven++)
            CVY_TRY(cvy_mem_reserve(&g->given, &g->given_room, g->ngiven, sizeof *g->given));
        g->shared[target->index] = contribution->producer == NULL || at < 0 || g->given[at];
        if (at >= 0)
            g->given[at] = 1;
        *sum = contribution;
        return CVY_OK;
    }
    cvy_value *const both[] = {*sum, contribution};
    g->shared[target->index] = 0;
    return cvy_grad_emit(g, g->fwd, "add", NULL, both, 2, sum, 1);
}

cvy_status cvy_grad_allreduce(cvy_grad *g, const cvy_node *fwd, unsigned axes, cvy_value **value)
{
    for (int axis = 0; axes >> axis; axis++) {
        const struct cvy_allreduce_axis options = {axis};
        if (axes >> axis & 1)
            CVY_TRY(cvy_grad_emit(g, fwd, "allreduce", &options, value, 1, value, 1));
    }
    return CVY_OK;
}

cvy_status cvy_grad_complete(cvy_grad *g, const cvy_value *v)
{
    cvy_value *partial = v && v->index < g->nforward ? g->partial[v->index] : NULL;
    if (!partial)
        return CVY_OK;
    g->partial[v->index] = NULL;
    const cvy_node *from = partial->producer ? partial->producer : g->fwd;
    CVY_TRY(cvy_grad_allreduce(g, from, g->partial_over[v->index], &partial));
    return add_to(g, &g->sum[v->index], v, partial);
}

/* A node that is split computes a part of the gradient of a source that is not split. */
cvy_status cvy_grad_add(cvy_grad *g, cvy_value *target, cvy_value *contribution)
{
    const unsigned over = g->fwd->split & ~target->split;
    if (!cvy_grad_wanted(g, target))
        return CVY_OK;
    CVY_CHECK(cvy_shape_equal(&target->shape, &contribution->shape), CVY_E_INTERNAL,
              "%s: its gradient is %s, the value is %s", target->name, cvy_shape_text(&contribution->shape),
              cvy_shape_text(&target->shape));
    if (!over)
        return add_to(g, &g->sum[target->index], target, contribution);
    if (g->partial[target->index] && g->partial_over[target->index] != over)
        CVY_TRY(cvy_grad_complete(g, target));
    g->partial_over[target->index] = over;
    return add_to(g, &g->partial[target->index], target, contribution);
}

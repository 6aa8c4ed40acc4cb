/*
 * graph_grad.c: records during differentiation which values need a gradient and what was added up for each so far, and
 * adds the nodes that operators emit.
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

/* ---- a walk ---- */

cvy_status cvy_grad_open(cvy_graph *graph, cvy_grad *out)
{
    cvy_status status = CVY_OK;
    *out = (cvy_grad){.g = graph, .nforward = graph->nvalue, .nforward_nodes = graph->nnode};
    const size_t n = (size_t)out->nforward + 1;
    CVY_TRY_OUT(cvy_mem_alloc(n, &out->wanted));
    CVY_TRY_OUT(cvy_mem_alloc(n, &out->shared));
    CVY_TRY_OUT(cvy_mem_alloc(n * sizeof *out->sum, &out->sum));
    CVY_TRY_OUT(cvy_mem_alloc(n * sizeof *out->partial, &out->partial));
    status = cvy_mem_alloc(n * sizeof *out->partial_over, &out->partial_over);
out:
    if (status != CVY_OK)
        cvy_grad_close(out);
    return status;
}

void cvy_grad_close(cvy_grad *g)
{
    cvy_mem_free(&g->wanted);
    cvy_mem_free(&g->shared);
    cvy_mem_free(&g->given);
    cvy_mem_free(&g->sum);
    cvy_mem_free(&g->partial);
    cvy_mem_free(&g->partial_over);
}

void cvy_grad_spread(cvy_grad *g)
{
    for (int n = 0; n < g->nforward_nodes; n++) {
        const cvy_node *node = g->g->node[n];
        int any = 0;
        for (int i = 0; i < node->nsrc && !any; i++)
            any = g->wanted[node->src[i]->index];
        if (!any || node->phase != CVY_PHASE_MICRO)
            continue;
        for (int i = 0; i < node->ndst; i++)
            if (node->dst[i] && cvy_dtype_is_real(node->dst[i]->dtype))
                g->wanted[node->dst[i]->index] = 1;
    }
}

static int has_partial(const cvy_grad *g, const cvy_value *v)
{
    return v->index < g->nforward && g->partial[v->index] != NULL;
}

/* The operators of a forward graph that are gradients themselves come from a gradient penalty. */
static cvy_status check_has_gradient(const cvy_node *fwd)
{
    CVY_CHECK(fwd->op->grad, CVY_E_ARGUMENT,
              "%s: the operator %s has no gradient, but a trained variable comes before it%s", fwd->name, fwd->op->name,
              fwd->op->flags & CVY_OP_HIDDEN ? ": this layer has no second derivative, as a gradient penalty needs it"
                                             : "");
    return CVY_OK;
}

cvy_status cvy_grad_walk(cvy_grad *g)
{
    for (int n = g->nforward_nodes - 1; n >= 0; n--) {
        const cvy_node *fwd = g->g->node[n];
        int any = 0, wanted = 0;
        for (int i = 0; i < fwd->ndst; i++)
            any |= fwd->dst[i] && (cvy_grad_of(g, fwd->dst[i]) || has_partial(g, fwd->dst[i]));
        for (int i = 0; i < fwd->nsrc; i++)
            wanted |= cvy_grad_wanted(g, fwd->src[i]);
        if (!any || !wanted || fwd->phase != CVY_PHASE_MICRO)
            continue;
        CVY_TRY(check_has_gradient(fwd));
        g->fwd = fwd;
        for (int i = 0; i < fwd->ndst; i++)
            CVY_TRY(cvy_grad_complete(g, fwd->dst[i]));
        const cvy_status status = fwd->op->grad(g, fwd);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "gradient of %s", fwd->name);
    }
    return CVY_OK;
}

cvy_status cvy_graph_gradient(cvy_graph *graph, const cvy_value *y, cvy_value *dy, const cvy_value *x,
                              cvy_value **dx_out)
{
    cvy_grad g;
    *dx_out = NULL;
    CVY_TRY(cvy_grad_open(graph, &g));
    g.wanted[x->index] = 1;
    cvy_grad_spread(&g);
    g.sum[y->index] = g.wanted[y->index] ? dy : NULL;
    const cvy_status status = cvy_grad_walk(&g);
    for (int n = g.nforward_nodes; n < graph->nnode; n++)
        graph->node[n]->backward = 0; /* the nodes are a part of the forward graph */
    if (status == CVY_OK)
        *dx_out = g.sum[x->index];
    cvy_grad_close(&g);
    return status;
}

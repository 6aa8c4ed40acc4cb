/*
 * pass_autodiff.c: reverse-mode differentiation as a rewrite: backward nodes are appended to the graph, operator by operator.
 *
 * In the step: first pass behind the forward graph. What a gradient is made of is said by each operator's grad(); this file only walks the
 * nodes backwards, adds up what several consumers contribute, and turns the gradients of variables into accumulators.
 * Source: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3.
 */
#include <string.h>

#include "pass/pass.h"

struct cvy_grad {
    cvy_graph *g;
    int nforward;                      /* values with a smaller index belong to the forward graph and can be targets */
    unsigned char *wanted;             /* by value index */
    cvy_value **sum;                   /* gradient that has arrived so far, by value index */
    unsigned char *shared;             /* the sum is somebody else's value too (passed through by `add`): never an accumulator itself */
    unsigned char *given;              /* by index - nforward: the value is a sum already */
    int ngiven, given_room;
    const cvy_node *fwd;               /* being differentiated */
};

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
        CVY_TRY(cvy_graph_new_value(g->g, name, node->saved_dtype[i], &node->saved_shape[i], &node->dst[i]));
        node->dst[i]->producer = node;
    }
    *out = node->dst[i];
    return CVY_OK;
}

cvy_status cvy_grad_emit(cvy_grad *g, const cvy_node *fwd, const char *op_name, const void *options, cvy_value *const *src, int nsrc,
                         cvy_value **dst_out, int ndst_out)
{
    const cvy_op_def *op = cvy_op_find(op_name);
    CVY_CHECK(op, CVY_E_INTERNAL, "%s: its gradient needs the operator '%s', which does not exist", fwd->name, op_name);
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(g->g->pool, &name, "%s.%s", fwd->name, op_name));
    for (int again = 2; cvy_index_find(&g->g->node_place, name) >= 0; again++)        /* a concat has a slice for each source, a value with three readers two sums */
        CVY_TRY(cvy_pool_printf(g->g->pool, &name, "%s.%s%d", fwd->name, op_name, again));
    cvy_node *node = NULL;
    CVY_TRY(cvy_graph_add_parsed(g->g, op, name, fwd->layer, options, src, nsrc, CVY_PHASE_MICRO, &node));
    node->backward = 1;
    for (int i = 0; i < ndst_out; i++)
        dst_out[i] = node->dst[i];
    return CVY_OK;
}

cvy_status cvy_grad_add(cvy_grad *g, cvy_value *target, cvy_value *contribution)
{
    if (!cvy_grad_wanted(g, target))
        return CVY_OK;
    CVY_CHECK(cvy_shape_equal(&target->shape, &contribution->shape), CVY_E_INTERNAL, "%s: its gradient is %s, the value is %s", target->name,
              cvy_shape_text(&contribution->shape), cvy_shape_text(&target->shape));
    cvy_value **sum = &g->sum[target->index];
    if (!*sum) {
        /* Passed on untouched (by `add`): then several targets share one value. */
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

/* A value is wanted if a trained variable leads to it. */
static void find_wanted(cvy_grad *g, cvy_trains_fn trains, void *user)
{
    const cvy_graph *graph = g->g;
    for (int i = 0; i < graph->nvalue; i++) {
        const cvy_value *v = graph->value[i];
        g->wanted[i] = v->kind == CVY_VALUE_VARIABLE && !v->producer && v->variable->role == CVY_ROLE_WEIGHT && !v->variable->frozen &&
                       (!trains || trains(user, v->variable));
    }
    for (int n = 0; n < graph->nnode; n++) {
        const cvy_node *node = graph->node[n];
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

static cvy_status seed(cvy_grad *g, cvy_value *loss)
{
    CVY_CHECK(loss->producer && (loss->producer->op->flags & CVY_OP_LOSS), CVY_E_ARGUMENT, "%s is not the result of a loss operator", loss->name);
    char name[160];
    snprintf(name, sizeof name, "%s.one", loss->name);
    cvy_node *one = NULL;
    CVY_TRY(cvy_graph_add(g->g, "fill", name, loss->producer->layer, "value: 1, dtype: f64", NULL, 0, &one));
    one->backward = 1;
    g->sum[loss->index] = one->dst[0];
    return CVY_OK;
}

static cvy_status walk_back(cvy_grad *g, int nforward_nodes)
{
    for (int n = nforward_nodes - 1; n >= 0; n--) {
        const cvy_node *fwd = g->g->node[n];
        int any = 0, wanted = 0;
        for (int i = 0; i < fwd->ndst; i++)
            any |= fwd->dst[i] && cvy_grad_of(g, fwd->dst[i]) != NULL;
        for (int i = 0; i < fwd->nsrc; i++)
            wanted |= cvy_grad_wanted(g, fwd->src[i]);
        if (!any || !wanted || fwd->phase != CVY_PHASE_MICRO)
            continue;
        CVY_CHECK(fwd->op->grad, CVY_E_ARGUMENT, "%s: the operator %s has no gradient, but a trained variable lies behind it", fwd->name,
                  fwd->op->name);
        g->fwd = fwd;
        const cvy_status status = fwd->op->grad(g, fwd);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "gradient of %s", fwd->name);
    }
    return CVY_OK;
}

/* The sums that arrived at variables become accumulators, listed in the order in which backward makes them. */
static cvy_status collect(cvy_grad *g, cvy_gradients *out)
{
    cvy_graph *graph = g->g;
    CVY_TRY(cvy_pool_alloc(graph->pool, sizeof *out->at * (size_t)CVY_MAX(g->nforward, 1), &out->at));
    for (int i = g->nforward - 1; i >= 0; i--) {          /* backwards as well, so that little is moved */
        cvy_value *v = graph->value[i], *sum = g->sum[i];
        if (v->kind != CVY_VALUE_VARIABLE || !sum)
            continue;
        if (g->shared[i]) {
            cvy_value *const from[] = {sum};
            CVY_TRY(cvy_grad_emit(g, sum->producer ? sum->producer : graph->node[0], "scale", NULL, from, 1, &sum, 1));
        }
        sum->kind = CVY_VALUE_ACCUMULATOR;
        sum->reduced = 1;
        sum->variable = v->variable;
        cvy_gradient *at = out->at + out->count++;
        for (; at > out->at && at[-1].value->producer->index >= sum->producer->index; at--)
            *at = at[-1];
        *at = (cvy_gradient){v->variable, sum};
    }
    return CVY_OK;
}

cvy_status cvy_pass_autodiff(cvy_graph *graph, cvy_value *const *loss, int nloss, cvy_trains_fn trains, void *user, cvy_gradients *out)
{
    cvy_status status = CVY_OK;
    cvy_grad g = {.g = graph, .nforward = graph->nvalue};
    const int nforward_nodes = graph->nnode;
    *out = (cvy_gradients){0};
    CVY_TRY_OUT(cvy_mem_alloc((size_t)g.nforward, &g.wanted));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)g.nforward, &g.shared));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)g.nforward * sizeof *g.sum, &g.sum));
    find_wanted(&g, trains, user);
    for (int i = 0; i < nloss; i++)
        CVY_TRY_OUT(seed(&g, loss[i]));
    CVY_TRY_OUT(walk_back(&g, nforward_nodes));
    CVY_TRY_OUT(collect(&g, out));
    if (out->count == 0)
        CVY_FAIL_OUT(CVY_E_ARGUMENT, "graph %s: no trained variable leads to the loss; is everything frozen?", graph->name);
    status = cvy_graph_verify(graph);
out:
    cvy_mem_free(&g.wanted);
    cvy_mem_free(&g.shared);
    cvy_mem_free(&g.given);
    cvy_mem_free(&g.sum);
    return status;
}

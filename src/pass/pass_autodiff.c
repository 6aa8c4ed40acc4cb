/*
 * pass_autodiff.c: reverse-mode differentiation: appends the backward nodes to the graph, operator by operator.
 *
 * It is the first pass after the forward graph is built. Each operator's grad() adds the nodes of its gradient, and
 * graph_grad.c walks the nodes backwards and adds up the contributions of several consumers. This file turns
 * the gradients of variables into accumulators. Source: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "graph/graph_grad.h"
#include "pass/pass.h"

/* The gradient of a value is wanted if the value depends on a trained variable. */
static void find_wanted(cvy_grad *g, cvy_trains_fn trains, void *user)
{
    const cvy_graph *graph = g->g;
    for (int i = 0; i < graph->nvalue; i++) {
        const cvy_value *v = graph->value[i];
        g->wanted[i] = v->kind == CVY_VALUE_VARIABLE && !v->producer && v->variable->role == CVY_ROLE_WEIGHT &&
                       !v->variable->frozen && (!trains || trains(user, v->variable));
    }
    cvy_grad_spread(g);
}

static cvy_status seed(cvy_grad *g, cvy_value *loss)
{
    CVY_CHECK(loss->producer && (loss->producer->op->flags & CVY_OP_LOSS), CVY_E_ARGUMENT,
              "%s is not the result of a loss operator", loss->name);
    char name[160];
    snprintf(name, sizeof name, "%s.one", loss->name);
    cvy_node *one = NULL;
    CVY_TRY(cvy_graph_add(g->g, "fill", name, loss->producer->layer, "value: 1, dtype: f64", NULL, 0, &one));
    one->backward = 1;
    g->sum[loss->index] = one->dst[0];
    return CVY_OK;
}

/* Parts of a gradient that ranks along other axes have computed are summed with those of the data axis, unless one of
 * the readers of the weight has computed the whole gradient. */
static cvy_status gradient_of(cvy_grad *g, const cvy_value *v, cvy_value **sum_out, unsigned *over_out)
{
    *over_out = 0;
    if (g->partial[v->index] && !g->sum[v->index]) {
        *over_out = g->partial_over[v->index];
        *sum_out = g->partial[v->index];
        return CVY_OK;
    }
    if (g->partial[v->index] && g->partial[v->index]->producer)
        g->fwd = g->partial[v->index]->producer;
    CVY_TRY(cvy_grad_complete(g, v));
    *sum_out = g->sum[v->index];
    return CVY_OK;
}

/* The gradients of variables become accumulators, listed in the order in which backward makes them. */
static cvy_status collect(cvy_grad *g, cvy_gradients *out)
{
    cvy_graph *graph = g->g;
    CVY_TRY(cvy_pool_alloc(graph->pool, sizeof *out->at * (size_t)CVY_MAX(g->nforward, 1), &out->at));
    for (int i = g->nforward - 1; i >= 0; i--) { /* backwards too, so that few entries are moved */
        cvy_value *v = graph->value[i], *sum = NULL;
        unsigned over = 0;
        if (v->kind == CVY_VALUE_VARIABLE)
            CVY_TRY(gradient_of(g, v, &sum, &over));
        if (!sum)
            continue;
        if (g->shared[i]) {
            cvy_value *const from[] = {sum};
            CVY_TRY(cvy_grad_emit(g, sum->producer ? sum->producer : graph->node[0], "scale", NULL, from, 1, &sum, 1));
        }
        sum->kind = CVY_VALUE_ACCUMULATOR;
        sum->reduced = 1;
        sum->over = over;
        sum->split = v->split;
        sum->variable = v->variable;
        cvy_gradient *at = out->at + out->count++;
        for (; at > out->at && at[-1].value->producer->index >= sum->producer->index; at--)
            *at = at[-1];
        *at = (cvy_gradient){v->variable, sum};
    }
    return CVY_OK;
}

cvy_status cvy_pass_autodiff(cvy_graph *graph, cvy_value *const *loss, int nloss, cvy_trains_fn trains, void *user,
                             cvy_gradients *out)
{
    cvy_grad g;
    *out = (cvy_gradients){0};
    CVY_TRY(cvy_grad_open(graph, &g));
    cvy_status status = CVY_OK;
    find_wanted(&g, trains, user);
    for (int i = 0; i < nloss; i++)
        CVY_TRY_OUT(seed(&g, loss[i]));
    CVY_TRY_OUT(cvy_grad_walk(&g));
    CVY_TRY_OUT(collect(&g, out));
    if (out->count == 0)
        CVY_FAIL_OUT(CVY_E_ARGUMENT, "graph %s: no trained variable leads to the loss; is everything frozen?",
                     graph->name);
    status = cvy_graph_verify(graph);
out:
    cvy_grad_close(&g);
    return status;
}

static cvy_status run(cvy_pass_run *r)
{
    return cvy_pass_autodiff(r->graph, r->loss, r->nloss, r->trains, r->trains_user, &r->gradients);
}

CVY_PASS_DEFINE(autodiff) = {
    .name = "autodiff", .help = "adds backward nodes for the losses", .order = 10, .training = 1, .run = run};

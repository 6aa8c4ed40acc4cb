/*
 * pass_recompute.c: if memory is short, backward recomputes values instead of keeping them since forward (activation
 * checkpointing).
 *
 * It runs last, and only if a plan does not fit (plan.memory_limit). pass_recompute_choose.c chooses the values that
 * are kept. Each other value is recomputed once, by a copy of its node just before the first backward node that reads
 * it, from kept values and from others that are recomputed. A copy is offered the kernel of its original, so it
 * computes the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/pass.h"
#include "pass/pass_recompute_choose.h"

struct recompute {
    cvy_graph *g;
    unsigned char *kept; /* by value */
    cvy_value **again;   /* by value: its recomputed copy, NULL: none yet */
    int nvalue;          /* number of values before the pass */
    cvy_recomputed done;
};

static int is_dropped(const struct recompute *r, const cvy_value *v)
{
    return v->index < r->nvalue && !r->kept[v->index];
}

/* Makes the recomputed copy of a value before node *at. *at grows by the number of nodes that are inserted before
 * it. */
static cvy_status recompute_value(struct recompute *r, const cvy_value *v, int *at, cvy_value **out)
{
    const cvy_node *node = v->producer;
    cvy_value *src[CVY_NODE_SRC_MAX];
    if (r->again[v->index]) {
        *out = r->again[v->index];
        return CVY_OK;
    }
    for (int i = 0; i < node->nsrc; i++) {
        src[i] = node->src[i];
        if (is_dropped(r, src[i]))
            CVY_TRY(recompute_value(r, node->src[i], at, &src[i]));
    }
    cvy_node *copy = NULL;
    CVY_TRY(cvy_graph_add_copy(r->g, node, "again", src, &copy));
    copy->backward = 1;
    copy->chunk = r->g->node[*at]->chunk;
    cvy_graph_move_node(r->g, copy, (*at)++);
    r->done.nodes++;
    r->done.flop += cvy_node_cost(copy).flop;
    *out = r->again[v->index] = copy->dst[0];
    return CVY_OK;
}

static cvy_status replace_sources(struct recompute *r)
{
    for (int n = 0; n < r->g->nnode; n++) {
        cvy_node *node = r->g->node[n];
        for (int i = 0; node->backward && !node->removed && i < node->nsrc; i++)
            if (is_dropped(r, node->src[i]))
                CVY_TRY(recompute_value(r, node->src[i], &n, &node->src[i]));
    }
    return CVY_OK;
}

cvy_status cvy_pass_recompute(cvy_graph *g, const cvy_memory_price *price, int follows, cvy_recomputed *done_out)
{
    struct recompute r = {.g = g, .nvalue = g->nvalue};
    cvy_status status = CVY_OK;
    const size_t n = (size_t)g->nvalue + 1;
    CVY_TRY_OUT(cvy_mem_alloc(n, &r.kept));
    CVY_TRY_OUT(cvy_mem_alloc(n * sizeof *r.again, &r.again));
    CVY_TRY_OUT(cvy_recompute_choose(g, price, follows, r.kept));
    CVY_TRY_OUT(replace_sources(&r));
    CVY_TRY_OUT(cvy_graph_verify(g));
    *done_out = r.done;
out:
    cvy_mem_free(&r.kept);
    cvy_mem_free(&r.again);
    return status;
}

static cvy_status run(cvy_pass_run *r)
{
    return r->memory_price.high > 0 ? cvy_pass_recompute(r->graph, &r->memory_price, !r->stages, &r->recomputed)
                                    : CVY_OK;
}

CVY_PASS_DEFINE(recompute) = {.name = "recompute",
                              .help = "recomputes values in the backward pass if memory is short",
                              .order = 90,
                              .can_be_off = 1,
                              .training = 1,
                              .run = run};

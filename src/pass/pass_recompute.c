/*
 * pass_recompute.c: if memory is short, backward recomputes cheap values instead of keeping them since forward.
 *
 * It runs last, and only if a plan does not fit (plan.memory_limit). It looks at values that backward reads and that an
 * operator with CVY_OP_CHEAP made (activation, normalisation, addition, concatenation). Such a value is recomputed by a
 * copy of its node just before the first backward node that reads it, if the node's sources are available then: a
 * variable, a feed, a small value, or a value that backward keeps anyway. A source may itself be recomputed, up to
 * CHAIN_MAX nodes back; so along a chain of residual blocks one sum is kept every few blocks. The copies compute the
 * same bits. Source: Chen et al. 2016, Training deep nets with sublinear memory cost, section 3 (dropping the results
 * of cheap operations).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/pass.h"

enum {
    CHAIN_MAX = 4,
    NEVER = CHAIN_MAX + 1,
    SMALL_PART = 8, /* a source is small below 1/8 of the result's elements: statistics, scales */
};

struct recompute {
    cvy_graph *g;
    unsigned char *chain;     /* by value: nodes to run to recompute it; 0: it is kept, NEVER: not possible */
    unsigned char *read_back; /* by value: backward reads it */
    cvy_value **again;        /* by value: its recomputed copy, NULL: none yet */
    int nvalue;               /* number of values before the pass */
    cvy_recomputed done;
};

static int is_large(const cvy_value *src, const cvy_value *dst)
{
    return cvy_shape_elems(&src->shape) * SMALL_PART > cvy_shape_elems(&dst->shape);
}

/* How many nodes in a row must run to recompute v; NEVER if it cannot be recomputed. */
static int chain_of(const struct recompute *r, const cvy_node *node, const cvy_value *v)
{
    int longest = 0;
    if (!(node->op->flags & CVY_OP_CHEAP) || v->kind != CVY_VALUE_TEMP || v->is_output || v != node->dst[0])
        return NEVER;
    for (int i = 0; i < node->nsrc; i++) {
        const cvy_value *src = node->src[i];
        if (src->kind == CVY_VALUE_TEMP && is_large(src, v))
            longest = CVY_MAX(longest, r->chain[src->index]);
        else if (src->kind == CVY_VALUE_TEMP && !r->read_back[src->index])
            return NEVER;
    }
    return longest + 1;
}

static void find_chains(struct recompute *r)
{
    const cvy_graph *g = r->g;
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; g->node[n]->backward && !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            r->read_back[g->node[n]->src[i]->index] = 1;
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (node->backward || node->removed || node->phase != CVY_PHASE_MICRO)
            continue;
        for (int i = 0; i < node->ndst; i++) {
            const cvy_value *v = node->dst[i];
            if (!v)
                continue;
            const int chain = chain_of(r, node, v);
            r->chain[v->index] = (unsigned char)(chain <= CHAIN_MAX ? chain : r->read_back[v->index] ? 0 : NEVER);
        }
    }
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
        if (src[i]->kind == CVY_VALUE_TEMP && is_large(src[i], v) && r->chain[src[i]->index] > 0)
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
        if (!node->backward || node->removed)
            continue;
        for (int i = 0; i < node->nsrc; i++) {
            const cvy_value *v = node->src[i];
            const int chain = v->index < r->nvalue ? r->chain[v->index] : 0;
            if (chain > 0 && chain <= CHAIN_MAX)
                CVY_TRY(recompute_value(r, v, &n, &node->src[i]));
        }
    }
    return CVY_OK;
}

cvy_status cvy_pass_recompute(cvy_graph *g, cvy_recomputed *done_out)
{
    struct recompute r = {.g = g, .nvalue = g->nvalue};
    cvy_status status = CVY_OK;
    const size_t n = (size_t)g->nvalue + 1;
    CVY_TRY_OUT(cvy_mem_alloc(n, &r.chain));
    CVY_TRY_OUT(cvy_mem_alloc(n, &r.read_back));
    CVY_TRY_OUT(cvy_mem_alloc(n * sizeof *r.again, &r.again));
    find_chains(&r);
    CVY_TRY_OUT(replace_sources(&r));
    CVY_TRY_OUT(cvy_graph_verify(g));
    *done_out = r.done;
out:
    cvy_mem_free(&r.chain);
    cvy_mem_free(&r.read_back);
    cvy_mem_free(&r.again);
    return status;
}

static cvy_status run(cvy_pass_run *r)
{
    return r->short_of_memory ? cvy_pass_recompute(r->graph, &r->recomputed) : CVY_OK;
}

CVY_PASS_DEFINE(recompute) = {.name = "recompute",
                              .help = "recomputes cheap values in the backward pass if memory is short",
                              .order = 90,
                              .can_be_off = 1,
                              .training = 1,
                              .run = run};

/*
 * graph_verify.c: checks every graph after every pass. A failure is a mistake in the library; the message has the node.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_op.h"

#define VERIFY(condition, node, ...)                                                                                   \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return cvy_error_prefix(cvy_error_set(CVY_E_INTERNAL, __VA_ARGS__), "graph %s, node %s",                   \
                                    (node)->graph->name, (node)->name);                                                \
    } while (0)

/* A source must be made by an earlier node that is not removed, and never by one of a later phase. */
static cvy_status verify_sources(const cvy_node *node)
{
    for (int i = 0; i < node->nsrc; i++) {
        const cvy_value *src = node->src[i];
        VERIFY(src, node, "source %d is missing", i);
        VERIFY(node->graph->value[src->index] == src, node, "source %s belongs to another graph", src->name);
        const cvy_node *from = src->producer;
        if (!from)
            continue;
        VERIFY(!from->removed, node, "source %s was made by a removed node", src->name);
        VERIFY(from->index < node->index, node, "source %s is made later, by %s", src->name, from->name);
        VERIFY(from->phase <= node->phase, node, "source %s is made in a later phase", src->name);
    }
    return CVY_OK;
}

static cvy_status verify_destinations(const cvy_node *node)
{
    const int nmust = node->ndst - node->op->nsaved;
    for (int i = 0; i < node->ndst; i++) {
        const cvy_value *dst = node->dst[i];
        if (!dst)
            continue;
        VERIFY(dst->producer == node, node, "destination %s has another producer", dst->name);
        if (dst->kind == CVY_VALUE_VARIABLE)
            VERIFY(node->op->flags & CVY_OP_ASSIGNS, node, "only an assigning operator may write variable %s",
                   dst->variable->name);
        if (dst->kind == CVY_VALUE_ACCUMULATOR)
            VERIFY(node->phase != CVY_PHASE_UPDATE, node, "accumulator %s is made in the update phase", dst->name);
    }
    VERIFY(nmust == 0 || node->dst[0] || (node->op->flags & CVY_OP_COMM) || node->ndst > 1, node,
           "it has no destination");
    return CVY_OK;
}

/* A variable is written at most once, and nothing reads it afterwards in the same step. writer: by the index of the
 * variable. */
static cvy_status find_writers(const cvy_graph *g, const cvy_node **writer)
{
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->ndst; i++) {
            const cvy_value *dst = g->node[n]->dst[i];
            if (!dst || dst->kind != CVY_VALUE_VARIABLE)
                continue;
            const cvy_node **known = &writer[dst->variable->index];
            VERIFY(!*known, g->node[n], "variable %s is written twice, first by %s", dst->variable->name,
                   (*known)->name);
            *known = g->node[n];
        }
    return CVY_OK;
}

static cvy_status verify_reads(const cvy_graph *g, const cvy_node *const *writer)
{
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++) {
            const cvy_value *src = g->node[n]->src[i];
            const cvy_node *by = src->kind == CVY_VALUE_VARIABLE ? writer[src->variable->index] : NULL;
            VERIFY(!by || by->index >= n || src->producer == by, g->node[n],
                   "variable %s is read after %s has written it", src->variable->name, by->name);
        }
    return CVY_OK;
}

static cvy_status verify_writes(const cvy_graph *g)
{
    const cvy_node **writer = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *writer * (size_t)(g->vars->count + 1), &writer));
    cvy_status status = find_writers(g, writer);
    if (status == CVY_OK)
        status = verify_reads(g, writer);
    cvy_mem_free(&writer);
    return status;
}

cvy_status cvy_graph_verify(const cvy_graph *g)
{
    for (int n = 0; n < g->nnode; n++) {
        if (g->node[n]->removed)
            continue;
        CVY_EXPECT(g->node[n]->index == n);
        CVY_TRY(verify_sources(g->node[n]));
        CVY_TRY(verify_destinations(g->node[n]));
    }
    return verify_writes(g);
}

cvy_status cvy_graph_check_batch(const cvy_graph *g)
{
    for (int n = 0; n < g->nnode && g->batch.local_n > 0; n++)
        if (g->node[n]->op->check_batch && !g->node[n]->removed)
            CVY_TRY(g->node[n]->op->check_batch(g->node[n]));
    return CVY_OK;
}

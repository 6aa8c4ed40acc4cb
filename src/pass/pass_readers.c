/*
 * pass_readers.c: keeps the readers of each value as a list of places. See pass_readers.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "pass/pass_readers.h"

static int64_t place_of(const cvy_node *node, int source)
{
    return (int64_t)node->index * CVY_NODE_SRC_MAX + source;
}

static cvy_node *node_at(const cvy_readers *r, int64_t place)
{
    return r->graph->node[place / CVY_NODE_SRC_MAX];
}

void cvy_readers_note(cvy_readers *r, const cvy_node *node)
{
    for (int i = 0; i < node->nsrc; i++) {
        const int v = node->src[i]->index;
        r->next[place_of(node, i)] = r->first[v];
        r->first[v] = place_of(node, i) + 1;
        r->count[v]++;
    }
}

void cvy_readers_forget(cvy_readers *r, const cvy_node *node)
{
    for (int i = 0; i < node->nsrc; i++) {
        const int v = node->src[i]->index;
        int64_t *link = &r->first[v];
        while (*link != place_of(node, i) + 1)
            link = &r->next[*link - 1];
        *link = r->next[place_of(node, i)];
        r->count[v]--;
    }
}

void cvy_readers_remove(cvy_readers *r, cvy_node *node)
{
    cvy_readers_forget(r, node);
    node->removed = 1;
}

cvy_status cvy_readers_create(const cvy_graph *g, cvy_readers *out)
{
    cvy_readers r = {.graph = g};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *r.first * ((size_t)g->nvalue + 1), &r.first));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *r.count * ((size_t)g->nvalue + 1), &r.count));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *r.next * ((size_t)g->nnode * CVY_NODE_SRC_MAX + 1), &r.next));
    for (int n = g->nnode - 1; n >= 0; n--) /* backwards, so that the lists are in order */
        if (!g->node[n]->removed)
            cvy_readers_note(&r, g->node[n]);
    *out = r;
    return CVY_OK;
out:
    cvy_readers_free(&r);
    return status;
}

void cvy_readers_free(cvy_readers *r)
{
    cvy_mem_free(&r->first);
    cvy_mem_free(&r->next);
    cvy_mem_free(&r->count);
}

int cvy_readers_count(const cvy_readers *r, const cvy_value *v)
{
    return r->count[v->index];
}

int cvy_readers_first(const cvy_readers *r, const cvy_value *v)
{
    int first = r->graph->nnode;
    for (int64_t at = r->first[v->index]; at > 0; at = r->next[at - 1])
        first = CVY_MIN(first, node_at(r, at - 1)->index);
    return first;
}

int cvy_readers_is_between(const cvy_readers *r, const cvy_value *v)
{
    return v->kind == CVY_VALUE_TEMP && !v->is_output && r->count[v->index] == 1;
}

cvy_node *cvy_readers_only(const cvy_readers *r, const cvy_value *v)
{
    return cvy_readers_is_between(r, v) ? node_at(r, r->first[v->index] - 1) : NULL;
}

int cvy_pass_is_op(const cvy_node *node, const char *op)
{
    return node && !node->removed && strcmp(node->op->name, op) == 0;
}

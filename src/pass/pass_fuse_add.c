/*
 * pass_fuse_add.c: a sum of sums becomes one node.
 *
 * A value that several nodes read (the input of an inception module, a shortcut) gets its gradient as a chain of sums of two, in the order in which
 * backward makes them. One sum reads each of its addends once and writes once: with four addends 5 walks over memory in place of 9. It adds in
 * the chain's order, so the result is the same to the last bit.
 */
#include <string.h>

#include "pass/pass.h"

static int is_sum(const cvy_node *node)
{
    return node && !node->removed && strcmp(node->op->name, "add") == 0;
}

/* Of each value, by its index: how many sources of nodes it is. Taking a sum in only moves sources from one node to another, so it stays true. */
static cvy_status count_readers(const cvy_graph *g, int **out)
{
    int *readers = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *readers * ((size_t)g->nvalue + 1), &readers));
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            readers[g->node[n]->src[i]->index]++;
    *out = readers;
    return CVY_OK;
}

/* The addend of a sum that is a sum itself and can be taken in; -1: none. A chain goes on in one addend; where both are sums one is kept. */
static int inner_sum(const int *readers, const cvy_node *sum)
{
    for (int i = 0; i < sum->nsrc; i++) {
        const cvy_value *v = sum->src[i];
        if (is_sum(v->producer) && v->producer->phase == sum->phase && v->kind == CVY_VALUE_TEMP && !v->is_output &&
            v->producer->nsrc + sum->nsrc - 1 <= sum->op->nsrc_max && (i == 0 || sum->nsrc == 2) && readers[v->index] == 1)
            return i;
    }
    return -1;
}

/* The inner sum's addends first: it was made before the others were added. */
static void take_in(cvy_node *sum, int at)
{
    cvy_node *inner = sum->src[at]->producer;
    cvy_value *src[CVY_NODE_SRC_MAX];
    int nsrc = 0;
    for (int i = 0; i < inner->nsrc; i++)
        src[nsrc++] = inner->src[i];
    for (int i = 0; i < sum->nsrc; i++)
        if (i != at)
            src[nsrc++] = sum->src[i];
    memcpy(sum->src, src, sizeof *src * (size_t)nsrc);
    sum->nsrc = nsrc;
    inner->removed = 1;
}

cvy_status cvy_pass_fuse_add(cvy_graph *g)
{
    int *readers = NULL;
    CVY_TRY(count_readers(g, &readers));
    for (int n = 0; n < g->nnode; n++)
        for (int at; is_sum(g->node[n]) && (at = inner_sum(readers, g->node[n])) >= 0;)
            take_in(g->node[n], at);
    cvy_mem_free(&readers);
    return cvy_graph_verify(g);
}

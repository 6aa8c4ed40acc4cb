/*
 * pass_fuse_add.c: a sum of sums becomes one node.
 *
 * A value that several nodes read (the input of an inception module, a shortcut) gets its gradient as a chain of sums of two, in the order in which
 * backward makes them. One sum reads each of its addends once and writes once: with four addends 5 walks over memory in place of 9. It adds in
 * the chain's order, so the result is the same to the last bit.
 */
#include <string.h>

#include "pass/pass_readers.h"

/* The addend of a sum that is a sum itself and can be taken in; -1: none. A chain goes on in one addend; where both are sums one is kept. */
static int inner_sum(const cvy_readers *r, const cvy_node *sum)
{
    for (int i = 0; i < sum->nsrc; i++) {
        const cvy_value *v = sum->src[i];
        if (cvy_pass_is_op(v->producer, "add") && v->producer->phase == sum->phase && cvy_readers_is_between(r, v) &&
            v->producer->nsrc + sum->nsrc - 1 <= sum->op->nsrc_max && (i == 0 || sum->nsrc == 2))
            return i;
    }
    return -1;
}

/* The inner sum's addends first: it was made before the others were added. */
static void take_in(cvy_readers *r, cvy_node *sum, int at)
{
    cvy_node *inner = sum->src[at]->producer;
    cvy_value *src[CVY_NODE_SRC_MAX];
    int nsrc = 0;
    for (int i = 0; i < inner->nsrc; i++)
        src[nsrc++] = inner->src[i];
    for (int i = 0; i < sum->nsrc; i++)
        if (i != at)
            src[nsrc++] = sum->src[i];
    cvy_readers_remove(r, inner);
    cvy_readers_forget(r, sum);
    memcpy(sum->src, src, sizeof *src * (size_t)nsrc);
    sum->nsrc = nsrc;
    cvy_readers_note(r, sum);
}

cvy_status cvy_pass_fuse_add(cvy_graph *g)
{
    cvy_readers r;
    CVY_TRY(cvy_readers_create(g, &r));
    for (int n = 0; n < g->nnode; n++)
        for (int at; cvy_pass_is_op(g->node[n], "add") && (at = inner_sum(&r, g->node[n])) >= 0;)
            take_in(&r, g->node[n], at);
    cvy_readers_free(&r);
    return cvy_graph_verify(g);
}

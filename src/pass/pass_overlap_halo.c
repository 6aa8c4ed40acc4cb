/*
 * pass_overlap_halo.c: lets halo exchanges overlap with work: each becomes a start, right after its source is made, and
 * a wait, right before the first node that reads the result.
 *
 * In backward the gradient of a layer's source is computed before that of its weight, so that the exchange of the
 * former runs beside the computation of the latter. All ranks of an axis have the same nodes in the same order, so
 * their exchanges stay in the same order, too. It runs after fusing, because a fused node may be the one to wait for.
 * If the pass `overlap` is off (comm.overlap: false), it does nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "op/comm/op_redistribute.h"
#include "pass/pass.h"

static int is_halo(const cvy_node *node)
{
    const struct cvy_redistribute *o = node->options;
    return !node->removed && node->op == cvy_op_find("redistribute") &&
           (o->from == CVY_HAS_WINDOW || o->to == CVY_HAS_WINDOW);
}

static int reads(const cvy_node *node, const cvy_node *producer)
{
    int found = 0;
    for (int i = 0; i < node->nsrc; i++)
        found |= node->src[i]->producer == producer;
    return found;
}

/* Whether the node may run after `node` although it is before it: another gradient of the same layer, or the start of a
 * reduction. */
static int can_follow(const cvy_node *before, const cvy_node *node)
{
    if (before->op->comm)
        return before->op->comm->exchange == CVY_EXCHANGE_BUCKET && before->op->comm->starts;
    return before->backward && before->phase == node->phase && strcmp(before->layer, node->layer) == 0 &&
           !reads(node, before);
}

/* Moves the node that makes the exchanged gradient before other nodes of its layer. */
static void hoist(cvy_graph *g, cvy_node *node)
{
    int at = node->index;
    while (at > 0 && (g->node[at - 1]->removed || can_follow(g->node[at - 1], node)))
        at--;
    cvy_graph_move_node(g, node, at);
}

static cvy_status add_half(cvy_graph *g, const cvy_node *of, const char *op, cvy_value *const *src, int nsrc, int at,
                           cvy_node **out)
{
    char name[200];
    snprintf(name, sizeof name, "%s.%s", of->name, nsrc == 1 ? "start" : "wait");
    CVY_TRY(cvy_graph_add_parsed(g, cvy_op_find(op), name, of->layer, of->options, src, nsrc, of->phase, out));
    (*out)->backward = of->backward;
    (*out)->chunk = of->chunk;
    (*out)->split = of->split;
    cvy_graph_move_node(g, *out, at);
    return CVY_OK;
}

/* The index before the first node that reads the value; `otherwise` if none does. */
static int first_reader(const cvy_graph *g, const cvy_value *v, int from, int otherwise)
{
    for (int n = from; n < g->nnode; n++)
        for (int i = 0; i < g->node[n]->nsrc && !g->node[n]->removed; i++)
            if (g->node[n]->src[i] == v)
                return n;
    return otherwise;
}

/* The index after which the source of an exchange is there. A value of another stage is there after its message was
 * waited for. */
static int ready_after(const cvy_graph *g, const cvy_value *src, int node)
{
    if (!src->producer)
        return node - 1;
    const cvy_op_comm *comm = src->producer->op->comm;
    return comm && comm->exchange == CVY_EXCHANGE_MESSAGE && comm->receives && comm->starts
               ? first_reader(g, src, src->producer->index + 1, node - 1)
               : src->producer->index;
}

static cvy_status split(cvy_graph *g, cvy_node *node)
{
    cvy_node *producer = node->src[0]->producer, *start = NULL, *wait = NULL;
    if (producer && producer->backward && !producer->op->comm && strcmp(producer->layer, node->layer) == 0)
        hoist(g, producer);
    const int at = ready_after(g, node->src[0], node->index) + 1;
    CVY_TRY(add_half(g, node, "redistribute_start", node->src, 1, at, &start));
    cvy_value *const from[] = {node->src[0], start->dst[0]};
    CVY_TRY(add_half(g, node, "redistribute_wait", from, 2, node->index, &wait));
    node->removed = 1;
    wait->dst[0] = node->dst[0];
    wait->dst[0]->producer = wait;
    cvy_graph_move_node(g, wait, first_reader(g, wait->dst[0], wait->index + 1, wait->index + 1) - 1);
    return CVY_OK;
}

static cvy_status run(cvy_pass_run *r)
{
    cvy_graph *g = r->graph;
    if (!cvy_pass_is_on(r->off, "overlap"))
        return CVY_OK;
    for (int n = 0; n < g->nnode; n++)
        if (is_halo(g->node[n]))
            CVY_TRY(split(g, g->node[n]));
    return cvy_graph_verify(g);
}

CVY_PASS_DEFINE(overlap_halo) = {
    .name = "overlap-halo", .help = "starts halo exchanges early and waits for them late", .order = 85, .run = run};

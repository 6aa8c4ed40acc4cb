/*
 * pass_stages.c: cuts a graph into the stages of a pipeline: it keeps the nodes of this rank's stage, and adds messages
 * for the values that cross between stages.
 *
 * All ranks have built the same graph, so they find the same crossings in the same order, and the number of a crossing
 * is the tag of its message. A value that several later stages read is sent to each of them once. A gradient is added
 * up on the stage of the layer that adds it. A loss of another stage becomes a zero here, and the sums of losses go
 * over all ranks; so every rank knows every loss. Some update modes need another order of these additions and do them
 * after the step. Optimiser states exist on the stage of their weight only.
 *
 * With interleaved stages a rank has several, its chunks. Values between them need no message.
 *
 * It runs after autodiff, because backward is cut like forward, and before fusing, so no fused node spans two stages.
 * Source: Huang et al. 2019, GPipe, section 2.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <limits.h>
#include <stdio.h>

#include "comm/comm_grid.h"
#include "op/comm/op_message.h"
#include "pass/pass.h"

typedef struct crossing {
    cvy_value *value;
    cvy_node *reader; /* the first on that stage */
    int from, to;     /* ranks of the pipeline */
} crossing;

struct cut {
    cvy_graph *g;
    const cvy_stages *stages;
    int *of; /* by node: its stage; nodes that are added later have none */
    int nnode;
    crossing *crossing;
    int count, room;
};

static cvy_status find_stages(struct cut *c)
{
    for (int n = 0; n < c->nnode; n++) {
        cvy_node *node = c->g->node[n];
        c->of[n] = cvy_index_find(c->stages->of_layer, node->layer);
        CVY_CHECK(c->of[n] >= 0, CVY_E_INTERNAL, "node %s: its layer %s has no stage", node->name, node->layer);
        node->chunk = c->of[n] / c->stages->nranks;
    }
    return CVY_OK;
}

static int rank_of(const struct cut *c, int node)
{
    return c->of[node] % c->stages->nranks;
}

/* When a node runs in the turns of a micro-batch: chunks run in their order, and in backward the other way round. */
static int turn_of(const cvy_node *node)
{
    return node->backward ? INT_MAX - node->chunk : node->chunk;
}

/* The first reader of a value on a rank receives it, and brings it into another layout. So no later reader may run
 * before it, which happens if layers are placed in another order than that of the model. */
static cvy_status check_order(const struct cut *c)
{
    const int nranks = c->stages->nranks;
    const cvy_node **first = NULL; /* by value and rank */
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *first * ((size_t)c->g->nvalue * (size_t)nranks + 1), &first));
    for (int n = 0; n < c->nnode && status == CVY_OK; n++) {
        const cvy_node *node = c->g->node[n];
        for (int i = 0; i < node->nsrc && status == CVY_OK && node->phase == CVY_PHASE_MICRO; i++) {
            const cvy_node **at = &first[(size_t)node->src[i]->index * (size_t)nranks + (size_t)rank_of(c, n)];
            if (*at && turn_of(node) < turn_of(*at))
                status =
                    cvy_error_set(CVY_E_UNSUPPORTED,
                                  "the layers %s and %s read %s on the interleaved stages %d and %d, but come in the "
                                  "other order in the model: place them in its order, or take opts.interleave: 1",
                                  (*at)->layer, node->layer, node->src[i]->name, c->of[(*at)->index] + 1, c->of[n] + 1);
            *at = *at ? *at : node;
        }
    }
    cvy_mem_free(&first);
    return status;
}

/* A weight is updated where it is read, so all its readers must be on one stage. */
static cvy_status check_weights(const struct cut *c)
{
    const cvy_node **reader = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *reader * ((size_t)c->g->vars->count + 1), &reader));
    for (int n = 0; n < c->nnode && status == CVY_OK; n++)
        for (int i = 0; i < c->g->node[n]->nsrc && status == CVY_OK; i++) {
            const cvy_value *v = c->g->node[n]->src[i];
            if (v->kind != CVY_VALUE_VARIABLE)
                continue;
            const cvy_node **first = &reader[v->variable->index];
            if (!*first)
                *first = c->g->node[n];
            if (c->of[(*first)->index] != c->of[n])
                status = cvy_error_set(CVY_E_UNSUPPORTED,
                                       "the layers %s and %s share the weight %s, but are on the stages %d and %d of "
                                       "the pipeline: a shared weight must be read by one stage only",
                                       (*first)->layer, c->g->node[n]->layer, v->variable->name,
                                       c->of[(*first)->index] + 1, c->of[n] + 1);
        }
    cvy_mem_free(&reader);
    return status;
}

static int is_known(const struct cut *c, const cvy_value *v, int to)
{
    for (int i = c->count - 1; i >= 0; i--)
        if (c->crossing[i].value == v && c->crossing[i].to == to)
            return 1;
    return 0;
}

static cvy_status find_crossings(struct cut *c)
{
    for (int n = 0; n < c->nnode; n++) {
        cvy_node *node = c->g->node[n];
        for (int i = 0; i < node->nsrc; i++) {
            cvy_value *v = node->src[i];
            const int to = rank_of(c, n), from = v->producer ? rank_of(c, v->producer->index) : to;
            if (from == to || v->kind == CVY_VALUE_VARIABLE || is_known(c, v, to))
                continue;
            CVY_CHECK(v->kind == CVY_VALUE_TEMP && node->phase == CVY_PHASE_MICRO, CVY_E_INTERNAL,
                      "%s of stage %d reads %s of stage %d, which cannot be sent", node->name, c->of[n] + 1, v->name,
                      c->of[v->producer->index] + 1);
            CVY_TRY(cvy_mem_reserve(&c->crossing, &c->room, c->count, sizeof *c->crossing));
            c->crossing[c->count++] = (crossing){v, node, from, to};
        }
    }
    CVY_CHECK(c->count <= CVY_TAGS, CVY_E_UNSUPPORTED, "%d values cross between the stages, and at most %d can",
              c->count, CVY_TAGS);
    return CVY_OK;
}

static cvy_status add_node(struct cut *c, const char *op, const crossing *x, int other, cvy_value *src, int at,
                           cvy_node **out)
{
    const struct cvy_message_options options = {.stage = other, .tag = x - c->crossing};
    char name[200];
    snprintf(name, sizeof name, "%s.%s%d", x->value->name, op, (int)options.tag);
    CVY_TRY(cvy_graph_add_parsed(c->g, cvy_op_find(op), name, x->reader->layer, &options, &src, src != NULL,
                                 CVY_PHASE_MICRO, out));
    const cvy_node *of = other == x->to ? x->value->producer : x->reader;
    (*out)->backward = of->backward;
    (*out)->chunk = of->chunk;
    cvy_graph_move_node(c->g, *out, at);
    return CVY_OK;
}

static cvy_status add_send(struct cut *c, const crossing *x)
{
    cvy_node *start = NULL, *wait = NULL;
    CVY_TRY(add_node(c, "send_start", x, x->to, x->value, x->value->producer->index + 1, &start));
    return add_node(c, "send_wait", x, x->to, x->value, start->index + 1, &wait);
}

/* From now on the message makes the value. */
static cvy_status add_receive(struct cut *c, const crossing *x)
{
    cvy_node *start = NULL, *wait = NULL;
    CVY_TRY(add_node(c, "receive_start", x, x->from, NULL, x->reader->index, &start));
    start->dst[0] = x->value;
    x->value->producer = start;
    return add_node(c, "receive_wait", x, x->from, x->value, x->reader->index, &wait);
}

/* A loss of another stage is zero on this one. */
static cvy_status add_zero(struct cut *c, const cvy_node *loss, cvy_value *v)
{
    cvy_node *zero = NULL;
    char name[200];
    snprintf(name, sizeof name, "%s.elsewhere", v->name);
    CVY_TRY(cvy_graph_add(c->g, "fill", name, loss->layer, "value: 0, dtype: f64", NULL, 0, &zero));
    zero->chunk = loss->chunk;
    zero->dst[0] = v;
    v->producer = zero;
    v->elsewhere = 1;
    cvy_graph_move_node(c->g, zero, loss->index);
    return CVY_OK;
}

static cvy_status remove_others(struct cut *c)
{
    cvy_node **node = NULL; /* the nodes that were there before this pass */
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *node * ((size_t)c->nnode + 1), &node));
    for (int n = 0, k = 0; n < c->g->nnode; n++)
        if (!cvy_op_is_message(c->g->node[n]->op))
            node[k++] = c->g->node[n];
    for (int k = 0; k < c->nnode && status == CVY_OK; k++) {
        const int is_loss = (node[k]->op->flags & CVY_OP_LOSS) != 0;
        if (is_loss && !c->stages->own_losses)
            node[k]->dst[0]->over |= CVY_AXIS_BIT(CVY_AXIS_PIPELINE);
        if (rank_of(c, k) == c->stages->mine)
            continue;
        node[k]->removed = 1;
        if (is_loss)
            status = add_zero(c, node[k], node[k]->dst[0]);
    }
    cvy_mem_free(&node);
    return status;
}

/* The caller can read outputs of this stage only. */
static void forget_outputs(const cvy_graph *g)
{
    for (int i = 0; i < g->nvalue; i++)
        if (g->value[i]->producer && g->value[i]->producer->removed) {
            g->value[i]->is_output = 0;
            g->value[i]->elsewhere = 1;
        }
}

static void keep_gradients(cvy_gradients *gradients)
{
    int kept = 0;
    for (int i = 0; i < gradients->count; i++)
        if (!gradients->at[i].value->producer->removed)
            gradients->at[kept++] = gradients->at[i];
    gradients->count = kept;
}

static cvy_status cut(struct cut *c)
{
    CVY_TRY(find_stages(c));
    CVY_TRY(check_order(c));
    CVY_TRY(check_weights(c));
    CVY_TRY(find_crossings(c));
    for (int i = 0; i < c->count; i++)
        if (c->crossing[i].from == c->stages->mine)
            CVY_TRY(add_send(c, &c->crossing[i]));
    for (int i = 0; i < c->count; i++)
        if (c->crossing[i].to == c->stages->mine)
            CVY_TRY(add_receive(c, &c->crossing[i]));
    CVY_TRY(remove_others(c));
    forget_outputs(c->g);
    return cvy_graph_verify(c->g);
}

cvy_status cvy_pass_stages(cvy_graph *g, const cvy_stages *stages, cvy_gradients *gradients)
{
    struct cut c = {.g = g, .stages = stages, .nnode = g->nnode};
    CVY_TRY(cvy_mem_alloc(sizeof *c.of * ((size_t)g->nnode + 1), &c.of));
    const cvy_status status = cut(&c);
    if (status == CVY_OK)
        keep_gradients(gradients);
    cvy_mem_free(&c.of);
    cvy_mem_free(&c.crossing);
    return status;
}

static cvy_status run(cvy_pass_run *r)
{
    return r->stages ? cvy_pass_stages(r->graph, r->stages, &r->gradients) : CVY_OK;
}

CVY_PASS_DEFINE(stages) = {.name = "stages",
                           .help = "keeps the nodes of this rank's stage of a pipeline, and adds messages",
                           .order = 15,
                           .run = run};

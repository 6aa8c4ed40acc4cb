/*
 * plan_cut.c: cuts a graph into stages of equal time, for a pipeline; see plan_cut.h.
 *
 * A stage is a run of layers in topological order, so values cross from earlier to later stages only, also around skip
 * connections and branches. The smallest possible time of the slowest stage is found by bisection. Then, among all cuts
 * whose slowest stage is at most SLACK slower, dynamic programming finds the one that sends the fewest bytes. Layers
 * that the user has placed restrict both searches.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_cut.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "plan/plan_call.h"
#include "plan/plan_offers.h"

#define SLACK 0.02
#define UNKNOWN_SHARE 0.1 /* of the estimated work, that may be without a measured time */
#define FLOP_PER_MS 2e7   /* a core's rough speed: only the ratio of the two figures matters here */
#define ELEMS_PER_MS 2e6

/* ---- layers ---- */

double cvy_node_estimate_ms(const cvy_node *node)
{
    const cvy_cost cost = cvy_node_cost(node);
    double elems = 0;
    for (int i = 0; i < node->ndst; i++)
        elems += node->dst[i] ? (double)cvy_shape_elems(&node->dst[i]->shape) : 0;
    for (int i = 0; i < node->nsrc; i++)
        elems += node->src[i] ? (double)cvy_shape_elems(&node->src[i]->shape) : 0;
    return (double)cost.flop / FLOP_PER_MS + elems / ELEMS_PER_MS;
}

struct listing {
    const cvy_lowered *u;
    cvy_cut *cut;
    cvy_index at; /* layers by name */
};

static int layer_of(const struct listing *l, const cvy_node *node)
{
    return node ? cvy_index_find(&l->at, node->layer) : -1;
}

/* Whether the node starts an exchange in two halves: it is where its source is made, not with its layer. */
static int starts_early(const cvy_node *node)
{
    const cvy_op_comm *comm = node->op->comm;
    return comm && comm->exchange == CVY_EXCHANGE_PARTS && comm->starts;
}

/* Nodes that were fused into others are listed too: graphs are cut before nodes are fused. */
static cvy_status list_layers(struct listing *l)
{
    const cvy_graph *g = l->u->graph;
    CVY_TRY(cvy_mem_alloc(sizeof *l->cut->layer * ((size_t)g->nnode + 1), &l->cut->layer));
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (starts_early(node) || node->backward || layer_of(l, node) >= 0 || strcmp(node->layer, "update") == 0 ||
            (node->op->flags & CVY_OP_OPTIMIZER))
            continue;
        CVY_TRY(cvy_index_add(&l->at, node->layer, l->cut->nlayer));
        l->cut->layer[l->cut->nlayer++].name = node->layer;
    }
    return CVY_OK;
}

/* Sorts the layers by the first stage on which each can be. Layers read only layers that can be on the same or earlier
 * stages, so this order is topological too. */
static cvy_status sort_layers(struct listing *l, const cvy_cut_places *places)
{
    cvy_cut_layer *sorted = NULL;
    int n = 0, next = 1, now = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *sorted * ((size_t)l->cut->nlayer + 1), &sorted));
    while (n < l->cut->nlayer) {
        now = next;
        next = INT_MAX;
        for (int k = 0; k < l->cut->nlayer; k++) {
            const int least = CVY_MAX(cvy_index_find(&places->least, l->cut->layer[k].name), 1);
            if (least == now)
                sorted[n++] = l->cut->layer[k];
            else if (least > now)
                next = CVY_MIN(next, least);
        }
    }
    cvy_mem_free(&l->cut->layer);
    l->cut->layer = sorted;
    cvy_index_free(&l->at);
    for (int k = 0; k < n; k++) {
        sorted[k].placed = CVY_MAX(cvy_index_find(&places->placed, sorted[k].name), 0);
        CVY_TRY(cvy_index_add(&l->at, sorted[k].name, k));
    }
    return CVY_OK;
}

/* Adds the measured times of calls. *missing_out: the estimated share of the work that has none. */
static cvy_status add_measured(struct listing *l, const cvy_wisdom *times, int threads, double *missing_out)
{
    double all = 0, missing = 0;
    for (int c = 0; c < l->u->ncall; c++) {
        const cvy_call *call = &l->u->call[c];
        const int k = layer_of(l, call->node);
        double ms = CVY_MS_UNKNOWN;
        if (k < 0 || call->phase != CVY_PHASE_MICRO || !cvy_call_runs_node(call))
            continue;
        CVY_TRY(cvy_wisdom_find_call(times, l->u, call, threads, &ms));
        const int known = ms >= 0 && !isinf(ms);
        all += cvy_node_estimate_ms(call->node);
        missing += known ? 0 : cvy_node_estimate_ms(call->node);
        l->cut->layer[k].ms += known ? ms : 0;
    }
    *missing_out = all > 0 ? missing / all : 1;
    return CVY_OK;
}

static void set_estimated(struct listing *l)
{
    const cvy_graph *g = l->u->graph;
    for (int k = 0; k < l->cut->nlayer; k++)
        l->cut->layer[k].ms = 0;
    for (int n = 0; n < g->nnode; n++) {
        const int k = g->node[n]->removed || g->node[n]->phase != CVY_PHASE_MICRO ? -1 : layer_of(l, g->node[n]);
        if (k >= 0)
            l->cut->layer[k].ms += cvy_node_estimate_ms(g->node[n]);
    }
}

/* A value of forward is sent across every cut between the layer that makes it and the last one that reads it, and its
 * gradient comes back. */
static cvy_status add_crossings(struct listing *l)
{
    const cvy_graph *g = l->u->graph;
    int *last = NULL; /* by value: the last layer that reads it in forward */
    CVY_TRY(cvy_mem_alloc(sizeof *last * ((size_t)g->nvalue + 1), &last));
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && !g->node[n]->backward && i < g->node[n]->nsrc; i++)
            last[g->node[n]->src[i]->index] = CVY_MAX(last[g->node[n]->src[i]->index], layer_of(l, g->node[n]));
    for (int i = 0; i < g->nvalue; i++) {
        const cvy_value *v = g->value[i];
        const int from = v->producer && !v->producer->removed && !v->producer->backward ? layer_of(l, v->producer) : -1;
        for (int k = from; from >= 0 && k < last[i]; k++)
            l->cut->layer[k].crossing += 2 * (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype);
    }
    cvy_mem_free(&last);
    return CVY_OK;
}

cvy_status cvy_cut_list(const cvy_lowered *u, const cvy_wisdom *times, int threads, const cvy_cut_places *places,
                        cvy_cut *out)
{
    struct listing l = {.u = u, .cut = out};
    double missing = 1;
    *out = (cvy_cut){0};
    cvy_status status = list_layers(&l);
    if (status == CVY_OK && places)
        status = sort_layers(&l, places);
    if (status == CVY_OK && times)
        status = add_measured(&l, times, threads, &missing);
    if (status == CVY_OK && missing > UNKNOWN_SHARE)
        set_estimated(&l);
    if (status == CVY_OK)
        status = add_crossings(&l);
    cvy_index_free(&l.at);
    if (status != CVY_OK)
        cvy_cut_free(out);
    return status;
}

void cvy_cut_free(cvy_cut *cut)
{
    cvy_mem_free(&cut->layer);
}

/* ---- cuts ---- */

/* Whether nstages stages of at most `most` ms each hold all layers. Each layer goes to the first stage that it can be
 * on. */
static int fits(const cvy_cut *cut, int nstages, double most)
{
    double sum = 0;
    int used = 1;
    for (int k = 0; k < cut->nlayer; k++) {
        const cvy_cut_layer *layer = &cut->layer[k];
        if (layer->ms > most)
            return 0;
        if (sum + layer->ms > most || layer->placed > used) {
            used = CVY_MAX(sum + layer->ms > most ? used + 1 : used, layer->placed);
            sum = 0;
        }
        if (layer->placed && layer->placed < used)
            return 0;
        sum += layer->ms;
    }
    return used <= nstages;
}

static int may_be_on(const cvy_cut_layer *layer, int stage)
{
    return !layer->placed || layer->placed == stage;
}

static double least_slowest(const cvy_cut *cut, int nstages)
{
    double low = 0, high = 0;
    for (int k = 0; k < cut->nlayer; k++)
        high += cut->layer[k].ms;
    for (int i = 0; i < 50; i++) {
        const double middle = 0.5 * (low + high);
        *(fits(cut, nstages, middle) ? &high : &low) = middle;
    }
    return high;
}

/* best[s * (n + 1) + k]: the fewest bytes if the first k layers are the first s stages; from[..]: where the last of
 * these stages begins. */
static void fewest_bytes(const cvy_cut *cut, int nstages, double most, double *best, int *from)
{
    const int n = cut->nlayer;
    for (int s = 0; s <= nstages; s++)
        for (int k = 0; k <= n; k++)
            best[s * (n + 1) + k] = s == 0 && k == 0 ? 0 : (double)INFINITY;
    for (int s = 1; s <= nstages; s++)
        for (int k = s; k <= n - (nstages - s); k++) {
            double sum = 0, *here = &best[s * (n + 1) + k];
            for (int b = k - 1; b >= s - 1 && may_be_on(&cut->layer[b], s) && (sum += cut->layer[b].ms) <= most; b--) {
                const double bytes = best[(s - 1) * (n + 1) + b] + (b > 0 ? (double)cut->layer[b - 1].crossing : 0);
                if (bytes < *here) {
                    *here = bytes;
                    from[s * (n + 1) + k] = b;
                }
            }
        }
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* Each stage between two layers that are placed needs a layer of its own. */
static cvy_status check_places(const cvy_cut *cut, int nstages)
{
    int before = -1;
    for (int k = 0; k < cut->nlayer; k++) {
        const cvy_cut_layer *layer = &cut->layer[k], *last = before >= 0 ? &cut->layer[before] : NULL;
        if (!layer->placed)
            continue;
        CVY_CHECK(layer->placed <= nstages, CVY_E_CONFIG,
                  "layer %s is placed on stage %d, and there are %d stages: take a stage from 1 to %d", layer->name,
                  layer->placed, nstages, nstages);
        CVY_CHECK(!last || layer->placed >= last->placed, CVY_E_INTERNAL,
                  "layer %s is placed on stage %d after layer %s of stage %d", layer->name, layer->placed, last->name,
                  last->placed);
        CVY_CHECK(last || layer->placed <= k + 1, CVY_E_CONFIG,
                  "layer %s is placed on stage %d, but it has %d layer%s before it, and each earlier stage needs one: "
                  "take stage %d at most",
                  layer->name, layer->placed, k, plural(k), k + 1);
        CVY_CHECK(!last || layer->placed - last->placed <= k - before, CVY_E_CONFIG,
                  "layer %s is placed on stage %d and layer %s on stage %d, with %d layer%s between them, and "
                  "each stage between needs one: take stage %d at most for %s",
                  last->name, last->placed, layer->name, layer->placed, k - before - 1, plural(k - before - 1),
                  last->placed + k - before, layer->name);
        before = k;
    }
    CVY_CHECK(before < 0 || nstages - cut->layer[before].placed <= cut->nlayer - 1 - before, CVY_E_CONFIG,
              "layer %s is placed on stage %d of %d, but it has %d layer%s after it, and each later stage needs one: "
              "take stage %d or later, or fewer stages",
              cut->layer[before].name, cut->layer[before].placed, nstages, cut->nlayer - 1 - before,
              plural(cut->nlayer - 1 - before), nstages - (cut->nlayer - 1 - before));
    return CVY_OK;
}

cvy_status cvy_cut_choose(const cvy_cut *cut, int nstages, int *first)
{
    const size_t room = (size_t)(nstages + 1) * (size_t)(cut->nlayer + 1);
    double *best = NULL;
    int *from = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(nstages <= cut->nlayer, CVY_E_CONFIG,
              "%d pipeline stages, but the network has %d layers to distribute: take fewer stages", nstages,
              cut->nlayer);
    CVY_TRY(check_places(cut, nstages));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *best * room, &best));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *from * room, &from));
    double most = CVY_MAX(least_slowest(cut, nstages), 1e-9) * (1 + SLACK);
    fewest_bytes(cut, nstages, most, best, from);
    while (isinf(best[room - 1])) /* each stage has at least one layer, which may need more time */
        fewest_bytes(cut, nstages, most *= 1.1, best, from);
    for (int s = nstages, k = cut->nlayer; s >= 1; s--)
        k = first[s - 1] = from[s * (cut->nlayer + 1) + k];
out:
    cvy_mem_free(&best);
    cvy_mem_free(&from);
    return status;
}

double cvy_cut_slowest_ms(const cvy_cut *cut, int nstages, const int *first)
{
    double slowest = 0;
    for (int s = 0; s < nstages; s++) {
        double sum = 0;
        for (int k = first[s]; k < (s + 1 < nstages ? first[s + 1] : cut->nlayer); k++)
            sum += cut->layer[k].ms;
        slowest = CVY_MAX(slowest, sum);
    }
    return slowest;
}

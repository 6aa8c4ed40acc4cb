/*
 * plan_cut.c: cuts a graph into stages of equal time, for a pipeline; see plan_cut.h.
 *
 * A stage is a run of layers in topological order, so values cross from earlier to later stages only, also around skip
 * connections and branches. The smallest possible time of the slowest stage is found by bisection. Then, among all cuts
 * whose slowest stage is at most SLACK slower, dynamic programming finds the one that sends the fewest bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_cut.h"

#include <math.h>
#include <string.h>

#include "plan/plan_offers.h"

#define SLACK 0.02
#define UNKNOWN_SHARE 0.1 /* of the estimated work, that may be without a measured time */
#define FLOP_PER_MS 2e7   /* a core's rough speed: only the ratio of the two figures matters here */
#define ELEMS_PER_MS 2e6

/* ---- layers ---- */

static double estimate(const cvy_node *node)
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

/* Nodes that were fused into others are listed too: graphs are cut before nodes are fused. */
static cvy_status list_layers(struct listing *l)
{
    const cvy_graph *g = l->u->graph;
    CVY_TRY(cvy_mem_alloc(sizeof *l->cut->layer * ((size_t)g->nnode + 1), &l->cut->layer));
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (node->backward || layer_of(l, node) >= 0 || strcmp(node->layer, "update") == 0 ||
            (node->op->flags & CVY_OP_OPTIMIZER))
            continue;
        CVY_TRY(cvy_index_add(&l->at, node->layer, l->cut->nlayer));
        l->cut->layer[l->cut->nlayer++].name = node->layer;
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
        if (k < 0 || call->phase != CVY_PHASE_MICRO ||
            (call->kind != CVY_CALL_KERNEL && call->kind != CVY_CALL_REFERENCE))
            continue;
        CVY_TRY(cvy_wisdom_find_call(times, l->u, call, threads, &ms));
        const int known = ms >= 0 && !isinf(ms);
        all += estimate(call->node);
        missing += known ? 0 : estimate(call->node);
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
            l->cut->layer[k].ms += estimate(g->node[n]);
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

cvy_status cvy_cut_list(const cvy_lowered *u, const cvy_wisdom *times, int threads, cvy_cut *out)
{
    struct listing l = {.u = u, .cut = out};
    double missing = 1;
    *out = (cvy_cut){0};
    cvy_status status = list_layers(&l);
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

/* Whether nstages stages of at most `most` ms each hold all layers. */
static int fits(const cvy_cut *cut, int nstages, double most)
{
    double sum = 0;
    int used = 1;
    for (int k = 0; k < cut->nlayer; k++) {
        if (cut->layer[k].ms > most)
            return 0;
        if (sum + cut->layer[k].ms > most) {
            used++;
            sum = 0;
        }
        sum += cut->layer[k].ms;
    }
    return used <= nstages;
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
            for (int b = k - 1; b >= s - 1 && (sum += cut->layer[b].ms) <= most; b--) {
                const double bytes = best[(s - 1) * (n + 1) + b] + (b > 0 ? (double)cut->layer[b - 1].crossing : 0);
                if (bytes < *here) {
                    *here = bytes;
                    from[s * (n + 1) + k] = b;
                }
            }
        }
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

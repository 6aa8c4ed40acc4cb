/*
 * plan_tune.c: chooses kernels by measured times.
 *
 * It runs before the first step, on rank 0. The price of a plan is the sum of the times of its calls, reorders
 * included. The search starts with the plan by preference. It goes through the groups of equal nodes, the most
 * expensive first, and tries each other kernel of the group in the whole plan. A kernel is kept if the plan gets
 * cheaper, so the cost that a layout causes in neighbouring nodes counts. Each (shapes, layouts, kernel) is timed once,
 * and the time is kept as wisdom.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan_call.h"
#include "plan/plan_measure.h"
#include "plan/plan_offers.h"

/* A kernel must save this share of the group's time, so that noise does not decide. */
static const double gain_least = 0.03;
/* A kernel that takes this many times as long as its group and the reorders around it is not tried in the whole
 * plan. */
#define FAR 1.5
/* PLAIN_FLOP_MAX: patient planning tries plain kernels of nodes below it. HOPELESS: a call that takes this many times
 * as long as the present kernel is timed no further. */
enum { PLAIN_FLOP_MAX = 1000000, HOPELESS = 2 };

struct price {
    double ms, micro_ms, update_ms;
    int ncall, nunknown;
};

struct tuner {
    cvy_graph *graph;
    cvy_plan_opts opts;
    cvy_planning how;
    cvy_wisdom *wisdom;
    cvy_meter *meter;
    cvy_tuning *result;
    const cvy_kernel_def **pick; /* by node */
    cvy_layouts saved;
    cvy_offers *own_offers;
    cvy_lowered *lowered; /* the best so far */
    struct price price;
};

/* ---- prices ---- */

static cvy_status measure(struct tuner *t, cvy_lowered *u, cvy_call *call, double hopeless_ms, const char *key,
                          double *ms_out)
{
    if (t->how == CVY_PLANNING_ESTIMATE)
        return CVY_OK;
    if (!t->meter)
        CVY_TRY(cvy_meter_create(&t->opts, t->how == CVY_PLANNING_PATIENT, &t->meter));
    cvy_metered metered;
    const cvy_status status = cvy_meter_time(t->meter, u, call, hopeless_ms, &metered);
    if (status != CVY_OK)
        return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
    t->result->nmeasured++;
    t->result->nvaried += metered.varied;
    CVY_TRY(cvy_wisdom_add(t->wisdom, key, metered.ms));
    *ms_out = cvy_wisdom_find(t->wisdom, key); /* rounded, as a later run will read it */
    return CVY_OK;
}

static cvy_status price_by_key(struct tuner *t, cvy_lowered *u, cvy_call *call, double hopeless_ms, double *ms_out)
{
    cvy_text key = {0};
    cvy_call_key(u, call, t->opts.threads, &key);
    cvy_status status = key.status;
    if (status == CVY_OK) {
        *ms_out = cvy_wisdom_find(t->wisdom, key.data);
        if (*ms_out < 0)
            status = measure(t, u, call, hopeless_ms, key.data, ms_out);
    }
    cvy_text_free(&key);
    return status;
}

/* The price is 0 for views, communication and shadow copies, which are kept across steps. */
static cvy_status price_call(struct tuner *t, cvy_lowered *u, cvy_call *call, double hopeless_ms, double *ms_out)
{
    *ms_out = 0;
    if (cvy_call_makes_shadow(u, call))
        return CVY_OK;
    if (cvy_call_reorders(call))
        return price_by_key(t, u, call, hopeless_ms, ms_out);
    if (!cvy_call_runs_node(call))
        return CVY_OK;
    if (call->offer->ms < 0)
        CVY_TRY(price_by_key(t, u, call, hopeless_ms, &call->offer->ms));
    *ms_out = call->offer->ms;
    return CVY_OK;
}

static cvy_status price_lowered(struct tuner *t, cvy_lowered *u, struct price *out)
{
    struct price p = {0};
    for (int i = 0; i < u->ncall; i++) {
        cvy_call *call = &u->call[i];
        double ms = 0;
        CVY_TRY(price_call(t, u, call, (double)INFINITY, &ms));
        p.ncall += cvy_call_is_timed(call);
        p.nunknown += ms < 0;
        *(call->phase == CVY_PHASE_UPDATE ? &p.update_ms : &p.micro_ms) += CVY_MAX(ms, 0);
    }
    p.ms = p.micro_ms + p.update_ms;
    *out = p;
    return CVY_OK;
}

/* ---- plans ---- */

static cvy_status select_anew(const struct tuner *t, cvy_lowered **out)
{
    cvy_layouts_restore(t->graph->vars, &t->saved);
    return cvy_lowered_select(t->graph, &t->opts, t->pick, out);
}

/* The time that the nodes of one signature take together. */
struct group_price {
    double ms;
    int count, taken, unknown; /* nodes; those with the kernel in question; those without a known time */
};

static int touches(const cvy_node *node, const cvy_value *v)
{
    for (int i = 0; i < node->nsrc; i++)
        if (node->src[i] == v)
            return 1;
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i] == v)
            return 1;
    return 0;
}

static cvy_status price_group(struct tuner *t, cvy_lowered *u, int signature, const cvy_kernel_def *kernel,
                              double hopeless_ms, struct group_price *out)
{
    struct group_price sum = {0};
    for (int i = 0; i < u->ncall; i++) {
        cvy_call *call = &u->call[i];
        double ms = 0;
        if (!cvy_call_runs_node(call) || call->signature != signature)
            continue;
        CVY_TRY(price_call(t, u, call, hopeless_ms, &ms));
        sum.count++;
        sum.taken += call->offer->kernel == kernel;
        sum.unknown += ms < 0;
        sum.ms += CVY_MAX(ms, 0);
    }
    *out = sum;
    return CVY_OK;
}

static cvy_status price_reorders(struct tuner *t, cvy_lowered *u, int signature, double *ms_out)
{
    double sum = 0;
    for (int i = 0; i < u->ncall; i++) {
        double ms = 0;
        if (!cvy_call_reorders(&u->call[i]))
            continue;
        const cvy_value *v = u->instance[u->call[i].src[0]].value;
        for (int j = 0; j < u->ncall && ms <= 0; j++)
            if (u->call[j].offer && u->call[j].signature == signature && touches(u->call[j].node, v))
                CVY_TRY(price_call(t, u, &u->call[i], (double)INFINITY, &ms));
        sum += CVY_MAX(ms, 0);
    }
    *ms_out = sum;
    return CVY_OK;
}

/* Whether a call is of a node of this signature whose kernel is open. */
static int is_open(const struct tuner *t, const cvy_call *call, int signature)
{
    return call->offer && call->signature == signature &&
           (!t->opts.settled || cvy_keys_find(t->opts.settled, call->node->name) < 0);
}

/* Picks the kernel for all open nodes of a signature. */
static void pick_for(struct tuner *t, int signature, const cvy_kernel_def *kernel)
{
    for (int i = 0; i < t->lowered->ncall; i++)
        if (is_open(t, &t->lowered->call[i], signature))
            t->pick[t->lowered->call[i].node->index] = kernel;
}

/* Compares the price of a trial, in which one group has another kernel, with the best plan so far. */
static cvy_status compare_trial(struct tuner *t, int signature, const cvy_kernel_def *kernel, cvy_lowered *trial,
                                int *better_out)
{
    struct group_price before, after;
    struct price price;
    double reorders = 0;
    *better_out = 0;
    CVY_TRY(price_group(t, t->lowered, signature, kernel, (double)INFINITY, &before));
    const double hopeless = before.unknown ? (double)INFINITY : HOPELESS * before.ms / CVY_MAX(before.count, 1);
    CVY_TRY(price_group(t, trial, signature, kernel, hopeless, &after));
    if (after.taken == 0 || after.unknown || before.unknown)
        return CVY_OK;
    CVY_TRY(price_reorders(t, t->lowered, signature, &reorders));
    const double least = gain_least * before.ms;
    if (after.ms > before.ms + reorders - least)
        return CVY_OK;
    CVY_TRY(price_lowered(t, trial, &price));
    if (price.nunknown > t->price.nunknown || price.ms > t->price.ms - least)
        return CVY_OK;
    t->price = price;
    *better_out = 1;
    return CVY_OK;
}

/* Whether a kernel need not be tried in the whole plan. In the trial the kernel would make the same offer for the first
 * node of its group as it has just made, so its time can be known in advance. It is hopeless if this time is far too
 * long, or if there is no time and none will be measured. */
static cvy_status is_hopeless(struct tuner *t, int signature, const cvy_node *node, cvy_offer *offer, int *hopeless_out)
{
    struct group_price before;
    double reorders = 0;
    *hopeless_out = 0;
    if (offer->ms < 0) {
        cvy_text key = {0};
        cvy_offer_key(t->lowered->offers, signature, node, offer, &key);
        const cvy_status status = key.status;
        offer->ms = status == CVY_OK ? cvy_wisdom_find(t->wisdom, key.data) : CVY_MS_UNKNOWN;
        cvy_text_free(&key);
        CVY_TRY(status);
    }
    *hopeless_out = offer->ms < 0 ? t->how == CVY_PLANNING_ESTIMATE : isinf(offer->ms);
    if (offer->ms < 0 || *hopeless_out)
        return CVY_OK;
    CVY_TRY(price_group(t, t->lowered, signature, NULL, (double)INFINITY, &before));
    CVY_TRY(price_reorders(t, t->lowered, signature, &reorders));
    *hopeless_out = !before.unknown && offer->ms * before.count > FAR * (before.ms + reorders);
    return CVY_OK;
}

static cvy_status try_kernel(struct tuner *t, int signature, const cvy_call *call, const cvy_kernel_def *kernel,
                             int *changed)
{
    const cvy_kernel_def *before = t->pick[call->node->index];
    cvy_kernel_ask in = call->offer->in;
    cvy_offer *offer = NULL;
    cvy_lowered *trial = NULL;
    int better = 0, hopeless = 0;
    in.node = call->node;
    CVY_TRY(cvy_offers_ask(t->lowered->offers, signature, kernel, &in, &offer));
    if (offer->status == CVY_OK)
        CVY_TRY(is_hopeless(t, signature, call->node, offer, &hopeless));
    if (offer->status != CVY_OK || hopeless)
        return CVY_OK;
    pick_for(t, signature, kernel);
    cvy_status status = select_anew(t, &trial);
    if (status == CVY_OK)
        status = compare_trial(t, signature, kernel, trial, &better);
    if (better) {
        cvy_lowered *old = t->lowered;
        t->lowered = trial;
        trial = old;
        *changed = 1;
    } else {
        pick_for(t, signature, before);
    }
    cvy_lowered_destroy(&trial);
    return status;
}

/* The first open call of the group in the best plan so far; NULL: all are settled. */
static const cvy_call *first_call(const struct tuner *t, int signature)
{
    for (int i = 0; i < t->lowered->ncall; i++)
        if (is_open(t, &t->lowered->call[i], signature))
            return &t->lowered->call[i];
    return NULL;
}

/* The plain kernel is written to be read, not to be fast: it is plausible for small nodes only. */
static int plain_is_plausible(const struct tuner *t, const cvy_node *node)
{
    return t->how == CVY_PLANNING_PATIENT && node->op->reference && cvy_node_cost(node).flop < PLAIN_FLOP_MAX;
}

static cvy_status tune_group(struct tuner *t, int signature, int *changed)
{
    const cvy_call *call = first_call(t, signature);
    if (!call)
        return CVY_OK;
    const cvy_op_def *op = call->node->op;
    for (const cvy_kernel_def *k = NULL; (k = cvy_kernel_next(op->name, k, &t->opts.kernels)) != NULL;) {
        call = first_call(t, signature);
        if (k != call->offer->kernel)
            CVY_TRY(try_kernel(t, signature, call, k, changed));
    }
    call = first_call(t, signature);
    if (call->offer->kernel == &cvy_kernel_plain || !plain_is_plausible(t, call->node))
        return CVY_OK;
    return try_kernel(t, signature, call, &cvy_kernel_plain, changed);
}

/* ---- the search ---- */

struct group {
    int signature;
    double ms;
};

static int dearest_first(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->ms != y->ms ? (x->ms < y->ms ? 1 : -1) : x->signature - y->signature;
}

static cvy_status tune_groups(struct tuner *t, struct group *group, int ngroup, int *changed)
{
    int n = 0;
    for (int i = 0; i < ngroup; i++)
        group[i] = (struct group){i, -1};
    for (int i = 0; i < t->lowered->ncall; i++) {
        const cvy_call *call = &t->lowered->call[i];
        if (call->offer)
            group[call->signature].ms = CVY_MAX(group[call->signature].ms, 0) + CVY_MAX(call->offer->ms, 0);
    }
    for (int i = 0; i < ngroup; i++)
        if (group[i].ms >= 0)
            group[n++] = group[i];
    qsort(group, (size_t)n, sizeof *group, dearest_first);
    for (int i = 0; i < n; i++)
        CVY_TRY(tune_group(t, group[i].signature, changed));
    return CVY_OK;
}

static cvy_status search(struct tuner *t)
{
    const int rounds = t->how == CVY_PLANNING_PATIENT ? 2 : 1, ngroup = t->lowered->offers->signature.count;
    struct group *group = NULL;
    cvy_status status = CVY_OK;
    int changed = 1;
    CVY_TRY(cvy_mem_alloc(sizeof *group * ((size_t)ngroup + 1), &group));
    for (int i = 0; i < rounds && changed && status == CVY_OK; i++) {
        changed = 0;
        status = tune_groups(t, group, ngroup, &changed);
    }
    cvy_mem_free(&group);
    return status;
}

/* ---- the result ---- */

static cvy_status print_choices(const struct tuner *t, cvy_tuning *out)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    for (int i = 0; t->opts.settled && t->opts.choices && i < t->opts.choices->count; i++, out->nchanged++)
        cvy_json_string(&json, t->opts.choices->key[i], t->opts.choices->child[i]->text);
    for (int n = 0; n < t->graph->nnode; n++)
        if (t->pick[n] && (!t->opts.settled || cvy_keys_find(t->opts.settled, t->graph->node[n]->name) < 0)) {
            cvy_json_string(&json, t->graph->node[n]->name, t->pick[n]->name);
            out->nchanged++;
        }
    cvy_json_close(&json, '}');
    const cvy_status status = json.text.status;
    if (out->nchanged && status == CVY_OK)
        out->choices = json.text.data;
    else
        cvy_text_free(&json.text);
    return status;
}

static cvy_status tune(struct tuner *t, cvy_tuning *out)
{
    CVY_TRY(cvy_layouts_keep(t->graph->vars, &t->saved));
    CVY_TRY(cvy_mem_alloc(sizeof(void *) * ((size_t)t->graph->nnode + 1), &t->pick));
    if (!t->opts.offers)
        CVY_TRY(cvy_offers_create(&t->own_offers));
    t->opts.offers = t->opts.offers ? t->opts.offers : t->own_offers;
    if (t->opts.settled)
        CVY_TRY(cvy_lowered_name(t->graph, t->opts.choices, t->pick));
    CVY_TRY(cvy_lowered_create(t->graph, &t->opts, &t->lowered));
    CVY_TRY(price_lowered(t, t->lowered, &t->price));
    if (!t->opts.choices || t->opts.settled) {
        CVY_TRY(search(t));
        CVY_TRY(print_choices(t, out));
    }
    out->micro_ms = t->price.micro_ms;
    out->update_ms = t->price.update_ms;
    out->ncall = t->price.ncall;
    out->nunknown = t->price.nunknown;
    return CVY_OK;
}

cvy_status cvy_plan_tune(cvy_graph *graph, const cvy_plan_opts *opts, cvy_planning how, cvy_wisdom *wisdom,
                         cvy_tuning *out)
{
    cvy_tuning result = {0};
    struct tuner t = {.graph = graph, .opts = *opts, .how = how, .wisdom = wisdom, .result = &result};
    const double begin = cvy_clock_s();
    const cvy_status status = tune(&t, &result);
    cvy_layouts_restore(graph->vars, &t.saved);
    cvy_lowered_destroy(&t.lowered);
    cvy_offers_destroy(&t.own_offers);
    cvy_meter_destroy(&t.meter);
    cvy_mem_free(&t.saved.at);
    cvy_mem_free(&t.pick);
    result.seconds = cvy_clock_s() - begin;
    if (status != CVY_OK)
        cvy_mem_free(&result.choices);
    else
        *out = result;
    return status;
}

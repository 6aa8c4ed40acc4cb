/*
 * context_threads.c: chooses the number of compute threads of a rank: the least of its affinity mask, the quotas of its
 * control groups, the batch system's counts and OMP_NUM_THREADS. What the ranks of a node have in common is divided
 * among those that share it. A number in the options wins over all of them.
 *
 * Where the numbers differ, one warning names each with its source. Ranks say it in one voice: rank 0 speaks, and of
 * the others those alone that found something else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "context/context_threads.h"

#include <math.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_mem.h"
#include "base/machine/base_core_limits.h"
#include "base/machine/base_team.h"
#include "base/text/base_text.h"
#include "context/context_topology.h"

/* What limits this rank. */
struct bounds {
    cvy_core_limit limit[CVY_CORE_LIMITS_MAX];
    int sharing[CVY_CORE_LIMITS_MAX]; /* ranks that have it in common */
    double share[CVY_CORE_LIMITS_MAX];
    int n;
    cpu_set_t mask;
    int mask_each; /* cores of the mask for each of the ranks that share it */
};

/* What the other ranks need to know. */
struct place {
    cpu_set_t mask;
    int node;
    uint64_t group[CVY_CORE_LIMITS_MAX];
};

/* Whole threads fit into a share; one runs in any case. */
static int threads_in(const struct bounds *b, int i)
{
    return CVY_MAX((int)floor(b->share[i] + 1e-9), 1);
}

/* ---- who shares what ---- */

static void find_place(struct bounds *b, int node, struct place *out)
{
    *out = (struct place){.node = node};
    (void)cvy_team_mask(&b->mask); /* if it fails, the mask is empty */
    out->mask = b->mask;
    b->n = cvy_core_limits("", b->limit);
    for (int i = 0; i < b->n; i++)
        out->group[i] = b->limit[i].group;
}

static int is_in_group(const struct place *p, uint64_t group)
{
    for (int i = 0; i < CVY_CORE_LIMITS_MAX; i++)
        if (p->group[i] == group)
            return 1;
    return 0;
}

/* Divides a limit among the ranks of the node that have it in common. If it is enough for the masks of all of them,
 * each rank has the cores of its own mask, which may be more than those of others. */
static void divide(struct bounds *b, int i, const struct place *all, int nranks, int node)
{
    const cvy_core_limit *l = &b->limit[i];
    cpu_set_t together = b->mask;
    int sharing = 0;
    for (int r = 0; r < nranks; r++)
        if (all[r].node == node &&
            (l->kind == CVY_LIMIT_NODE || (l->kind == CVY_LIMIT_GROUP && is_in_group(&all[r], l->group)))) {
            CPU_OR(&together, &together, &all[r].mask);
            sharing++;
        }
    b->sharing[i] = CVY_MAX(sharing, 1);
    b->share[i] = l->cores / b->sharing[i];
    if (CPU_COUNT(&together) <= l->cores)
        b->share[i] = CVY_MAX(b->share[i], b->mask_each);
}

/* Collective. */
static cvy_status find_bounds(cvy_context *context, struct bounds *b)
{
    struct place mine, *all = NULL;
    cvy_comm *comm = context->comm;
    find_place(b, comm->node, &mine);
    CVY_TRY(cvy_comm_alloc(comm, sizeof mine * (size_t)comm->nranks, &all));
    const cvy_status status = comm->ops->allgather(comm, &mine, sizeof mine, all);
    const int nranks = status == CVY_OK ? comm->nranks : 0;
    for (int r = 0; r < nranks; r++)
        context->sharing += all[r].node == mine.node && CPU_EQUAL(&all[r].mask, &mine.mask);
    context->sharing = CVY_MAX(context->sharing, 1);
    context->cores = CVY_MAX(CPU_COUNT(&b->mask), 1);
    context->cores_each = b->mask_each = CVY_MAX(context->cores / context->sharing, 1);
    for (int i = 0; i < b->n; i++) {
        divide(b, i, all, nranks, mine.node);
        if (b->limit[i].kind != CVY_LIMIT_OPENMP && b->limit[i].cores > 0)
            context->cores_each = CVY_MIN(context->cores_each, threads_in(b, i));
    }
    cvy_mem_free(&all);
    return status;
}

/* ---- what is said ---- */

/* Whether the limit is a reason why the rank does not get more than `threads` threads, or why they wait. */
static int is_low(const struct bounds *b, int i, int threads)
{
    return b->limit[i].cores > 0 && (threads_in(b, i) < threads || b->share[i] < 1);
}

/* Whether the rank should have more threads than it gets. A number for all cores is no such wish of ranks that share
 * them. */
static int is_high(const cvy_context *context, const struct bounds *b, int i)
{
    const int is_shared = context->sharing > 1 || (b->limit[i].kind == CVY_LIMIT_NODE && b->sharing[i] > 1);
    return b->limit[i].is_exact && threads_in(b, i) > context->threads &&
           !(is_shared && b->limit[i].cores >= context->cores);
}

static void add_limit(const struct bounds *b, int i, cvy_text *out)
{
    const cvy_core_limit *l = &b->limit[i];
    if (b->sharing[i] > 1)
        cvy_text_add(out, ", %.3g for each of %d ranks by %s", b->share[i], b->sharing[i], l->source);
    else
        cvy_text_add(out, ", %.3g by %s", l->cores, l->source);
}

static void add_mask(const cvy_context *context, const struct bounds *b, cvy_text *out)
{
    char cores[64];
    cvy_cores_text(&b->mask, cores, sizeof cores);
    cvy_text_add(out, "%d by %s (core%s %s", context->cores, cvy_team_mask_source(), context->cores == 1 ? "" : "s",
                 cores);
    if (context->sharing > 1)
        cvy_text_add(out, ", shared by %d ranks", context->sharing);
    cvy_text_add(out, ")");
}

/* Rank 0 speaks for all ranks, any other one for itself. */
static void add_who(const cvy_context *context, cvy_text *out)
{
    if (context->comm->nranks == 1)
        cvy_text_add(out, "convoy may use");
    else if (context->comm->rank == 0)
        cvy_text_add(out, "each rank may use");
    else
        cvy_text_add(out, "rank %d may use", context->comm->rank);
}

/* Whether even one thread is too many for a limit that is listed; says so. */
static int add_starving(const cvy_context *context, const struct bounds *b, const int *is_listed, cvy_text *out)
{
    int starves = 0, is_quota = 0;
    for (int i = 0; i < b->n; i++) {
        starves |= is_listed[i] && b->share[i] < 1;
        is_quota |= is_listed[i] && b->share[i] < 1 && b->limit[i].kind == CVY_LIMIT_GROUP;
    }
    if (starves)
        cvy_text_add(out, "; a thread needs a whole core, and waits for part of the time: %s%s",
                     is_quota ? "raise the quota" : "ask for more cores",
                     context->comm->nranks > 1 ? ", or start fewer ranks" : "");
    return starves;
}

/* A number that was chosen. */
static void add_choice(const cvy_context *context, const struct bounds *b, cvy_text *out)
{
    int count = 0, is_listed[CVY_CORE_LIMITS_MAX] = {0};
    for (int i = 0; i < b->n; i++)
        count += is_listed[i] = is_low(b, i, b->mask_each) || is_high(context, b, i);
    if (count == 0)
        return;
    cvy_text_add(out, "%d compute thread%s, the least of the cores that ", context->threads,
                 context->threads == 1 ? "" : "s");
    add_who(context, out);
    cvy_text_add(out, ": ");
    add_mask(context, b, out);
    for (int i = 0; i < b->n; i++)
        if (is_listed[i])
            add_limit(b, i, out);
    if (!add_starving(context, b, is_listed, out))
        cvy_text_add(out, "; --threads (`threads` of the context) asks for another number");
}

/* A number that was asked for. Whether ranks share the cores of a mask is said with the places of all ranks
 * (context_topology.c). */
static void add_demand(const cvy_context *context, const struct bounds *b, cvy_text *out)
{
    const int asked = context->threads, exceeds_mask = context->comm->nranks == 1 && asked > context->cores;
    int count = exceeds_mask, is_listed[CVY_CORE_LIMITS_MAX] = {0};
    for (int i = 0; i < b->n; i++)
        count += is_listed[i] = b->limit[i].kind != CVY_LIMIT_OPENMP && is_low(b, i, asked);
    if (count == 0)
        return;
    cvy_text_add(out, "%d compute thread%s asked for, and the cores that ", asked, asked == 1 ? " was" : "s were");
    add_who(context, out);
    cvy_text_add(out, " are fewer: ");
    add_mask(context, b, out);
    for (int i = 0; i < b->n; i++)
        if (is_listed[i])
            add_limit(b, i, out);
    if (asked > context->cores_each || !add_starving(context, b, is_listed, out))
        cvy_text_add(out,
                     "; threads share a core or are stopped for part of the time, and each step waits for them: ask "
                     "for --threads %d",
                     context->cores_each);
}

static void add_unreadable(const struct bounds *b, cvy_text *out)
{
    for (int i = 0; i < b->n; i++)
        if (b->limit[i].cores <= 0)
            cvy_text_add(out, "%s%s is no number of threads or cores, and does not count", *out->data ? ". " : "",
                         b->limit[i].source);
}

/* Collective. */
static cvy_status say(const cvy_context *context, const struct bounds *b, int is_asked)
{
    cvy_comm *comm = context->comm;
    cvy_text text = {0};
    cvy_text_add(&text, "%s", "");
    if (is_asked)
        add_demand(context, b, &text);
    else
        add_choice(context, b, &text);
    if (text.data)
        add_unreadable(b, &text);
    uint64_t key[2] = {(uint64_t)context->threads, 0}, first[2];
    for (int i = 0; i < b->n; i++)
        key[1] = key[1] * 31 + (uint64_t)(1000 * b->share[i]) + (uint64_t)b->limit[i].kind;
    memcpy(first, key, sizeof key);
    cvy_status status = comm->ops->broadcast(comm, first, sizeof first, 0);
    if (status == CVY_OK && text.data && *text.data && (comm->rank == 0 || memcmp(first, key, sizeof key) != 0))
        cvy_log_local(context, CVY_LOG_WARN, "%s", text.data);
    cvy_text_free(&text);
    return status;
}

/* ---- the choice ---- */

cvy_status cvy_threads_choose(cvy_context *context, int speaks)
{
    const int asked = context->opts.threads;
    struct bounds b = {.n = 0};
    CVY_TRY(find_bounds(context, &b));                 /* collective, so also for a rank that was given a number */
    const int most = CVY_MAX(4 * context->cores, 256); /* OpenMP ends the process if it cannot start that many */
    const char *why = "";
    context->threads = context->cores_each;
    for (int i = 0; i < b.n; i++)
        if (b.limit[i].kind == CVY_LIMIT_OPENMP && b.limit[i].cores > 0)
            context->threads = CVY_MIN(context->threads, threads_in(&b, i));
    if (asked > 0)
        context->threads = CVY_MIN(asked, most);
    if (speaks)
        CVY_TRY(say(context, &b, asked > 0));
    CVY_CHECK(asked >= 0 && asked <= most, CVY_E_ARGUMENT,
              "%d compute threads a rank, expected 1 .. %d for %d cores, or 0 to choose", asked, most, context->cores);
    if (asked > 0)
        return cvy_team_check(asked);
    const int team = cvy_team_limit(context->threads, &why);
    if (team < context->threads)
        cvy_log_local(context, CVY_LOG_WARN, "%d compute thread%s on %d cores, because OpenMP allows no more: %s", team,
                      team == 1 ? "" : "s", context->threads, why);
    context->threads = team;
    return CVY_OK;
}

int cvy_threads_node_cores(const cvy_context *context)
{
    const int is_limited = context->cores_each < CVY_MAX(context->cores / context->sharing, 1);
    return is_limited || context->sharing == 1 ? context->cores_each * context->comm->node_nranks : context->cores;
}

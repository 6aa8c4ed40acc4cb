/*
 * search_choose.c: `parallel: auto`: measures the links between the ranks, searches on rank 0, and changes the job of
 * all ranks to the grid that was found.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/machine/base_clock.h"
#include "context/context_threads.h"
#include "job/job_table.h"
#include "search/search.h"
#include "session/session_strategy.h"

enum {
    SHORT_BYTES = 8,
    LONG_BYTES = 1 << 20,
    SHORT_TRIALS = 50,
    LONG_TRIALS = 5,
    COPY_BYTES = 16 << 20,
    COPY_TRIALS = 4
};

/* ---- measurements ---- */

cvy_status cvy_search_measure_copy(double *copy_s_out)
{
    char *from = NULL, *to = NULL;
    double best_s = 1;
    cvy_status status = cvy_mem_alloc(COPY_BYTES, &from);
    if (status == CVY_OK)
        status = cvy_mem_alloc(COPY_BYTES, &to);
    for (int i = 0; i < COPY_TRIALS && status == CVY_OK; i++) {
        const double begin_s = cvy_clock_s();
        from[i] = (char)(to[i] + 1); /* so that no copy can be left out */
        memcpy(to, from, COPY_BYTES);
        best_s = i > 0 ? CVY_MIN(best_s, cvy_clock_s() - begin_s) : best_s; /* the first one takes the pages */
    }
    cvy_mem_free(&from);
    cvy_mem_free(&to);
    if (status == CVY_OK)
        *copy_s_out = best_s / (2.0 * COPY_BYTES);
    return status;
}

static cvy_status time_message(cvy_comm *comm, int other, void *data, size_t bytes, int trials, double *best_out)
{
    for (int i = 0; i <= trials; i++) { /* the first one opens the connection */
        double seconds = 0;
        CVY_TRY(comm->probe->ping(comm, other, data, bytes, &seconds));
        *best_out = i == 0 ? 1e9 : CVY_MIN(*best_out, seconds);
    }
    return CVY_OK;
}

/* Between rank 0 and another one; all other ranks do nothing. */
static cvy_status measure_link(cvy_comm *comm, int other, void *data, cvy_link *link)
{
    const int peer = comm->rank == 0 ? other : 0;
    double empty_s = 0, long_s = 0;
    if (other < 0 || (comm->rank != 0 && comm->rank != other))
        return CVY_OK;
    CVY_TRY(time_message(comm, peer, data, SHORT_BYTES, SHORT_TRIALS, &empty_s));
    CVY_TRY(time_message(comm, peer, data, LONG_BYTES, LONG_TRIALS, &long_s));
    link->alpha_s = empty_s;
    link->beta_s = CVY_MAX(long_s - empty_s, 1e-6) / LONG_BYTES;
    return CVY_OK;
}

/* The first rank on the same node as rank 0, or on another one; -1: none. */
static int find_peer(const int *node, int nranks, int same)
{
    for (int r = 1; r < nranks; r++)
        if ((node[r] == node[0]) == same)
            return r;
    return -1;
}

static int count_here(const int *node, int nranks)
{
    int n = 0;
    for (int r = 0; r < nranks; r++)
        n += node[r] == node[0];
    return n;
}

cvy_status cvy_search_measure_network(cvy_comm *comm, cvy_network *out)
{
    cvy_network network = cvy_network_of_node(1);
    int *node = NULL;
    char *data = NULL;
    cvy_status status = cvy_comm_alloc(comm, sizeof *node * (size_t)comm->nranks, &node);
    if (status == CVY_OK)
        status = cvy_comm_alloc(comm, LONG_BYTES, &data);
    if (status == CVY_OK)
        status = comm->ops->allgather(comm, &comm->node, sizeof comm->node, node);
    if (status == CVY_OK) {
        network.node_ranks = count_here(node, comm->nranks);
        status = measure_link(comm, find_peer(node, comm->nranks, 1), data, &network.inside);
    }
    if (status == CVY_OK)
        status = measure_link(comm, find_peer(node, comm->nranks, 0), data, &network.across);
    cvy_mem_free(&node);
    cvy_mem_free(&data);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, &network, sizeof network, 0));
    *out = network;
    return CVY_OK;
}

/* ---- the choice ---- */

/* What rank 0 has chosen. */
struct choice {
    cvy_search_grid grid;
    double step_s; /* predicted time of a step */
};

struct choosing {
    cvy_search_opts opts;
    struct choice choice;
    cvy_text *notes;
};

static void add_notes(const cvy_search *found, const cvy_search_candidate *best, cvy_text *notes)
{
    int ngood = 0;
    while (ngood < found->n && found->at[ngood].status == CVY_OK)
        ngood++;
    cvy_text_add(notes, "parallel: auto takes ");
    cvy_search_grid_text(&best->grid, notes);
    cvy_text_add(notes, ", the fastest of %d grids: ", ngood);
    cvy_search_explain(best, notes);
    if (ngood > 1) {
        cvy_text_add(notes, "; next: ");
        cvy_search_grid_text(&found->at[1].grid, notes);
        cvy_text_add(notes, ", %.3g ms", 1e3 * found->at[1].time.step_s);
    }
    cvy_text_add(notes, "\n");
    if (cvy_search_is_rough(best))
        cvy_text_add(notes,
                     "parallel: auto has predicted with estimates, because kernels were never measured here: use "
                     "plan.planning: measure\n");
}

static cvy_status search(void *user)
{
    struct choosing *c = user;
    const cvy_search_candidate *best = NULL;
    cvy_search found = {0};
    CVY_TRY(cvy_search_run(&c->opts, &found));
    const cvy_status status = cvy_search_best(&found, &c->opts, &best);
    if (status == CVY_OK) {
        c->choice = (struct choice){best->grid, best->time.step_s};
        add_notes(&found, best, c->notes);
    }
    cvy_search_free(&found);
    return status;
}

/* Rank 0 searches, the others sleep. */
static cvy_status choose(cvy_context *context, cvy_job *job, const cvy_strategy_run *run, cvy_text *notes,
                         double *step_s_out)
{
    cvy_comm *comm = context->comm;
    struct choosing c = {.opts = {.context = context,
                                  .job = job,
                                  .data = run->data,
                                  .nscored = run->nscored,
                                  .micro_batches = run->micro_batches,
                                  .nranks = comm->nranks,
                                  .threads = context->threads,
                                  .cores = cvy_threads_node_cores(context)},
                         .notes = notes};
    if (comm->nranks == 1) { /* there is nothing to search; the job may be that of a run on several ranks */
        const int64_t micro_batches = run->micro_batches > 0 ? run->micro_batches : job->train.accumulate;
        cvy_search_apply(
            &(cvy_search_grid){.length = {1, 1, 1, 1, 1, 1}, .micro_batches = micro_batches, .interleave = 1}, job);
        return CVY_OK;
    }
    CVY_TRY(cvy_search_measure_network(comm, &c.opts.network));
    CVY_TRY(cvy_comm_agree(comm, cvy_comm_while_others_sleep(comm, search, &c)));
    CVY_TRY(comm->ops->broadcast(comm, &c.choice, sizeof c.choice, 0));
    cvy_search_apply(&c.choice.grid, job);
    *step_s_out = c.choice.step_s;
    return CVY_OK;
}

CVY_STRATEGY_DEFINE(auto) = {.name = "auto", .choose = choose};

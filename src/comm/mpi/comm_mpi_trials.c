/*
 * comm_mpi_trials.c: measures before the first step which algorithm for reductions by messages is the fastest on this
 * network. The result is saved with a plan.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "comm/mpi/comm_mpi_about.h"
#include "comm/mpi/comm_mpi_impl.h"

enum { TRIALS = 20, LEAST_TRIALS = 2, BUSY_ROUNDS = 1000, SHORT_BYTES = 16 << 10 };
#define SIZE_LIMIT_S 0.15 /* limit for the trials of one size */

/* ---- algorithms ---- */

static int count_algorithms(void)
{
    int count = 0;
    cvy_allreduce_table(&count);
    return CVY_MIN(count + 1, CVY_GROUP_ALGORITHMS); /* the library is the last one */
}

static const char *name_of(int i)
{
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    return i < count ? def[i]->name : "library";
}

/* The fastest of the measured algorithms; -1: none. With rounds the library is left out, since it cannot round what it
 * sends. */
static int fastest(const cvy_group *group, int size, int rounds)
{
    int best = -1;
    for (int i = 0; i < count_algorithms() - (rounds ? 1 : 0); i++)
        if (group->measured[i] && (best < 0 || group->seconds[size][i] < group->seconds[size][best]))
            best = i;
    return best;
}

static int all_measured(const cvy_group *group)
{
    int all = 1;
    for (int i = 0; i < count_algorithms(); i++)
        all &= group->measured[i];
    return all;
}

/* The fastest algorithm at the nearest size; without measurements, one that is good on most networks. */
const char *cvy_group_algorithm(const cvy_group *group, int64_t bytes, int rounds)
{
    const char *usual = bytes <= SHORT_BYTES ? "doubling" : "halving";
    int size = 0;
    if (!group->is_given && !all_measured(group))
        return usual;
    while (size + 1 < CVY_GROUP_SIZES && bytes * 2 > cvy_group_size(size + 1))
        size++;
    const char *name = name_of(group->is_given ? group->given[size] : fastest(group, size, rounds));
    return rounds && strcmp(name, "library") == 0 ? usual : name;
}

/* ---- trials ---- */

struct trials {
    double seconds[CVY_GROUP_SIZES][CVY_GROUP_ALGORITHMS][TRIALS]; /* INFINITY: this trial was not made */
    int algorithm[CVY_GROUP_ALGORITHMS], n;                        /* the algorithms that are measured now */
};

/* Returns an error if any rank of the group has failed, because the others must not wait for it. */
static cvy_status agree(const cvy_group *group, cvy_status mine)
{
    int good = mine == CVY_OK, all = 0;
    CVY_TRY_MPI(MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, group->comm));
    return all || mine != CVY_OK ? mine : cvy_error_set(CVY_E_COMM, "another rank has failed");
}

static cvy_status run_once(const cvy_group *group, cvy_group_reduction *s, double *seconds_out)
{
    int done = 0;
    CVY_TRY_MPI(MPI_Barrier(group->comm));
    const double start_s = cvy_clock_s();
    CVY_TRY(cvy_group_reduction_start(s));
    for (int round = 0; !done; round++) {
        CVY_TRY(cvy_group_reduction_progress(s, &done));
        if (round >= BUSY_ROUNDS)
            sched_yield(); /* the rank for which this one waits may need this core */
    }
    *seconds_out = cvy_clock_s() - start_s;
    return CVY_OK;
}

/* The algorithms take turns, one trial each, so that other load on the machine affects all of them. The trials stop
 * early if reductions take long; all ranks of the group stop together. */
static cvy_status try_in_turns(const cvy_group *group, cvy_group_reduction *const *reduction, int n,
                               double *const *seconds)
{
    double spent = 0;
    for (int trial = 0; trial < TRIALS && (trial < LEAST_TRIALS || spent < SIZE_LIMIT_S); trial++) {
        for (int i = 0; i < n; i++) {
            CVY_TRY(run_once(group, reduction[i], &seconds[i][trial]));
            spent += seconds[i][trial];
        }
        CVY_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &spent, 1, MPI_DOUBLE, MPI_MAX, group->comm));
    }
    return CVY_OK;
}

static cvy_status try_size(cvy_mpi *mpi, cvy_group *group, float *data, int size, struct trials *t)
{
    const cvy_group_range range = {data, cvy_group_size(size) / (int64_t)sizeof *data, CVY_DTYPE_F32, CVY_DTYPE_F32};
    cvy_group_reduction *reduction[CVY_GROUP_ALGORITHMS] = {NULL};
    double *seconds[CVY_GROUP_ALGORITHMS] = {NULL};
    cvy_status status = CVY_OK;
    for (int i = 0; i < t->n && status == CVY_OK; i++) {
        const cvy_allreduce_opts opts = {.algorithm = name_of(t->algorithm[i])};
        seconds[i] = t->seconds[size][t->algorithm[i]];
        status = cvy_group_reduction_create(mpi, group, &opts, &range, &reduction[i]);
    }
    status = agree(group, status);
    if (status == CVY_OK)
        status = try_in_turns(group, reduction, t->n, seconds);
    for (int i = 0; i < t->n; i++)
        cvy_group_reduction_destroy(&reduction[i]);
    return status;
}

static cvy_status try_all(cvy_mpi *mpi, cvy_group *group, struct trials *t)
{
    float *data = NULL;
    cvy_status status = agree(group, cvy_mem_alloc((size_t)cvy_group_size(CVY_GROUP_SIZES - 1), &data));
    for (int size = 0; size < CVY_GROUP_SIZES && status == CVY_OK; size++)
        status = try_size(mpi, group, data, size, t);
    cvy_mem_free(&data);
    return status;
}

static double best_of(const double *seconds)
{
    double best = INFINITY;
    for (int i = 0; i < TRIALS; i++)
        best = CVY_MIN(best, seconds[i]);
    return best;
}

/* Takes the shortest of the trials, because other load on the machine only makes a trial longer. The time of a trial is
 * that of its slowest rank. */
static cvy_status measure(cvy_comm *comm, cvy_group *group, int takes_part, const char *only)
{
    struct trials t = {.n = 0};
    double *all = &t.seconds[0][0][0];
    const int is_group = takes_part && group->n > 1, n = (int)(sizeof t.seconds / sizeof *all);
    for (int i = 0; i < count_algorithms(); i++)
        if (!group->measured[i] && (!only || strcmp(only, name_of(i)) == 0))
            t.algorithm[t.n++] = i;
    if (t.n == 0)
        return CVY_OK;
    if (cvy_mpi_of(comm)->simulated.folded)
        return cvy_simulated_measure(comm, group);
    for (int i = 0; i < n; i++)
        all[i] = is_group ? INFINITY : 0;
    CVY_TRY(cvy_comm_agree(comm, is_group ? try_all(cvy_mpi_of(comm), group, &t) : CVY_OK));
    CVY_TRY(comm->ops->allreduce(comm, all, n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    for (int i = 0; i < t.n; i++) {
        group->measured[t.algorithm[i]] = 1;
        for (int size = 0; size < CVY_GROUP_SIZES; size++)
            group->seconds[size][t.algorithm[i]] = best_of(t.seconds[size][t.algorithm[i]]);
    }
    return CVY_OK;
}

/* Ranks wait for each other here, so this is recorded for the watchdog. */
cvy_status cvy_group_measure(cvy_comm *comm, cvy_group *group, int takes_part, const char *only)
{
    atomic_store_explicit(&comm->collective, "a trial of all-reduces", memory_order_relaxed);
    const cvy_status status = measure(comm, group, takes_part, only);
    atomic_store_explicit(&comm->collective, NULL, memory_order_relaxed);
    return status;
}

/* ---- cvy_comm_probe_ops ---- */

static int is_leader(const cvy_comm *comm)
{
    return comm->node_rank < cvy_mpi_of(comm)->leaders;
}

static cvy_status probe_choice(cvy_comm *comm, const cvy_allreduce_opts *opts, int across, int64_t bytes,
                               const char **name_out)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    cvy_group *group = across ? &mpi->across : &mpi->all;
    CVY_TRY(cvy_group_measure(comm, group, !across || is_leader(comm), NULL));
    *name_out = cvy_group_algorithm(group, across ? bytes / mpi->leaders : bytes, opts->wire == CVY_DTYPE_BF16);
    return CVY_OK;
}

/* The cost of a reduction through a node's memory, with two ranks on a Xeon, as `convoy doctor` measures it. The best
 * bucket size depends little on it. */
static const cvy_comm_cost in_memory = {2e-6, 1e-10};

static cvy_status probe_cost(cvy_comm *comm, const cvy_allreduce_opts *opts, cvy_comm_cost *out)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    const int by_node = comm->shares_nodes && !opts->no_node, large = CVY_GROUP_SIZES - 1, middle = CVY_GROUP_SIZES - 3;
    cvy_group *group = by_node ? &mpi->across : &mpi->all;
    *out = in_memory;
    if (by_node && comm->nnodes == 1)
        return CVY_OK;
    CVY_TRY(cvy_group_measure(comm, group, !by_node || is_leader(comm), opts->algorithm));
    double seconds[CVY_GROUP_SIZES];
    for (int size = 0; size < CVY_GROUP_SIZES; size++) {
        seconds[size] = INFINITY;
        for (int i = 0; i < count_algorithms(); i++)
            if (group->measured[i] && (!opts->algorithm || strcmp(opts->algorithm, name_of(i)) == 0))
                seconds[size] = CVY_MIN(seconds[size], group->seconds[size][i]);
    }
    const double slope = (seconds[large] - seconds[middle]) / (double)(cvy_group_size(large) - cvy_group_size(middle));
    out->alpha_s = seconds[0] + (by_node ? in_memory.alpha_s : 0);
    out->beta_s = CVY_MAX(slope, 1e-13) / (by_node ? mpi->leaders : 1) + (by_node ? in_memory.beta_s : 0);
    return CVY_OK;
}

/* "all 4: doubling doubling ... ring": name of the group, number of its ranks, and the algorithm for each size. */
static void probe_algorithms_text(const cvy_comm *comm, const cvy_allreduce_opts *opts, char *text)
{
    const cvy_mpi *mpi = cvy_mpi_of(comm);
    const int across = !all_measured(&mpi->all) && !mpi->all.is_given;
    const cvy_group *group = across ? &mpi->across : &mpi->all;
    text[0] = 0;
    if (!all_measured(group) && !group->is_given)
        return;
    int n = snprintf(text, CVY_COMM_ALGORITHMS_TEXT, "%s %d:", across ? "across" : "all", group->n);
    for (int size = 0; size < CVY_GROUP_SIZES && n < CVY_COMM_ALGORITHMS_TEXT; size++)
        n += snprintf(
            text + n, (size_t)(CVY_COMM_ALGORITHMS_TEXT - n), " %s",
            name_of(group->is_given ? group->given[size] : fastest(group, size, opts->wire == CVY_DTYPE_BF16)));
}

static int find_algorithm(const char *name)
{
    int i = count_algorithms() - 1;
    while (i >= 0 && strcmp(name_of(i), name) != 0)
        i--;
    return i;
}

static void probe_set_algorithms(cvy_comm *comm, const char *text)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    char kind[8], name[24];
    int n = 0, at = 0, used = 0, algorithm[CVY_GROUP_SIZES];
    if (sscanf(text, "%7s %d:%n", kind, &n, &at) < 2 || at == 0)
        return;
    for (int size = 0; size < CVY_GROUP_SIZES; size++, at += used)
        if (sscanf(text + at, "%23s%n", name, &used) != 1 || (algorithm[size] = find_algorithm(name)) < 0)
            return;
    cvy_group *group = strcmp(kind, "across") == 0 ? &mpi->across : &mpi->all;
    const int is_mine = group == &mpi->all || is_leader(comm);
    if (is_mine ? group->n != n : comm->nnodes != n)
        return;
    memcpy(group->given, algorithm, sizeof algorithm);
    group->is_given = 1;
}

const cvy_comm_probe_ops cvy_mpi_probe_ops = {
    .about = cvy_mpi_about,
    .ping = cvy_mpi_ping,
    .choice = probe_choice,
    .cost = probe_cost,
    .algorithms_text = probe_algorithms_text,
    .set_algorithms = probe_set_algorithms,
};

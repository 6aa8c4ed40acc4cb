/*
 * comm_mpi_trials.c: which way of summing by messages is the fastest on this very network: tried out before the first step, kept with a plan.
 */
#include <math.h>
#include <sched.h>
#include <string.h>

#include "base/base_util.h"
#include "comm/mpi/comm_mpi_impl.h"

enum { TRIALS = 20, LEAST_TRIALS = 2, PATIENT_TURNS = 1000, SHORT_BYTES = 16 << 10 };
#define PATIENCE_S 0.15                /* of the trials of one size */

/* ---- ways ---- */

static int count_ways(void)
{
    int count = 0;
    cvy_sum_table(&count);
    return CVY_MIN(count + 1, CVY_GROUP_WAYS); /* the library behind the algorithms */
}

static const char *way_name(int way)
{
    int count = 0;
    const cvy_sum_def *const *def = cvy_sum_table(&count);
    return way < count ? def[way]->name : "library";
}

/* Of those that were tried; -1: none. rounds: the library, which sends what it is given, does not count. */
static int fastest(const struct cvy_group *group, int size, int rounds)
{
    int best = -1;
    for (int way = 0; way < count_ways() - (rounds ? 1 : 0); way++)
        if (group->tried[way] && (best < 0 || group->seconds[size][way] < group->seconds[size][best]))
            best = way;
    return best;
}

static int all_tried(const struct cvy_group *group)
{
    int all = 1;
    for (int way = 0; way < count_ways(); way++)
        all &= group->tried[way];
    return all;
}

/* The way that won at the nearest size; without trials, what is good on most networks. */
const char *cvy_group_way(const struct cvy_group *group, int64_t bytes, int rounds)
{
    const char *usual = bytes <= SHORT_BYTES ? "doubling" : "halving";
    int size = 0;
    if (!group->is_taken && !all_tried(group))
        return usual;
    while (size + 1 < CVY_GROUP_SIZES && bytes * 2 > cvy_group_size(size + 1))
        size++;
    const char *name = way_name(group->is_taken ? group->taken[size] : fastest(group, size, rounds));
    return rounds && strcmp(name, "library") == 0 ? usual : name;
}

/* ---- trials ---- */

struct trials {
    double seconds[CVY_GROUP_SIZES][CVY_GROUP_WAYS][TRIALS];            /* INFINITY: not done */
    int way[CVY_GROUP_WAYS], nway;     /* those that are tried */
};

/* Whether all of the group have come so far: a rank that has failed must not be waited for. */
static cvy_status all_well(const struct cvy_group *group, cvy_status mine)
{
    int well = mine == CVY_OK, all = 0;
    CVY_TRY_MPI(MPI_Allreduce(&well, &all, 1, MPI_INT, MPI_MIN, group->comm));
    return all || mine != CVY_OK ? mine : cvy_error_set(CVY_E_COMM, "another rank has failed");
}

static cvy_status run_once(const struct cvy_group *group, cvy_group_sum *s, double *seconds_out)
{
    int done = 0;
    CVY_TRY_MPI(MPI_Barrier(group->comm));
    const double start_s = cvy_clock_s();
    CVY_TRY(cvy_group_sum_start(s));
    for (int turn = 0; !done; turn++) {
        CVY_TRY(cvy_group_sum_progress(s, &done));
        if (turn >= PATIENT_TURNS)
            sched_yield();             /* the rank that is waited for may need this very core */
    }
    *seconds_out = cvy_clock_s() - start_s;
    return CVY_OK;
}

/* All ways in turns, so that what else the machine does meets all of them. Stops early where sums take long; the group's ranks stop together. */
static cvy_status try_in_turns(const struct cvy_group *group, cvy_group_sum *const *sum, int nway, double *const *seconds)
{
    double spent = 0;
    for (int turn = 0; turn < TRIALS && (turn < LEAST_TRIALS || spent < PATIENCE_S); turn++) {
        for (int i = 0; i < nway; i++) {
            CVY_TRY(run_once(group, sum[i], &seconds[i][turn]));
            spent += seconds[i][turn];
        }
        CVY_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &spent, 1, MPI_DOUBLE, MPI_MAX, group->comm));
    }
    return CVY_OK;
}

static cvy_status try_size(struct cvy_mpi *mpi, struct cvy_group *group, float *data, int size, struct trials *t)
{
    const int64_t count = cvy_group_size(size) / (int64_t)sizeof *data;
    cvy_group_sum *sum[CVY_GROUP_WAYS] = {NULL};
    double *seconds[CVY_GROUP_WAYS] = {NULL};
    cvy_status status = CVY_OK;
    for (int i = 0; i < t->nway && status == CVY_OK; i++) {
        seconds[i] = t->seconds[size][t->way[i]];
        status = cvy_group_sum_create(mpi, group, way_name(t->way[i]), data, count, CVY_DTYPE_F32, CVY_DTYPE_F32, &sum[i]);
    }
    status = all_well(group, status);
    if (status == CVY_OK)
        status = try_in_turns(group, sum, t->nway, seconds);
    for (int i = 0; i < t->nway; i++)
        cvy_group_sum_destroy(&sum[i]);
    return status;
}

static cvy_status try_all(struct cvy_mpi *mpi, struct cvy_group *group, struct trials *t)
{
    float *data = NULL;
    cvy_status status = all_well(group, cvy_mem_alloc((size_t)cvy_group_size(CVY_GROUP_SIZES - 1), &data));
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

/* The best of the trials, each as long as its slowest rank took: what else the machine does only adds to it. */
static cvy_status measure(cvy_comm *comm, struct cvy_group *group, int takes_part, const char *only)
{
    struct trials t = {.nway = 0};
    double *all = &t.seconds[0][0][0];
    const int is_group = takes_part && group->n > 1, n = (int)(sizeof t.seconds / sizeof *all);
    for (int way = 0; way < count_ways(); way++)
        if (!group->tried[way] && (!only || strcmp(only, way_name(way)) == 0))
            t.way[t.nway++] = way;
    if (t.nway == 0)
        return CVY_OK;
    if (cvy_mpi_of(comm)->folded)
        return cvy_simulated_measure(comm, group);
    for (int i = 0; i < n; i++)
        all[i] = is_group ? INFINITY : 0;
    CVY_TRY(cvy_comm_agree(comm, is_group ? try_all(cvy_mpi_of(comm), group, &t) : CVY_OK));
    CVY_TRY(comm->ops->allreduce(comm, all, n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    for (int i = 0; i < t.nway; i++) {
        group->tried[t.way[i]] = 1;
        for (int size = 0; size < CVY_GROUP_SIZES; size++)
            group->seconds[size][t.way[i]] = best_of(t.seconds[size][t.way[i]]);
    }
    return CVY_OK;
}

/* The others are waited for: the watchdog must know. */
cvy_status cvy_group_measure(cvy_comm *comm, struct cvy_group *group, int takes_part, const char *only)
{
    atomic_store_explicit(&comm->meeting, "a trial of sums", memory_order_relaxed);
    const cvy_status status = measure(comm, group, takes_part, only);
    atomic_store_explicit(&comm->meeting, NULL, memory_order_relaxed);
    return status;
}

/* ---- what the trials say ---- */

static int is_leader(const cvy_comm *comm)
{
    return comm->node_rank < cvy_mpi_of(comm)->leaders;
}

cvy_status cvy_mpi_choice(cvy_comm *comm, int across, int64_t bytes, const char **name_out)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    struct cvy_group *group = across ? &mpi->across : &mpi->all;
    CVY_TRY(cvy_group_measure(comm, group, !across || is_leader(comm), NULL));
    *name_out = cvy_group_way(group, across ? bytes / mpi->leaders : bytes, comm->sums.wire == CVY_DTYPE_BF16);
    return CVY_OK;
}

/* Of a sum through a node's memory, two ranks of a Xeon, as `convoy doctor` measures it: what depends on it (how large buckets are) is flat there. */
static const cvy_comm_cost in_memory = {2e-6, 1e-10};

cvy_status cvy_mpi_cost(cvy_comm *comm, cvy_comm_cost *out)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    const int by_node = comm->shares_nodes && !comm->sums.no_node, large = CVY_GROUP_SIZES - 1, middle = CVY_GROUP_SIZES - 3;
    struct cvy_group *group = by_node ? &mpi->across : &mpi->all;
    *out = in_memory;
    if (by_node && comm->nnodes == 1)
        return CVY_OK;
    CVY_TRY(cvy_group_measure(comm, group, !by_node || is_leader(comm), comm->sums.algorithm));
    double seconds[CVY_GROUP_SIZES];
    for (int size = 0; size < CVY_GROUP_SIZES; size++) {
        seconds[size] = INFINITY;
        for (int way = 0; way < count_ways(); way++)
            if (group->tried[way] && (!comm->sums.algorithm || strcmp(comm->sums.algorithm, way_name(way)) == 0))
                seconds[size] = CVY_MIN(seconds[size], group->seconds[size][way]);
    }
    const double slope = (seconds[large] - seconds[middle]) / (double)(cvy_group_size(large) - cvy_group_size(middle));
    out->alpha_s = seconds[0] + (by_node ? in_memory.alpha_s : 0);
    out->beta_s = CVY_MAX(slope, 1e-13) / (by_node ? mpi->leaders : 1) + (by_node ? in_memory.beta_s : 0);
    return CVY_OK;
}

/* "all 4: doubling doubling ... ring": the group, its ranks, and the way for each size. */
void cvy_mpi_ways(const cvy_comm *comm, char *text)
{
    const struct cvy_mpi *mpi = cvy_mpi_of(comm);
    const int across = !all_tried(&mpi->all) && !mpi->all.is_taken;
    const struct cvy_group *group = across ? &mpi->across : &mpi->all;
    text[0] = 0;
    if (!all_tried(group) && !group->is_taken)
        return;
    int n = snprintf(text, CVY_COMM_WAYS_TEXT, "%s %d:", across ? "across" : "all", group->n);
    for (int size = 0; size < CVY_GROUP_SIZES && n < CVY_COMM_WAYS_TEXT; size++)
        n += snprintf(text + n, (size_t)(CVY_COMM_WAYS_TEXT - n), " %s", way_name(group->is_taken ? group->taken[size] : fastest(group, size, comm->sums.wire == CVY_DTYPE_BF16)));
}

static int find_way(const char *name)
{
    int way = count_ways() - 1;
    while (way >= 0 && strcmp(way_name(way), name) != 0)
        way--;
    return way;
}

void cvy_mpi_take_ways(cvy_comm *comm, const char *text)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    char kind[8], name[24];
    int n = 0, at = 0, used = 0, way[CVY_GROUP_SIZES];
    if (sscanf(text, "%7s %d:%n", kind, &n, &at) < 2 || at == 0)
        return;
    for (int size = 0; size < CVY_GROUP_SIZES; size++, at += used)
        if (sscanf(text + at, "%23s%n", name, &used) != 1 || (way[size] = find_way(name)) < 0)
            return;
    struct cvy_group *group = strcmp(kind, "across") == 0 ? &mpi->across : &mpi->all;
    const int is_mine = group == &mpi->all || is_leader(comm);
    if (is_mine ? group->n != n : comm->nnodes != n)
        return;
    memcpy(group->taken, way, sizeof way);
    group->is_taken = 1;
}

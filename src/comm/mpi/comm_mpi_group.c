/*
 * comm_mpi_group.c: sums by messages among a group of ranks: by moves of our own, or by the library's MPI_Iallreduce, whichever was the faster one
 * for a range of this size when it was tried on this very network, before the first step.
 */
#include <math.h>
#include <sched.h>

#include "base/base_util.h"
#include "comm/mpi/comm_mpi_impl.h"

enum { PIECES_MAX = 8, WAYS = 8, TRIALS = 7, LEAST_TRIALS = 2, PATIENT_TURNS = 1000, SHORT_BYTES = 16 << 10 };
#define PATIENCE_S 0.15                /* of the trials of one size */

struct cvy_group_sum {
    cvy_moves *moves;                  /* NULL: the library */
    const struct cvy_group *group;
    char *data;
    int64_t count;
    cvy_dtype dtype;
    int npieces;
    MPI_Request piece[PIECES_MAX];
};

/* ---- one sum ---- */

static cvy_status by_library(cvy_group_sum *s)
{
    const int64_t npieces = (s->count + CVY_PIECE_ELEMS - 1) / CVY_PIECE_ELEMS;
    CVY_CHECK(npieces <= PIECES_MAX, CVY_E_UNSUPPORTED, "a bucket of %lld elements; at most %lld: set comm.bucket lower", (long long)s->count,
              (long long)CVY_PIECE_ELEMS * PIECES_MAX);
    s->npieces = (int)npieces;
    for (int i = 0; i < PIECES_MAX; i++)
        s->piece[i] = MPI_REQUEST_NULL;
    return CVY_OK;
}

/* The way that won at the nearest size; NULL: the library. Without a trial, what is good on most networks. */
static const cvy_sum_def *way_for(const struct cvy_group *group, int64_t bytes)
{
    int count = 0, size = 0;
    const cvy_sum_def *const *def = cvy_sum_table(&count);
    if (!group->measured)
        return cvy_sum_find(bytes <= SHORT_BYTES ? "doubling" : "halving");
    while (size + 1 < CVY_GROUP_SIZES && bytes * 2 > cvy_group_size(size + 1))
        size++;
    return group->best[size] < count ? def[group->best[size]] : NULL;
}

cvy_status cvy_group_sum_create(struct cvy_mpi *mpi, struct cvy_group *group, const char *name, void *data, int64_t count, cvy_dtype dtype, cvy_dtype wire,
                                cvy_group_sum **out)
{
    cvy_group_sum *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (cvy_group_sum){.group = group, .data = data, .count = count, .dtype = dtype};
    const cvy_sum_def *def = name ? cvy_sum_find(name) : way_for(group, count * (int64_t)cvy_dtype_bytes(wire));
    const cvy_moves_opts opts = {.def = def, .group = group, .data = data, .count = count, .dtype = dtype, .wire = wire};
    const cvy_status status = def ? cvy_moves_create(mpi, &opts, &s->moves) : by_library(s);
    if (status != CVY_OK)
        cvy_mem_free(&s);
    else
        *out = s;
    return status;
}

cvy_status cvy_group_sum_start(cvy_group_sum *s)
{
    if (s->moves)
        cvy_moves_start(s->moves);
    for (int i = 0; i < s->npieces; i++) {
        const int64_t at = (int64_t)i * CVY_PIECE_ELEMS;
        CVY_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, s->data + (size_t)at * cvy_dtype_bytes(s->dtype), (int)CVY_MIN(s->count - at, (int64_t)CVY_PIECE_ELEMS),
                                   cvy_mpi_type(s->dtype), MPI_SUM, s->group->comm, &s->piece[i]));
    }
    return CVY_OK;
}

cvy_status cvy_group_sum_progress(cvy_group_sum *s, int *done_out)
{
    if (s->moves)
        return cvy_moves_progress(s->moves, done_out);
    CVY_TRY_MPI(MPI_Testall(s->npieces, s->piece, done_out, MPI_STATUSES_IGNORE));
    return CVY_OK;
}

void cvy_group_sum_destroy(cvy_group_sum **s)
{
    if (*s)
        cvy_moves_destroy(&(*s)->moves);
    cvy_mem_free(s);
}

/* ---- trials ---- */

struct trials { double seconds[CVY_GROUP_SIZES][WAYS][TRIALS]; };       /* INFINITY: not done */

/* Whether all of the group have come so far: a rank that has failed must not be waited for. */
static cvy_status all_well(const struct cvy_group *group, cvy_status mine)
{
    int well = mine == CVY_OK, all = 0;
    CVY_TRY_MPI(MPI_Allreduce(&well, &all, 1, MPI_INT, MPI_MIN, group->comm));
    return all || mine != CVY_OK ? mine : cvy_error_set(CVY_E_COMM, "another rank has failed");
}

static int count_ways(void)
{
    int count = 0;
    cvy_sum_table(&count);
    return CVY_MIN(count + 1, WAYS);   /* the library behind the algorithms */
}

static cvy_status run_once(cvy_group_sum *s, double *seconds_out)
{
    int done = 0;
    CVY_TRY_MPI(MPI_Barrier(s->group->comm));
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
static cvy_status try_in_turns(cvy_group_sum *const *sum, int nways, double (*seconds)[TRIALS])
{
    double spent = 0;
    for (int turn = 0; turn < TRIALS && (turn < LEAST_TRIALS || spent < PATIENCE_S); turn++) {
        for (int way = 0; way < nways; way++) {
            CVY_TRY(run_once(sum[way], &seconds[way][turn]));
            spent += seconds[way][turn];
        }
        CVY_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &spent, 1, MPI_DOUBLE, MPI_MAX, sum[0]->group->comm));
    }
    return CVY_OK;
}

static cvy_status try_size(struct cvy_mpi *mpi, struct cvy_group *group, float *data, int64_t bytes, double (*seconds)[TRIALS])
{
    int count = 0;
    const cvy_sum_def *const *def = cvy_sum_table(&count);
    cvy_group_sum *sum[WAYS] = {NULL};
    const int nways = count_ways();
    cvy_status status = CVY_OK;
    for (int way = 0; way < nways && status == CVY_OK; way++)
        status = cvy_group_sum_create(mpi, group, way < count ? def[way]->name : "library", data, bytes / (int64_t)sizeof *data, CVY_DTYPE_F32,
                                      CVY_DTYPE_F32, &sum[way]);
    status = all_well(group, status);
    if (status == CVY_OK)
        status = try_in_turns(sum, nways, seconds);
    for (int way = 0; way < nways; way++)
        cvy_group_sum_destroy(&sum[way]);
    return status;
}

static cvy_status try_all(struct cvy_mpi *mpi, struct cvy_group *group, struct trials *trials)
{
    float *data = NULL;
    cvy_status status = all_well(group, cvy_mem_alloc((size_t)cvy_group_size(CVY_GROUP_SIZES - 1), &data));
    for (int i = 0; i < CVY_GROUP_SIZES && status == CVY_OK; i++)
        status = try_size(mpi, group, data, cvy_group_size(i), trials->seconds[i]);
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
cvy_status cvy_group_measure(cvy_comm *comm, struct cvy_group *group, int takes_part)
{
    struct trials trials;
    double *all = &trials.seconds[0][0][0];
    const int is_group = takes_part && group->n > 1, n = (int)(sizeof trials / sizeof *all);
    if (group->measured)
        return CVY_OK;
    for (int i = 0; i < n; i++)
        all[i] = is_group ? INFINITY : 0;
    CVY_TRY(cvy_comm_agree(comm, is_group ? try_all(cvy_mpi_of(comm), group, &trials) : CVY_OK));
    CVY_TRY(comm->ops->allreduce(comm, all, n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    for (int i = 0; i < CVY_GROUP_SIZES; i++)
        for (int way = 1; way < count_ways(); way++)
            if (best_of(trials.seconds[i][way]) < best_of(trials.seconds[i][group->best[i]]))
                group->best[i] = way;
    group->measured = 1;
    return CVY_OK;
}

cvy_status cvy_mpi_choice(cvy_comm *comm, int across, int64_t bytes, const char **name_out)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    struct cvy_group *group = across ? &mpi->across : &mpi->all;
    CVY_TRY(cvy_group_measure(comm, group, !across || comm->node_rank < mpi->leaders));
    const cvy_sum_def *def = way_for(group, across ? bytes / mpi->leaders : bytes);
    *name_out = def ? def->name : "library";
    return CVY_OK;
}

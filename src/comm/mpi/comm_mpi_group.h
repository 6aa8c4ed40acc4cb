/*
 * comm_mpi_group.h: a group of ranks that reduce by messages: all ranks, or the leaders of the nodes. comm_mpi_group.c
 * does its reductions; comm_mpi_trials.c measures what its algorithms cost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_MPI_GROUP_H
#define CVY_COMM_MPI_GROUP_H

#include <mpi.h>

#include "comm/comm.h"

struct cvy_mpi;

enum { CVY_GROUP_SIZES = 7, CVY_GROUP_ALGORITHMS = 8 };
typedef struct cvy_group {
    MPI_Comm comm;
    int me, n;    /* this rank's number in the group; number of ranks in it */
    int next_tag; /* tag of the next reduction; all ranks of the group create the same reductions in the same order */
    int measured[CVY_GROUP_ALGORITHMS]; /* 1: measured. Index: the algorithms of the table, then the library */
    double seconds[CVY_GROUP_SIZES][CVY_GROUP_ALGORITHMS]; /* of cvy_group_size(size) bytes, if measured */
    int is_given, given[CVY_GROUP_SIZES]; /* the algorithm for each size as an earlier run has measured it; if is_given,
                                             it is used instead of this run's measurements */
} cvy_group;

/* The i-th size, in bytes, at which algorithms are compared. */
static inline int64_t cvy_group_size(int i)
{
    return (int64_t)1 << (10 + 2 * i); /* 1 KiB to 4 MiB */
}
/* Measures how long each algorithm takes at each size, or only the algorithm named `only`, unless this is known
 * already. It takes about a second. Collective over comm; ranks that are not in such a group call it with takes_part 0.
 */
cvy_status cvy_group_measure(cvy_comm *comm, cvy_group *group, int takes_part, const char *only);
/* Name of the algorithm for so many bytes on the wire. rounds: the values are rounded to bf16, which the library cannot
 * do. */
const char *cvy_group_algorithm(const cvy_group *group, int64_t bytes, int rounds);

typedef struct cvy_group_reduction cvy_group_reduction;

/* The range that is reduced. The functions below use `algorithm`, `threads` and `newest_first` of opts; with algorithm
 * NULL they take the one that the measurements found for this size. */
typedef struct cvy_group_range {
    void *data;
    int64_t count;
    cvy_dtype dtype, wire;
} cvy_group_range;
cvy_status cvy_group_reduction_create(struct cvy_mpi *mpi, cvy_group *group, const cvy_allreduce_opts *opts,
                                      const cvy_group_range *range, cvy_group_reduction **out);
/* One half of a reduction: a reduce-scatter, or an all-gather if part_out is NULL. The algorithm is halving, unless
 * opts names another one that has halves. */
cvy_status cvy_group_half_create(struct cvy_mpi *mpi, cvy_group *group, const cvy_allreduce_opts *opts,
                                 const cvy_group_range *range, cvy_part *part_out, cvy_group_reduction **out);
cvy_status cvy_group_reduction_start(cvy_group_reduction *s);
cvy_status cvy_group_reduction_progress(cvy_group_reduction *s, int *done_out);
void cvy_group_reduction_destroy(cvy_group_reduction **s);
/* Bytes that this rank sends each time the reduction runs. The algorithm of the MPI library is not known; for it, this
 * is the least that any algorithm sends. */
int64_t cvy_group_reduction_sent(const cvy_group_reduction *s);

#endif

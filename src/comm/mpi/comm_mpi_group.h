/*
 * comm_mpi_group.h: a group of ranks that reduce by messages: all ranks, or the leaders of the nodes. Its reductions
 * are comm_mpi_group.c; what its algorithms cost is comm_mpi_trials.c.
 */
#ifndef CVY_COMM_MPI_GROUP_H
#define CVY_COMM_MPI_GROUP_H

#include <mpi.h>

#include "comm/comm.h"

struct cvy_mpi;

enum { CVY_GROUP_SIZES = 7, CVY_GROUP_ALGORITHMS = 8 };
typedef struct cvy_group {
    MPI_Comm comm;
    int me, n;                                             /* this rank's number in it, of how many */
    int next_tag;                                          /* its ranks make the same reductions in the same order */
    int measured[CVY_GROUP_ALGORITHMS];                    /* algorithms: those of the table, then the library */
    double seconds[CVY_GROUP_SIZES][CVY_GROUP_ALGORITHMS]; /* of cvy_group_size(i) bytes, if measured */
    int is_given, given[CVY_GROUP_SIZES]; /* algorithms that an earlier run has measured: they count in place of this
                                             run's */
} cvy_group;

/* Bytes of the i-th size at which algorithms are compared. */
static inline int64_t cvy_group_size(int i)
{
    return (int64_t)1 << (10 + 2 * i); /* 1 KiB to 4 MiB */
}
/* Measures how long each algorithm takes at each size, or the one named `only`, if that is not known yet; about a
 * second. Collective over comm, also for ranks that are not in such a group. */
cvy_status cvy_group_measure(cvy_comm *comm, cvy_group *group, int takes_part, const char *only);
/* Name of the algorithm for so many bytes on the wire; rounds: they are rounded to bf16, which the library does not do.
 */
const char *cvy_group_algorithm(const cvy_group *group, int64_t bytes, int rounds);

typedef struct cvy_group_reduction cvy_group_reduction;

/* What is reduced. opts: algorithm, threads and newest_first count; NULL algorithm: as measured for this size. */
typedef struct cvy_group_range {
    void *data;
    int64_t count;
    cvy_dtype dtype, wire;
} cvy_group_range;
cvy_status cvy_group_reduction_create(struct cvy_mpi *mpi, cvy_group *group, const cvy_allreduce_opts *opts,
                                      const cvy_group_range *range, cvy_group_reduction **out);
/* One half: a reduce-scatter, or if part_out is NULL an all-gather. By halving, unless opts names an algorithm that has
 * halves. */
cvy_status cvy_group_half_create(struct cvy_mpi *mpi, cvy_group *group, const cvy_allreduce_opts *opts,
                                 const cvy_group_range *range, cvy_part *part_out, cvy_group_reduction **out);
cvy_status cvy_group_reduction_start(cvy_group_reduction *s);
cvy_status cvy_group_reduction_progress(cvy_group_reduction *s, int *done_out);
void cvy_group_reduction_destroy(cvy_group_reduction **s);
/* Bytes that this rank sends each time. The algorithm of the library is not known: the least that any of them sends. */
int64_t cvy_group_reduction_sent(const cvy_group_reduction *s);

#endif

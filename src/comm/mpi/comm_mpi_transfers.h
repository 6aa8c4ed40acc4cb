/*
 * comm_mpi_transfers.h: runs a list of transfers (comm/comm_allreduce.h) over MPI_Isend and MPI_Irecv; see
 * comm_mpi_transfers.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_MPI_TRANSFERS_H
#define CVY_COMM_MPI_TRANSFERS_H

#include <mpi.h>

#include "comm/comm_allreduce.h"

struct cvy_mpi;
struct cvy_group;

/* Messages are split into segments, so that one segment is added while the next one is on its way. For each peer at
 * most CVY_SEGMENTS of them are under way at once. */
enum { CVY_SEGMENT_BYTES = 256 << 10, CVY_SEGMENTS = 4 };
enum { CVY_SLOT_BYTES = 2 * CVY_SEGMENTS * CVY_SEGMENT_BYTES }; /* the segments of two peers */
typedef struct cvy_transfers cvy_transfers;

/* The reductions of one communicator that are under way, and the memory for their segments. */
typedef struct cvy_transfer_queue {
    void *slot[CVY_TRANSFER_SLOTS];
    cvy_transfers *holder[CVY_TRANSFER_SLOTS]; /* the reduction that has the slot now, or NULL */
    cvy_transfers *oldest;                     /* started and not done, linked in the order of their starts */
} cvy_transfer_queue;

typedef struct cvy_transfers_opts {
    const cvy_allreduce_def *def;
    struct cvy_group *group;
    void *data;
    int64_t count;
    cvy_dtype dtype, wire;
    enum { CVY_WHOLE, CVY_SCATTER, CVY_GATHER } half;
    cvy_part *part_out; /* only with CVY_SCATTER */
    int newest_first, threads;
} cvy_transfers_opts;
cvy_status cvy_transfers_create(struct cvy_mpi *mpi, const cvy_transfers_opts *opts, cvy_transfers **out);
void cvy_transfers_start(cvy_transfers *t);
cvy_status cvy_transfers_progress(cvy_transfers *t, int *done_out);
void cvy_transfers_destroy(cvy_transfers **t);
/* Bytes that this rank sends each time the reduction runs. */
int64_t cvy_transfers_sent(const cvy_transfers *t);
/* Under a simulator: adds the requests of the transfers that are under way on this communicator, at most
 * CVY_TRANSFERS_REQUESTS_MAX - 1, to the n in `from`. Returns the new number. */
int cvy_transfers_list_requests(const struct cvy_mpi *mpi, MPI_Request **from, int n);
enum { CVY_TRANSFERS_REQUESTS_MAX = CVY_TRANSFER_SLOTS * CVY_ROUND_TRANSFERS * CVY_SEGMENTS + 1 };

#endif

/*
 * comm_mpi_impl.h: the state of an MPI communicator, and the check that every MPI call goes through.
 *
 *   comm_mpi.c            creates, splits and frees communicators; blocking collectives for setup
 *   comm_mpi_request.c    reductions: by messages or through the node's memory; by the caller or by the progress thread
 *   comm_mpi_group.c      a reduction by messages in a group of ranks: by transfers or by the library
 *   comm_mpi_trials.c     measures before the first step which algorithm is the fastest in a group
 *   comm_mpi_transfers.c  runs a list of transfers (comm/comm_allreduce.h) over MPI_Isend and MPI_Irecv
 *   comm_mpi_window.c     memory that the ranks of a node share
 *   comm_mpi_node.c       a reduction through that memory, and by messages between nodes
 *   comm_mpi_thread.c     the progress thread, and the lock by which only one thread at a time calls MPI
 *   comm_mpi_watch.c      names the ranks for which a rank waits too long
 *   comm_mpi_message.c    messages between two ranks
 *   comm_mpi_simulated.c  what is different if MPI is a simulator
 *   comm_mpi_about.c      the version of the MPI library, and the time of single messages
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_MPI_IMPL_H
#define CVY_COMM_MPI_IMPL_H

#include "comm/mpi/comm_mpi.h"
#include "comm/mpi/comm_mpi_group.h"
#include "comm/mpi/comm_mpi_simulated.h"
#include "comm/mpi/comm_mpi_transfers.h"

/* The largest count of one MPI call, in elements: far below INT_MAX, and a multiple of every SIMD width. */
enum { CVY_PIECE_ELEMS = 1 << 28 };

typedef struct cvy_mpi {
    const cvy_comm *of; /* whose impl this is */
    MPI_Comm comm;      /* for setup */
    MPI_Comm node;      /* the ranks of this node, in the order of comm */
    cvy_group all;
    cvy_group across; /* the ranks that have this rank's number on their node, if they are leaders */
    int leaders;      /* number of leaders on each node: each of them reduces its own part between the nodes */
    uint64_t across_started, across_due; /* reductions of `across`: next number to give; number of the reduction that
                                            may begin next (comm_mpi_node.c) */
    struct cvy_node_window *window;      /* the list of all windows */
    struct cvy_mpi *root;               /* the first communicator in the chain of splits; itself, if it was not split */
    struct cvy_mpi_watch *watch;        /* only of a root; NULL: ranks may wait for each other without limit */
    struct cvy_progress_thread *thread; /* only of a root; NULL: reductions make progress when they are tested */
    cvy_transfer_queue queue;
    cvy_simulated simulated;
    int owns_user; /* simulated: `comm` was created by a split, so it is freed */
} cvy_mpi;

static inline cvy_mpi *cvy_mpi_of(const cvy_comm *comm)
{
    return comm->impl;
}

/* Every MPI call goes through this check. An error becomes a status with the name of the call and MPI's error text. */
cvy_status cvy_mpi_check(int code, const char *call);
#define CVY_TRY_MPI(call) CVY_TRY(cvy_mpi_check((call), #call))

MPI_Datatype cvy_mpi_type(cvy_dtype dtype);

/* The optional tables of cvy_comm. */
extern const cvy_comm_reduce_ops cvy_mpi_reduce_ops;
extern const cvy_comm_message_ops cvy_mpi_message_ops;
extern const cvy_comm_node_ops cvy_mpi_node_ops;
extern const cvy_comm_probe_ops cvy_mpi_probe_ops;

#endif

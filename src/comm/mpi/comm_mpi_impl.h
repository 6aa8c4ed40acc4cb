/*
 * comm_mpi_impl.h: the state of an MPI communicator, the check that every MPI call goes through, and the lock for
 * calls.
 *
 *   comm_mpi.c            making, splitting and freeing; blocking collectives for setup
 *   comm_mpi_request.c    reductions: by messages or through the node's memory; by the caller or by the progress thread
 *   comm_mpi_group.c      a reduction by messages in a group of ranks: by transfers or by the library
 *   comm_mpi_trials.c     which algorithm is the fastest in a group: measured before the first step
 *   comm_mpi_transfers.c  a list of transfers (comm/comm_allreduce.h) over MPI_Isend and MPI_Irecv
 *   comm_mpi_window.c     memory that the ranks of a node share
 *   comm_mpi_node.c       a reduction through that memory, and by messages between nodes
 *   comm_mpi_thread.c     the progress thread
 *   comm_mpi_message.c    messages between two ranks
 *   comm_mpi_simulated.c  what is different if MPI is a simulator
 *   comm_mpi_about.c      what the library says of itself, and single messages timed
 */
#ifndef CVY_COMM_MPI_IMPL_H
#define CVY_COMM_MPI_IMPL_H

#include "comm/mpi/comm_mpi.h"
#include "comm/mpi/comm_mpi_group.h"
#include "comm/mpi/comm_mpi_simulated.h"
#include "comm/mpi/comm_mpi_transfers.h"

/* Largest piece of one MPI call, in elements: far below INT_MAX, a multiple of every SIMD width. */
enum { CVY_PIECE_ELEMS = 1 << 28 };

typedef struct cvy_mpi {
    MPI_Comm comm; /* setup */
    MPI_Comm node; /* the ranks of this node, in the order of comm */
    cvy_group all;
    cvy_group across; /* the ranks with this rank's number on their node, if they are leaders */
    int leaders;      /* so many ranks of each node each reduce a part of their own between the nodes */
    uint64_t across_started, across_due; /* reductions of `across`: numbers given, and the one that may begin next; see
                                            comm_mpi_node.c */
    struct cvy_window *window;           /* the list of all windows */
    struct cvy_mpi *root;                /* the communicator that this one was split from, at last; itself */
    struct cvy_progress_thread *thread;  /* of a root; NULL: reductions make progress when they are tested */
    cvy_transfer_queue queue;
    cvy_simulated simulated;
    int owns_user; /* simulated: `comm` was made by a split, and is freed */
} cvy_mpi;

static inline cvy_mpi *cvy_mpi_of(const cvy_comm *comm)
{
    return comm->impl;
}

/* Every MPI call goes through here: an error becomes a status with the call's name and MPI's own words. */
cvy_status cvy_mpi_check(int code, const char *call);
#define CVY_TRY_MPI(call) CVY_TRY(cvy_mpi_check((call), #call))

MPI_Datatype cvy_mpi_type(cvy_dtype dtype);

/* The parts of cvy_comm. */
extern const cvy_comm_reduce_ops cvy_mpi_reduce_ops;
extern const cvy_comm_message_ops cvy_mpi_message_ops;
extern const cvy_comm_node_ops cvy_mpi_node_ops;
extern const cvy_comm_probe_ops cvy_mpi_probe_ops;

#endif

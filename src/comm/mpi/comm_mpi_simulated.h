/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi_simulated.h: what is different if MPI is SimGrid's SMPI; see comm_mpi_simulated.c. */
#ifndef CVY_COMM_MPI_SIMULATED_H
#define CVY_COMM_MPI_SIMULATED_H

#include <mpi.h>

#include "comm/comm_allreduce.h"

struct cvy_mpi;
struct cvy_group;

typedef struct cvy_simulated {
    void *folded;         /* one buffer for all messages, whose contents do not matter; NULL: MPI is not a simulator */
    double add_s;         /* time to add a byte */
    double move_s;        /* time to read or write a byte in memory */
    int ranks;            /* of a node; this one stands for all of them */
    double share;         /* what a node has of its bandwidth if all send to other switches at once; 1: all of it */
    MPI_Request tick;     /* a message from this rank to itself */
    struct cvy_mpi *next; /* from the root on: the list of all communicators that were split from it */
    /* Of a root: the requests of all messages under way on any of these communicators, and room for those of reductions
     * in a wait. */
    MPI_Request **awaited, *waited;
    int nawaited, awaited_room, waited_room;
    int nlibrary; /* of a root: reductions of the MPI library under way, which are tested and not waited for */
} cvy_simulated;

/* If MPI is a simulator, sets simulated.folded to memory of so many bytes, and enters the communicator in the list of
 * its root. */
void cvy_simulated_begin(struct cvy_mpi *mpi, size_t bytes);
void cvy_simulated_end(struct cvy_mpi *mpi);
/* The request of a message that this rank has started: a wait of the rank completes it. */
cvy_status cvy_simulated_await(struct cvy_mpi *mpi, MPI_Request *request);
/* Forgets a request whose memory is going to be freed. */
void cvy_simulated_forget(struct cvy_mpi *mpi, const MPI_Request *request);
/* Waits until any message or transfer of this rank is done, on whatever communicator. Its request becomes
 * MPI_REQUEST_NULL. */
cvy_status cvy_simulated_wait_any(struct cvy_mpi *mpi);
/* Makes the list of transfers of this rank in an all-reduce of so many elements. If a rank stands for several nodes,
 * they are those of an all-reduce over all nodes, with other ranks that are simulated in place of those that are not.
 */
cvy_status cvy_simulated_build(const struct cvy_mpi *mpi, const struct cvy_group *group, const cvy_allreduce_def *def,
                               int64_t count, cvy_transfer_list *out);
/* What a rank has of its bandwidth while all ranks run this algorithm. */
double cvy_simulated_share(const struct cvy_mpi *mpi, const cvy_allreduce_def *def);
/* Lets the time pass in which the ranks of a node add so many bytes of each of them. */
void cvy_simulated_sum_node(const struct cvy_mpi *mpi, size_t bytes);
/* Simulated nodes for which each rank stands; 0: MPI is not a simulator. */
int cvy_simulated_nodes(void);
/* Cores of a simulated node; 0: MPI is not a simulator. */
int cvy_simulated_cores(const struct cvy_mpi *mpi);
/* Sends a message from this rank to itself and stores the receive in simulated.tick. A rank that waits for this message
 * or others sees whether the others have arrived. */
cvy_status cvy_simulated_tick(struct cvy_mpi *mpi);
/* Computes the costs of the algorithms instead of measuring them. */
cvy_status cvy_simulated_measure(cvy_comm *comm, struct cvy_group *group);

#endif

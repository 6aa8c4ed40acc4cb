/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi_simulated.h: what is different if MPI is SimGrid's SMPI; see comm_mpi_simulated.c. */
#ifndef CVY_COMM_MPI_SIMULATED_H
#define CVY_COMM_MPI_SIMULATED_H

#include <mpi.h>

#include "comm/comm.h"

struct cvy_mpi;
struct cvy_group;

typedef struct cvy_simulated {
    void *folded;     /* one buffer for all messages, whose contents do not matter; NULL: MPI is not a simulator */
    double add_s;     /* time to add a byte */
    MPI_Request tick; /* a message from this rank to itself */
} cvy_simulated;

/* If MPI is a simulator, sets simulated.folded to memory of so many bytes. */
void cvy_simulated_begin(struct cvy_mpi *mpi, size_t bytes);
void cvy_simulated_end(struct cvy_mpi *mpi);
/* Cores of a simulated node; 0: MPI is not a simulator. */
int cvy_simulated_cores(const struct cvy_mpi *mpi);
/* Sends a message from this rank to itself and stores the receive in simulated.tick. A rank that waits for this message
 * or others sees whether the others have arrived. */
cvy_status cvy_simulated_tick(struct cvy_mpi *mpi);
/* Computes the costs of the algorithms instead of measuring them. */
cvy_status cvy_simulated_measure(cvy_comm *comm, struct cvy_group *group);

#endif

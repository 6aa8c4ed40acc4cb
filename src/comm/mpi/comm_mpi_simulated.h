/* comm_mpi_simulated.h: what is different if MPI is SimGrid's SMPI: comm_mpi_simulated.c. */
#ifndef CVY_COMM_MPI_SIMULATED_H
#define CVY_COMM_MPI_SIMULATED_H

#include <mpi.h>

#include "comm/comm.h"

struct cvy_mpi;
struct cvy_group;

typedef struct cvy_simulated {
    void *folded;     /* memory without content for all messages; NULL: MPI is no simulator */
    double add_s;     /* what adding a byte takes */
    MPI_Request tick; /* a message to oneself */
} cvy_simulated;

/* Sets simulated.folded, memory of so many bytes, if MPI is a simulator. */
void cvy_simulated_begin(struct cvy_mpi *mpi, size_t bytes);
void cvy_simulated_end(struct cvy_mpi *mpi);
/* Of a simulated node; 0: MPI is no simulator. */
int cvy_simulated_cores(const struct cvy_mpi *mpi);
/* Sets simulated.tick to a message to oneself: a rank that waits for it or for other messages sees whether the others
 * are there. */
cvy_status cvy_simulated_tick(struct cvy_mpi *mpi);
/* Takes the place of measurements. */
cvy_status cvy_simulated_measure(cvy_comm *comm, struct cvy_group *group);

#endif

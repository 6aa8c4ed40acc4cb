/* comm_mpi.h: the MPI communicator. The only place below the command that includes mpi.h besides convoy/mpi.h. */
#ifndef CVY_COMM_MPI_H
#define CVY_COMM_MPI_H

#include <mpi.h>

#include "comm/comm.h"

/* Before MPI_Init: cvy_mpi_prepare(). */
void cvy_comm_prepare_mpi(void);
/* Duplicates user; destroys with the comm. Collective. */
cvy_status cvy_comm_create_mpi(MPI_Comm user, cvy_comm **out);

#endif

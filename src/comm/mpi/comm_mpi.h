/* comm_mpi.h: the MPI communicator. Besides convoy/mpi.h it is the only header below the command that includes mpi.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_MPI_H
#define CVY_COMM_MPI_H

#include <mpi.h>

#include "comm/comm.h"

/* Does the work of cvy_mpi_prepare(); call it before MPI_Init. */
void cvy_comm_prepare_mpi(void);
/* CVY_E_COMM, unless MPI is initialised and not yet finalised. */
cvy_status cvy_comm_check_mpi(void);
/* Duplicates user; the duplicate is freed with the communicator. Collective. */
cvy_status cvy_comm_create_mpi(MPI_Comm user, cvy_comm **out);

#endif

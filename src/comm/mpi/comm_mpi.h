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

/* Called with a text if a rank waits longer than a limit. */
typedef void cvy_comm_stalled_fn(void *user, const char *text);
typedef struct cvy_comm_watch_opts {
    double limit_s; /* 0: no limit */
    cvy_comm_stalled_fn *stalled;
    void *user;
} cvy_comm_watch_opts;
/* From now on a rank that waits longer than the limit, in this communicator or one that is split from it, finds out
 * which ranks do not come and calls stalled(). CVY_E_DISAGREE if the limits differ. Collective. */
cvy_status cvy_comm_watch(cvy_comm *comm, const cvy_comm_watch_opts *opts);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi_about.h: two functions of cvy_comm_probe_ops; the table itself is in comm_mpi_trials.c. */
#ifndef CVY_COMM_MPI_ABOUT_H
#define CVY_COMM_MPI_ABOUT_H

#include "comm/comm.h"

void cvy_mpi_about(const cvy_comm *comm, cvy_comm_about *out);
cvy_status cvy_mpi_ping(cvy_comm *comm, int other, void *data, size_t bytes, double *seconds_out);

#endif

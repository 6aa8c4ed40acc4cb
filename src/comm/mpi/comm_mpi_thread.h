/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi_thread.h: the progress thread, and the lock by which only one thread at a time calls MPI; see
 * comm_mpi_thread.c. */
#ifndef CVY_COMM_MPI_THREAD_H
#define CVY_COMM_MPI_THREAD_H

#include "comm/comm.h"

struct cvy_mpi;
struct cvy_progress_thread;

/* Any thread except the progress thread holds this lock around its MPI calls. Without a progress thread both do
 * nothing. */
void cvy_mpi_lock(const struct cvy_mpi *mpi);
void cvy_mpi_unlock(const struct cvy_mpi *mpi);

/* Returns the progress thread of a communicator and of all that are split from it. The first request that needs the
 * thread creates it. */
cvy_status cvy_progress_thread_need(struct cvy_mpi *mpi, struct cvy_progress_thread **out);
void cvy_progress_thread_free(struct cvy_mpi *mpi);
void cvy_progress_thread_start(struct cvy_progress_thread *p, cvy_request *r);
cvy_status cvy_progress_thread_test(struct cvy_progress_thread *p, const cvy_request *r, int *done_out);

#endif

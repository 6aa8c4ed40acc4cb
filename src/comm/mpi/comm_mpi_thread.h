/* comm_mpi_thread.h: the progress thread, and the lock by which one thread at a time calls MPI: comm_mpi_thread.c. */
#ifndef CVY_COMM_MPI_THREAD_H
#define CVY_COMM_MPI_THREAD_H

#include "comm/comm.h"

struct cvy_mpi;
struct cvy_progress_thread;

/* Around calls of MPI by any other thread than the progress thread. They do nothing without one. */
void cvy_mpi_lock(const struct cvy_mpi *mpi);
void cvy_mpi_unlock(const struct cvy_mpi *mpi);

/* The thread of a communicator and of all that are split from it; made with the first request that needs it. */
cvy_status cvy_progress_thread_need(struct cvy_mpi *mpi, struct cvy_progress_thread **out);
void cvy_progress_thread_free(struct cvy_mpi *mpi);
void cvy_progress_thread_start(struct cvy_progress_thread *p, cvy_request *r);
cvy_status cvy_progress_thread_test(struct cvy_progress_thread *p, const cvy_request *r, int *done_out);

#endif

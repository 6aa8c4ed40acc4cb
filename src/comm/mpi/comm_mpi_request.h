/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi_request.h: a request as the caller and the progress thread see it; see comm_mpi_request.c. */
#ifndef CVY_COMM_MPI_REQUEST_H
#define CVY_COMM_MPI_REQUEST_H

#include <stdatomic.h>

#include "comm/mpi/comm_mpi_node.h"

enum { CVY_REQUEST_DONE, CVY_REQUEST_HANDED, CVY_REQUEST_UNDER_WAY };
struct cvy_request {
    cvy_node_reduction *node; /* one of these two; the other is NULL */
    cvy_group_reduction *group;
    struct cvy_progress_thread *thread; /* the thread that makes progress on it; NULL: the caller does */
    cvy_request *next;                  /* the next request that was handed to the thread */
    atomic_int state;
    cvy_comm *comm;
    int64_t sent_bytes; /* each time it runs */
    size_t bytes;       /* of the range that is added */
};
/* Called by the thread that may call MPI now (comm_mpi_thread.h). */
cvy_status cvy_mpi_request_start_now(cvy_request *r);
cvy_status cvy_mpi_request_test_now(cvy_request *r, int *done_out);

#endif

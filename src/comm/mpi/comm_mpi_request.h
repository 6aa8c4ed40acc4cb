/* comm_mpi_request.h: a request, as the caller and the progress thread see it: comm_mpi_request.c. */
#ifndef CVY_COMM_MPI_REQUEST_H
#define CVY_COMM_MPI_REQUEST_H

#include <stdatomic.h>

#include "comm/mpi/comm_mpi_node.h"

enum { CVY_REQUEST_DONE, CVY_REQUEST_HANDED, CVY_REQUEST_UNDER_WAY };
struct cvy_request {
    cvy_node_reduction *node; /* one of these two */
    cvy_group_reduction *group;
    struct cvy_progress_thread *thread; /* that makes progress on it, NULL: the caller */
    cvy_request *next;                  /* of those handed over */
    atomic_int state;
    cvy_comm *comm;
    int64_t sent_bytes; /* each time */
};
/* By the thread that holds the lock of MPI. */
cvy_status cvy_mpi_request_start_now(cvy_request *r);
cvy_status cvy_mpi_request_test_now(cvy_request *r, int *done_out);

#endif

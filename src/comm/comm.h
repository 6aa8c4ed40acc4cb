/*
 * comm.h: the ranks of a context and what they say to each other, behind one table of functions.
 *
 * self/ is one rank; mpi/ is the engine; later nccl/. Every call is made by the thread that called the library. Collectives are called in
 * the same order on all ranks by construction.
 */
#ifndef CVY_COMM_H
#define CVY_COMM_H

#include "base/base_status.h"

typedef struct cvy_comm cvy_comm;
typedef struct cvy_request cvy_request;        /* of a collective under way; made at planning time, used again every step */

typedef enum { CVY_REDUCE_SUM, CVY_REDUCE_MAX, CVY_REDUCE_MIN } cvy_reduce;

typedef struct cvy_comm_ops {
    const char *name;
    void (*destroy)(cvy_comm *comm);
    cvy_status (*barrier)(cvy_comm *comm);
    cvy_status (*broadcast)(cvy_comm *comm, void *data, size_t bytes, int root);
    cvy_status (*allreduce)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op);        /* in place, blocking */
    cvy_status (*allgather)(cvy_comm *comm, const void *mine, size_t bytes, void *all_out);                    /* bytes from each, by rank */
    cvy_status (*gatherv)(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of, int root);
    /* Non-blocking sum, in place: start, then progress now and then, then wait. One request serves one buffer range for the life of a plan. */
    cvy_status (*request_create)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out);
    cvy_status (*request_start)(cvy_request *r);
    cvy_status (*request_test)(cvy_request *r, int *done_out);                                                  /* also makes progress */
    cvy_status (*request_wait)(cvy_request *r);
    void (*request_destroy)(cvy_request **r);
} cvy_comm_ops;

struct cvy_comm {
    const cvy_comm_ops *ops;
    int rank, nranks;
    int node_rank, node_nranks;        /* among the ranks of this node */
    void *impl;
};

cvy_status cvy_comm_create_self(cvy_comm **out);
/* Agreement on a setup fault: the worst status of all ranks; where another rank failed, its message becomes this rank's, prefixed by "rank r". */
cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine);

#endif

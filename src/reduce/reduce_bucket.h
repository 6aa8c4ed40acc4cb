/*
 * reduce_bucket.h: a set of buckets under reduction. A bucket is a range of memory that is exchanged over ranks as a
 * whole: all-reduced, reduced to parts, gathered from parts, or handed to another exchange (a parameter server).
 *
 * A plan's gradients, the public reducer, the averages of local SGD and the weights of ZeRO-1 are such sets. Use:
 *
 *     cvy_bucket_set_create(n, &set);                     then fill set->bucket[i].{offset, bytes, dtype, kind}
 *     cvy_bucket_set_connect(set, comm, &opts, memory);   sets memory and makes requests; then in each step:
 *     cvy_bucket_set_start(set, i);                       its memory belongs to the set until the wait returns
 *     cvy_bucket_set_progress(set);                       from time to time
 *     cvy_bucket_set_wait(set, i);
 *
 * All ranks connect and start the buckets in the same order.
 *
 * If the host cannot read the memory, NCCL exchanges it where it can (comm_nccl.h). cvy_bucket_set_wait() then returns
 * when computation on the device waits for it. Otherwise the host exchanges page-locked copies (backend_stage.h). A
 * bucket is copied out when it is started, its exchange begins when the copy is there, and it is copied back when the
 * exchange has ended. The host waits for none of the copies. cvy_bucket_set_wait() returns when the copy back is on its
 * way, and computation on the device waits for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REDUCE_BUCKET_H
#define CVY_REDUCE_BUCKET_H

#include <stdatomic.h>

#include "backend/backend_stage.h"
#include "comm/comm_grid.h"
#include "comm/nccl/comm_nccl.h"

typedef enum {
    CVY_BUCKET_ALLREDUCE, /* all ranks get all sums */
    CVY_BUCKET_PART,      /* each rank gets the sums of a part: one of all ranks with opts.halves, else of the node */
    CVY_BUCKET_GATHER,    /* all ranks get the parts of all ranks */
    CVY_BUCKET_LOCAL,     /* nothing is exchanged */
} cvy_bucket_kind;

typedef struct cvy_bucket {
    size_t offset, bytes; /* in the memory of the set */
    cvy_dtype dtype;
    cvy_bucket_kind kind;
    int has_gradients; /* it has gradients of variables, not only losses and statistics */
    unsigned over;     /* the axes of the grid over which it is exchanged besides the data axis; 0: by the set's comm */
    void *data;        /* valid after connect, like all fields below */
    void *host;        /* the memory that is exchanged: data, or a copy if the host cannot read data */
    cvy_stage stage;   /* of that copy */
    cvy_part part;     /* for PART: elements whose sums this rank gets. For GATHER: those that it has, if it was set
                          before connect; else all */
    cvy_comm *comm;    /* over which it is exchanged */
    cvy_request *request;
    cvy_nccl *nccl;         /* of comm, if it was asked */
    cvy_nccl_exchange *sum; /* by which it is exchanged in place of the request; NULL: it is not */
    cvy_comm *then_over;    /* with axes_in_turn: over which it is exchanged after that */
    cvy_request *then;      /* NULL: it is not */
    int in_second;          /* `then` is under way */
    int active;             /* started, and not known to be done */
    int is_out;             /* its exchange has begun; before that its copy may be on its way to the host */
    int is_returning;       /* its copy is on its way back, and the device does not wait for it yet */
    double start_s, end_s;  /* of the latest exchange: when it started, and when it was first known to be done */
} cvy_bucket;

/* Replaces the requests of a set. */
typedef struct cvy_exchange {
    cvy_status (*start)(void *user, int bucket);
    cvy_status (*test)(void *user, int bucket, int *done_out);
    void *user;
} cvy_exchange;

typedef struct cvy_bucket_set {
    cvy_comm *comm;
    cvy_comm *const *over;  /* cvy_grid.over, set before connect if a bucket needs it; else NULL */
    int axes_in_turn;       /* set before connect: buckets with other axes are reduced along the data axis first, and
                               then along these. So the order of additions is that of the data axis in both */
    const cvy_space *space; /* where the memory is, set before connect; NULL: the host's memory */
    void *memory;           /* set by connect */
    char *copies;           /* page-locked copies of the buckets; NULL: none are needed */
    size_t copies_bytes;
    int *leaving; /* with copies: buckets whose exchange has not begun, in the order in which they were started */
    int nleaving;
    cvy_bucket *bucket;
    int n, nactive;
    const cvy_exchange *exchange; /* set before connect; NULL: requests are used */
    atomic_int waits; /* number of the bucket that the rank waits for, plus 1; 0: none. The watchdog reads it */
    struct cvy_bucket_set *concurrent; /* a set whose exchanges began earlier and may still be under way; NULL: none */
} cvy_bucket_set;

cvy_status cvy_bucket_set_create(int n, cvy_bucket_set **out);
/* Places the buckets in memory and makes their requests. Memory that is to be shared (cvy_comm_node_ops) must be shared
 * before. A communicator of one rank needs no requests: its buckets are done when they are started. */
cvy_status cvy_bucket_set_connect(cvy_bucket_set *set, cvy_comm *comm, const cvy_allreduce_opts *opts, void *memory);
cvy_status cvy_bucket_set_start(cvy_bucket_set *set, int bucket);
/* Makes progress on all exchanges that have been started, also on those of the set `concurrent`. MPI libraries without
 * a progress thread need such calls, and so do our own reductions. */
cvy_status cvy_bucket_set_progress(cvy_bucket_set *set);
/* Begins the exchanges of all buckets that were started: it waits until their copies are in the host's memory. Other
 * collectives over the same ranks come after it, because the order of exchanges must be the same on all ranks. What was
 * copied back is there for all that is computed from now on. Without copies it does nothing. */
cvy_status cvy_bucket_set_settle(cvy_bucket_set *set);
/* Wait until one bucket is done, or all are. Meanwhile they make progress on all exchanges, because another rank may
 * need this rank's part. */
cvy_status cvy_bucket_set_wait(cvy_bucket_set *set, int bucket);
cvy_status cvy_bucket_set_wait_all(cvy_bucket_set *set);
/* Whether an exchange is under way, in this set or in the set `concurrent`. */
static inline int cvy_bucket_set_is_active(const cvy_bucket_set *set)
{
    return set->nactive > 0 || (set->concurrent && set->concurrent->nactive > 0);
}
static inline int64_t cvy_bucket_elems(const cvy_bucket *bucket)
{
    return (int64_t)(bucket->bytes / cvy_dtype_bytes(bucket->dtype));
}
/* Accepts NULL. No exchange may be under way. */
void cvy_bucket_set_destroy(cvy_bucket_set **set);

#endif

/*
 * reduce_bucket.h: a set of buckets under reduction. A bucket is a range of memory that is exchanged over ranks as one:
 * all-reduced, reduced to parts, gathered from parts, or handed to something else (a parameter server).
 *
 * A plan's gradients, the public reducer, averages of local SGD and the weights of ZeRO-1 are such sets. Use it so:
 *
 *     cvy_bucket_set_create(n, &set);                     set->bucket[i].{offset, bytes, dtype, kind} are filled
 *     cvy_bucket_set_connect(set, comm, &opts, memory);   memory and requests; now in each step:
 *     cvy_bucket_set_start(set, i);                       its memory belongs to the set until it is waited for
 *     cvy_bucket_set_progress(set);                       now and then
 *     cvy_bucket_set_wait(set, i);
 *
 * All ranks connect and start the buckets in the same order.
 */
#ifndef CVY_REDUCE_BUCKET_H
#define CVY_REDUCE_BUCKET_H

#include "backend/backend.h"
#include "comm/comm.h"

typedef enum {
    CVY_BUCKET_ALLREDUCE, /* all ranks get all sums */
    CVY_BUCKET_PART,      /* each rank gets the sums of a part; with opts.halves one of all ranks, else of the node */
    CVY_BUCKET_GATHER,    /* all ranks get the parts of all ranks */
    CVY_BUCKET_LOCAL,     /* nothing is exchanged */
} cvy_bucket_kind;

typedef struct cvy_bucket {
    size_t offset, bytes; /* in the memory of the set */
    cvy_dtype dtype;
    cvy_bucket_kind kind;
    int has_gradients; /* of variables; not only losses and statistics */
    void *data;        /* from here on after connect */
    void *host;        /* what is exchanged: data, or a copy if the host cannot read that */
    cvy_part part;     /* of PART: elements whose sums this rank gets */
    cvy_request *request;
    int active;            /* started, and not known to be done */
    double start_s, end_s; /* of the latest exchange: when it was started, and first known to be done */
} cvy_bucket;

/* Takes the place of the requests of a set. */
typedef struct cvy_exchange {
    cvy_status (*start)(void *user, int bucket);
    cvy_status (*test)(void *user, int bucket, int *done_out);
    void *user;
} cvy_exchange;

typedef struct cvy_bucket_set {
    cvy_comm *comm;
    const cvy_space *space; /* of the memory, set before connect; NULL: the host's */
    void *memory;           /* after connect */
    char *copies;           /* of the buckets, in the host's memory; NULL: none are needed */
    size_t copies_bytes;
    cvy_bucket *bucket;
    int n, nactive;
    const cvy_exchange *exchange;  /* set before connect; NULL: requests */
    struct cvy_bucket_set *beside; /* whose exchanges are under way too, and began earlier; NULL: none */
} cvy_bucket_set;

cvy_status cvy_bucket_set_create(int n, cvy_bucket_set **out);
/* Places the buckets in memory, which must be shared already if it is to be (cvy_comm_node_ops), and makes their
 * requests. A communicator of one rank needs none: its buckets are done when they are started. */
cvy_status cvy_bucket_set_connect(cvy_bucket_set *set, cvy_comm *comm, const cvy_allreduce_opts *opts, void *memory);
cvy_status cvy_bucket_set_start(cvy_bucket_set *set, int bucket);
/* Makes progress on all exchanges that have been started, those of the set beside it too: MPI libraries without a
 * progress thread, and our own reductions, need calls for it. */
cvy_status cvy_bucket_set_progress(cvy_bucket_set *set);
/* Until one bucket is done, or all are. Progress is made on all meanwhile: another rank may need this one's part. */
cvy_status cvy_bucket_set_wait(cvy_bucket_set *set, int bucket);
cvy_status cvy_bucket_set_wait_all(cvy_bucket_set *set);
/* Whether something is under way, here or in the set beside it. */
static inline int cvy_bucket_set_is_active(const cvy_bucket_set *set)
{
    return set->nactive > 0 || (set->beside && set->beside->nactive > 0);
}
static inline int64_t cvy_bucket_elems(const cvy_bucket *bucket)
{
    return (int64_t)(bucket->bytes / cvy_dtype_bytes(bucket->dtype));
}
/* Accepts NULL. Nothing may be under way. */
void cvy_bucket_set_destroy(cvy_bucket_set **set);

#endif

/*
 * comm.h: a communicator: the ranks of a context, or a subset of them, and the operations by which they exchange data.
 *
 * A communicator has several tables of functions. `ops` holds what every back end has: topology, small blocking
 * collectives and split. The other tables are optional; the pointer is NULL if a back end has no such functions:
 * non-blocking reductions (reduce), messages between two ranks (message), memory that the ranks of a node share
 * (node_memory), and questions about the network (probe). self/ is the communicator of one rank and has no optional
 * table; mpi/ has all of them.
 *
 * Every call is made by the thread that called the library. All ranks call collectives in the same order; the library
 * is built so that this holds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_H
#define CVY_COMM_H

#include "base/base_status.h"
#include "base/text/base_text.h"

typedef struct cvy_comm cvy_comm;
typedef struct cvy_request cvy_request; /* a reduction; created at planning time and used again in every step */
typedef struct cvy_message cvy_message; /* a message; created at planning time and used again in every step */

typedef struct cvy_part { /* the elements first to end - 1 of a range */
    int64_t first, end;
} cvy_part;

typedef struct cvy_range {
    void *data;
    size_t bytes;
} cvy_range;
enum { CVY_ANY_RANK = -1, CVY_TAGS = 16000 };

typedef enum { CVY_REDUCE_SUM, CVY_REDUCE_MAX, CVY_REDUCE_MIN } cvy_reduce;

/* Who makes progress on reductions while the caller computes. */
typedef enum {
    CVY_PROGRESS_POLL,   /* the caller, which tests the reductions between kernels */
    CVY_PROGRESS_THREAD, /* a progress thread: it needs MPI_THREAD_SERIALIZED, and it helps most if it has a core of its
                            own */
} cvy_progress_by;

/* Parses the name; NULL means poll. */
cvy_status cvy_progress_parse(const char *name, cvy_progress_by *out);

/* How a range is reduced. The options must be the same on all ranks. Zeros are the defaults. */
typedef struct cvy_allreduce_opts {
    const char *algorithm; /* "library" or the name of an algorithm (comm_allreduce.h); NULL: chosen by size */
    int no_node;           /* 1: the shared memory of the node is not used */
    int halves;     /* with no_node: if the caller asks for a part, the reduction is a reduce-scatter over all ranks */
    cvy_dtype wire; /* dtype of f32 values in messages between nodes: BF16 rounds them; any other value sends them as
                       they are */
    int threads;    /* number of threads that add; 0: one */
    cvy_progress_by progress;
    int staged;       /* 1: the host exchanges copies of a device's tensors, even if NCCL could exchange the tensors */
    int newest_first; /* 1: the reduction that was started last goes before all others but the oldest: the next forward
                         pass first needs what the backward pass computes last */
} cvy_allreduce_opts;

/* The functions that every back end has. */
typedef struct cvy_comm_ops {
    const char *name;
    void (*destroy)(cvy_comm *comm);
    /* Creates a communicator of the ranks that give the same color, in the order of key, then of rank. A rank with the
     * color CVY_NO_COLOR is in no new communicator, and its *out is NULL. Collective. The parent must outlive the new
     * communicator. Call it through cvy_comm_split. */
    cvy_status (*split)(cvy_comm *comm, int color, int key, cvy_comm **out);
    cvy_status (*barrier)(cvy_comm *comm);
    cvy_status (*broadcast)(cvy_comm *comm, void *data, size_t bytes, int root);
    cvy_status (*allreduce)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype,
                            cvy_reduce op); /* in place, blocking */
    /* The same, but it calls progress(user) repeatedly while it waits. A rank that has reductions under way needs this:
     * another rank may wait for its part in them before it enters the all-reduce. All ranks must call the same one of
     * the two functions. */
    cvy_status (*allreduce_progressing)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op,
                                        cvy_status (*progress)(void *user), void *user);
    cvy_status (*allgather)(cvy_comm *comm, const void *mine, size_t bytes,
                            void *all_out); /* `bytes` bytes from each rank, in the order of ranks */
    cvy_status (*gatherv)(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of,
                          int root);
    /* A rank that waits calls this between two rounds of tests; `round` counts the rounds. */
    cvy_status (*rest)(cvy_comm *comm, int round);
} cvy_comm_ops;

/* Non-blocking reductions. One request serves one range for the lifetime of a plan. All ranks create their requests in
 * the same order and start them in the same order; they may test any of them at any time. A rank that waits for one
 * request must test all that it has started, because another rank may need its part in them. */
typedef struct cvy_comm_reduce_ops {
    /* A sum over all ranks, in place. If part_out is not NULL, this rank needs only the elements of *part_out, and
     * other ranks need the rest: the ranks of the node (in shared memory, which may be written again only after a
     * barrier of the node), or all ranks with opts->halves. If part_out is NULL, this rank needs all elements. */
    cvy_status (*create)(cvy_comm *comm, const cvy_allreduce_opts *opts, void *data, int64_t count, cvy_dtype dtype,
                         cvy_part *part_out, cvy_request **out);
    /* The second half of a reduction that opts->halves has split: an all-gather. It sends each rank's part (the part
     * that `create` gave for the same number of elements) to all ranks, never in bf16. It is started, tested and
     * destroyed like a reduction. */
    cvy_status (*create_gather)(cvy_comm *comm, const cvy_allreduce_opts *opts, void *data, int64_t count,
                                cvy_dtype dtype, cvy_request **out);
    cvy_status (*start)(cvy_request *r);
    cvy_status (*test)(cvy_request *r, int *done_out); /* also makes progress */
    void (*destroy)(cvy_request **r);
} cvy_comm_reduce_ops;

/* Non-blocking messages. A message consists of some ranges of memory, sent in this order as one message. The receiver
 * may use other ranges of the same total size, or larger ones. A message is used in one direction at a time: send or
 * receive, then test until it is done; then it may be used again. tag: 0 .. CVY_TAGS - 1. Messages between the same two
 * ranks with the same tag arrive in the order in which they were sent. */
typedef struct cvy_comm_message_ops {
    cvy_status (*create)(cvy_comm *comm, const cvy_range *range, int nrange, cvy_message **out);
    cvy_status (*send)(cvy_message *m, int to, int tag);
    cvy_status (*receive)(cvy_message *m, int from, int tag); /* from may be CVY_ANY_RANK: then test tells the sender */
    cvy_status (*test)(cvy_message *m, int *done_out,
                       int *from_out);    /* sets *done_out to 1 also if nothing is under way; from_out may be NULL */
    cvy_status (*cancel)(cvy_message *m); /* cancels a receive for which no message will come */
    void (*destroy)(cvy_message **m);
} cvy_comm_message_ops;

/* Memory that the ranks of a node share. */
typedef struct cvy_comm_node_ops {
    /* Turns the first `bytes` bytes of memory from cvy_mem_alloc_pages into memory that the ranks of the node share, if
     * the system allows it (*shared_out, the same on all ranks). The contents are lost. Reductions of ranges in this
     * memory then need no messages inside the node. The call also measures which algorithm is fast on this network for
     * reductions with these options. Call it before requests are created. If the system does not allow it,
     * comm->unshared says why. Collective; all ranks return the same status.
     */
    cvy_status (*share)(cvy_comm *comm, const cvy_allreduce_opts *opts, void *memory, size_t bytes, int *shared_out);
    void (*unshare)(cvy_comm *comm, const void *memory); /* call it before the memory is freed */
    /* Zeroed memory that exists once on the node; each rank maps it at its own address. If this is not possible, all
     * ranks get NULL. Collective. Each rank releases it with free. */
    cvy_status (*alloc)(cvy_comm *comm, size_t bytes, void **memory_out);
    void (*free)(cvy_comm *comm, void **memory, size_t bytes);
    /* A non-blocking barrier of the ranks of the node, by flags in shared memory: call barrier_enter, then call
     * barrier_test until it returns 1. */
    void (*barrier_enter)(cvy_comm *comm, const void *memory);
    int (*barrier_test)(cvy_comm *comm, const void *memory);
} cvy_comm_node_ops;

typedef struct cvy_comm_about {
    char library[192];   /* first line of the version text of the MPI library; "" without MPI */
    const char *threads; /* its thread level: "single", "funneled", "serialized" or "multiple"; "" without MPI */
} cvy_comm_about;

/* Cost of a reduction on the slowest rank, in seconds: alpha_s for a reduction of 0 bytes, and beta_s for each byte
 * more. */
typedef struct cvy_comm_cost {
    double alpha_s, beta_s;
} cvy_comm_cost;

enum { CVY_COMM_ALGORITHMS_TEXT = 256 };

/* Questions about the MPI library and the network. */
typedef struct cvy_comm_probe_ops {
    void (*about)(const cvy_comm *comm, cvy_comm_about *out);
    /* Half of the round-trip time between this rank and another, in seconds. Both ranks call it. The value of the lower
     * rank is the one to use. */
    cvy_status (*ping)(cvy_comm *comm, int other, void *data, size_t bytes, double *seconds_out);
    /* The algorithm that a reduction of so many bytes uses if opts->algorithm is not set. across 0: a reduction by
     * messages among all ranks; across 1: the part between the nodes of a reduction through shared memory. The first
     * such question starts the measurement. Collective. */
    cvy_status (*choice)(cvy_comm *comm, const cvy_allreduce_opts *opts, int across, int64_t bytes,
                         const char **name_out);
    /* The cost of reductions with these options, for choosing the size of buckets. The first such question starts the
     * measurement. Collective. */
    cvy_status (*cost)(cvy_comm *comm, const cvy_allreduce_opts *opts, cvy_comm_cost *out);
    /* algorithms_text writes the algorithm that the measurements have found for each size (CVY_COMM_ALGORITHMS_TEXT
     * bytes; "" without measurements). set_algorithms takes such a text in place of measurements, so that later
     * reductions add in the same order. It ignores a text that was made for another number of ranks. Call
     * set_algorithms on all ranks. */
    void (*algorithms_text)(const cvy_comm *comm, const cvy_allreduce_opts *opts, char *text);
    void (*set_algorithms)(cvy_comm *comm, const char *text);
} cvy_comm_probe_ops;

struct cvy_comm {
    const cvy_comm_ops *ops;
    const cvy_comm_reduce_ops *reduce; /* this and the next three are NULL if the back end has no such functions */
    const cvy_comm_message_ops *message;
    const cvy_comm_node_ops *node_memory;
    const cvy_comm_probe_ops *probe;
    int rank, nranks;
    int whole_rank; /* this rank's number in the communicator that was split first: messages name it by that */
    int node_rank, node_nranks; /* this rank's number among the ranks of its node; their number */
    int node, nnodes;           /* number of this node; number of nodes */
    int shares_nodes;           /* 1: at least one node has several ranks */
    char unshared[224];         /* after share() or alloc() has failed: the reason, the same on all ranks */
    int simulated_cores;        /* cores of a simulated node; 0: the node is real */
    int simulated_ranks;        /* ranks of a simulated node, for all of which this one stands; else 0 */
    int simulated_nodes;        /* in reductions over these ranks: simulated nodes for which each stands; else 0 */
    int pretended;              /* 1: the other ranks do not exist: pretend/comm_pretend.h */
    double simulated_copy_s;    /* of a simulated node: time to copy a byte */
    double simulated_move_s;    /* time to read or write a byte in memory, with all its cores */
    _Atomic int64_t
        ncollectives; /* reductions and other collectives that this rank has entered; the watchdog reads it */
    _Atomic(const char *) collective; /* the collective in which this rank waits; NULL: none */
    int64_t step;                     /* the step that this rank is in or has done last, from 1; 0: none */
    const char *met_call; /* the public function in which all ranks have met last, and the step; NULL: none yet */
    int64_t met_step;
    int64_t sent_bytes; /* bytes that this rank has sent, in reductions and in messages */
    void *impl;
};

enum { CVY_NO_COLOR = -1 };

/* Whether gradients are summed over ranks, be they of one simulated node. */
static inline int cvy_comm_sums(const cvy_comm *comm)
{
    return comm->nranks > 1 || comm->simulated_ranks > 1;
}

/* Whether this rank decides where rank 0 decides for all ranks. */
static inline int cvy_comm_decides(const cvy_comm *comm)
{
    return comm->rank == 0 || comm->pretended;
}

/* A communicator of one rank, without the optional tables. */
cvy_status cvy_comm_create_self(cvy_comm **out);
/* Creates a communicator of the ranks that give the same color (0 or more), ordered by key and then by rank. A rank
 * with CVY_NO_COLOR is in none of them, and its *out is NULL. The new communicator counts its own collectives and
 * bytes. The parent must outlive it. If one rank fails, all ranks fail. Collective. */
cvy_status cvy_comm_split(cvy_comm *comm, int color, int key, cvy_comm **out);
/* Makes all ranks agree on an error during setup: all return the worst status of all ranks. If another rank failed, its
 * message becomes this rank's message, prefixed by "rank r". Collective. */
cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine);
/* Notes that all ranks have met: each has done its part of a collective that needs all. */
void cvy_comm_met(cvy_comm *comm);
/* Starts a request and waits until it is done. Collective. */
cvy_status cvy_comm_finish(cvy_comm *comm, cvy_request *request);
/* Rank 0 does the work while the other ranks sleep: ranks that poll would use the cores and the memory that it needs or
 * measures. Returns the status of the work on rank 0. Collective; needs reductions if there are several ranks. */
cvy_status cvy_comm_while_others_sleep(cvy_comm *comm, cvy_status (*work)(void *user), void *user);
/* Returns 0 if the node is real. On a simulated node, where tensors are never touched, it lets the time pass that a
 * copy or an addition of so many bytes takes, and returns 1. */
int cvy_comm_simulates_copy(const cvy_comm *comm, size_t bytes);
/* Allocates zeroed memory on every rank or on none: *out is NULL if one rank has too little memory. out is the address
 * of any object pointer. Collective. */
cvy_status cvy_comm_alloc(cvy_comm *comm, size_t bytes, void *out);
struct cvy_text;
/* Called if a line of this rank's text differs from the same line on rank 0. It sets an error message and returns its
 * status. here or there is NULL if that text has no such line. */
typedef cvy_status cvy_comm_differ_fn(int line, const char *here, const char *there);
/* Compares the texts of all ranks with the text of rank 0. First the ranks compare hashes; only if these differ do they
 * compare line by line. mine->status may be an error. Collective. */
cvy_status cvy_comm_compare(cvy_comm *comm, const struct cvy_text *mine, cvy_comm_differ_fn *differ);

#endif

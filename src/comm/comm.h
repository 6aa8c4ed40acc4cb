/*
 * comm.h: a communicator: the ranks of a context, or a subset of them, and what they exchange.
 *
 * A communicator is cut into parts. `ops` holds what every back end has: topology, small blocking collectives, split.
 * The other parts are optional, and their pointer is NULL if a back end has none: reductions under way (reduce),
 * messages between two ranks (message), memory that the ranks of a node share (node), and questions about the network
 * (probe). self/ is one rank and has no optional part; mpi/ has all of them.
 *
 * Every call is made by the thread that called the library. Collectives are called in the same order on all ranks by
 * construction.
 */
#ifndef CVY_COMM_H
#define CVY_COMM_H

#include "base/base_status.h"
#include "base/base_text.h"

typedef struct cvy_comm cvy_comm;
typedef struct cvy_request cvy_request; /* a reduction; made at planning time, used again in every step */
typedef struct cvy_message cvy_message; /* between two ranks; made at planning time, used again in every step */

typedef struct cvy_part { /* elements first to end - 1 of a range */
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
    CVY_PROGRESS_POLL,   /* the caller, by tests between kernels */
    CVY_PROGRESS_THREAD, /* a progress thread: MPI_THREAD_SERIALIZED is needed, and a core of its own pays */
    CVY_PROGRESS_MPI,    /* the MPI library: the caller tests only when it waits */
} cvy_progress_by;

/* By its name; NULL: poll. */
cvy_status cvy_progress_parse(const char *name, cvy_progress_by *out);

/* How a range is reduced. The same on all ranks. Zeros are the defaults. */
typedef struct cvy_allreduce_opts {
    const char *algorithm; /* "library", a name of comm_allreduce.h, or NULL: chosen by size */
    int no_node;           /* the node's shared memory is not used */
    int halves;     /* with no_node: a reduction of which a part is asked for is a reduce-scatter over all ranks */
    cvy_dtype wire; /* of f32 between nodes: BF16 rounds it; any other value sends it as it is */
    int threads;    /* that add, 0: one */
    cvy_progress_by progress;
    int newest_first; /* the reduction that was started last goes before all but the oldest: what the backward pass
                         makes last, the next forward pass needs first */
} cvy_allreduce_opts;

/* Every back end has these. */
typedef struct cvy_comm_ops {
    const char *name;
    void (*destroy)(cvy_comm *comm);
    /* A communicator of the ranks that give the same color, in the order of key, then of rank. color CVY_NO_COLOR: this
     * rank is in none, and *out is NULL. Collective. The parent must outlive it. Call it through cvy_comm_split. */
    cvy_status (*split)(cvy_comm *comm, int color, int key, cvy_comm **out);
    cvy_status (*barrier)(cvy_comm *comm);
    cvy_status (*broadcast)(cvy_comm *comm, void *data, size_t bytes, int root);
    cvy_status (*allreduce)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype,
                            cvy_reduce op); /* in place, blocking */
    /* The same, and calls progress(user) again and again while it waits. A rank with reductions under way needs it:
     * another rank may wait for its part in them before it comes here. All ranks call the same one of the two. */
    cvy_status (*allreduce_progressing)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op,
                                        cvy_status (*progress)(void *user), void *user);
    cvy_status (*allgather)(cvy_comm *comm, const void *mine, size_t bytes,
                            void *all_out); /* bytes from each, by rank */
    cvy_status (*gatherv)(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of,
                          int root);
    /* Between two rounds of tests by a rank that waits; `round` counts them. */
    cvy_status (*rest)(cvy_comm *comm, int round);
} cvy_comm_ops;

/* Non-blocking reductions. One request serves one range for the life of a plan. All ranks create their requests in one
 * order and start them in one order; they may test any of them, at any time. A rank that waits for one tests all that
 * it has started: another rank may need its part in them. */
typedef struct cvy_comm_reduce_ops {
    /* A sum over all ranks, in place. part_out: only elements first to end are wanted here, and the rest by other
     * ranks: those of the node (in memory that they share, which may be written again after a node barrier), or with
     * opts->halves all. NULL: all elements are wanted. */
    cvy_status (*create)(cvy_comm *comm, const cvy_allreduce_opts *opts, void *data, int64_t count, cvy_dtype dtype,
                         cvy_part *part_out, cvy_request **out);
    /* The other half of a reduction that opts->halves has cut, an all-gather: each rank's part, the one that `create`
     * gave for as many elements, to all ranks; never in bf16. Started, tested and destroyed like a reduction. */
    cvy_status (*create_gather)(cvy_comm *comm, const cvy_allreduce_opts *opts, void *data, int64_t count,
                                cvy_dtype dtype, cvy_request **out);
    cvy_status (*start)(cvy_request *r);
    cvy_status (*test)(cvy_request *r, int *done_out); /* also makes progress */
    void (*destroy)(cvy_request **r);
} cvy_comm_reduce_ops;

/* Non-blocking messages of some ranges of memory, sent in this order as one; the other side may have as many bytes in
 * other ranges, or room for more. A message is used in one direction at a time: send or receive, then test until it is
 * done; then it may be used again. tag: 0 .. CVY_TAGS - 1; messages of the same two ranks and tag arrive in the order
 * in which they were sent. */
typedef struct cvy_comm_message_ops {
    cvy_status (*create)(cvy_comm *comm, const cvy_range *range, int nrange, cvy_message **out);
    cvy_status (*send)(cvy_message *m, int to, int tag);
    cvy_status (*receive)(cvy_message *m, int from, int tag); /* from CVY_ANY_RANK: test tells from whom it came */
    cvy_status (*test)(cvy_message *m, int *done_out,
                       int *from_out);    /* done if nothing is under way; from_out may be NULL */
    cvy_status (*cancel)(cvy_message *m); /* a receive for which nothing will come */
    void (*destroy)(cvy_message **m);
} cvy_comm_message_ops;

/* Memory of a node. */
typedef struct cvy_comm_node_ops {
    /* The first bytes of memory from cvy_mem_alloc_pages become memory that the ranks of the node share, if the system
     * allows it (*shared_out, the same on all ranks); what was in it is lost. Reductions of ranges in it then need no
     * messages inside the node. It also measures which algorithm is fast on this network for reductions with these
     * options. Call it before requests are created. Collective; agreed. */
    cvy_status (*share)(cvy_comm *comm, const cvy_allreduce_opts *opts, void *memory, size_t bytes, int *shared_out);
    void (*unshare)(cvy_comm *comm, const void *memory); /* before the memory is freed */
    /* Zeroed memory that exists once on the node, at an address of each rank's own; NULL if that cannot be, then on all
     * ranks. Collective. Each rank ends it with free. */
    cvy_status (*alloc)(cvy_comm *comm, size_t bytes, void **memory_out);
    void (*free)(cvy_comm *comm, void **memory, size_t bytes);
    /* A non-blocking barrier of the node's ranks by flags in shared memory: enter, then test until it is true. */
    void (*barrier_enter)(cvy_comm *comm, const void *memory);
    int (*barrier_test)(cvy_comm *comm, const void *memory);
} cvy_comm_node_ops;

typedef struct cvy_comm_about {
    char library[192];   /* the first line of what the MPI library says of itself, "" without one */
    const char *threads; /* its thread level: "single", "funneled", "serialized", "multiple"; "" */
} cvy_comm_about;

/* Seconds of a reduction of no length, and of each byte more, on the slowest rank. */
typedef struct cvy_comm_cost {
    double alpha_s, beta_s;
} cvy_comm_cost;

enum { CVY_COMM_ALGORITHMS_TEXT = 256 };

/* Questions about the network. */
typedef struct cvy_comm_probe_ops {
    void (*about)(const cvy_comm *comm, cvy_comm_about *out);
    /* Half of the time there and back between this rank and another, called by these two; the time of the lower one
     * counts. */
    cvy_status (*ping)(cvy_comm *comm, int other, void *data, size_t bytes, double *seconds_out);
    /* The algorithm of a reduction of so many bytes if opts->algorithm is not set: by messages among all ranks, or
     * (across) between the nodes for a reduction that goes through their memory. Measured with the first question.
     * Collective. */
    cvy_status (*choice)(cvy_comm *comm, const cvy_allreduce_opts *opts, int across, int64_t bytes,
                         const char **name_out);
    /* What reductions with these options cost, for sizing buckets. Measured with the first question. Collective. */
    cvy_status (*cost)(cvy_comm *comm, const cvy_allreduce_opts *opts, cvy_comm_cost *out);
    /* The algorithm for each size, as the measurements have found it (CVY_COMM_ALGORITHMS_TEXT bytes; "" without
     * measurements); and such a text taken in their place, so that later reductions add in the same order. A text of
     * another number of ranks is ignored. Call set_algorithms on all ranks. */
    void (*algorithms_text)(const cvy_comm *comm, const cvy_allreduce_opts *opts, char *text);
    void (*set_algorithms)(cvy_comm *comm, const char *text);
} cvy_comm_probe_ops;

struct cvy_comm {
    const cvy_comm_ops *ops;
    const cvy_comm_reduce_ops *reduce; /* this and the next three: NULL if the back end has no such part */
    const cvy_comm_message_ops *message;
    const cvy_comm_node_ops *node_memory;
    const cvy_comm_probe_ops *probe;
    int rank, nranks;
    int node_rank, node_nranks; /* among the ranks of this node */
    int node, nnodes;           /* which one, of how many */
    int shares_nodes;           /* some node has several ranks */
    int simulated_cores;        /* of a node that is simulated, 0: a real one */
    _Atomic int64_t
        ncollectives; /* reductions and other collectives that this rank has entered: read by the watchdog */
    _Atomic(const char *) collective; /* the one whose end it waits for; else NULL */
    int64_t sent_bytes;               /* by the reductions that this rank has started, and in messages */
    void *impl;
};

enum { CVY_NO_COLOR = -1 };

/* One rank, without optional parts. */
cvy_status cvy_comm_create_self(cvy_comm **out);
/* A communicator of the ranks that give the same color (0 or more), ordered by key and then by rank; CVY_NO_COLOR: this
 * rank is in none of them, and *out is NULL. It counts its own collectives and bytes. The parent must outlive it, and
 * all ranks fail if one does. Collective. */
cvy_status cvy_comm_split(cvy_comm *comm, int color, int key, cvy_comm **out);
/* Agreement on a setup fault: the worst status of all ranks. If another rank failed, its message becomes this rank's,
 * prefixed by "rank r". */
cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine);
/* Starts a request and waits for its end. Collective. */
cvy_status cvy_comm_finish(cvy_comm *comm, cvy_request *request);
/* Memory, zeroed, on every rank or on none: *out (address of any object pointer) is NULL if one rank has too little.
 * Collective. */
cvy_status cvy_comm_alloc(cvy_comm *comm, size_t bytes, void *out);
struct cvy_text;
/* Says what is wrong, with a status for it, if a line of this rank's text is another one on rank 0; NULL: it is not
 * there. */
typedef cvy_status cvy_comm_differ_fn(int line, const char *here, const char *there);
/* Compares texts of all ranks with rank 0's: their hashes, and line by line only if those differ. mine->status may be a
 * fault. Collective. */
cvy_status cvy_comm_compare(cvy_comm *comm, const struct cvy_text *mine, cvy_comm_differ_fn *differ);

#endif

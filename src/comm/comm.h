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

typedef struct cvy_part { int64_t first, end; } cvy_part;

typedef struct cvy_message cvy_message;        /* from one rank to another; made at planning time, used again every step */
typedef struct cvy_range { void *data; size_t bytes; } cvy_range;
enum { CVY_ANY_RANK = -1, CVY_TAGS = 16000 };

typedef enum { CVY_REDUCE_SUM, CVY_REDUCE_MAX, CVY_REDUCE_MIN } cvy_reduce;

typedef struct cvy_comm_about {
    char library[192];                 /* the first line of what the MPI library says of itself, "" without one */
    const char *threads;               /* its thread level: "single", "funneled", "serialized", "multiple"; "" */
} cvy_comm_about;

/* Seconds of a sum of no length, and of each byte more, on the slowest rank. */
typedef struct cvy_comm_cost { double alpha_s, beta_s; } cvy_comm_cost;

enum { CVY_COMM_WAYS_TEXT = 256 };

typedef struct cvy_comm_ops {
    const char *name;
    void (*destroy)(cvy_comm *comm);
    cvy_status (*barrier)(cvy_comm *comm);
    cvy_status (*broadcast)(cvy_comm *comm, void *data, size_t bytes, int root);
    cvy_status (*allreduce)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op);        /* in place, blocking */
    /* The same while push(user) is called again and again: for who has sums under way, without which another rank may never get here. All ranks
     * call the same one of the two. */
    cvy_status (*allreduce_pushing)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op, cvy_status (*push)(void *user), void *user);
    cvy_status (*allgather)(cvy_comm *comm, const void *mine, size_t bytes, void *all_out);                    /* bytes from each, by rank */
    cvy_status (*gatherv)(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of, int root);
    /* To be called before requests are created, for what comm->sums says: finds out which way to sum is fast on this network, and the first bytes of
     * memory from cvy_mem_alloc_pages become memory that the ranks of the node share, where the system allows it (*shared_out, the
     * same on all ranks); what was in it is lost. Sums of ranges in it then need no messages inside the node. Collective; agreed. unshare: before the memory is
     * freed. */
    cvy_status (*share)(cvy_comm *comm, void *memory, size_t bytes, int *shared_out);
    void (*unshare)(cvy_comm *comm, const void *memory);
    /* Zeroed memory that exists once on the node, at an address of each rank's own; NULL where that cannot be, then on all ranks. Collective. Ends with
     * common_free on each rank. */
    cvy_status (*common)(cvy_comm *comm, size_t bytes, void **memory_out);
    void (*common_free)(cvy_comm *comm, void **memory, size_t bytes);
    /* A meeting of the node's ranks, by shared memory: arrive, then all_arrived until it says so. */
    void (*arrive)(cvy_comm *comm, const void *memory);
    int (*all_arrived)(cvy_comm *comm, const void *memory);
    /* Non-blocking sum, in place, as comm->sums says: start, then test now and then until it is done. One request serves one range for the life of a
     * plan. All ranks create their requests in one order and start them in one order; tests of any, as often as one likes. A rank that waits for one
     * tests all that it has started: another rank may need its part in them.
     * part: elements first to end of the sums are wanted here, and the rest by the other ranks of the node (in memory that they share); the memory may be
     * written again when they have all met. NULL: all of it. */
    cvy_status (*request_create)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_part *part_out, cvy_request **out);
    /* The other half of a sum that sums.halves has cut: each rank's part, the one that request_create gave for as many elements, to all ranks; never in
     * bf16. Started, tested and destroyed like a sum. */
    cvy_status (*gather_create)(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out);
    cvy_status (*request_start)(cvy_request *r);
    cvy_status (*request_test)(cvy_request *r, int *done_out);                                                  /* also makes progress */
    void (*request_destroy)(cvy_request **r);
    /* A non-blocking message of some ranges of memory, in this order, as one; the other side may have as many bytes in other ranges, or room for more.
     * It goes one way at a time: send or receive, then test until it is done, when it may be used again. tag: 0 .. CVY_TAGS - 1; those of the same two
     * ranks and tag arrive in the order in which they were sent. from: CVY_ANY_RANK takes what comes, and test tells from whom. */
    cvy_status (*message_create)(cvy_comm *comm, const cvy_range *range, int nrange, cvy_message **out);
    cvy_status (*message_send)(cvy_message *m, int to, int tag);
    cvy_status (*message_receive)(cvy_message *m, int from, int tag);
    cvy_status (*message_test)(cvy_message *m, int *done_out, int *from_out);                                   /* done where nothing is under way; from_out may be NULL */
    cvy_status (*message_cancel)(cvy_message *m);                                                               /* a receive for which nothing will come */
    void (*message_destroy)(cvy_message **m);
    /* Between two rounds of tests by a rank that waits: turn counts them. */
    cvy_status (*rest)(cvy_comm *comm, int turn);
    /* For who wants to know the network. choice: by which way a sum of so many bytes goes where no algorithm is set, by messages among all ranks, or
     * (across) between the nodes for a sum that goes through their memory; tried out with the first question, collective. ping: half of the time there
     * and back between this rank and another, called by these two; the lower one's time counts. */
    void (*about)(const cvy_comm *comm, cvy_comm_about *out);
    cvy_status (*choice)(cvy_comm *comm, int across, int64_t bytes, const char **name_out);
    /* What sums cost as comm->sums says, for sizing them: tried out with the first question. Collective. */
    cvy_status (*cost)(cvy_comm *comm, cvy_comm_cost *out);
    /* Which way sums of each size go, as the trials have found it (CVY_COMM_WAYS_TEXT bytes; "" without trials), and such a text taken in their place:
     * the next sums then add in the same order. Of other numbers of ranks it is not taken. Call take_ways on all ranks. */
    void (*ways)(const cvy_comm *comm, char *text);
    void (*take_ways)(cvy_comm *comm, const char *text);
    cvy_status (*ping)(cvy_comm *comm, int other, void *data, size_t bytes, double *seconds_out);
} cvy_comm_ops;

/* Who pushes sums on while the caller computes. */
typedef enum {
    CVY_PROGRESS_POLL,                 /* the caller, by tests between kernels */
    CVY_PROGRESS_THREAD,               /* a thread of its own: MPI_THREAD_SERIALIZED is needed, and a core for it pays */
    CVY_PROGRESS_MPI,                  /* the MPI library: the caller tests only when it waits */
} cvy_progress_by;

/* By its name; NULL: poll. */
cvy_status cvy_progress_parse(const char *name, cvy_progress_by *out);

/* How gradients are summed, the same on all ranks; set before the first request. */
typedef struct cvy_comm_sums {
    const char *algorithm;             /* "library", a name of comm_sum.h, or NULL: by size */
    int no_node;                       /* the node's shared memory is not used */
    int halves;                        /* with no_node: a sum of which a part is asked for ends with one part on each rank of all */
    cvy_dtype wire;                    /* of f32 between nodes: BF16, or anything else: as it is */
    int threads;                       /* that add up, 0: one */
    cvy_progress_by progress;
    int newest_first;                  /* the sum that was started last goes before all but the oldest: what backward makes last, forward needs first */
} cvy_comm_sums;

struct cvy_comm {
    const cvy_comm_ops *ops;
    cvy_comm_sums sums;
    int rank, nranks;
    int node_rank, node_nranks;        /* among the ranks of this node */
    int node, nnodes;                  /* which one, of how many */
    int shares_nodes;                  /* some node has several ranks */
    int simulated_cores;               /* of a node that is simulated, 0: a real one */
    _Atomic int64_t met;               /* sums and other meetings of ranks that this one has come to: for the watchdog, which reads along */
    _Atomic(const char *) meeting;     /* the one that it is in, if it waits for its end; else NULL */
    int64_t sent_bytes;                /* by the sums that this rank has started, and in messages */
    void *impl;
};

cvy_status cvy_comm_create_self(cvy_comm **out);
/* Agreement on a setup fault: the worst status of all ranks; where another rank failed, its message becomes this rank's, prefixed by "rank r". */
cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine);
/* Starts a request and waits for its end. Collective. */
cvy_status cvy_comm_finish(cvy_comm *comm, cvy_request *request);
/* Memory, zeroed, on every rank or on none: *out (address of any object pointer) is NULL where one rank has too little. Collective. */
cvy_status cvy_comm_alloc(cvy_comm *comm, size_t bytes, void *out);
struct cvy_text;
/* Says what is wrong, with a status for it, where a line of this rank's text is another one on rank 0; NULL: it is not there. */
typedef cvy_status cvy_alike_fn(int line, const char *here, const char *there);
/* Compares texts of all ranks with rank 0's: their hashes, and line by line only where those differ. mine->status may be a fault. Collective. */
cvy_status cvy_comm_alike(cvy_comm *comm, const struct cvy_text *mine, cvy_alike_fn *differ);

#endif

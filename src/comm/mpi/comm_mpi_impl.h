/*
 * comm_mpi_impl.h: what the files of the MPI communicator share.
 *
 *   comm_mpi.c           making and freeing; blocking collectives for setup
 *   comm_mpi_request.c   non-blocking sums of gradients: by the library, by moves, or through the node's memory
 *   comm_mpi_group.c     the ranks that sum by messages, and a sum by moves or by the library
 *   comm_mpi_trials.c    by which of them: tried out before the first step
 *   comm_mpi_thread.c    requests pushed on by a thread of their own
 *   comm_mpi_moves.c     a list of moves (comm/comm_sum.h) over MPI_Isend and MPI_Irecv
 *   comm_mpi_window.c    memory that the ranks of a node share
 *   comm_mpi_node.c      a sum through that memory, and by moves between nodes
 *   comm_mpi_message.c   messages between two ranks
 *   comm_mpi_simulated.c what is different where MPI is a simulator
 *   comm_mpi_about.c     what the library says of itself, and single messages timed
 */
#ifndef CVY_COMM_MPI_IMPL_H
#define CVY_COMM_MPI_IMPL_H

#include <stdatomic.h>

#include "comm/comm_sum.h"
#include "comm/mpi/comm_mpi.h"

/* Largest piece of one MPI call, in elements: far below INT_MAX, a multiple of every SIMD width. */
enum { CVY_PIECE_ELEMS = 1 << 28 };
/* Messages are cut into segments, so that one is added while the next is on its way; so many are under way at once for each peer. */
enum { CVY_SEGMENT_BYTES = 256 << 10, CVY_SEGMENTS = 4 };
enum { CVY_PLACE_BYTES = 2 * CVY_SEGMENTS * CVY_SEGMENT_BYTES };        /* for segments of two peers */
/* Sums by moves that are under way at the same time; further ones wait for a place. The oldest always gets one: all ranks start them in one order, so
 * some sum goes on everywhere, whichever others are pushed first. */
enum { CVY_PLACES = 4 };

typedef struct cvy_window cvy_window;
typedef struct cvy_moves cvy_moves;

/* Ranks that sum by messages: all of them, or the leaders of the nodes with the same part. */
enum { CVY_GROUP_SIZES = 7, CVY_GROUP_WAYS = 8 };
struct cvy_group {
    MPI_Comm comm;                     /* in the order of the places */
    int me, n;                         /* place, of how many */
    int next_tag;                      /* its ranks make the same sums in the same order */
    int tried[CVY_GROUP_WAYS];         /* ways: those of the table of algorithms, and the library behind them */
    double seconds[CVY_GROUP_SIZES][CVY_GROUP_WAYS];       /* of a sum of cvy_group_size(i) bytes, of those that were tried */
    int is_taken, taken[CVY_GROUP_SIZES];                  /* ways that an earlier run's trials found: they count in place of this run's */
};

struct cvy_mpi {
    MPI_Comm comm;                     /* setup */
    MPI_Comm node;                     /* the ranks of this node, in the order of comm */
    struct cvy_group all, across;      /* across: the ranks with this place on their node, where leaders */
    uint64_t across_started, across_due;       /* sums of `across`: numbers given, and the one that may begin next; see comm_mpi_node.c */
    int leaders;                       /* leaders: of each node, so many ranks sum a part of their own across nodes */
    cvy_window *window;                /* all that there are */
    struct cvy_pusher *pusher;         /* NULL: requests move when they are tested */
    int add_threads;                   /* that add up what messages bring, of requests that are made now */
    void *place[CVY_PLACES];           /* memory for segments, CVY_SEGMENTS for each of two peers */
    cvy_moves *holder[CVY_PLACES];     /* the sum that has it now */
    int newest_first;                  /* of requests that are made now */
    struct cvy_moves *oldest;          /* of those that are started and not done: a list in the order of their starts */
    void *folded;                      /* under a simulator: memory without meaning for all messages; else NULL */
    double add_s;                      /* ... what adding a byte takes */
    MPI_Request tick;                  /* ... and a message to oneself */
};

static inline struct cvy_mpi *cvy_mpi_of(const cvy_comm *comm)
{
    return comm->impl;
}

/* Every MPI call goes through here: an error becomes a status with the call's name and MPI's own words. */
cvy_status cvy_mpi_check(int code, const char *call);
#define CVY_TRY_MPI(call) CVY_TRY(cvy_mpi_check((call), #call))
MPI_Datatype cvy_mpi_type(cvy_dtype dtype);

/* ---- moves ---- */
typedef struct cvy_moves_opts {
    const cvy_sum_def *def;
    struct cvy_group *group;           /* those who sum; borrowed */
    void *data;
    int64_t count;
    cvy_dtype dtype, wire;             /* F32 or F64; wire: the same, or BF16 for F32 */
    enum { CVY_WHOLE, CVY_SCATTER, CVY_GATHER } half;
    cvy_part *part_out;                /* of SCATTER */
} cvy_moves_opts;
cvy_status cvy_moves_create(struct cvy_mpi *mpi, const cvy_moves_opts *opts, cvy_moves **out);
void cvy_moves_start(cvy_moves *m);
/* Goes as far as it can without waiting. */
cvy_status cvy_moves_progress(cvy_moves *m, int *done_out);
void cvy_moves_destroy(cvy_moves **m);
int64_t cvy_moves_sent(const cvy_moves *m);
/* Under a simulator: waits until one of the messages under way is there. */
cvy_status cvy_moves_wait(struct cvy_mpi *mpi);

/* ---- under a simulator ---- */
/* Sets mpi->folded, of so many bytes, and add_s where there is one. */
void cvy_simulated_begin(struct cvy_mpi *mpi, size_t bytes);
int cvy_simulated_cores(const struct cvy_mpi *mpi);
void cvy_simulated_end(struct cvy_mpi *mpi);
/* Sets mpi->tick to a message to oneself: who waits for it or for others sees whether others are there. */
cvy_status cvy_simulated_tick(struct cvy_mpi *mpi);
/* In place of trials. */
cvy_status cvy_simulated_measure(cvy_comm *comm, struct cvy_group *group);

/* ---- a group's sums ---- */
typedef struct cvy_group_sum cvy_group_sum;
/* Bytes of the i-th size at which ways are compared. */
static inline int64_t cvy_group_size(int i)
{
    return (int64_t)1 << (10 + 2 * i); /* 1 KiB to 4 MiB */
}
/* How long each way takes at each size, or this one, by trial, if that is not known yet; about a second. Collective over comm, also for ranks that
 * are in no such group. */
cvy_status cvy_group_measure(cvy_comm *comm, struct cvy_group *group, int takes_part, const char *only);
/* name of a way: an algorithm, "library", or NULL: as measured for this size. */
cvy_status cvy_group_sum_create(struct cvy_mpi *mpi, struct cvy_group *group, const char *name, void *data, int64_t count, cvy_dtype dtype, cvy_dtype wire,
                                cvy_group_sum **out);
/* One half of a sum by moves; part_out NULL: the second. By halving, unless name is of an algorithm that has halves. */
cvy_status cvy_group_half_create(struct cvy_mpi *mpi, struct cvy_group *group, const char *name, void *data, int64_t count, cvy_dtype dtype, cvy_dtype wire,
                                 cvy_part *part_out, cvy_group_sum **out);
cvy_status cvy_group_sum_start(cvy_group_sum *s);
cvy_status cvy_group_sum_progress(cvy_group_sum *s, int *done_out);
void cvy_group_sum_destroy(cvy_group_sum **s);
/* Bytes that this rank sends for one sum; of the library's own, whose way is not known, the least that any way sends to all. */
int64_t cvy_group_sum_sent(const cvy_group_sum *s);
/* Name of the way that is taken for so many bytes on the wire; rounds: they are rounded to bf16, which the library does not do. */
const char *cvy_group_way(const struct cvy_group *group, int64_t bytes, int rounds);
/* cvy_comm_ops of these names. */
cvy_status cvy_mpi_choice(cvy_comm *comm, int across, int64_t bytes, const char **name_out);
cvy_status cvy_mpi_cost(cvy_comm *comm, cvy_comm_cost *out);
void cvy_mpi_ways(const cvy_comm *comm, char *text);
void cvy_mpi_take_ways(cvy_comm *comm, const char *text);

/* ---- the node's memory ---- */
enum { CVY_WINDOW_SLOTS = 4096 };      /* sums that a window serves; slot 0 is for meetings */
struct cvy_flag {                      /* of one rank in one sum; a cache line, written by its owner only */
    _Alignas(64) _Atomic uint64_t posted;   /* number of the sum whose part lies ready */
    _Atomic uint64_t done;             /* ... and up to which this rank has read and written what it had to */
};
struct cvy_window {
    cvy_window *next;
    char *memory;                      /* this rank's, where its owner mapped it */
    size_t bytes;
    int nranks, rank, nslots;
    char **of;                         /* each rank's memory, as it is mapped here */
    struct cvy_flag **flag;            /* each rank's flags, one for each slot */
};
/* The window that holds this range, or NULL. */
cvy_window *cvy_window_find(const struct cvy_mpi *mpi, const void *data, size_t bytes);
/* Whether every rank of the node has posted this number in this slot. */
int cvy_window_all_posted(const cvy_window *w, int slot, uint64_t number);
/* cvy_comm_ops of these names. */
cvy_status cvy_mpi_share(cvy_comm *comm, void *memory, size_t bytes, int *shared_out);
void cvy_mpi_unshare(cvy_comm *comm, const void *memory);
cvy_status cvy_mpi_common(cvy_comm *comm, size_t bytes, void **memory_out);
void cvy_mpi_common_free(cvy_comm *comm, void **memory, size_t bytes);
void cvy_mpi_arrive(cvy_comm *comm, const void *memory);
int cvy_mpi_all_arrived(cvy_comm *comm, const void *memory);

/* ---- a sum through it ---- */
typedef struct cvy_node_sum cvy_node_sum;
/* Takes a slot of the window. part_out: see cvy_comm_ops.request_create. */
cvy_status cvy_node_sum_create(cvy_comm *comm, cvy_window *window, void *data, int64_t count, cvy_dtype dtype, cvy_dtype wire, cvy_part *part_out,
                               cvy_node_sum **out);
void cvy_node_sum_start(cvy_node_sum *s);
cvy_status cvy_node_sum_progress(cvy_node_sum *s, int *done_out);
void cvy_node_sum_destroy(cvy_node_sum **s);
int64_t cvy_node_sum_sent(const cvy_node_sum *s);

/* ---- requests ---- */
enum { CVY_REQUEST_DONE, CVY_REQUEST_HANDED, CVY_REQUEST_UNDER_WAY };
struct cvy_request {
    cvy_node_sum *node;                /* one of these two */
    cvy_group_sum *all;
    struct cvy_pusher *pusher;         /* who pushes it on, NULL: the caller */
    cvy_request *next;                 /* of those handed over */
    atomic_int state;
    cvy_comm *comm;
    int64_t sent_bytes;                /* by one sum */
};
cvy_status cvy_mpi_request_start_now(cvy_request *r);
cvy_status cvy_mpi_request_test_now(cvy_request *r, int *done_out);

/* The thread, made with the first request that needs it; and the lock for who else calls MPI while it may: between enter and leave. */
cvy_status cvy_pusher_need(struct cvy_mpi *mpi);
void cvy_pusher_free(struct cvy_mpi *mpi);
void cvy_pusher_hand(struct cvy_pusher *p, cvy_request *r);
cvy_status cvy_pusher_look(struct cvy_pusher *p, const cvy_request *r, int *done_out);
void cvy_mpi_enter(struct cvy_mpi *mpi);
void cvy_mpi_leave(struct cvy_mpi *mpi);

/* cvy_comm_ops of these names. */
cvy_status cvy_mpi_request_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_part *part_out, cvy_request **out);
cvy_status cvy_mpi_gather_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out);
cvy_status cvy_mpi_request_start(cvy_request *r);
cvy_status cvy_mpi_request_test(cvy_request *r, int *done_out);
void cvy_mpi_request_destroy(cvy_request **r);

/* ---- messages: cvy_comm_ops ---- */
cvy_status cvy_mpi_message_create(cvy_comm *comm, const cvy_range *range, int nrange, cvy_message **out);
cvy_status cvy_mpi_message_send(cvy_message *m, int to, int tag);
cvy_status cvy_mpi_message_receive(cvy_message *m, int from, int tag);
cvy_status cvy_mpi_message_test(cvy_message *m, int *done_out, int *from_out);
cvy_status cvy_mpi_message_cancel(cvy_message *m);
void cvy_mpi_message_destroy(cvy_message **m);

/* ---- questions: cvy_comm_ops ---- */
void cvy_mpi_about(const cvy_comm *comm, cvy_comm_about *out);
cvy_status cvy_mpi_ping(cvy_comm *comm, int other, void *data, size_t bytes, double *seconds_out);

#endif

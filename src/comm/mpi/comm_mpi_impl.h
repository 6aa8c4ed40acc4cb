/*
 * comm_mpi_impl.h: what the files of the MPI communicator share.
 *
 *   comm_mpi.c           making and freeing; blocking collectives for setup
 *   comm_mpi_request.c   non-blocking sums of gradients: by the library, by moves, or through the node's memory
 *   comm_mpi_moves.c     a list of moves (comm/comm_sum.h) over MPI_Isend and MPI_Irecv
 *   comm_mpi_window.c    memory that the ranks of a node share
 *   comm_mpi_node.c      a sum through that memory, and by moves between nodes
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
/* Sums by moves that are under way at the same time; further ones wait for a place. All ranks start them in one order, so the oldest has one. */
enum { CVY_PLACES = 4 };

typedef struct cvy_window cvy_window;

struct cvy_mpi {
    MPI_Comm comm;                     /* setup, and sums by the library */
    MPI_Comm moves;                    /* our own messages: no tag of theirs meets one of the above */
    MPI_Comm node;                     /* the ranks of this node, in the order of comm */
    int nnodes, my_node, leaders;      /* leaders: of each node, so many ranks sum a part of their own across nodes */
    int *leader;                       /* rank in comm of leader k of node n, [k * nnodes + n] */
    cvy_window *window;                /* all that there are */
    void *place[CVY_PLACES];           /* memory for segments, CVY_SEGMENTS for each of two peers */
    const void *holder[CVY_PLACES];    /* the sum that has it now */
    int next_tag;
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
typedef struct cvy_moves cvy_moves;
typedef struct cvy_moves_opts {
    const cvy_sum_def *def;
    int me, n;                         /* place among those who sum */
    const int *rank_of;                /* their ranks in the communicator; borrowed; NULL: place is rank */
    void *data;
    int64_t count;
    cvy_dtype dtype, wire;             /* F32 or F64; wire: the same, or BF16 for F32 */
} cvy_moves_opts;
cvy_status cvy_moves_create(struct cvy_mpi *mpi, const cvy_moves_opts *opts, cvy_moves **out);
void cvy_moves_start(cvy_moves *m);
/* Goes as far as it can without waiting. */
cvy_status cvy_moves_progress(cvy_moves *m, int *done_out);
void cvy_moves_destroy(cvy_moves **m);

/* ---- the node's memory ---- */
enum { CVY_WINDOW_SLOTS = 1024 };      /* sums that a window serves */
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
/* cvy_comm_ops: share, unshare. */
cvy_status cvy_mpi_share(cvy_comm *comm, void *memory, size_t bytes);
void cvy_mpi_unshare(cvy_comm *comm, const void *memory);

/* ---- a sum through it ---- */
typedef struct cvy_node_sum cvy_node_sum;
/* Takes a slot of the window. across: the algorithm between nodes. */
cvy_status cvy_node_sum_create(cvy_comm *comm, cvy_window *window, void *data, int64_t count, cvy_dtype dtype, cvy_dtype wire, const cvy_sum_def *across,
                               cvy_node_sum **out);
void cvy_node_sum_start(cvy_node_sum *s);
cvy_status cvy_node_sum_progress(cvy_node_sum *s, int *done_out);
void cvy_node_sum_destroy(cvy_node_sum **s);

/* ---- requests: cvy_comm_ops ---- */
cvy_status cvy_mpi_request_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out);
cvy_status cvy_mpi_request_start(cvy_request *r);
cvy_status cvy_mpi_request_test(cvy_request *r, int *done_out);
void cvy_mpi_request_destroy(cvy_request **r);

#endif

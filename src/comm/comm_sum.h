/*
 * comm_sum.h: a sum over ranks, written down as moves before the first step: what one rank sends, receives and adds, round by round.
 *
 * An algorithm is one file that makes the list (comm_sum_<name>.c). The list knows nothing of a network, so it is the same one that runs over
 * MPI (mpi/comm_mpi_moves.c), that a simulator runs, that tests add up in one process, and whose cost is told before it runs.
 * Which operands meet in which order is fixed by the list; f32 addition commutes, so all ranks end with the same bits.
 */
#ifndef CVY_COMM_SUM_H
#define CVY_COMM_SUM_H

#include "base/base_mem.h"
#include "comm/comm.h"

typedef enum {
    CVY_MOVE_SEND,
    CVY_MOVE_RECV,                     /* into place */
    CVY_MOVE_ADD,                      /* receive, and add to what is there */
} cvy_move_kind;

typedef struct cvy_move {
    cvy_move_kind kind;
    int round;                         /* the moves of a round go on at the same time; the next round begins when they are done here */
    int peer;
    int64_t at, count;                 /* elements of the buffer */
} cvy_move;

enum { CVY_ROUND_MOVES = 4 };          /* at most, in one round of one rank */

typedef struct cvy_sum {
    cvy_move *move;                    /* sorted by round */
    int nmove, room;
    int rounds_at_end;                 /* with fewer bits on the wire: others get these sums rounded from a rank that goes on with them so, and this one does not */
} cvy_sum;

typedef struct cvy_sum_def {
    const char *name, *summary;
    /* Appends the moves of `rank` in the sum of `count` elements over nranks >= 2 ranks. */
    cvy_status (*build)(int rank, int nranks, int64_t count, cvy_sum *out);
    /* The same in two halves, where there are any: at the end of the first this rank has one part of the sums, *part_out; by the second all ranks get all parts. */
    cvy_status (*scatter)(int rank, int nranks, int64_t count, cvy_sum *out, cvy_part *part_out);
    cvy_status (*gather)(int rank, int nranks, int64_t count, cvy_sum *out);
} cvy_sum_def;
#define CVY_SUM_DEFINE(id) const cvy_sum_def cvy_sum_##id##_def
const cvy_sum_def *const *cvy_sum_table(int *count_out);
const cvy_sum_def *cvy_sum_find(const char *name);
/* CVY_E_CONFIG, naming the nearest, unless it is an algorithm, "library", "auto" or NULL. */
cvy_status cvy_sum_check_name(const char *name);

/* One rank's moves; one rank alone has none. Frees with cvy_sum_free. */
cvy_status cvy_sum_build(const cvy_sum_def *def, int rank, int nranks, int64_t count, cvy_sum *out);
/* One half of it; part_out NULL: the second. One rank alone has all. */
cvy_status cvy_sum_build_half(const cvy_sum_def *def, int rank, int nranks, int64_t count, cvy_part *part_out, cvy_sum *out);
void cvy_sum_free(cvy_sum *sum);
/* Empty ranges are left out. For the build functions. */
cvy_status cvy_sum_move(cvy_sum *sum, cvy_move_kind kind, int round, int peer, int64_t at, int64_t count);
/* Where part i of n begins: parts differ by one line of 16 elements at most, and part n begins at count. */
int64_t cvy_sum_part(int64_t count, int i, int n);

/* How large the pieces shall be in which `total` bytes are summed: as asked for, or (0) by what sums cost; four at least, for the first ones to
 * overlap with the making of the others, unless they would be tiny. */
size_t cvy_sum_bucket(size_t total, size_t asked, const cvy_comm_cost *cost);

/* Seconds of one message of no length, of a byte on the wire, and of adding a byte to what is there. */
typedef struct cvy_link { double alpha_s, beta_s, gamma_s; } cvy_link;
/* What this rank's moves cost over links that carry both directions at once: each round its start, its longer direction, and its additions. */
double cvy_sum_cost(const cvy_sum *sum, size_t elem_bytes, const cvy_link *link);

#endif

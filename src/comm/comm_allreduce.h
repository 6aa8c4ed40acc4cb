/*
 * comm_allreduce.h: all-reduce algorithms. An all-reduce is a list of transfers, made before the first step: what one
 * rank sends, receives and adds, round by round.
 *
 * An algorithm is one file that makes the list (comm_allreduce_<name>.c). The list does not depend on a network: it
 * runs over MPI (mpi/comm_mpi_transfers.c) and under a simulator, tests run it in one process, and its cost can be
 * computed before it runs. The list fixes the order of the additions; f32 addition commutes, so all ranks end with the
 * same bits.
 */
#ifndef CVY_COMM_ALLREDUCE_H
#define CVY_COMM_ALLREDUCE_H

#include "base/base_mem.h"
#include "comm/comm.h"

typedef enum {
    CVY_TRANSFER_SEND,
    CVY_TRANSFER_RECV, /* into place */
    CVY_TRANSFER_ADD,  /* receive, and add to what is there */
} cvy_transfer_kind;

typedef struct cvy_transfer {
    cvy_transfer_kind kind;
    int round; /* the transfers of a round run at the same time; the next round begins when they are done here */
    int peer;
    int64_t at, count; /* elements of the buffer */
} cvy_transfer;

enum { CVY_ROUND_TRANSFERS = 4 }; /* at most, in one round of one rank */

typedef struct cvy_transfer_list {
    cvy_transfer *transfer; /* sorted by round */
    int ntransfer, room;
    int rounds_at_end; /* with bf16 on the wire: other ranks get these sums rounded, so this rank must round them too */
} cvy_transfer_list;

typedef struct cvy_allreduce_def {
    const char *name, *summary;
    /* Appends the transfers of `rank` in the all-reduce of `count` elements over nranks >= 2 ranks. */
    cvy_status (*build)(int rank, int nranks, int64_t count, cvy_transfer_list *out);
    /* The same in two halves, if the algorithm has them: a reduce-scatter, at whose end this rank has one part of the
     * sums, *part_out; and an all-gather of the parts. */
    cvy_status (*scatter)(int rank, int nranks, int64_t count, cvy_transfer_list *out, cvy_part *part_out);
    cvy_status (*gather)(int rank, int nranks, int64_t count, cvy_transfer_list *out);
} cvy_allreduce_def;
#define CVY_ALLREDUCE_DEFINE(id) const cvy_allreduce_def cvy_allreduce_##id##_def
const cvy_allreduce_def *const *cvy_allreduce_table(int *count_out);
const cvy_allreduce_def *cvy_allreduce_find(const char *name);
/* CVY_E_CONFIG, naming the nearest, unless it is an algorithm, "library", "auto" or NULL. */
cvy_status cvy_allreduce_check_name(const char *name);

/* The transfers of one rank; a single rank has none. Free them with cvy_transfer_list_free. */
cvy_status cvy_allreduce_build(const cvy_allreduce_def *def, int rank, int nranks, int64_t count,
                               cvy_transfer_list *out);
/* One half of it; part_out NULL: the second. A single rank has all elements. */
cvy_status cvy_allreduce_build_half(const cvy_allreduce_def *def, int rank, int nranks, int64_t count,
                                    cvy_part *part_out, cvy_transfer_list *out);
void cvy_transfer_list_free(cvy_transfer_list *list);
/* Empty ranges are left out. For the build functions. */
cvy_status cvy_transfer_list_add(cvy_transfer_list *list, cvy_transfer_kind kind, int round, int peer, int64_t at,
                                 int64_t count);
/* Where part i of n begins: parts differ by one line of 16 elements at most, and part n begins at count. */
int64_t cvy_allreduce_part(int64_t count, int i, int n);

/* The bucket size for `total` bytes: as asked for, or (0) the best by the cost of a reduction; at least four buckets,
 * so that the first ones overlap with the computation of the others, unless they would be tiny. */
size_t cvy_allreduce_bucket_bytes(size_t total, size_t asked, const cvy_comm_cost *cost);

/* Seconds of one message of no length, of a byte on the wire, and of adding a byte to what is there. */
typedef struct cvy_link {
    double alpha_s, beta_s, gamma_s;
} cvy_link;
/* The cost of this rank's transfers over links that carry both directions at once: for each round its start, its longer
 * direction, and its additions. */
double cvy_transfer_list_cost(const cvy_transfer_list *list, size_t elem_bytes, const cvy_link *link);

#endif

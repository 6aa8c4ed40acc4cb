/*
 * comm_allreduce.h: all-reduce algorithms. An all-reduce is a list of transfers, made before the first step: what this
 * rank sends, receives and adds in each round.
 *
 * Each algorithm has one file that makes the list (comm_allreduce_<name>.c). The list does not depend on a network. It
 * runs over MPI (mpi/comm_mpi_transfers.c) and under a simulator, tests run it in one process, and its cost can be
 * computed before it runs. The list fixes the order of the additions. As addition of f32 is commutative, all ranks get
 * the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_ALLREDUCE_H
#define CVY_COMM_ALLREDUCE_H

#include "base/base_mem.h"
#include "comm/comm.h"

typedef enum {
    CVY_TRANSFER_SEND,
    CVY_TRANSFER_RECV, /* receive into the buffer */
    CVY_TRANSFER_ADD,  /* receive, and add to the contents of the buffer */
} cvy_transfer_kind;

typedef struct cvy_transfer {
    cvy_transfer_kind kind;
    int round; /* the transfers of one round run at the same time; the next round begins when they are done on this rank
                */
    int peer;
    int64_t at, count; /* first element and number of elements in the buffer */
} cvy_transfer;

/* The number of reductions that are under way at the same time. Further ones wait for a slot. The oldest one always
 * gets a slot. As all ranks start reductions in the same order, at least one reduction advances on all ranks, whichever
 * reductions a rank tests first. */
enum { CVY_TRANSFER_SLOTS = 4 };
enum { CVY_ROUND_TRANSFERS = 4 }; /* the largest number of transfers in one round of one rank */

typedef struct cvy_transfer_list {
    cvy_transfer *transfer; /* sorted by round */
    int ntransfer, room;
    int rounds_at_end; /* with bf16 on the wire: 1 if other ranks get these sums rounded, so that this rank must round
                          them too */
} cvy_transfer_list;

typedef struct cvy_allreduce_def {
    const char *name, *summary;
    /* Appends the transfers of `rank` in the all-reduce of `count` elements over nranks >= 2 ranks. */
    cvy_status (*build)(int rank, int nranks, int64_t count, cvy_transfer_list *out);
    /* The same in two halves, if the algorithm has them; otherwise NULL. scatter is a reduce-scatter: after it this
     * rank has one part of the sums, *part_out. gather is an all-gather of the parts. */
    cvy_status (*scatter)(int rank, int nranks, int64_t count, cvy_transfer_list *out, cvy_part *part_out);
    cvy_status (*gather)(int rank, int nranks, int64_t count, cvy_transfer_list *out);
} cvy_allreduce_def;
#define CVY_ALLREDUCE_DEFINE(id) const cvy_allreduce_def cvy_allreduce_##id##_def
const cvy_allreduce_def *const *cvy_allreduce_table(int *count_out);
const cvy_allreduce_def *cvy_allreduce_find(const char *name);
/* Checks a name. Valid are an algorithm, "library", "auto" and NULL. Otherwise CVY_E_CONFIG; the message has the
 * nearest valid name. */
cvy_status cvy_allreduce_check_name(const char *name);

/* Makes the list of transfers of one rank. A single rank has none. Free the list with cvy_transfer_list_free. */
cvy_status cvy_allreduce_build(const cvy_allreduce_def *def, int rank, int nranks, int64_t count,
                               cvy_transfer_list *out);
/* Makes the list of one half: the reduce-scatter if part_out is given, the all-gather if part_out is NULL. The part of
 * a single rank is the whole buffer. */
cvy_status cvy_allreduce_build_half(const cvy_allreduce_def *def, int rank, int nranks, int64_t count,
                                    cvy_part *part_out, cvy_transfer_list *out);
void cvy_transfer_list_free(cvy_transfer_list *list);
/* For the build functions: appends a transfer, unless its range is empty. */
cvy_status cvy_transfer_list_add(cvy_transfer_list *list, cvy_transfer_kind kind, int round, int peer, int64_t at,
                                 int64_t count);
/* The first element of part i of n. The sizes of parts differ by at most one cache line of 16 elements. Part n begins
 * at count. */
int64_t cvy_allreduce_part(int64_t count, int i, int n);

/* The bucket size for `total` bytes of gradients: the size that the user asked for, or with asked 0 the best one for
 * this cost. There are at least four buckets, so that the first ones overlap with the computation of the others; but no
 * bucket is made smaller than 64 KiB for this. */
size_t cvy_allreduce_bucket_bytes(size_t total, size_t asked, const cvy_comm_cost *cost);

/* Costs in seconds: alpha_s for a message of 0 bytes, beta_s for each byte on the wire, gamma_s for adding a byte. */
typedef struct cvy_link {
    double alpha_s, beta_s, gamma_s;
} cvy_link;
/* The cost of this rank's transfers in seconds, over links that carry both directions at once: in each round one
 * alpha_s, the bytes of the direction with more bytes, and the additions. */
double cvy_transfer_list_cost(const cvy_transfer_list *list, size_t elem_bytes, const cvy_link *link);

#endif

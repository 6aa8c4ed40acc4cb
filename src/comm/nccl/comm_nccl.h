/*
 * comm_nccl.h: sums and messages by NCCL, for ranks whose tensors are on GPUs of the backend cuda: from memory of one
 * device to memory of another, in the lane COMM, without the host.
 *
 * A communicator of ours gets one of NCCL when it is first asked for; later users share it. The ranks agree on whether
 * they can use it. If not, cvy_nccl_why() has the reason, and the host exchanges copies.
 *
 *     cvy_nccl_open(comm, space, &nccl);
 *     cvy_nccl_sum_create(nccl, &(cvy_nccl_sum){...}, &part, &x);      then in each step:
 *     cvy_nccl_start(x);              what the lane COMPUTE has made so far is exchanged
 *     cvy_nccl_await(x);              COMPUTE waits for the result, and the host goes on
 *
 * All ranks make the same calls in the same order, also where a rank is in several communicators: all of them use one
 * lane.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_NCCL_H
#define CVY_COMM_NCCL_H

#include "backend/backend.h"
#include "comm/comm.h"

typedef struct cvy_nccl cvy_nccl;
typedef struct cvy_nccl_exchange cvy_nccl_exchange;

typedef enum {
    CVY_NCCL_ALL,     /* all ranks get all sums */
    CVY_NCCL_SCATTER, /* each rank gets the sums of a part */
    CVY_NCCL_GATHER,  /* all ranks get the parts of all ranks */
    CVY_NCCL_SWAP,    /* messages between pairs of ranks */
} cvy_nccl_kind;

/* f32, f64 or bf16. bf16 is added in bf16. */
typedef struct cvy_nccl_sum {
    cvy_nccl_kind kind;
    const void *from; /* of ALL: what is summed; else, and if NULL: data */
    void *data;
    int64_t count; /* elements */
    cvy_dtype dtype;
    int is_narrow; /* of sums of f32: they are rounded to bf16, and summed so */
} cvy_nccl_sum;

typedef struct cvy_nccl_piece {
    void *data;
    size_t bytes;
    int peer;     /* rank in the communicator */
    int receives; /* 0: it is sent there */
} cvy_nccl_piece;

/* Whether NCCL may exchange tensors of this space over these ranks in place of the host. With opts it depends on how
 * they are to be reduced: a named algorithm is one of the host. */
int cvy_nccl_may(const cvy_space *space, const cvy_comm *comm, const cvy_allreduce_opts *opts);
/* Whether all ranks can use it: writes the reason why not, the same on all ranks, or "". version_out: 22809 is 2.28.9.
 * Collective. */
cvy_status cvy_nccl_look(cvy_comm *comm, const cvy_space *space, char *why, size_t room, int *version_out);
/* Collective: all ranks return the same status, and all or none of them can use it. */
cvy_status cvy_nccl_open(cvy_comm *comm, const cvy_space *space, cvy_nccl **out);
/* Why it cannot be used, in a sentence without an end; NULL: it can. */
const char *cvy_nccl_why(const cvy_nccl *nccl);
/* Accepts NULL. Collective where it can be used. */
void cvy_nccl_close(cvy_nccl **nccl);

/* part_out: for SCATTER and GATHER, the part of this rank; else NULL. */
cvy_status cvy_nccl_sum_create(cvy_nccl *nccl, const cvy_nccl_sum *sum, cvy_part *part_out, cvy_nccl_exchange **out);
/* All pieces are sent and received at once. */
cvy_status cvy_nccl_swap_create(cvy_nccl *nccl, const cvy_nccl_piece *piece, int npiece, cvy_nccl_exchange **out);
cvy_status cvy_nccl_start(cvy_nccl_exchange *x);
cvy_status cvy_nccl_await(const cvy_nccl_exchange *x);
cvy_status cvy_nccl_test(const cvy_nccl_exchange *x, int *done_out);
/* If it is under way and does not end within some seconds, because other ranks have ended, it is broken off. Accepts
 * NULL. */
void cvy_nccl_exchange_destroy(cvy_nccl_exchange **x);

/* Measures what a sum costs on the slowest rank. It takes 16 MiB of the device meanwhile. Collective. */
cvy_status cvy_nccl_measure(cvy_nccl *nccl, int is_narrow, cvy_comm_cost *out);

/* Whether this process has communicators of NCCL: then its device may wait for another rank. Any thread may ask. */
int cvy_nccl_is_used(void);
/* Breaks off all exchanges of this process, for the watchdog: what waits for the device wakes up, and stays until
 * cvy_nccl_let_fail() is called; then it fails. It returns after some seconds at the latest. Any thread may call them.
 */
void cvy_nccl_abort(void);
void cvy_nccl_let_fail(void);

#endif

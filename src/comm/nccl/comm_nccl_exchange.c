/*
 * comm_nccl_exchange.c: what NCCL exchanges in the lane COMM: sums, parts and messages, and what a sum costs.
 *
 * Parts of a reduce-scatter are of one size. What is left of a range then belongs to the last rank: it is a few
 * numbers, which are all-reduced, and sent to all ranks by a broadcast.
 *
 * A narrow sum rounds f32 to bf16 on the device, sums, and widens the result: half the bytes, and each addition rounds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "backend/gpu/device.h"
#include "base/machine/base_clock.h"
#include "base/number/base_bf16.h"
#include "comm/nccl/comm_nccl_impl.h"

enum { PART_ELEMS = 16, TRIALS = 3, TRIAL_BYTES = 16 << 20 };
#define END_WITHIN_S 5.0

struct cvy_nccl_exchange {
    cvy_nccl *nccl;
    cvy_nccl_sum sum;
    int64_t part;            /* elements of one part */
    void *narrow;            /* the range in bf16; NULL: it is summed as it is */
    cvy_gpu_kernel to, from; /* to bf16, and back */
    cvy_nccl_piece *piece;   /* of a swap */
    int npiece;
    int64_t bytes;          /* that this rank sends */
    cvy_mark *made, *there; /* in COMPUTE: what may be exchanged; in COMM: the result */
};

/* ---- creating ---- */

static cvy_status make_marks(cvy_nccl_exchange *x)
{
    CVY_TRY(cvy_mark_create(&x->nccl->space, &x->made));
    return cvy_mark_create(&x->nccl->space, &x->there);
}

static cvy_status prepare_sum(cvy_nccl_exchange *x)
{
    cvy_nccl *n = x->nccl;
    const cvy_nccl_sum *s = &x->sum;
    const int64_t nranks = n->comm->nranks,
                  bytes = s->count * (int64_t)(s->is_narrow ? sizeof(cvy_bf16) : cvy_dtype_bytes(s->dtype));
    CVY_CHECK(s->dtype == CVY_DTYPE_F32 || s->dtype == CVY_DTYPE_F64 || s->dtype == CVY_DTYPE_BF16, CVY_E_INTERNAL,
              "sums by NCCL of %s", cvy_dtype_text(s->dtype));
    x->sum.from = s->from ? s->from : s->data;
    x->part = s->kind == CVY_NCCL_ALL ? 0 : s->count / nranks / PART_ELEMS * PART_ELEMS;
    x->bytes = (s->kind == CVY_NCCL_ALL ? 2 : 1) * bytes * (nranks - 1) / nranks;
    if (s->is_narrow) {
        CVY_TRY(cvy_gpu_copy_get(&n->space, CVY_DTYPE_F32, CVY_DTYPE_BF16, &x->to));
        CVY_TRY(cvy_gpu_copy_get(&n->space, CVY_DTYPE_BF16, CVY_DTYPE_F32, &x->from));
        CVY_TRY(cvy_nccl_take_narrow(n, (size_t)bytes, &x->narrow));
    }
    return make_marks(x);
}

cvy_status cvy_nccl_sum_create(cvy_nccl *nccl, const cvy_nccl_sum *sum, cvy_part *part_out, cvy_nccl_exchange **out)
{
    const int64_t nranks = nccl->comm->nranks, rank = nccl->comm->rank;
    cvy_nccl_exchange *x = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *x, &x));
    *x = (cvy_nccl_exchange){.nccl = nccl, .sum = *sum};
    x->sum.is_narrow = sum->is_narrow && sum->dtype == CVY_DTYPE_F32 && sum->kind != CVY_NCCL_GATHER;
    const cvy_status status = prepare_sum(x);
    if (status != CVY_OK) {
        cvy_nccl_exchange_destroy(&x);
        return status;
    }
    if (part_out)
        *part_out = (cvy_part){rank * x->part, rank == nranks - 1 ? sum->count : (rank + 1) * x->part};
    *out = x;
    return CVY_OK;
}

static cvy_status prepare_swap(cvy_nccl_exchange *x, const cvy_nccl_piece *piece, int npiece)
{
    CVY_TRY(cvy_mem_alloc(sizeof *piece * (size_t)CVY_MAX(npiece, 1), &x->piece));
    for (int i = 0; i < npiece; i++) {
        x->piece[x->npiece++] = piece[i];
        x->bytes += piece[i].receives ? 0 : (int64_t)piece[i].bytes;
    }
    return make_marks(x);
}

cvy_status cvy_nccl_swap_create(cvy_nccl *nccl, const cvy_nccl_piece *piece, int npiece, cvy_nccl_exchange **out)
{
    cvy_nccl_exchange *x = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *x, &x));
    *x = (cvy_nccl_exchange){.nccl = nccl, .sum.kind = CVY_NCCL_SWAP};
    const cvy_status status = prepare_swap(x, piece, npiece);
    if (status != CVY_OK)
        cvy_nccl_exchange_destroy(&x);
    *out = x;
    return status;
}

/* ---- in each step ---- */

static cvy_status copy(const cvy_gpu_kernel *kernel, const void *from, void *to, int64_t n)
{
    const struct walk w = {.count = n, .ndim = 1, .dim = {n}, .a = {1}, .b = {1}};
    return cvy_gpu_copy_walk(kernel, CVY_LANE_COMM, &w, from, to);
}

static cvy_status put_sum(const cvy_nccl_exchange *x, cvy_nccl_comm handle, cvy_cu_stream stream)
{
    cvy_nccl *n = x->nccl;
    const cvy_nccl_sum *s = &x->sum;
    const cvy_dtype dtype = x->narrow ? CVY_DTYPE_BF16 : s->dtype;
    const cvy_nccl_dtype type = dtype == CVY_DTYPE_F64    ? CVY_NCCL_F64
                                : dtype == CVY_DTYPE_BF16 ? CVY_NCCL_BF16
                                                          : CVY_NCCL_F32;
    const size_t bytes = cvy_dtype_bytes(dtype), part = (size_t)x->part;
    const size_t in_parts = part * (size_t)n->comm->nranks, left = (size_t)s->count - in_parts;
    char *to = x->narrow ? x->narrow : s->data, *own = to + (size_t)n->comm->rank * part * bytes,
         *rest = to + in_parts * bytes;
    const char *from = x->narrow ? x->narrow : s->from;
    if (in_parts > 0 && s->kind == CVY_NCCL_SCATTER)
        CVY_NCCL(n, ncclReduceScatter, from, own, part, type, CVY_NCCL_SUM, handle, stream);
    if (in_parts > 0 && s->kind == CVY_NCCL_GATHER)
        CVY_NCCL(n, ncclAllGather, own, to, part, type, handle, stream);
    if (left > 0 && s->kind == CVY_NCCL_GATHER)
        CVY_NCCL(n, ncclBroadcast, rest, rest, left, type, n->comm->nranks - 1, handle, stream);
    else if (left > 0)
        CVY_NCCL(n, ncclAllReduce, from + in_parts * bytes, rest, left, type, CVY_NCCL_SUM, handle, stream);
    return CVY_OK;
}

static cvy_status put_narrow_sum(const cvy_nccl_exchange *x, cvy_nccl_comm handle, cvy_cu_stream stream)
{
    const cvy_nccl_sum *s = &x->sum;
    const int64_t own = x->part * x->nccl->comm->rank, in_parts = x->part * x->nccl->comm->nranks;
    const cvy_bf16 *narrow = x->narrow;
    float *wide = s->data;
    CVY_TRY(copy(&x->to, s->from, x->narrow, s->count));
    CVY_TRY(put_sum(x, handle, stream));
    CVY_TRY(copy(&x->from, narrow + own, wide + own, x->part));
    return copy(&x->from, narrow + in_parts, wide + in_parts, s->count - in_parts);
}

static cvy_status put_pieces(const cvy_nccl_exchange *x, cvy_nccl_comm handle, cvy_cu_stream stream)
{
    cvy_nccl *n = x->nccl;
    for (int i = 0; i < x->npiece; i++) {
        const cvy_nccl_piece *p = &x->piece[i];
        if (p->receives)
            CVY_NCCL(n, ncclRecv, p->data, p->bytes, CVY_NCCL_BYTE, p->peer, handle, stream);
        else
            CVY_NCCL(n, ncclSend, p->data, p->bytes, CVY_NCCL_BYTE, p->peer, handle, stream);
    }
    return CVY_OK;
}

/* In a group, so that no rank waits for its send before it receives. */
static cvy_status put_swap(const cvy_nccl_exchange *x, cvy_nccl_comm handle, cvy_cu_stream stream)
{
    cvy_nccl *n = x->nccl;
    CVY_NCCL(n, ncclGroupStart, );
    const cvy_status status = put_pieces(x, handle, stream);
    const cvy_nccl_result end = n->api->ncclGroupEnd();
    return status != CVY_OK || end == 0 ? status : cvy_nccl_fault(n, "ncclGroupEnd", end);
}

cvy_status cvy_nccl_start(cvy_nccl_exchange *x)
{
    cvy_nccl *n = x->nccl;
    const cvy_cuda_space *s = n->space.state;
    const cvy_cu_stream stream = s->stream[CVY_LANE_COMM];
    CVY_TRY(cvy_nccl_check(n));
    CVY_TRY(cvy_mark_put(&n->space, CVY_LANE_COMPUTE, x->made));
    CVY_TRY(cvy_mark_await(&n->space, CVY_LANE_COMM, x->made));
    const cvy_nccl_comm handle = atomic_load(&n->handle);
    CVY_TRY(x->sum.kind == CVY_NCCL_SWAP ? put_swap(x, handle, stream)
            : x->narrow                  ? put_narrow_sum(x, handle, stream)
                                         : put_sum(x, handle, stream));
    n->comm->sent_bytes += x->bytes;
    atomic_fetch_add_explicit(&n->comm->ncollectives, 1, memory_order_relaxed);
    return cvy_mark_put(&n->space, CVY_LANE_COMM, x->there);
}

cvy_status cvy_nccl_await(const cvy_nccl_exchange *x)
{
    return cvy_mark_await(&x->nccl->space, CVY_LANE_COMPUTE, x->there);
}

cvy_status cvy_nccl_test(const cvy_nccl_exchange *x, int *done_out)
{
    CVY_TRY(cvy_nccl_check(x->nccl));
    return cvy_mark_reached(&x->nccl->space, x->there, 0, done_out);
}

/* After a fault the other ranks may never come. */
static void end(const cvy_nccl_exchange *x)
{
    const double until = cvy_clock_s() + END_WITHIN_S;
    int done = 0;
    cvy_status status = CVY_OK;
    while (status == CVY_OK && !done && !x->nccl->is_broken && cvy_clock_s() < until)
        status = cvy_nccl_test(x, &done);
    if (done)
        return;
    x->nccl->is_broken = 1;
    cvy_nccl_leave(x->nccl);
}

void cvy_nccl_exchange_destroy(cvy_nccl_exchange **exchange)
{
    cvy_nccl_exchange *x = *exchange;
    if (!x)
        return;
    if (x->made && x->there)
        end(x);
    if (x->made)
        cvy_mark_destroy(&x->nccl->space, &x->made);
    if (x->there)
        cvy_mark_destroy(&x->nccl->space, &x->there);
    cvy_mem_free(&x->piece);
    cvy_mem_free(exchange);
}

/* ---- what a sum costs ---- */

/* The shortest of some trials, after one that is not counted: other load only makes a trial longer. */
static cvy_status try_sum(cvy_nccl *n, void *data, int64_t count, int is_narrow, double *seconds_out)
{
    const cvy_nccl_sum sum = {CVY_NCCL_ALL, NULL, data, count, CVY_DTYPE_F32, is_narrow};
    cvy_nccl_exchange *x = NULL;
    CVY_TRY(cvy_nccl_sum_create(n, &sum, NULL, &x));
    cvy_status status = CVY_OK;
    for (int i = 0; i <= TRIALS && status == CVY_OK; i++) {
        const double begin = cvy_clock_s();
        status = cvy_nccl_start(x);
        if (status == CVY_OK)
            status = cvy_nccl_await(x);
        if (status == CVY_OK)
            status = cvy_space_sync(&n->space);
        const double seconds = cvy_clock_s() - begin;
        *seconds_out = i <= 1 ? seconds : CVY_MIN(*seconds_out, seconds);
    }
    cvy_nccl_exchange_destroy(&x);
    return status;
}

cvy_status cvy_nccl_measure(cvy_nccl *n, int is_narrow, cvy_comm_cost *out)
{
    void *data = NULL;
    double seconds[2] = {0, 0};
    cvy_status status = cvy_comm_agree(n->comm, cvy_space_alloc(&n->space, TRIAL_BYTES, 0, &data));
    if (status == CVY_OK)
        status = try_sum(n, data, 1, is_narrow, &seconds[0]);
    if (status == CVY_OK)
        status = try_sum(n, data, TRIAL_BYTES / (int64_t)sizeof(float), is_narrow, &seconds[1]);
    cvy_space_free(&n->space, &data, TRIAL_BYTES);
    CVY_TRY(cvy_comm_agree(n->comm, status));
    CVY_TRY(n->comm->ops->allreduce(n->comm, seconds, CVY_COUNT(seconds), CVY_DTYPE_F64, CVY_REDUCE_MAX));
    *out = (cvy_comm_cost){seconds[0], CVY_MAX((seconds[1] - seconds[0]) / TRIAL_BYTES, 1e-13)};
    return CVY_OK;
}

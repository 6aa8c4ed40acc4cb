/*
 * op_redistribute_device.c: see op_redistribute_device.h. Pieces are packed and unpacked in the lane COMPUTE, each by
 * one launch, and exchanged in the lane COMM as one group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/comm/op_redistribute_device.h"

#include "backend/gpu/device.h"
#include "backend/gpu/gpu.h"
#include "graph/graph_op.h"

struct piece {
    cvy_entries at;
    void *packed;
    size_t bytes;
    int peer, receives;
};

struct cvy_device_parts {
    cvy_device_parts_def def;
    cvy_gpu_kernel copy, add;
    void *value; /* what entries are filled with: one element */
    struct piece *piece;
    int npiece;
    cvy_nccl *nccl;
    cvy_nccl_exchange *swap; /* NULL: this rank sends and receives nothing */
};

/* ---- creating ---- */

static int64_t count(cvy_entries e)
{
    return CVY_MAX(e.end - e.first, 0);
}

static cvy_status add_piece(cvy_device_parts *d, cvy_entries at, int peer, int receives)
{
    struct piece *p = &d->piece[d->npiece];
    if (count(at) == 0 || d->def.outer * d->def.inner == 0)
        return CVY_OK;
    *p = (struct piece){.at = at, .peer = peer, .receives = receives};
    p->bytes = (size_t)(d->def.outer * count(at) * d->def.inner) * cvy_dtype_bytes(d->def.dtype);
    CVY_TRY(cvy_space_alloc(d->def.space, p->bytes, 0, &p->packed));
    d->npiece++;
    return CVY_OK;
}

static cvy_status make_pieces(cvy_device_parts *d)
{
    const int nranks = d->def.comm->nranks;
    CVY_TRY(cvy_mem_alloc(sizeof *d->piece * 2 * (size_t)nranks, &d->piece));
    for (int p = 0; p < nranks; p++) {
        CVY_TRY(add_piece(d, d->def.send[p], p, 0));
        CVY_TRY(add_piece(d, d->def.receive[p], p, 1));
    }
    return CVY_OK;
}

static cvy_status make_swap(cvy_device_parts *d)
{
    cvy_nccl_piece *list = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *list * (size_t)d->npiece, &list));
    for (int i = 0; i < d->npiece; i++) {
        const struct piece *p = &d->piece[i];
        list[i] = (cvy_nccl_piece){p->packed, p->bytes, p->peer, p->receives};
    }
    const cvy_status status = cvy_nccl_swap_create(d->nccl, list, d->npiece, &d->swap);
    cvy_mem_free(&list);
    return status;
}

static cvy_status make_value(cvy_device_parts *d)
{
    int64_t bits = 0;
    const cvy_span one = {.dtype = d->def.dtype, .data = &bits};
    cvy_set(&one, 0, d->def.fill);
    CVY_TRY(cvy_space_alloc(d->def.space, sizeof bits, 0, &d->value));
    return cvy_space_write(d->def.space, d->value, &bits, sizeof bits);
}

static cvy_status set_up(cvy_device_parts *d)
{
    const cvy_device_parts_def *def = &d->def;
    CVY_TRY(cvy_gpu_copy_get(def->space, def->dtype, def->dtype, &d->copy));
    if (def->adds)
        CVY_TRY(cvy_gpu_sum_get(def->space, def->dtype, &d->add));
    CVY_TRY(make_value(d));
    if (def->comm)
        CVY_TRY(make_pieces(d));
    return d->npiece > 0 ? make_swap(d) : CVY_OK;
}

cvy_status cvy_device_parts_create(const cvy_device_parts_def *def, cvy_device_parts **out)
{
    cvy_nccl *nccl = NULL;
    cvy_device_parts *d = NULL;
    if (def->comm)
        CVY_TRY(cvy_nccl_open(def->comm, def->space, &nccl));
    cvy_status status = nccl && cvy_nccl_why(nccl) ? CVY_NOT_APPLICABLE : cvy_mem_alloc(sizeof *d, &d);
    if (status != CVY_OK) {
        cvy_nccl_close(&nccl);
        return status;
    }
    *d = (cvy_device_parts){.def = *def, .nccl = nccl};
    status = set_up(d);
    d->def.send = d->def.receive = NULL;
    if (status != CVY_OK)
        cvy_device_parts_destroy(&d);
    *out = d;
    return status == CVY_NOT_APPLICABLE ? CVY_E_UNSUPPORTED : status; /* nothing else does it */
}

/* What is under way ends first, and then its memory may go. */
void cvy_device_parts_destroy(cvy_device_parts **parts)
{
    cvy_device_parts *d = *parts;
    if (!d)
        return;
    cvy_nccl_exchange_destroy(&d->swap);
    for (int i = 0; i < d->npiece; i++)
        cvy_space_free(d->def.space, &d->piece[i].packed, d->piece[i].bytes);
    if (d->value)
        cvy_space_free(d->def.space, &d->value, sizeof(int64_t));
    cvy_nccl_close(&d->nccl);
    cvy_mem_free(&d->piece);
    cvy_mem_free(parts);
}

/* ---- in each step ---- */

static char *entry(const cvy_device_parts *d, const void *tensor, cvy_entries own, int64_t at)
{
    return (char *)(uintptr_t)tensor + (size_t)((at - own.first) * d->def.inner) * cvy_dtype_bytes(d->def.dtype);
}

/* For each row: entries of a tensor that has the entries `own`, from or into memory with other steps. */
static cvy_status move(const cvy_device_parts *d, const cvy_gpu_kernel *kernel, int64_t nentries, const void *from,
                       cvy_entries from_own, void *to, cvy_entries to_own)
{
    const int64_t inner = d->def.inner, n = CVY_MAX(nentries, 0) * inner;
    const struct walk w = {.count = d->def.outer * n,
                           .ndim = 2,
                           .dim = {d->def.outer, n},
                           .a = {count(from_own) * inner, count(from_own) > 0},
                           .b = {count(to_own) * inner, 1}};
    return cvy_gpu_copy_walk(kernel, CVY_LANE_COMPUTE, &w, from, to);
}

static cvy_status fill(const cvy_device_parts *d, void *dst, int64_t first, int64_t end)
{
    const cvy_entries own = d->def.dst, none = {0, 0};
    const int64_t from = CVY_MAX(first, own.first), to = CVY_MIN(end, own.end);
    return from < to ? move(d, &d->copy, to - from, d->value, none, entry(d, dst, own, from), own) : CVY_OK;
}

/* Copies what this rank has itself, and fills what no rank has, or what is going to be summed. */
static cvy_status copy_own(const cvy_device_parts *d, const void *src, void *dst)
{
    const cvy_device_parts_def *def = &d->def;
    const int64_t first = CVY_MAX(CVY_MAX(def->src.first, def->dst.first), 0),
                  end = CVY_MIN(CVY_MIN(def->src.end, def->dst.end), def->n);
    CVY_TRY(fill(d, dst, def->dst.first, def->adds ? def->dst.end : 0));
    if (!def->adds)
        CVY_TRY(fill(d, dst, def->n, def->dst.end));
    return first < end ? move(d, &d->copy, end - first, entry(d, src, def->src, first), def->src,
                              entry(d, dst, def->dst, first), def->dst)
                       : CVY_OK;
}

cvy_status cvy_device_parts_start(const cvy_device_parts *d, const void *src)
{
    for (int i = 0; i < d->npiece; i++) {
        const struct piece *p = &d->piece[i];
        if (!p->receives)
            CVY_TRY(
                move(d, &d->copy, count(p->at), entry(d, src, d->def.src, p->at.first), d->def.src, p->packed, p->at));
    }
    return d->swap ? cvy_nccl_start(d->swap) : CVY_OK;
}

cvy_status cvy_device_parts_finish(const cvy_device_parts *d, const void *src, void *dst)
{
    CVY_TRY(copy_own(d, src, dst));
    if (d->swap)
        CVY_TRY(cvy_nccl_await(d->swap));
    for (int i = 0; i < d->npiece; i++) {
        const struct piece *p = &d->piece[i];
        if (p->receives)
            CVY_TRY(move(d, d->def.adds ? &d->add : &d->copy, count(p->at), p->packed, p->at,
                         entry(d, dst, d->def.dst, p->at.first), d->def.dst));
    }
    return CVY_OK;
}

/*
 * kernel_reorder.c: copies a tensor from one layout into another, and between f32 and bf16.
 *
 * A step runs it if a kernel needs a source in another layout. Outside a step it copies variables from and to files. If
 * a kernel library has a reorder between both layouts, it is used; otherwise the strided copy of graph_copy.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/number/base_bf16.h"
#include "graph/graph_copy.h"
#include "kernel/kernel_library.h"

struct cvy_reorder {
    const cvy_space *space;
    size_t elem_bytes; /* of the target */
    int threads;
    int same, converts;      /* of equal layouts: one dtype, a plain copy; f32 to bf16 or back */
    int64_t elems, to_elems; /* logical; of the target with padding */
    int64_t row;             /* elements along the last dimension */
    cvy_offsets from, to;    /* of the copy */
    cvy_copy copy;
    const char *src; /* of the current call */
    char *dst;
    const cvy_library_def *library; /* that made `call`; NULL: the loops below run */
    void *call;
};

/* The first library that has a reorder between these layouts. */
static cvy_status ask_libraries(cvy_reorder *r, const cvy_shape *shape, const cvy_memory_format *from,
                                const cvy_memory_format *to)
{
    int count = 0;
    const cvy_library_def *const *table = cvy_library_table(&count);
    for (int i = 0; i < count && !r->library; i++) {
        if (!table[i]->reorder_create || !cvy_library_fits(table[i], r->space))
            continue;
        const cvy_status status = table[i]->reorder_create(r->space, shape, from, to, r->threads, &r->call);
        if (status < 0)
            return status;
        r->library = status == CVY_OK ? table[i] : NULL;
    }
    return CVY_OK;
}

cvy_status cvy_reorder_create(const cvy_space *space, const cvy_shape *shape, const cvy_memory_format *from,
                              const cvy_memory_format *to, int threads, cvy_reorder **out)
{
    CVY_CHECK(from->dtype == to->dtype || (from->dtype == CVY_DTYPE_F32 && to->dtype == CVY_DTYPE_BF16) ||
                  (from->dtype == CVY_DTYPE_BF16 && to->dtype == CVY_DTYPE_F32),
              CVY_E_INTERNAL, "no reorder makes %s of %s", cvy_dtype_text(to->dtype), cvy_dtype_text(from->dtype));
    cvy_status status = CVY_OK;
    cvy_reorder *r = NULL;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *r, &r));
    /* A scalar is treated as one element of one dimension, so that the loops have a last dimension. */
    const cvy_shape one = {.ndim = 1, .dim = {1}};
    const cvy_shape *s = shape->ndim == 0 ? &one : shape;
    r->elem_bytes = cvy_dtype_bytes(to->dtype);
    r->space = space;
    r->threads = threads;
    r->elems = cvy_shape_elems(s);
    r->row = s->dim[s->ndim - 1];
    r->copy = (cvy_copy){.ndim = s->ndim, .from_dtype = from->dtype, .to_dtype = to->dtype};
    memcpy(r->copy.dim, s->dim, sizeof r->copy.dim);
    r->same = from->dtype == to->dtype && cvy_layout_equal(&from->layout, &to->layout);
    r->converts = cvy_layout_equal(&from->layout, &to->layout) && from->dtype != to->dtype;
    if (r->same || r->converts) {
        cvy_blocking b;
        CVY_TRY_OUT(cvy_blocking_make(&to->layout, s, &b));
        r->to_elems = b.elems;
    }
    const int on_host = cvy_space_is_host(space);
    if (!r->same && (!r->converts || !on_host) && r->elems > 0)
        CVY_TRY_OUT(ask_libraries(r, s, from, to));
    if (r->library) {
        *out = r;
        return CVY_OK;
    }
    if (!on_host && !r->same && r->elems > 0)
        CVY_FAIL_OUT(CVY_E_INTERNAL, "no reorder of %s from '%s' to '%s' on %s", cvy_shape_text(shape),
                     from->layout.tag, to->layout.tag, space->backend->name);
    if (!r->same && !r->converts) {
        CVY_TRY_OUT(cvy_offsets_make(&from->layout, s, &r->from));
        CVY_TRY_OUT(cvy_offsets_make(&to->layout, s, &r->to));
        memcpy(r->copy.from, r->from.term, sizeof r->copy.from);
        memcpy(r->copy.to, r->to.term, sizeof r->copy.to);
        r->to_elems = r->to.elems;
    }
    *out = r;
    return CVY_OK;
out:
    cvy_reorder_destroy(&r);
    return status;
}

static void copy_rows(int64_t first, int64_t end, void *arg)
{
    const cvy_reorder *r = arg;
    cvy_copy_run(&r->copy, first * r->row, (end - first) * r->row, r->src, r->dst);
}

static void copy_bytes(int64_t first, int64_t end, void *arg)
{
    const cvy_reorder *r = arg;
    memcpy(r->dst + first, r->src + first, (size_t)(end - first));
}

cvy_status cvy_reorder_run(cvy_reorder *r, const void *src, void *dst)
{
    if (r->library)
        return r->library->reorder_run(r->call, src, dst);
    if (!cvy_space_is_host(r->space))
        return r->same ? cvy_space_copy(r->space, CVY_LANE_COMPUTE, dst, src, (size_t)r->to_elems * r->elem_bytes)
                       : CVY_OK;
    r->src = src;
    r->dst = dst;
    if (r->same) {
        cvy_parallel_for(r->threads, r->to_elems * (int64_t)r->elem_bytes, 1 << 18, copy_bytes, r);
        return CVY_OK;
    }
    if (r->converts) {
        if (r->copy.to_dtype == CVY_DTYPE_F32)
            cvy_bf16_widen(r->threads, src, r->to_elems, dst);
        else
            cvy_bf16_narrow(r->threads, src, r->to_elems, dst); /* to the same bits as optimisers with a shadow copy */
        return CVY_OK;
    }
    if (r->to_elems != r->elems)
        memset(dst, 0, (size_t)r->to_elems * r->elem_bytes);
    if (r->elems > 0)
        cvy_parallel_for(r->threads, r->elems / r->row, CVY_MAX(1, 16384 / r->row), copy_rows, r);
    return CVY_OK;
}

void cvy_reorder_destroy(cvy_reorder **reorder)
{
    cvy_reorder *r = *reorder;
    if (!r)
        return;
    if (r->library)
        r->library->reorder_destroy(r->call);
    cvy_offsets_free(&r->from);
    cvy_offsets_free(&r->to);
    cvy_mem_free(reorder);
}

/*
 * kernel_reorder.c: copies a tensor from one layout into another, and between f32 and bf16.
 *
 * A step runs it if a kernel needs a source in another layout. Outside a step it copies variables from and to files. If
 * a kernel library has a reorder between both layouts, it is used. The plain loops use this fact: in a blocked layout
 * the offset of an element is a sum of one term per dimension, so with a table per dimension and layout, any pair of
 * layouts needs only additions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/number/base_bf16.h"
#include "kernel/kernel_library.h"

struct cvy_reorder {
    size_t elem_bytes; /* of the target */
    cvy_dtype from_dtype, to_dtype;
    int threads, ndim;
    int same, converts;            /* of equal layouts: one dtype, a plain copy; f32 to bf16 or back */
    int64_t elems, to_elems, rows; /* logical; of the target with padding; product of all dimensions but the last */
    int64_t dim[CVY_NDIM_MAX];
    int64_t *from[CVY_NDIM_MAX], *to[CVY_NDIM_MAX];
    const char *src; /* of the current call */
    char *dst;
    const cvy_library_def *library; /* that made `call`; NULL: the loops below run */
    void *call;
};

static cvy_status make_tables(const cvy_layout *layout, const cvy_shape *shape, int64_t **table, int64_t *elems_out)
{
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(layout, shape, &b));
    for (int d = 0; d < shape->ndim; d++) {
        CVY_TRY(cvy_mem_alloc((size_t)shape->dim[d] * sizeof(int64_t), &table[d]));
        int64_t at[CVY_NDIM_MAX] = {0};
        for (; at[d] < shape->dim[d]; at[d]++)
            table[d][at[d]] = cvy_blocking_offset(&b, at);
    }
    *elems_out = b.elems;
    return CVY_OK;
}

/* The first library that has a reorder between these layouts. */
static cvy_status ask_libraries(cvy_reorder *r, const cvy_shape *shape, const cvy_memory_format *from,
                                const cvy_memory_format *to)
{
    int count = 0;
    const cvy_library_def *const *table = cvy_library_table(&count);
    for (int i = 0; i < count && !r->library; i++) {
        if (!table[i]->reorder_create)
            continue;
        const cvy_status status = table[i]->reorder_create(shape, from, to, r->threads, &r->call);
        if (status < 0)
            return status;
        r->library = status == CVY_OK ? table[i] : NULL;
    }
    return CVY_OK;
}

cvy_status cvy_reorder_create(const cvy_shape *shape, const cvy_memory_format *from, const cvy_memory_format *to,
                              int threads, cvy_reorder **out)
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
    r->from_dtype = from->dtype;
    r->to_dtype = to->dtype;
    r->threads = threads;
    r->ndim = s->ndim;
    r->elems = cvy_shape_elems(s);
    memcpy(r->dim, s->dim, sizeof r->dim);
    r->rows = 1;
    for (int d = 0; d + 1 < s->ndim; d++)
        r->rows *= s->dim[d];
    r->same = from->dtype == to->dtype && cvy_layout_equal(&from->layout, &to->layout);
    r->converts = cvy_layout_equal(&from->layout, &to->layout) && from->dtype != to->dtype;
    if (r->same || r->converts) {
        cvy_blocking b;
        CVY_TRY_OUT(cvy_blocking_make(&to->layout, s, &b));
        r->to_elems = b.elems;
    }
    if (!r->same && !r->converts && r->elems > 0)
        CVY_TRY_OUT(ask_libraries(r, s, from, to));
    if (r->library) {
        *out = r;
        return CVY_OK;
    }
    if (!r->same && !r->converts) {
        int64_t from_elems;
        CVY_TRY_OUT(make_tables(&from->layout, s, r->from, &from_elems));
        CVY_TRY_OUT(make_tables(&to->layout, s, r->to, &r->to_elems));
    }
    *out = r;
    return CVY_OK;
out:
    cvy_reorder_destroy(&r);
    return status;
}

/* A row is a run of elements along the last dimension. */
#define COPY_ROW(type)                                                                                                 \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)r->dst)[to + last_to[i]] = ((const type *)r->src)[from + last_from[i]];

static void convert_row(const cvy_reorder *r, int64_t from, int64_t to)
{
    const int last = r->ndim - 1;
    const int64_t n = r->dim[last], *last_from = r->from[last], *last_to = r->to[last];
    if (r->to_dtype == CVY_DTYPE_BF16)
        for (int64_t i = 0; i < n; i++)
            ((cvy_bf16 *)r->dst)[to + last_to[i]] = cvy_bf16_of(((const float *)r->src)[from + last_from[i]]);
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)r->dst)[to + last_to[i]] = cvy_bf16_get(((const cvy_bf16 *)r->src)[from + last_from[i]]);
}

static void copy_rows(int64_t first, int64_t end, void *arg)
{
    const cvy_reorder *r = arg;
    const int last = r->ndim - 1;
    const int64_t n = r->dim[last], *last_from = r->from[last], *last_to = r->to[last];
    for (int64_t row = first; row < end; row++) {
        int64_t from = 0, to = 0, rest = row;
        for (int d = last - 1; d >= 0; d--) {
            from += r->from[d][rest % r->dim[d]];
            to += r->to[d][rest % r->dim[d]];
            rest /= r->dim[d];
        }
        switch (r->from_dtype == r->to_dtype ? r->elem_bytes : 0) {
        case 0: convert_row(r, from, to); break;
        case 1: COPY_ROW(uint8_t) break;
        case 2: COPY_ROW(uint16_t) break;
        case 4: COPY_ROW(uint32_t) break;
        default: COPY_ROW(uint64_t) break;
        }
    }
}

static void copy_bytes(int64_t first, int64_t end, void *arg)
{
    const cvy_reorder *r = arg;
    memcpy(r->dst + first, r->src + first, (size_t)(end - first));
}

void cvy_reorder_run(cvy_reorder *r, const void *src, void *dst)
{
    if (r->library) {
        r->library->reorder_run(r->call, src, dst);
        return;
    }
    r->src = src;
    r->dst = dst;
    if (r->same) {
        cvy_parallel_for(r->threads, r->to_elems * (int64_t)r->elem_bytes, 1 << 18, copy_bytes, r);
        return;
    }
    if (r->converts) {
        if (r->to_dtype == CVY_DTYPE_F32)
            cvy_bf16_widen(r->threads, src, r->to_elems, dst);
        else
            cvy_bf16_narrow(r->threads, src, r->to_elems, dst); /* to the same bits as optimisers with a shadow copy */
        return;
    }
    if (r->to_elems != r->elems)
        memset(dst, 0, (size_t)r->to_elems * r->elem_bytes);
    if (r->elems > 0)
        cvy_parallel_for(r->threads, r->rows, CVY_MAX(1, 16384 / CVY_MAX(1, r->dim[r->ndim - 1])), copy_rows, r);
}

void cvy_reorder_destroy(cvy_reorder **reorder)
{
    cvy_reorder *r = *reorder;
    if (!r)
        return;
    if (r->library)
        r->library->reorder_destroy(r->call);
    for (int d = 0; d < CVY_NDIM_MAX; d++) {
        cvy_mem_free(&r->from[d]);
        cvy_mem_free(&r->to[d]);
    }
    cvy_mem_free(reorder);
}

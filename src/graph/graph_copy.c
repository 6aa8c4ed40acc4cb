/*
 * graph_copy.c: tables of offsets, and the loop over the rows of a strided copy. Kernels have their own reorders for
 * the layouts that they like; this one takes any.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_copy.h"

#include <string.h>

#include "base/number/base_bf16.h"

cvy_status cvy_offsets_make(const cvy_layout *layout, const cvy_shape *shape, cvy_offsets *out)
{
    cvy_blocking b;
    int64_t n = 0, *term = NULL;
    CVY_TRY(cvy_blocking_make(layout, shape, &b));
    for (int d = 0; d < shape->ndim; d++)
        n += shape->dim[d];
    CVY_TRY(cvy_mem_alloc(sizeof *term * (size_t)CVY_MAX(n, 1), &term));
    *out = (cvy_offsets){.elems = b.elems, .term = {term}};
    for (int d = 0; d < shape->ndim; d++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        out->term[d] = term;
        for (; at[d] < shape->dim[d]; at[d]++)
            *term++ = cvy_blocking_offset(&b, at);
    }
    return CVY_OK;
}

void cvy_offsets_free(cvy_offsets *offsets)
{
    cvy_mem_free(&offsets->term[0]);
    *offsets = (cvy_offsets){0};
}

/* A run of elements along the last dimension. */
struct row {
    int64_t at[CVY_NDIM_MAX]; /* position of its first element */
    int64_t n, done;          /* its elements; those of the rows before it */
    int64_t from, to;         /* offsets: of its first element on a side without tables, else of the other dimensions */
};

static void begin(const cvy_copy *c, int64_t first, int64_t n, struct row *r)
{
    *r = (struct row){0};
    for (int d = c->ndim - 1; d >= 0 && n > 0; first /= c->dim[d--])
        r->at[d] = first % c->dim[d];
}

static inline void find_row(const cvy_copy *c, int64_t n, struct row *r)
{
    const int last = c->ndim - 1;
    r->n = CVY_MIN(n - r->done, c->dim[last] - r->at[last]);
    r->from = c->from[0] ? 0 : r->done;
    r->to = c->to[0] ? 0 : r->done;
    for (int d = 0; d < last; d++) {
        r->from += c->from[0] ? c->from[d][r->at[d]] : 0;
        r->to += c->to[0] ? c->to[d][r->at[d]] : 0;
    }
}

static inline void end_row(const cvy_copy *c, struct row *r)
{
    r->done += r->n;
    r->at[c->ndim - 1] += r->n;
    for (int d = c->ndim - 1; d > 0 && r->at[d] == c->dim[d]; d--) {
        r->at[d] = 0;
        r->at[d - 1]++;
    }
}

/* Defines the copy of one kind of elements. x and y: an element of either side. Rows may be short, so all of the loop
 * over rows is in one function. */
#define DEFINE_COPY(name, x_type, y_type, body)                                                                        \
    static void name(const cvy_copy *c, int64_t first, int64_t n, const char *src, char *dst)                          \
    {                                                                                                                  \
        struct row r;                                                                                                  \
        for (begin(c, first, n, &r); r.done < n; end_row(c, &r)) {                                                     \
            find_row(c, n, &r);                                                                                        \
            const int64_t at = r.at[c->ndim - 1], *from = c->from[0] ? c->from[c->ndim - 1] + at : NULL,               \
                          *to = c->to[0] ? c->to[c->ndim - 1] + at : NULL;                                             \
            const char *in = src + (size_t)r.from * sizeof(x_type);                                                    \
            char *out = dst + (size_t)r.to * sizeof(y_type);                                                           \
            for (int64_t i = 0; i < r.n; i++) {                                                                        \
                char *const place = out + (size_t)(to ? to[i] : i) * sizeof(y_type);                                   \
                x_type x;                                                                                              \
                y_type y;                                                                                              \
                memcpy(&x, in + (size_t)(from ? from[i] : i) * sizeof x, sizeof x);                                    \
                body;                                                                                                  \
                memcpy(place, &y, sizeof y);                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_COPY(narrow, float, cvy_bf16, y = cvy_bf16_of(x))
DEFINE_COPY(widen, cvy_bf16, float, y = cvy_bf16_get(x))
DEFINE_COPY(copy_1, uint8_t, uint8_t, y = x)
DEFINE_COPY(copy_2, uint16_t, uint16_t, y = x)
DEFINE_COPY(copy_4, uint32_t, uint32_t, y = x)
DEFINE_COPY(copy_8, uint64_t, uint64_t, y = x)
DEFINE_COPY(add_bf16, cvy_bf16, cvy_bf16, memcpy(&y, place, sizeof y);
            y = cvy_bf16_of(cvy_bf16_get(y) + cvy_bf16_get(x)))
DEFINE_COPY(add_f32, float, float, memcpy(&y, place, sizeof y); y += x)
DEFINE_COPY(add_f64, double, double, memcpy(&y, place, sizeof y); y += x)

void cvy_copy_run(const cvy_copy *c, int64_t first, int64_t n, const void *src, void *dst)
{
    if (c->adds)
        (c->to_dtype == CVY_DTYPE_F32   ? add_f32
         : c->to_dtype == CVY_DTYPE_F64 ? add_f64
                                        : add_bf16)(c, first, n, src, dst);
    else if (c->from_dtype != c->to_dtype)
        (c->to_dtype == CVY_DTYPE_BF16 ? narrow : widen)(c, first, n, src, dst);
    else
        switch (cvy_dtype_bytes(c->to_dtype)) {
        case 1: copy_1(c, first, n, src, dst); break;
        case 2: copy_2(c, first, n, src, dst); break;
        case 4: copy_4(c, first, n, src, dst); break;
        default: copy_8(c, first, n, src, dst); break;
        }
}

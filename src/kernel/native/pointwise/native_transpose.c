/*
 * native_transpose.c: permutes the axes of a tensor, for any type of element of two or four bytes.
 *
 * What counts is the order in memory. From channels first to channels last is the order that a tensor in channels-last
 * layout already has: then the kernel copies, or does nothing if the plan lets the result take over the source's
 * memory. Otherwise axes that stay adjacent are merged, and what remains is copied in rows, or in tiles of two axes,
 * so that reads and writes use whole cache lines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/tensor/op_transpose.h"

enum { TILE = 16 };

struct transpose {
    int threads, ndim;
    int fast;                                            /* the axis along which source elements are adjacent */
    int64_t dim[CVY_NDIM_MAX], src_stride[CVY_NDIM_MAX]; /* axes in the order of the result's memory, merged */
    int64_t dst_stride[CVY_NDIM_MAX];
    size_t bytes; /* of an element */
    const char *src;
    char *dst;
};

static int is_last(const cvy_layout *layout, int ndim)
{
    const cvy_layout last = cvy_layout_channels_last(ndim);
    return ndim > 2 && cvy_layout_equal(layout, &last);
}

/* Axis m in memory, outermost first, is axis order[m] of the shape. */
static void memory_order(const cvy_layout *layout, int ndim, int order[CVY_NDIM_MAX])
{
    for (int d = 0; d < ndim; d++)
        order[d] = is_last(layout, ndim) && d > 0 ? d % (ndim - 1) + 1 : d;
}

static void add_axis(struct transpose *s, int64_t dim, int64_t src_stride)
{
    const int before = s->ndim - 1;
    if (dim == 1)
        return;
    if (before >= 0 && s->src_stride[before] == dim * src_stride) {
        s->dim[before] *= dim;
        s->src_stride[before] = src_stride;
        return;
    }
    s->dim[s->ndim] = dim;
    s->src_stride[s->ndim++] = src_stride;
}

static struct transpose transpose_of(const cvy_node *node, const cvy_layout *src_layout, const cvy_layout *dst_layout)
{
    const cvy_ints *order = &((const cvy_transpose_opts *)node->options)->order;
    const cvy_shape *src = &node->src[0]->shape, *dst = &node->dst[0]->shape;
    struct transpose s = {.bytes = cvy_dtype_bytes(node->src[0]->dtype)};
    int src_order[CVY_NDIM_MAX], dst_order[CVY_NDIM_MAX];
    int64_t stride[CVY_NDIM_MAX], step = 1;
    memory_order(src_layout, src->ndim, src_order);
    memory_order(dst_layout, dst->ndim, dst_order);
    for (int m = src->ndim - 1; m >= 0; m--) {
        stride[src_order[m]] = step;
        step *= src->dim[src_order[m]];
    }
    for (int m = 0; m < dst->ndim; m++) {
        const int d = dst_order[m];
        add_axis(&s, dst->dim[d], stride[d == 0 ? 0 : order->at[d - 1]]);
    }
    if (s.ndim == 0) {
        s.dim[0] = s.src_stride[0] = 1;
        s.ndim = 1;
    }
    step = 1;
    for (int m = s.ndim - 1; m >= 0; m--) {
        s.dst_stride[m] = step;
        step *= s.dim[m];
        if (s.src_stride[m] == 1)
            s.fast = m;
    }
    return s;
}

/* A source in blocks must be reordered anyway; if it then becomes channels last, the kernel need not move it. */
static cvy_status transpose_offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int ndim = node->src[0]->shape.ndim;
    const cvy_layout plain = cvy_layout_plain(), last = cvy_layout_channels_last(ndim);
    CVY_TRY(cvy_native_f32_or_bf16(node));
    const int keeps = transpose_of(node, &last, &plain).ndim == 1;
    ask->src[0] = is_last(&ask->src[0], ndim) || (keeps && !cvy_layout_is_plain(&ask->src[0])) ? last : plain;
    ask->dst[0] = transpose_of(node, &ask->src[0], &last).ndim == 1 && ndim > 2 ? last : plain;
    ask->inplace[0] = transpose_of(node, &ask->src[0], &ask->dst[0]).ndim == 1;
    return CVY_OK;
}

static cvy_status transpose_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct transpose *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = transpose_of(ask->node, &ask->src[0], &ask->dst[0]);
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
}

static void transpose_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Where an item begins: it is counted over all axes but `a` and `b`, in row-major order. */
static void place_of(const struct transpose *s, int a, int b, int64_t item, int64_t *src_out, int64_t *dst_out)
{
    *src_out = *dst_out = 0;
    for (int m = s->ndim - 1; m >= 0; m--) {
        if (m == a || m == b)
            continue;
        *src_out += item % s->dim[m] * s->src_stride[m];
        *dst_out += item % s->dim[m] * s->dst_stride[m];
        item /= s->dim[m];
    }
}

static void transpose_rows_range(int64_t first, int64_t end, void *arg)
{
    const struct transpose *s = arg;
    const size_t row = (size_t)s->dim[s->ndim - 1] * s->bytes;
    for (int64_t i = first; i < end; i++) {
        int64_t from = 0, to = 0;
        place_of(s, s->ndim - 1, -1, i, &from, &to);
        memcpy(s->dst + (size_t)to * s->bytes, s->src + (size_t)from * s->bytes, row);
    }
}

/* rows x columns elements; a row of the result is a column of the source. */
CVY_INLINE void tile_wide(const uint32_t *src, int64_t src_step, uint32_t *dst, int64_t dst_step, int64_t rows,
                          int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            dst[r * dst_step + c] = src[c * src_step + r];
}

CVY_INLINE void tile_narrow(const uint16_t *src, int64_t src_step, uint16_t *dst, int64_t dst_step, int64_t rows,
                            int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            dst[r * dst_step + c] = src[c * src_step + r];
}

/* An item is TILE entries of the fast axis, with all entries of the last one. */
CVY_SIMD static void transpose_tiles_range(int64_t first, int64_t end, void *arg)
{
    const struct transpose *s = arg;
    const int f = s->fast, last = s->ndim - 1;
    const int64_t strips = (s->dim[f] + TILE - 1) / TILE, src_step = s->src_stride[last], dst_step = s->dst_stride[f];
    for (int64_t i = first; i < end; i++) {
        int64_t from = 0, to = 0;
        const int64_t at = i % strips * TILE, rows = CVY_MIN((int64_t)TILE, s->dim[f] - at);
        place_of(s, f, last, i / strips, &from, &to);
        from += at;
        to += at * dst_step;
        for (int64_t c = 0; c < s->dim[last]; c += TILE) {
            const int64_t columns = CVY_MIN((int64_t)TILE, s->dim[last] - c);
            const size_t src_at = (size_t)(from + c * src_step) * s->bytes, dst_at = (size_t)(to + c) * s->bytes;
            if (s->bytes == sizeof(uint32_t))
                tile_wide((const uint32_t *)(s->src + src_at), src_step, (uint32_t *)(s->dst + dst_at), dst_step, rows,
                          columns);
            else
                tile_narrow((const uint16_t *)(s->src + src_at), src_step, (uint16_t *)(s->dst + dst_at), dst_step,
                            rows, columns);
        }
    }
}

static void transpose_copy_range(int64_t first, int64_t end, void *arg)
{
    const struct transpose *s = arg;
    memcpy(s->dst + (size_t)first * s->bytes, s->src + (size_t)first * s->bytes, (size_t)(end - first) * s->bytes);
}

static cvy_status transpose_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct transpose *s = state;
    const int last = s->ndim - 1;
    int64_t elems = 1;
    (void)scratch;
    s->src = src[0];
    s->dst = dst[0];
    for (int m = 0; m < s->ndim; m++)
        elems *= s->dim[m];
    if (elems == 0 || (s->ndim == 1 && s->src == s->dst))
        return CVY_OK;
    if (s->ndim == 1)
        cvy_parallel_for(s->threads, elems, CVY_GRAIN, transpose_copy_range, s);
    else if (s->src_stride[last] == 1)
        cvy_parallel_for(s->threads, elems / s->dim[last], CVY_MAX(1, CVY_GRAIN / s->dim[last]), transpose_rows_range,
                         s);
    else
        cvy_parallel_for(s->threads, elems / s->dim[last] / s->dim[s->fast] * ((s->dim[s->fast] + TILE - 1) / TILE),
                         CVY_MAX(1, CVY_GRAIN / (TILE * s->dim[last])), transpose_tiles_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_transpose) = {
    .name = "native.transpose",
    .op = "transpose",
    .preference = 50,
    .offer = transpose_offer,
    .create = transpose_create,
    .run = transpose_run,
    .destroy = transpose_destroy,
};

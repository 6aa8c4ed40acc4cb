/*
 * native_max_pool.c: max pooling of f32 and bf16, and its gradient, in one pass each over memory.
 *
 * The index of a winner is one byte (four for large windows), so backward reads neither the source nor the result of
 * forward. If channels are in blocks or last, and the index is a byte, the loops are those of native_max_pool_simd.h.
 * The loops here are for f32 in the plain layout or with large windows. They compute windows in runs within one row,
 * one tap after the other for the whole run. Backward clears each row of the source just before the first window that
 * reads it, and adds while the row is in the cache. Each plane belongs to one thread, so nothing is atomic and the
 * order of the sums is fixed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "kernel/native/pool/native_max_pool.h"

/* Chooses the layout of source i; for bf16, a layout whose vectors run over channels. */
static cvy_status offer(const cvy_kernel_ask *ask, int i, const cvy_window *w, cvy_layout *layout_out)
{
    const cvy_shape *shape = &ask->node->src[i]->shape;
    cvy_layout layout = cvy_native_activation(ask, i);
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    if (ask->node->src[0]->dtype == CVY_DTYPE_BF16) {
        if (cvy_layout_is_plain(&layout))
            layout = cvy_layout_channels_last(shape->ndim);
        CVY_CHECK(cvy_max_pool_index_dtype(w) == CVY_DTYPE_U8, CVY_NOT_APPLICABLE,
                  "in bf16 this kernel takes windows of at most 255 positions; this one has %lld", (long long)w->taps);
        CVY_CHECK(cvy_simd_find(cvy_planes_make(shape, &layout).block), CVY_NOT_APPLICABLE,
                  "in bf16 this kernel needs at least as many channels as a vector has lanes; this layer has %lld",
                  (long long)shape->dim[1]);
    } else if (cvy_planes_make(shape, &layout).block > 16) {
        layout = cvy_layout_plain();
    }
    *layout_out = layout;
    return CVY_OK;
}

static cvy_status check_dilation(const cvy_window *w)
{
    for (int d = 0; d < w->nspace; d++)
        CVY_CHECK(w->dilation[d] == 1, CVY_NOT_APPLICABLE, "this kernel has no dilation; this layer has %lld",
                  (long long)w->dilation[d]);
    return CVY_OK;
}

static cvy_status max_pool_offer(cvy_kernel_ask *ask)
{
    cvy_window w;
    CVY_TRY(cvy_pool_window("max_pool", ask->node->options, &ask->node->src[0]->shape, &w));
    CVY_TRY(check_dilation(&w));
    CVY_TRY(offer(ask, 0, &w, &ask->src[0]));
    ask->dst[0] = ask->dst[1] = ask->src[0];
    return CVY_OK;
}

static cvy_status max_pool_grad_offer(cvy_kernel_ask *ask)
{
    const cvy_pool_grad_opts *o = ask->node->options;
    cvy_window w;
    CVY_TRY(cvy_pool_window("max_pool", &o->pool, &o->src, &w));
    CVY_TRY(check_dilation(&w));
    /* The index is in the layout that forward wrote; it is best not to reorder it. */
    CVY_TRY(offer(ask, 1, &w, &ask->src[1]));
    ask->src[0] = ask->dst[0] = ask->src[1];
    return CVY_OK;
}

/* pooled, layout: shape and layout of the result, or of ddst. */
static cvy_status create(const cvy_window *w, const cvy_shape *src, const cvy_shape *pooled, const cvy_layout *layout,
                         const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_planes sliced = cvy_planes_make(pooled, layout);
    cvy_max_pool *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    const cvy_status status = cvy_pool_walk_make(w, src, layout, &s->w);
    if (status != CVY_OK) {
        cvy_mem_free(&s);
        return status;
    }
    s->w.wide = cvy_max_pool_index_dtype(w) != CVY_DTYPE_U8;
    s->no_winner = cvy_max_pool_no_winner(cvy_max_pool_index_dtype(w));
    s->simd = s->w.wide ? NULL : cvy_simd_find(s->w.planes.block);
    s->bf16 = ask->node->src[0]->dtype == CVY_DTYPE_BF16;
    s->sliced_pitch = sliced.pitch;
    s->sliced_step = sliced.step;
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
}

static cvy_status max_pool_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_window w;
    const cvy_pool_opts *o = ask->node->options;
    CVY_TRY(cvy_pool_window("max_pool", o, &ask->node->src[0]->shape, &w));
    CVY_TRY(create(&w, &ask->node->src[0]->shape, &ask->node->dst[0]->shape, &ask->dst[0], ask, state_out));
    ((cvy_max_pool *)*state_out)->relu = o->relu;
    return CVY_OK;
}

static cvy_status max_pool_grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_pool_grad_opts *o = ask->node->options;
    cvy_window w;
    CVY_TRY(cvy_pool_window("max_pool", &o->pool, &o->src, &w));
    return create(&w, &o->src, &ask->node->src[0]->shape, &ask->src[0], ask, state_out);
}

static void max_pool_destroy(void *state)
{
    cvy_max_pool *s = state;
    if (s)
        cvy_pool_walk_free(&s->w);
    cvy_mem_free(&s);
}

/* Padding lanes must be zero. Those of the values are zero already, those of the index may not be. */
static void clear_padding(const cvy_max_pool *s, int64_t plane)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t used = w->planes.channels % w->planes.block;
    if (!s->index || used == 0 || plane % w->planes.groups != w->planes.groups - 1)
        return;
    const size_t bytes = w->wide ? sizeof(int32_t) : sizeof(uint8_t);
    for (int64_t i = 0; i < w->dst_elems; i++)
        memset((char *)s->index + (size_t)((plane * w->dst_elems + i) * w->planes.block + used) * bytes, 0,
               (size_t)(w->planes.block - used) * bytes);
}

/* ---- forward ---- */

/* Windows are computed in runs within one row; the results of a run stay in the first-level cache for all taps. */
enum { RUN_LANES = 1024 };

/* Sets the start values. Nothing is smaller than minus infinity; if all values are minus infinity, the first tap inside
 * the source wins. With ReLU the start value is zero, and its index says that no tap has won. */
CVY_INLINE void start_run(const cvy_max_pool *s, const int64_t B, int64_t first, int64_t n, int64_t tap,
                          float *restrict best, int32_t *restrict arg)
{
    const float floor = s->relu ? 0 : -INFINITY;
    for (int64_t x = 0; x < n; x++) {
        int64_t x0, x1;
        cvy_pool_taps(&s->w, 2, first + x, &x0, &x1);
        const int32_t start = s->relu ? s->no_winner : (int32_t)(tap + x0);
        for (int64_t l = 0; l < B; l++) {
            best[x * B + l] = floor;
            arg[x * B + l] = start;
        }
    }
}

/* Reads one tap of n windows, which are `step` elements apart in the source. A value wins if it is larger than the best
 * so far, or if it is the first NaN. */
CVY_INLINE void update_max_run(const int64_t B, const float *restrict src, int64_t step, int64_t n, int32_t tap,
                               float *restrict best, int32_t *restrict arg)
{
    for (int64_t x = 0; x < n; x++)
        for (int64_t l = 0; l < B; l++) {
            const float v = src[x * step + l], b = best[x * B + l];
            const int32_t a = arg[x * B + l];
            const int wins = !(v <= b) & (b == b);
            best[x * B + l] = wins ? v : b;
            arg[x * B + l] = wins ? tap : a;
        }
}

CVY_INLINE void forward_run(const cvy_max_pool *s, const int64_t B, const float *src, int64_t d, int64_t h,
                            int64_t first, int64_t n, float *best, int32_t *arg)
{
    const cvy_pool_walk *w = &s->w;
    int64_t d0, d1, h0, h1;
    const int64_t ds = cvy_pool_taps(w, 0, d, &d0, &d1), hs = cvy_pool_taps(w, 1, h, &h0, &h1);
    start_run(s, B, first, n, (d0 * w->kernel[1] + h0) * w->kernel[2], best, arg);
    for (int64_t i = d0; i < d1; i++)
        for (int64_t j = h0; j < h1; j++)
            for (int64_t k = 0; k < w->kernel[2]; k++) {
                const int64_t x0 = CVY_MAX(w->reach[k].first, first), x1 = CVY_MIN(w->reach[k].end, first + n);
                const int64_t row = ((ds + i) * w->src[1] + hs + j) * w->src[2], at = x0 * w->stride[2] - w->pad[2] + k;
                update_max_run(B, src + (row + at) * B, w->stride[2] * B, x1 - x0,
                               (int32_t)((i * w->kernel[1] + j) * w->kernel[2] + k), best + (x0 - first) * B,
                               arg + (x0 - first) * B);
            }
}

CVY_INLINE void store_index(const cvy_max_pool *s, int64_t at, const int32_t *restrict arg, int64_t n)
{
    if (s->index && s->w.wide)
        memcpy((int32_t *)s->index + at, arg, (size_t)n * sizeof *arg);
    else if (s->index) {
        uint8_t *restrict index = (uint8_t *)s->index + at;
        for (int64_t l = 0; l < n; l++)
            index[l] = (uint8_t)arg[l];
    }
}

CVY_INLINE void forward_plane(const cvy_max_pool *s, const int64_t B, int64_t plane)
{
    const cvy_pool_walk *w = &s->w;
    const float *src = (const float *)s->src + plane * w->src_elems * B;
    int64_t out = plane * w->dst_elems * B, to = cvy_plane_in(&w->planes, s->sliced_pitch, plane) * w->dst_elems * B;
    int32_t arg[RUN_LANES];
    for (int64_t row = 0; row < w->dst[0] * w->dst[1]; row++)
        for (int64_t x = 0; x < w->dst[2]; x += RUN_LANES / B) {
            const int64_t n = CVY_MIN(RUN_LANES / B, w->dst[2] - x);
            forward_run(s, B, src, row / w->dst[1], row % w->dst[1], x, n, (float *)s->dst + to, arg);
            store_index(s, out, arg, n * B);
            out += n * B;
            to += n * B;
        }
}

CVY_SIMD static void max_pool_planes(int64_t first, int64_t end, void *arg)
{
    const cvy_max_pool *s = arg;
    for (int64_t plane = first; plane < end; plane++)
        if (s->w.planes.block == 1)
            forward_plane(s, 1, plane);
        else
            forward_plane(s, s->w.planes.block, plane);
}

static void clear_planes(int64_t first, int64_t end, void *arg)
{
    for (int64_t plane = first; plane < end; plane++)
        clear_padding(arg, plane);
}

/* The smallest number of rows of windows, or of the source, that is worth a thread. */
static int64_t row_grain(const cvy_max_pool *s)
{
    return CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, s->w.src[2] * s->w.planes.block));
}

/* Whether a result with so many positions per plane may be written with non-temporal stores: it must be large, and
 * vectors must fill whole cache lines. */
static int may_stream(const cvy_max_pool *s, const void *dst, int64_t positions, int64_t step)
{
    const int64_t bytes = s->bf16 ? 2 : 4;
    return positions * s->w.planes.n * s->w.planes.groups * s->w.planes.block * bytes >= CVY_STREAM_BYTES &&
           s->w.planes.block * bytes % CVY_LINE_BYTES == 0 && step * bytes % CVY_LINE_BYTES == 0 &&
           (uintptr_t)dst % CVY_LINE_BYTES == 0 && (uintptr_t)s->index % CVY_LINE_BYTES == 0;
}

static cvy_status max_pool_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_max_pool *s = state;
    (void)scratch;
    s->src = src[0];
    s->dst = dst[0];
    s->index = dst[1];
    s->stream = may_stream(s, s->dst, s->w.dst_elems, s->sliced_step);
    const int64_t planes = s->w.planes.n * s->w.planes.groups;
    if (s->simd)
        cvy_parallel_for(s->threads, planes * s->w.dst[0] * s->w.dst[1], row_grain(s), s->simd->max_pool_range[s->bf16],
                         s);
    else
        cvy_parallel_for(s->threads, planes, 1, max_pool_planes, s);
    if (s->index && s->w.planes.channels % s->w.planes.block)
        cvy_parallel_for(s->threads, planes, 1, clear_planes, s);
    return CVY_OK;
}

/* ---- backward ---- */

/* Adds one tap of n windows: where this tap was the winner, ddst is added to the source, `step` elements apart. */
CVY_INLINE void add_wins(const int64_t B, const int wide, const float *restrict ddst, const void *restrict index,
                         int32_t tap, int64_t n, int64_t step, float *restrict dsrc)
{
    for (int64_t x = 0; x < n; x++) {
        float won[16];
        for (int64_t l = 0; l < B; l++) {
            const int32_t winner = wide ? ((const int32_t *)index)[x * B + l] : ((const uint8_t *)index)[x * B + l];
            const float d = ddst[x * B + l];
            won[l] = winner == tap ? d : 0;
        }
        for (int64_t l = 0; l < B; l++)
            dsrc[x * step + l] += won[l];
    }
}

/* Clears the rows of a source plane which destination row `row` is the first to write, just before it does so (they are
 * then in the cache). If `row` is the number of rows, clears all remaining rows. *clear: rows cleared so far. */
CVY_INLINE void clear_rows(const cvy_pool_walk *w, int64_t block, int64_t row, float *dsrc, int64_t *clear)
{
    const int64_t d = row / w->dst[1], h = row % w->dst[1], row_elems = w->src[2] * block;
    int64_t touched = w->src[0] * w->src[1];
    if (row < w->dst[0] * w->dst[1])
        touched = (CVY_MIN(d * w->stride[0] - w->pad[0] + w->kernel[0], w->src[0]) - 1) * w->src[1] +
                  CVY_MIN(h * w->stride[1] - w->pad[1] + w->kernel[1], w->src[1]);
    if (touched > *clear) {
        memset(dsrc + *clear * row_elems, 0, (size_t)((touched - *clear) * row_elems) * sizeof *dsrc);
        *clear = touched;
    }
}

/* ddst_in, in: first element of the row in ddst and in the index. */
CVY_INLINE void backward_row(const cvy_max_pool *s, const int64_t B, const int wide, int64_t d, int64_t h,
                             int64_t ddst_in, int64_t in, float *dsrc)
{
    const cvy_pool_walk *w = &s->w;
    int64_t d0, d1, h0, h1;
    const int64_t ds = cvy_pool_taps(w, 0, d, &d0, &d1), hs = cvy_pool_taps(w, 1, h, &h0, &h1);
    for (int64_t i = d0; i < d1; i++)
        for (int64_t j = h0; j < h1; j++)
            for (int64_t k = 0; k < w->kernel[2]; k++) {
                const struct cvy_pool_reach r = w->reach[k];
                const int64_t at = ((ds + i) * w->src[1] + hs + j) * w->src[2] + r.start, from = in + r.first * B;
                add_wins(B, wide, (const float *)s->ddst + ddst_in + r.first * B,
                         (const char *)s->index_in + from * (wide ? 4 : 1),
                         (int32_t)((i * w->kernel[1] + j) * w->kernel[2] + k), r.end - r.first, w->stride[2] * B,
                         dsrc + at * B);
            }
}

CVY_INLINE void backward_plane(const cvy_max_pool *s, const int64_t B, const int wide, int64_t plane)
{
    const cvy_pool_walk *w = &s->w;
    float *dsrc = (float *)s->dsrc + plane * w->src_elems * B;
    const int64_t from = cvy_plane_in(&w->planes, s->sliced_pitch, plane);
    int64_t clear = 0; /* rows of the plane before this one hold sums */
    for (int64_t row = 0; row < w->dst[0] * w->dst[1]; row++) {
        clear_rows(w, B, row, dsrc, &clear);
        backward_row(s, B, wide, row / w->dst[1], row % w->dst[1], (from * w->dst_elems + row * w->dst[2]) * B,
                     (plane * w->dst_elems + row * w->dst[2]) * B, dsrc);
    }
    clear_rows(w, B, w->dst[0] * w->dst[1], dsrc, &clear);
}

CVY_SIMD static void max_pool_grad_planes(int64_t first, int64_t end, void *arg)
{
    const cvy_max_pool *s = arg;
    for (int64_t plane = first; plane < end; plane++)
        if (!s->w.wide && s->w.planes.block == 1)
            backward_plane(s, 1, 0, plane);
        else
            backward_plane(s, s->w.planes.block, s->w.wide, plane);
}

static cvy_status max_pool_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_max_pool *s = state;
    (void)scratch;
    s->ddst = src[0];
    s->index_in = src[1];
    s->dsrc = dst[0];
    s->stream = may_stream(s, s->dsrc, s->w.src_elems, s->w.planes.block);
    const int64_t planes = s->w.planes.n * s->w.planes.groups;
    if (s->simd)
        cvy_parallel_for(s->threads, planes * s->w.src[0] * s->w.src[1], row_grain(s),
                         s->simd->max_pool_grad_range[s->bf16], s);
    else
        cvy_parallel_for(s->threads, planes, 1, max_pool_grad_planes, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_max_pool) = {
    .name = "native.max_pool",
    .op = "max_pool",
    .preference = 50,
    .slice_dst = 1,
    .slice_last = 1,
    .offer = max_pool_offer,
    .create = max_pool_create,
    .run = max_pool_run,
    .destroy = max_pool_destroy,
};

CVY_KERNEL_DEFINE(native_max_pool_grad) = {
    .name = "native.max_pool_grad",
    .op = "max_pool_grad",
    .preference = 50,
    .slice_src = 1,
    .slice_last = 1,
    .offer = max_pool_grad_offer,
    .create = max_pool_grad_create,
    .run = max_pool_grad_run,
    .destroy = max_pool_destroy,
};

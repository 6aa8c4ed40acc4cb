/*
 * native_avg_pool.c: average pooling and its gradient, in one pass each over memory.
 *
 * Values are f32, or bf16 in blocks of sixteen channels (bf16 with channels last: native_bf16_pool.c). With channels in
 * blocks the loops are those of native_avg_pool_simd.h; the loops here are for the plain layout, and work in the same
 * way. The divisor is a product of one count for each dimension, so its inverses are three small tables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/pool/native_avg_pool.h"

enum { BLOCK_HALF = 16 }; /* channels of a block of bf16 */

/* Asks for scratch memory: one row of sums for each thread. */
static cvy_status need_rows(const cvy_pool_opts *o, const cvy_shape *src, cvy_kernel_ask *ask)
{
    cvy_window w;
    CVY_TRY(cvy_pool_window("avg_pool", o, src, &w));
    const int64_t wide = CVY_MAX(w.src[w.nspace - 1], w.dst[w.nspace - 1]) * cvy_planes_make(src, &ask->src[0]).block;
    ask->scratch_bytes = (size_t)(CVY_MAX(1, ask->threads) * wide) * sizeof(float);
    return CVY_OK;
}

static cvy_status check_dtype(const cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    CVY_CHECK(ask->node->src[0]->dtype == CVY_DTYPE_F32 ||
                  (cvy_layout_channel_block(&ask->src[0], ask->node->src[0]->shape.ndim) == BLOCK_HALF &&
                   cvy_simd_find(BLOCK_HALF)),
              CVY_NOT_APPLICABLE, "this kernel takes bf16 only in blocks of %d channels", BLOCK_HALF);
    return CVY_OK;
}

/* The layout of the source: blocks if there are vectors for them. */
static cvy_layout channels_of(const cvy_kernel_ask *ask)
{
    const cvy_layout layout = cvy_native_channels(ask, 0);
    const int64_t block = cvy_layout_channel_block(&layout, ask->node->src[0]->shape.ndim);
    return block > 1 && cvy_simd_find(block) ? layout : cvy_layout_plain();
}

static cvy_status avg_pool_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(check_dtype(ask));
    ask->src[0] = ask->dst[0] = channels_of(ask);
    return need_rows(ask->node->options, &ask->node->src[0]->shape, ask);
}

/* A plain ddst, for example from a fully connected layer, is small. It is better to reorder it than to leave the larger
 * dsrc plain. */
static cvy_status avg_pool_grad_offer(cvy_kernel_ask *ask)
{
    const cvy_pool_grad_opts *o = ask->node->options;
    CVY_TRY(check_dtype(ask));
    const cvy_layout now = channels_of(ask);
    ask->src[0] = ask->dst[0] = cvy_layout_is_plain(&now) ? cvy_native_preferred(&o->src) : now;
    return need_rows(&o->pool, &o->src, ask);
}

static void avg_pool_destroy(void *state)
{
    cvy_avg_pool *s = state;
    for (int d = 0; s && d < 3; d++) {
        cvy_mem_free(&s->reads[d]);
        cvy_mem_free(&s->cover[d]);
    }
    if (s)
        cvy_pool_walk_free(&s->w);
    cvy_mem_free(&s);
}

static cvy_status make_spans(cvy_avg_pool *s, int d)
{
    const cvy_pool_walk *w = &s->w;
    CVY_TRY(cvy_mem_alloc((size_t)w->dst[d] * sizeof *s->reads[d], &s->reads[d]));
    CVY_TRY(cvy_mem_alloc((size_t)w->src[d] * sizeof *s->cover[d], &s->cover[d]));
    for (int64_t at = 0; at < w->dst[d]; at++) {
        int64_t k0, k1;
        const int64_t start = cvy_pool_taps(w, d, at, &k0, &k1);
        s->reads[d][at] = (cvy_pool_span){start + k0, start + k1};
    }
    for (int64_t at = 0; at < w->src[d]; at++) {
        cvy_pool_span *c = &s->cover[d][at];
        cvy_pool_windows_over(w, d, at, &c->first, &c->end);
        c->end = CVY_MAX(c->first, c->end);
    }
    return CVY_OK;
}

static cvy_status create(const cvy_pool_opts *o, const cvy_shape *src, const cvy_kernel_ask *ask, void **state_out)
{
    cvy_status status = CVY_OK;
    cvy_avg_pool *s = NULL;
    cvy_window w;
    CVY_TRY(cvy_pool_window("avg_pool", o, src, &w));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    CVY_TRY_OUT(cvy_pool_walk_make(&w, src, &ask->src[0], &s->w));
    CVY_TRY_OUT(cvy_pool_walk_average(&s->w, o->count_include_pad));
    for (int d = 0; d < 3; d++)
        CVY_TRY_OUT(make_spans(s, d));
    s->threads = CVY_MAX(1, ask->threads);
    s->half = ask->node->src[0]->dtype == CVY_DTYPE_BF16;
    s->simd = cvy_simd_find(s->w.planes.block);
    *state_out = s;
    return CVY_OK;
out:
    avg_pool_destroy(s);
    return status;
}

static cvy_status avg_pool_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask->node->options, &ask->node->src[0]->shape, ask, state_out);
}

static cvy_status avg_pool_grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_pool_grad_opts *o = ask->node->options;
    return create(&o->pool, &o->src, ask, state_out);
}

/* ---- the plain layout: each thread computes its part of the planes ---- */

/* sum = f times the row of n values, or += if `add` is set. */
CVY_INLINE void add_row(const float *row, float f, int add, int64_t n, float *restrict sum)
{
    if (add)
        for (int64_t i = 0; i < n; i++)
            sum[i] += f * row[i];
    else
        for (int64_t i = 0; i < n; i++)
            sum[i] = f * row[i];
}

CVY_INLINE float sum_of(const float *row, cvy_pool_span span)
{
    float sum = 0;
    for (int64_t i = span.first; i < span.end; i++)
        sum += row[i];
    return sum;
}

CVY_INLINE void forward_row(const cvy_avg_pool *s, const float *src, int64_t d, int64_t h, float *restrict sums,
                            float *dst)
{
    const cvy_pool_walk *w = &s->w;
    const cvy_pool_span z = s->reads[0][d], y = s->reads[1][h];
    for (int64_t i = z.first; i < z.end; i++)
        for (int64_t j = y.first; j < y.end; j++)
            add_row(src + (i * w->src[1] + j) * w->src[2], 1, i > z.first || j > y.first, w->src[2], sums);
    for (int64_t x = 0; x < w->dst[2]; x++)
        dst[x] = w->inverse[0][d] * w->inverse[1][h] * w->inverse[2][x] * sum_of(sums, s->reads[2][x]);
}

CVY_INLINE void forward_plane(const cvy_avg_pool *s, int64_t plane, float *sums)
{
    const cvy_pool_walk *w = &s->w;
    for (int64_t row = 0; row < w->dst[0] * w->dst[1]; row++)
        forward_row(s, (const float *)s->src + plane * w->src_elems, row / w->dst[1], row % w->dst[1], sums,
                    (float *)s->dst + plane * w->dst_elems + row * w->dst[2]);
}

CVY_INLINE void backward_row(const cvy_avg_pool *s, const float *ddst, cvy_pool_span z, cvy_pool_span y,
                             float *restrict sums, float *dsrc)
{
    const cvy_pool_walk *w = &s->w;
    if (z.first >= z.end || y.first >= y.end)
        memset(sums, 0, (size_t)w->dst[2] * sizeof *sums);
    for (int64_t d = z.first; d < z.end; d++)
        for (int64_t h = y.first; h < y.end; h++)
            add_row(ddst + (d * w->dst[1] + h) * w->dst[2], w->inverse[0][d] * w->inverse[1][h],
                    d > z.first || h > y.first, w->dst[2], sums);
    for (int64_t x = 0; x < w->dst[2]; x++)
        sums[x] *= w->inverse[2][x];
    for (int64_t x = 0; x < w->src[2]; x++)
        dsrc[x] = sum_of(sums, s->cover[2][x]);
}

CVY_INLINE void backward_plane(const cvy_avg_pool *s, int64_t plane, float *sums)
{
    const cvy_pool_walk *w = &s->w;
    for (int64_t row = 0; row < w->src[0] * w->src[1]; row++)
        backward_row(s, (const float *)s->src + plane * w->dst_elems, s->cover[0][row / w->src[1]],
                     s->cover[1][row % w->src[1]], sums, (float *)s->dst + plane * w->src_elems + row * w->src[2]);
}

#define PLANES(name, do_plane)                                                                                         \
    CVY_SIMD static void name(int64_t begin, int64_t end, void *arg)                                                   \
    {                                                                                                                  \
        const cvy_avg_pool *s = arg;                                                                                   \
        const int64_t planes = s->w.planes.n * s->w.planes.groups;                                                     \
        for (int64_t t = begin; t < end; t++)                                                                          \
            for (int64_t plane = planes * t / s->threads; plane < planes * (t + 1) / s->threads; plane++)              \
                do_plane(s, plane, s->rows + t * cvy_avg_pool_row(&s->w));                                             \
    }

PLANES(forward_planes, forward_plane)
PLANES(backward_planes, backward_plane)

/* ---- running ---- */

static cvy_status run(cvy_avg_pool *s, const void *src, void *dst, void *scratch, cvy_range_fn range)
{
    s->src = src;
    s->dst = dst;
    s->rows = scratch;
    cvy_parallel_for(s->threads, s->threads, 1, range, s);
    return CVY_OK;
}

static cvy_status avg_pool_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_avg_pool *s = state;
    return run(s, src[0], dst[0], scratch, s->simd ? s->simd->avg_pool_range[s->half] : forward_planes);
}

static cvy_status avg_pool_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_avg_pool *s = state;
    return run(s, src[0], dst[0], scratch, s->simd ? s->simd->avg_pool_grad_range[s->half] : backward_planes);
}

CVY_KERNEL_DEFINE(native_avg_pool) = {
    .name = "native.avg_pool",
    .op = "avg_pool",
    .preference = 60, /* preferred to native_bf16_pool.c if both apply */
    .offer = avg_pool_offer,
    .create = avg_pool_create,
    .run = avg_pool_run,
    .destroy = avg_pool_destroy,
};

CVY_KERNEL_DEFINE(native_avg_pool_grad) = {
    .name = "native.avg_pool_grad",
    .op = "avg_pool_grad",
    .preference = 60, /* preferred to native_bf16_pool.c if both apply */
    .offer = avg_pool_grad_offer,
    .create = avg_pool_grad_create,
    .run = avg_pool_grad_run,
    .destroy = avg_pool_destroy,
};

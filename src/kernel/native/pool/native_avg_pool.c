/*
 * native_avg_pool.c: average pooling and its gradient, in one pass each over memory.
 *
 * Values are f32, or bf16 in blocks of sixteen channels (bf16 with channels last: native_bf16_pool.c). The rows of the
 * source that a row of windows covers are added first, in the first-level cache; then the windows slide along this sum.
 * Backward is the reverse: ddst of all rows of windows that cover a row of the source is added, and each source
 * position sums over the windows that cover it; nothing is cleared first. The divisor is a product of one count for
 * each dimension, so its inverses are three small tables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/pool/native_pool.h"

enum { BLOCK_HALF = 16 }; /* channels of a block of bf16 */

struct avg_pool {
    cvy_pool_walk w;
    int threads;
    struct cover *cover[3]; /* one for each source coordinate of a dimension */
    int half;               /* values are bf16 */
    const void *src;        /* of the running call: forward's source, backward's ddst */
    void *dst;
    float *rows; /* one row of sums for each thread */
};

struct cover { /* the windows first .. end-1 cover a source coordinate */
    int64_t first, end;
};

static int64_t row_floats(const cvy_pool_walk *w)
{
    return CVY_MAX(w->src[2], w->dst[2]) * w->planes.block;
}

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
                  cvy_layout_channel_block(&ask->src[0], ask->node->src[0]->shape.ndim) == BLOCK_HALF,
              CVY_NOT_APPLICABLE, "this kernel takes bf16 only in blocks of %d channels", BLOCK_HALF);
    return CVY_OK;
}

static cvy_status avg_pool_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(check_dtype(ask));
    ask->src[0] = ask->dst[0] = cvy_native_channels(ask, 0);
    return need_rows(ask->node->options, &ask->node->src[0]->shape, ask);
}

/* A plain ddst, for example from a fully connected layer, is small. It is better to reorder it than to leave the larger
 * dsrc plain. */
static cvy_status avg_pool_grad_offer(cvy_kernel_ask *ask)
{
    const cvy_pool_grad_opts *o = ask->node->options;
    CVY_TRY(check_dtype(ask));
    const cvy_layout now = cvy_native_channels(ask, 0);
    ask->src[0] = ask->dst[0] = cvy_layout_is_plain(&now) ? cvy_native_preferred(&o->src) : now;
    return need_rows(&o->pool, &o->src, ask);
}

static void avg_pool_destroy(void *state)
{
    struct avg_pool *s = state;
    for (int d = 0; s && d < 3; d++)
        cvy_mem_free(&s->cover[d]);
    if (s)
        cvy_pool_walk_free(&s->w);
    cvy_mem_free(&s);
}

static cvy_status make_cover(const cvy_pool_walk *w, int d, struct cover **out)
{
    struct cover *cover = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)w->src[d] * sizeof *cover, &cover));
    for (int64_t at = 0; at < w->src[d]; at++) {
        cvy_pool_windows_over(w, d, at, &cover[at].first, &cover[at].end);
        cover[at].end = CVY_MAX(cover[at].first, cover[at].end);
    }
    *out = cover;
    return CVY_OK;
}

static cvy_status create(const cvy_pool_opts *o, const cvy_shape *src, const cvy_kernel_ask *ask, void **state_out)
{
    cvy_status status = CVY_OK;
    struct avg_pool *s = NULL;
    cvy_window w;
    CVY_TRY(cvy_pool_window("avg_pool", o, src, &w));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    CVY_TRY_OUT(cvy_pool_walk_make(&w, src, &ask->src[0], &s->w));
    CVY_TRY_OUT(cvy_pool_walk_average(&s->w, o->count_include_pad));
    for (int d = 0; d < 3; d++)
        CVY_TRY_OUT(make_cover(&s->w, d, &s->cover[d]));
    s->threads = CVY_MAX(1, ask->threads);
    s->half = ask->node->src[0]->dtype == CVY_DTYPE_BF16;
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

/* ---- rows ---- */

/* sum = f times the row of values from `at` on, or += if `add` is set. */
CVY_INLINE void add_row(const int half, const void *values, int64_t at, float f, int add, int64_t n,
                        float *restrict sum)
{
    const cvy_bf16 *narrow = (const cvy_bf16 *)values + at;
    const float *row = (const float *)values + at;
    if (half)
        for (int64_t i = 0; i < n; i++)
            sum[i] = (add ? sum[i] : 0) + f * cvy_bf16_get(narrow[i]);
    else
        for (int64_t i = 0; i < n; i++)
            sum[i] = (add ? sum[i] : 0) + f * row[i];
}

/* Stores, from element `at` on, f times the sum of n adjacent vectors of B floats. */
CVY_INLINE void add_along(const int half, const int64_t B, const float *restrict from, int64_t n, float f, void *values,
                          int64_t at)
{
    cvy_bf16 *narrow = (cvy_bf16 *)values + at;
    float *out = (float *)values + at;
    float sum[16] = {0};
    for (int64_t k = 0; k < n; k++)
        for (int64_t l = 0; l < B; l++)
            sum[l] += from[k * B + l];
    if (half)
        for (int64_t l = 0; l < B; l++)
            narrow[l] = cvy_bf16_of(f * sum[l]);
    else
        for (int64_t l = 0; l < B; l++)
            out[l] = f * sum[l];
}

/* src: first element of the source plane; dst: first element of the destination row. */
CVY_INLINE void forward_row(const struct avg_pool *s, const int half, const int64_t B, int64_t src, int64_t d,
                            int64_t h, float *restrict rows, int64_t dst)
{
    const cvy_pool_walk *w = &s->w;
    int64_t d0, d1, h0, h1, k0, k1;
    const int64_t ds = cvy_pool_taps(w, 0, d, &d0, &d1), hs = cvy_pool_taps(w, 1, h, &h0, &h1), n = w->src[2] * B;
    for (int64_t i = d0; i < d1; i++)
        for (int64_t j = h0; j < h1; j++)
            add_row(half, s->src, src + ((ds + i) * w->src[1] + hs + j) * n, 1, i > d0 || j > h0, n, rows);
    const float inverse = w->inverse[0][d] * w->inverse[1][h];
    for (int64_t x = 0; x < w->dst[2]; x++) {
        const int64_t start = cvy_pool_taps(w, 2, x, &k0, &k1);
        add_along(half, B, rows + (start + k0) * B, k1 - k0, inverse * w->inverse[2][x], s->dst, dst + x * B);
    }
}

CVY_INLINE void forward_plane(const struct avg_pool *s, const int half, const int64_t B, int64_t plane, float *rows)
{
    const cvy_pool_walk *w = &s->w;
    for (int64_t row = 0; row < w->dst[0] * w->dst[1]; row++)
        forward_row(s, half, B, plane * w->src_elems * B, row / w->dst[1], row % w->dst[1], rows,
                    (plane * w->dst_elems + row * w->dst[2]) * B);
}

CVY_INLINE void backward_row(const struct avg_pool *s, const int half, const int64_t B, int64_t ddst, int64_t z,
                             int64_t y, float *restrict rows, int64_t dsrc)
{
    const cvy_pool_walk *w = &s->w;
    const struct cover cz = s->cover[0][z], cy = s->cover[1][y];
    const int64_t n = w->dst[2] * B;
    if (cz.first >= cz.end || cy.first >= cy.end)
        memset(rows, 0, (size_t)n * sizeof *rows);
    for (int64_t d = cz.first; d < cz.end; d++)
        for (int64_t h = cy.first; h < cy.end; h++)
            add_row(half, s->src, ddst + (d * w->dst[1] + h) * n, w->inverse[0][d] * w->inverse[1][h],
                    d > cz.first || h > cy.first, n, rows);
    for (int64_t x = 0; x < w->dst[2]; x++)
        for (int64_t l = 0; l < B; l++)
            rows[x * B + l] *= w->inverse[2][x];
    for (int64_t x = 0; x < w->src[2]; x++) {
        const struct cover c = s->cover[2][x];
        add_along(half, B, rows + c.first * B, c.end - c.first, 1, s->dst, dsrc + x * B);
    }
}

CVY_INLINE void backward_plane(const struct avg_pool *s, const int half, const int64_t B, int64_t plane, float *rows)
{
    const cvy_pool_walk *w = &s->w;
    for (int64_t row = 0; row < w->src[0] * w->src[1]; row++)
        backward_row(s, half, B, plane * w->dst_elems * B, row / w->src[1], row % w->src[1], rows,
                     (plane * w->src_elems + row * w->src[2]) * B);
}

/* ---- running: each thread computes its part of the planes ---- */

#define PLANES(name, do_plane)                                                                                         \
    CVY_SIMD static void name(int64_t begin, int64_t end, void *arg)                                                   \
    {                                                                                                                  \
        const struct avg_pool *s = arg;                                                                                \
        const int64_t planes = s->w.planes.n * s->w.planes.groups;                                                     \
        for (int64_t t = begin; t < end; t++)                                                                          \
            for (int64_t plane = planes * t / s->threads; plane < planes * (t + 1) / s->threads; plane++) {            \
                float *rows = s->rows + t * row_floats(&s->w);                                                         \
                switch (s->half ? 0 : s->w.planes.block) {                                                             \
                case 0: do_plane(s, 1, BLOCK_HALF, plane, rows); break;                                                \
                case 16: do_plane(s, 0, 16, plane, rows); break;                                                       \
                case 8: do_plane(s, 0, 8, plane, rows); break;                                                         \
                case 4: do_plane(s, 0, 4, plane, rows); break;                                                         \
                default: do_plane(s, 0, 1, plane, rows); break;                                                        \
                }                                                                                                      \
            }                                                                                                          \
    }

PLANES(forward_planes, forward_plane)
PLANES(backward_planes, backward_plane)

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch, cvy_range_fn planes)
{
    struct avg_pool *s = state;
    s->src = src[0];
    s->dst = dst[0];
    s->rows = scratch;
    cvy_parallel_for(s->threads, s->threads, 1, planes, s);
    return CVY_OK;
}

static cvy_status avg_pool_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    return run(state, src, dst, scratch, forward_planes);
}

static cvy_status avg_pool_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    return run(state, src, dst, scratch, backward_planes);
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

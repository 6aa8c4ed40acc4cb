/*
 * native_avg_pool_simd.h: the loops of average pooling for channels in blocks, for one instruction set (see
 * native_simd_loops.h). One body serves f32 and bf16.
 *
 * Forward adds the rows of the source that a row of windows covers into one row of floats in the first-level cache;
 * then the windows slide along it. Backward is the reverse: it adds the rows of windows that cover a row of the source,
 * and each source position sums over the windows of that row which cover it. So nothing is cleared first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pool/native_avg_pool.h"

/* sums = f times the n values from element `at` on, or += if `add` is set. n is a multiple of LANES. */
LEAF void avg_add_row(const int half, const void *values, int64_t at, float f, int add, int64_t n, float *sums)
{
    if (add)
        for (int64_t i = 0; i < n; i += LANES)
            store(sums + i, load(sums + i) + f * load_as(half, values, at + i));
    else
        for (int64_t i = 0; i < n; i += LANES)
            store(sums + i, f * load_as(half, values, at + i));
}

/* Stores, for each of n positions from element `at` on, the sum of the positions of its span times its factor. factors
 * NULL: 1 each. */
LEAF void avg_slide(const int half, int64_t B, const cvy_pool_span *span, const float *factors, float f, int64_t n,
                    const float *sums, void *values, int64_t at)
{
    for (int64_t x = 0; x < n; x++)
        for (int64_t l = 0; l < B; l += LANES) {
            vec sum = spread(0);
            for (int64_t k = span[x].first; k < span[x].end; k++)
                sum += load(sums + k * B + l);
            store_as(half, values, at + x * B + l, sum * (factors ? f * factors[x] : f));
        }
}

LEAF void avg_pool_row(const int half, const cvy_avg_pool *s, int64_t plane, int64_t row, float *sums)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, n = w->src[2] * B, d = row / w->dst[1], h = row % w->dst[1];
    const cvy_pool_span z = s->reads[0][d], y = s->reads[1][h];
    for (int64_t i = z.first; i < z.end; i++)
        for (int64_t j = y.first; j < y.end; j++)
            avg_add_row(half, s->src, plane * w->src_elems * B + (i * w->src[1] + j) * n, 1, i > z.first || j > y.first,
                        n, sums);
    avg_slide(half, B, s->reads[2], w->inverse[2], w->inverse[0][d] * w->inverse[1][h], w->dst[2], sums, s->dst,
              (plane * w->dst_elems + row * w->dst[2]) * B);
}

LEAF void avg_pool_grad_row(const int half, const cvy_avg_pool *s, int64_t plane, int64_t row, float *sums)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, n = w->dst[2] * B;
    const cvy_pool_span z = s->cover[0][row / w->src[1]], y = s->cover[1][row % w->src[1]];
    if (z.first >= z.end || y.first >= y.end)
        memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t d = z.first; d < z.end; d++)
        for (int64_t h = y.first; h < y.end; h++)
            avg_add_row(half, s->src, plane * w->dst_elems * B + (d * w->dst[1] + h) * n,
                        w->inverse[0][d] * w->inverse[1][h], d > z.first || h > y.first, n, sums);
    for (int64_t x = 0; x < w->dst[2]; x++)
        for (int64_t l = 0; l < B; l += LANES)
            store(sums + x * B + l, load(sums + x * B + l) * w->inverse[2][x]);
    avg_slide(half, B, s->cover[2], NULL, 1, w->src[2], sums, s->dst, (plane * w->src_elems + row * w->src[2]) * B);
}

/* Each item is the rows of one thread. */
#define AVG_RANGE(name, half, do_row, nrow)                                                                            \
    TARGET static void name(int64_t first, int64_t last, void *arg)                                                    \
    {                                                                                                                  \
        const cvy_avg_pool *s = arg;                                                                                   \
        const cvy_pool_walk *w = &s->w;                                                                                \
        const int64_t rows = nrow, all = w->planes.n * w->planes.groups * rows;                                        \
        for (int64_t t = first; t < last; t++)                                                                         \
            for (int64_t row = all * t / s->threads; row < all * (t + 1) / s->threads; row++)                          \
                do_row(half, s, row / rows, row % rows, s->rows + t * cvy_avg_pool_row(w));                            \
    }

AVG_RANGE(avg_pool_f32, 0, avg_pool_row, w->dst[0] * w->dst[1])
AVG_RANGE(avg_pool_bf16, 1, avg_pool_row, w->dst[0] * w->dst[1])
AVG_RANGE(avg_pool_grad_f32, 0, avg_pool_grad_row, w->src[0] * w->src[1])
AVG_RANGE(avg_pool_grad_bf16, 1, avg_pool_grad_row, w->src[0] * w->src[1])

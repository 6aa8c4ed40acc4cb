/*
 * native_max_pool_simd.h: the loops of max pooling for channels in blocks or channels last, for one instruction set
 * (see native_simd_loops.h). One body serves f32 and bf16.
 *
 * The maximum of a window and its index stay in registers while the taps are read. Backward gathers: each position of
 * the source sums in f32 over all windows that read it and is stored once, so nothing is cleared first. Windows with 2
 * and 3 taps per row are unrolled. If the channels do not fill whole vectors, the last vector overlaps the one before.
 * Results that do not fit into the cache are written with non-temporal stores.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pool/native_max_pool.h"

/* ---- what is loaded at once ---- */

/* One vector of f32, one of bf16, or two of bf16 (the even and the odd elements). */
enum pool_kind { POOL_F32, POOL_BF16, POOL_PAIRS };

LEAF int pool_vecs(const enum pool_kind kind)
{
    return kind == POOL_PAIRS ? 2 : 1;
}

LEAF void pool_load(const enum pool_kind kind, const void *p, int64_t i, vec x[2])
{
    if (kind == POOL_PAIRS)
        load_even_odd((const cvy_bf16 *)p + i, &x[0], &x[1]);
    else
        x[0] = load_as(kind == POOL_BF16, p, i);
}

LEAF void pool_store(const enum pool_kind kind, const int stream, const int exact, const vec x[2], void *p, int64_t i)
{
    if (kind == POOL_PAIRS)
        store_words(stream, (cvy_bf16 *)p + i, merge_even_odd(exact, x[0], x[1]));
    else if (kind == POOL_BF16)
        store_as(1, p, i, x[0]);
    else
        store_words(stream, (float *)p + i, (uvec)x[0]);
}

LEAF void pool_load_index(const enum pool_kind kind, const uint8_t *p, ivec x[2])
{
    if (kind == POOL_PAIRS)
        load_bytes_even_odd(p, &x[0], &x[1]);
    else
        x[0] = load_bytes(p);
}

LEAF void pool_store_index(const enum pool_kind kind, const int stream, const ivec x[2], uint8_t *p)
{
    if (kind == POOL_PAIRS)
        store_bytes_even_odd(stream, p, x[0], x[1]);
    else
        store_bytes(p, x[0]);
}

/* The first element to load for element i of a block, so that the vectors end within the block. */
LEAF int64_t lane_of(const enum pool_kind kind, int64_t i, int64_t B)
{
    return CVY_MIN(i, B - pool_vecs(kind) * LANES);
}

/* ---- forward ---- */

/* A value wins if it is larger than the best so far, or if it is the first NaN. */
LEAF void update_max(vec v, int32_t tap, vec *best, ivec *winner)
{
#if X86_LANES == 16
    const __mmask16 wins = _mm512_cmp_ps_mask((__m512)v, (__m512)*best, _CMP_NLE_UQ) &
                           _mm512_cmp_ps_mask((__m512)*best, (__m512)*best, _CMP_EQ_OQ);
    *best = (vec)_mm512_mask_mov_ps((__m512)*best, wins, (__m512)v);
    *winner = (ivec)_mm512_mask_mov_epi32((__m512i)*winner, wins, (__m512i)spread_int(tap));
#else
    const ivec wins = ~(v <= *best) & (*best == *best);
    *best = choose(wins, v, *best);
    *winner = choose_int(wins, spread_int(tap), *winner);
#endif
}

/* The rows of taps with which one row of windows reads the source. */
struct tap_rows {
    int64_t d0, d1, h0, h1; /* taps */
    int64_t origin;         /* element where the row of tap 0, 0 begins; it may be outside the source */
};

/* Where a row of windows begins: element of the result, element of the index. */
struct pool_out {
    int64_t dst, index;
};

/* Each comparison waits for the one before it, so the vectors of several windows are computed at the same time, as far
 * as registers allow. */
enum { MOST_WINDOWS = LANES == 16 ? 4 : 2 };

/* Computes n windows from x on, n at most MOST_WINDOWS, with the taps k0 .. k1-1 of each row. start: source position of
 * tap 0 of the first window. */
LEAF void pool_windows(const enum pool_kind kind, const cvy_max_pool *s, const int64_t n, const struct tap_rows *rows,
                       int64_t x, int64_t start, const int64_t k0, const int64_t k1, struct pool_out out)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, row_elems = w->src[2] * B, step = w->stride[2] * B;
    const int32_t initial =
        s->relu ? s->no_winner : (int32_t)((rows->d0 * w->kernel[1] + rows->h0) * w->kernel[2] + k0);
    const float floor = s->relu ? 0 : -INFINITY;
    for (int64_t v = 0; v < B; v += pool_vecs(kind) * LANES) {
        const int64_t l = lane_of(kind, v, B);
        vec best[MOST_WINDOWS][2], value[2];
        ivec winner[MOST_WINDOWS][2];
        for (int64_t m = 0; m < n; m++)
            for (int p = 0; p < pool_vecs(kind); p++) {
                best[m][p] = spread(floor);
                winner[m][p] = spread_int(initial);
            }
        for (int64_t i = rows->d0; i < rows->d1; i++)
            for (int64_t j = rows->h0; j < rows->h1; j++) {
                const int64_t row = rows->origin + (i * w->src[1] + j) * row_elems + start * B + l;
                const int64_t tap = (i * w->kernel[1] + j) * w->kernel[2];
#pragma GCC unroll 4
                for (int64_t k = k0; k < k1; k++)
                    for (int64_t m = 0; m < n; m++) {
                        pool_load(kind, s->src, row + m * step + k * B, value);
                        for (int p = 0; p < pool_vecs(kind); p++)
                            update_max(value[p], (int32_t)(tap + k), &best[m][p], &winner[m][p]);
                    }
            }
        for (int64_t m = 0; m < n; m++) {
            pool_store(kind, s->stream, 1, best[m], s->dst, out.dst + (x + m) * s->sliced_step + l);
            if (s->index)
                pool_store_index(kind, s->stream, winner[m], (uint8_t *)s->index + out.index + (x + m) * B + l);
        }
    }
}

/* Windows that may extend beyond the edge. They are few, so there is only one function for each kind. */
#define EDGE TARGET static __attribute__((noinline))
#define POOL_EDGE(name, kind)                                                                                          \
    EDGE void name(const cvy_max_pool *s, const struct tap_rows *rows, int64_t first, int64_t end,                     \
                   struct pool_out out)                                                                                \
    {                                                                                                                  \
        for (int64_t x = first; x < end; x++) {                                                                        \
            int64_t k0, k1;                                                                                            \
            const int64_t start = cvy_pool_taps(&s->w, 2, x, &k0, &k1);                                                \
            pool_windows(kind, s, 1, rows, x, start, k0, k1, out);                                                     \
        }                                                                                                              \
    }

POOL_EDGE(pool_edge_f32, POOL_F32)
POOL_EDGE(pool_edge_bf16, POOL_BF16)
POOL_EDGE(pool_edge_pairs, POOL_PAIRS)

LEAF void pool_edge(const enum pool_kind kind, const cvy_max_pool *s, const struct tap_rows *rows, int64_t first,
                    int64_t end, struct pool_out out)
{
    switch (kind) {
    case POOL_F32: pool_edge_f32(s, rows, first, end, out); break;
    case POOL_BF16: pool_edge_bf16(s, rows, first, end, out); break;
    case POOL_PAIRS: pool_edge_pairs(s, rows, first, end, out); break;
    }
}

/* many: whether several windows are computed at the same time. */
LEAF void pool_row(const enum pool_kind kind, const cvy_max_pool *s, const int64_t taps, const int many,
                   const struct tap_rows *rows, struct pool_out out)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t end = CVY_MAX(0, w->reach[w->kernel[2] - 1].end), first = CVY_MIN(w->reach[0].first, end);
    const int64_t together = many ? MOST_WINDOWS / pool_vecs(kind) : 1;
    int64_t x = first;
    pool_edge(kind, s, rows, 0, first, out);
    for (; x + together <= end; x += together)
        pool_windows(kind, s, together, rows, x, x * w->stride[2] - w->pad[2], 0, taps, out);
    for (; x < end; x++)
        pool_windows(kind, s, 1, rows, x, x * w->stride[2] - w->pad[2], 0, taps, out);
    pool_edge(kind, s, rows, end, w->dst[2], out);
}

/* First element of row `row` of the plane, in the tensor that may be a slice. */
LEAF int64_t sliced_row(const cvy_max_pool *s, int64_t plane, int64_t row)
{
    return (cvy_plane_in(&s->w.planes, s->sliced_pitch, plane) * s->w.dst_elems + row * s->w.dst[2]) * s->sliced_step;
}

LEAF void pool_rows(const enum pool_kind kind, const cvy_max_pool *s, int64_t first, int64_t last)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, nrow = w->dst[0] * w->dst[1];
    for (int64_t row = first; row < last; row++) {
        const int64_t plane = row / nrow, d = row % nrow / w->dst[1], h = row % w->dst[1];
        const struct pool_out out = {sliced_row(s, plane, row % nrow), row * w->dst[2] * B};
        struct tap_rows rows;
        const int64_t ds = cvy_pool_taps(w, 0, d, &rows.d0, &rows.d1), hs = cvy_pool_taps(w, 1, h, &rows.h0, &rows.h1);
        rows.origin = (plane * w->src_elems + (ds * w->src[1] + hs) * w->src[2]) * B;
        switch (w->kernel[2]) {
        case 2: pool_row(kind, s, 2, 0, &rows, out); break; /* two taps wait little, and memory is the limit */
        case 3: pool_row(kind, s, 3, 1, &rows, out); break;
        default: pool_row(kind, s, w->kernel[2], 1, &rows, out); break;
        }
    }
}

TARGET static void max_pool_f32(int64_t first, int64_t last, void *arg)
{
    const cvy_max_pool *s = arg;
    pool_rows(POOL_F32, s, first, last);
}

TARGET static void max_pool_bf16(int64_t first, int64_t last, void *arg)
{
    const cvy_max_pool *s = arg;
    if (s->w.planes.block < 2 * LANES)
        pool_rows(POOL_BF16, s, first, last);
    else
        pool_rows(POOL_PAIRS, s, first, last);
}

/* ---- backward ---- */

/* A row of windows that reads a row of the source: its first element in ddst and in the index, and the first tap of the
 * row of taps that reads it. */
struct reader {
    int64_t ddst, index, tap;
};

/* All rows of windows that read one row of the source, in order. A window has at most 255 taps, so there are fewer. */
struct readers {
    int64_t count, out; /* out: element where the source row begins */
    struct reader reader[256];
};

/* Adds d to the sum where this tap has won. */
LEAF void add_win(ivec winner, int32_t tap, vec d, vec *sum)
{
#if X86_LANES == 16
    const __mmask16 wins = _mm512_cmpeq_epi32_mask((__m512i)winner, (__m512i)spread_int(tap));
    *sum = (vec)_mm512_mask_add_ps((__m512)*sum, wins, (__m512)*sum, (__m512)d);
#else
    *sum += keep(winner == spread_int(tap), d);
#endif
}

/* The windows q, q-1, ... read source position q * stride + phase - pad, with the taps phase, phase + stride, ...
 * Computes n such positions, those of q to q+n-1. Without `inside` n is 1, and windows may not exist. */
LEAF void gather_positions(const enum pool_kind kind, const cvy_max_pool *s, const int64_t taps, const int64_t stride,
                           const struct reader *reader, const int64_t count, const int64_t n, int64_t q, int64_t phase,
                           int64_t out, const int inside)
{
    const cvy_pool_walk *w = &s->w;
    const uint8_t *index = s->index_in;
    const int64_t B = w->planes.block, x = q * stride + phase - w->pad[2];
    if (!inside && (x < 0 || x >= w->src[2]))
        return;
    for (int64_t v = 0; v < B; v += pool_vecs(kind) * LANES) {
        const int64_t l = lane_of(kind, v, B);
        vec sum[MOST_WINDOWS][2], d[2];
        ivec winner[2];
        for (int64_t m = 0; m < n; m++)
            sum[m][0] = sum[m][1] = spread(0);
#pragma GCC unroll 2
        for (int64_t k = 0; k < count; k++)
#pragma GCC unroll 4
            for (int64_t i = 0; phase + i * stride < taps; i++) {
                if (!inside && (q - i < 0 || q - i >= w->dst[2]))
                    continue;
                for (int64_t m = 0; m < n; m++) {
                    pool_load_index(kind, index + reader[k].index + (q + m - i) * B + l, winner);
                    pool_load(kind, s->ddst, reader[k].ddst + (q + m - i) * s->sliced_step + l, d);
                    for (int p = 0; p < pool_vecs(kind); p++)
                        add_win(winner[p], (int32_t)(reader[k].tap + phase + i * stride), d[p], &sum[m][p]);
                }
            }
        for (int64_t m = 0; m < n; m++)
            pool_store(kind, s->stream, 0, sum[m], s->dsrc, out + (x + m * stride) * B + l);
    }
}

/* The positions of windows first .. end-1, which may extend beyond the edge. */
#define GATHER_EDGE(name, kind)                                                                                        \
    EDGE void name(const cvy_max_pool *s, const struct reader *reader, int64_t count, int64_t first, int64_t end,      \
                   int64_t out)                                                                                        \
    {                                                                                                                  \
        const int64_t taps = s->w.kernel[2], stride = s->w.stride[2];                                                  \
        for (int64_t q = first; q < end; q++)                                                                          \
            for (int64_t phase = 0; phase < stride; phase++)                                                           \
                gather_positions(kind, s, taps, stride, reader, count, 1, q, phase, out, 0);                           \
    }

GATHER_EDGE(gather_edge_f32, POOL_F32)
GATHER_EDGE(gather_edge_bf16, POOL_BF16)
GATHER_EDGE(gather_edge_pairs, POOL_PAIRS)

LEAF void gather_edge(const enum pool_kind kind, const cvy_max_pool *s, const struct reader *reader, int64_t count,
                      int64_t first, int64_t end, int64_t out)
{
    switch (kind) {
    case POOL_F32: gather_edge_f32(s, reader, count, first, end, out); break;
    case POOL_BF16: gather_edge_bf16(s, reader, count, first, end, out); break;
    case POOL_PAIRS: gather_edge_pairs(s, reader, count, first, end, out); break;
    }
}

LEAF void gather_row(const enum pool_kind kind, const cvy_max_pool *s, const int64_t taps, const int64_t stride,
                     const struct reader *reader, const int64_t count, int64_t out)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t pad = w->pad[2], all = (w->src[2] - 1 + pad) / stride + 1;
    const int64_t first = CVY_MIN(all, CVY_MAX((taps - 1) / stride, (pad + stride - 1) / stride)),
                  end = CVY_MAX(first, CVY_MIN(w->dst[2], (w->src[2] + pad) / stride));
    const int64_t together = MOST_WINDOWS / pool_vecs(kind);
    int64_t q = first;
    gather_edge(kind, s, reader, count, 0, first, out);
    for (; q + together <= end; q += together)
#pragma GCC unroll 4
        for (int64_t phase = 0; phase < stride; phase++)
            gather_positions(kind, s, taps, stride, reader, count, together, q, phase, out, 1);
    for (; q < end; q++)
#pragma GCC unroll 4
        for (int64_t phase = 0; phase < stride; phase++)
            gather_positions(kind, s, taps, stride, reader, count, 1, q, phase, out, 1);
    gather_edge(kind, s, reader, count, end, all, out);
}

/* Finds the rows of windows that read row z, y of a plane of the source. */
LEAF void find_readers(const cvy_max_pool *s, int64_t plane, int64_t z, int64_t y, struct readers *t)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block;
    int64_t d0, d1, h0, h1;
    cvy_pool_windows_over(w, 0, z, &d0, &d1);
    cvy_pool_windows_over(w, 1, y, &h0, &h1);
    t->count = 0;
    for (int64_t d = d0; d < d1; d++)
        for (int64_t h = h0; h < h1; h++, t->count++) {
            const int64_t tap_d = z + w->pad[0] - d * w->stride[0], tap_h = y + w->pad[1] - h * w->stride[1];
            const int64_t row = d * w->dst[1] + h, index = (plane * w->dst_elems + row * w->dst[2]) * B;
            t->reader[t->count] =
                (struct reader){sliced_row(s, plane, row), index, (tap_d * w->kernel[1] + tap_h) * w->kernel[2]};
        }
    t->out = (plane * w->src_elems + (z * w->src[1] + y) * w->src[2]) * B;
}

LEAF void gather_rows(const enum pool_kind kind, const cvy_max_pool *s, int64_t first, int64_t last)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t nrow = w->src[0] * w->src[1], taps = w->kernel[2], stride = w->stride[2];
    struct readers t = {.count = 0};
    for (int64_t row = first; row < last; row++) {
        find_readers(s, row / nrow, row % nrow / w->src[1], row % w->src[1], &t);
        /* If there are one or two, they stay in registers. */
        const struct reader few[2] = {t.reader[0], t.reader[1]};
        if (taps == 2 && stride == 2 && t.count == 1)
            gather_row(kind, s, 2, 2, few, 1, t.out);
        else if (taps == 3 && stride == 2 && t.count == 1)
            gather_row(kind, s, 3, 2, few, 1, t.out);
        else if (taps == 3 && stride == 2 && t.count == 2)
            gather_row(kind, s, 3, 2, few, 2, t.out);
        else if (taps == 3 && stride == 1)
            gather_row(kind, s, 3, 1, t.reader, t.count, t.out);
        else
            gather_row(kind, s, taps, stride, t.reader, t.count, t.out);
    }
}

TARGET static void max_pool_grad_f32(int64_t first, int64_t last, void *arg)
{
    const cvy_max_pool *s = arg;
    gather_rows(POOL_F32, s, first, last);
}

TARGET static void max_pool_grad_bf16(int64_t first, int64_t last, void *arg)
{
    const cvy_max_pool *s = arg;
    if (s->w.planes.block < 2 * LANES)
        gather_rows(POOL_BF16, s, first, last);
    else
        gather_rows(POOL_PAIRS, s, first, last);
}

/*
 * native_max_pool_simd.h: the loops of max pooling over channels in blocks or last, for one kind of vectors: see
 * native_simd_loops.h. One body serves f32 and bf16.
 *
 * A window's maximum and winner stay in registers while its taps are seen. Backward gathers: each position of the source
 * takes from all windows that touch it, in f32, and is stored once; nothing is cleared. Windows of 2 and 3 taps a row
 * are unrolled. Where the channels do not fill the vectors, the last one overlaps the one before.
 */
#include "kernel/native/native_max_pool.h"

/* ---- forward ---- */

/* A value wins if it is larger than the best so far, or the first NaN. */
LEAF void see(vec v, int32_t tap, vec *best, ivec *winner)
{
    const ivec wins = ~(v <= *best) & (*best == *best);
    *best = choose(wins, v, *best);
    *winner = choose_int(wins, spread_int(tap), *winner);
}

/* Rows of taps of one window row that touch the source. */
struct tap_rows {
    int64_t d0, d1, h0, h1; /* taps */
    int64_t origin;         /* element where the row of tap 0, 0 begins, which may lie outside */
};

/* Where vector i of a block begins. */
LEAF int64_t lane_of(int64_t i, int64_t B)
{
    return CVY_MIN(i, B - LANES);
}

/* Windows first .. end-1 of a row. taps: of a row of the window, if all of them touch the source, else 0. */
LEAF void pool_windows(const int half, const cvy_max_pool *s, const int64_t taps, const struct tap_rows *rows,
                       int64_t first, int64_t end, int64_t out)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, row_elems = w->src[2] * B;
    for (int64_t x = first; x < end; x++) {
        int64_t k0 = 0, k1 = taps;
        const int64_t start = taps ? x * w->stride[2] - w->pad[2] : cvy_pool_taps(w, 2, x, &k0, &k1);
        const int32_t nobody =
            s->relu ? s->nobody : (int32_t)((rows->d0 * w->kernel[1] + rows->h0) * w->kernel[2] + k0);
        for (int64_t v = 0; v < B; v += LANES) {
            const int64_t l = lane_of(v, B);
            vec best = spread(s->relu ? 0 : -INFINITY);
            ivec winner = spread_int(nobody);
            for (int64_t i = rows->d0; i < rows->d1; i++)
                for (int64_t j = rows->h0; j < rows->h1; j++) {
                    const int64_t row = rows->origin + (i * w->src[1] + j) * row_elems + start * B + l;
                    const int64_t tap = (i * w->kernel[1] + j) * w->kernel[2];
#pragma GCC unroll 4
                    for (int64_t k = k0; k < k1; k++)
                        see(load_as(half, s->src, row + k * B), (int32_t)(tap + k), &best, &winner);
                }
            store_as(half, s->dst, out + x * B + l, best);
            if (s->index)
                store_bytes((uint8_t *)s->index + out + x * B + l, winner);
        }
    }
}

/* The first and the last windows of a row may hang over the edge. */
LEAF void pool_row(const int half, const cvy_max_pool *s, const int64_t taps, const struct tap_rows *rows, int64_t out)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t end = CVY_MAX(0, w->reach[w->kernel[2] - 1].end), first = CVY_MIN(w->reach[0].first, end);
    pool_windows(half, s, 0, rows, 0, first, out);
    pool_windows(half, s, taps, rows, first, end, out);
    pool_windows(half, s, 0, rows, end, w->dst[2], out);
}

LEAF void pool_rows(const int half, const cvy_max_pool *s, int64_t first, int64_t last)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, nrow = w->dst[0] * w->dst[1];
    for (int64_t row = first; row < last; row++) {
        const int64_t plane = row / nrow, d = row % nrow / w->dst[1], h = row % w->dst[1], out = row * w->dst[2] * B;
        struct tap_rows rows;
        const int64_t ds = cvy_pool_taps(w, 0, d, &rows.d0, &rows.d1), hs = cvy_pool_taps(w, 1, h, &rows.h0, &rows.h1);
        rows.origin = (plane * w->src_elems + (ds * w->src[1] + hs) * w->src[2]) * B;
        switch (w->kernel[2]) {
        case 2: pool_row(half, s, 2, &rows, out); break;
        case 3: pool_row(half, s, 3, &rows, out); break;
        default: pool_row(half, s, w->kernel[2], &rows, out); break;
        }
    }
}

TARGET static void max_pool_f32(int64_t first, int64_t last, void *arg)
{
    pool_rows(0, arg, first, last);
}

TARGET static void max_pool_bf16(int64_t first, int64_t last, void *arg)
{
    pool_rows(1, arg, first, last);
}

/* ---- backward ---- */

/* A row of windows that touches a row of the source, in elements, and where its row of taps that touches begins. */
struct touch { int64_t at, tap; };

/* All of one row of the source, in order. A window of at most 255 taps touches it with fewer. */
struct touches {
    int64_t count, out; /* out: element where the source row begins */
    struct touch touch[256];
};

/* Source position q * stride + phase - pad takes from the windows q, q-1, ... with the taps phase, phase + stride, ...
 */
LEAF void gather_position(const int half, const cvy_max_pool *s, const int64_t taps, const int64_t stride,
                          const struct touch *touch, const int64_t count, int64_t q, int64_t phase, int64_t out,
                          const int inside)
{
    const cvy_pool_walk *w = &s->w;
    const uint8_t *index = s->index_in;
    const int64_t B = w->planes.block, x = q * stride + phase - w->pad[2];
    if (!inside && (x < 0 || x >= w->src[2]))
        return;
    for (int64_t v = 0; v < B; v += LANES) {
        const int64_t l = lane_of(v, B), here = q * B + l;
        vec sum = spread(0);
#pragma GCC unroll 2
        for (int64_t k = 0; k < count; k++)
#pragma GCC unroll 4
            for (int64_t i = 0; phase + i * stride < taps; i++) {
                if (!inside && (q - i < 0 || q - i >= w->dst[2]))
                    continue;
                const int64_t from = touch[k].at + here - i * B;
                const ivec tap = spread_int((int32_t)(touch[k].tap + phase + i * stride));
                sum += keep(load_bytes(index + from) == tap, load_as(half, s->ddst, from));
            }
        store_as(half, s->dsrc, out + x * B + l, sum);
    }
}

LEAF void gather_row(const int half, const cvy_max_pool *s, const int64_t taps, const int64_t stride,
                     const struct touch *touch, const int64_t count, int64_t out)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t pad = w->pad[2], all = (w->src[2] - 1 + pad) / stride + 1;
    const int64_t first = CVY_MIN(all, CVY_MAX((taps - 1) / stride, (pad + stride - 1) / stride)),
                  end = CVY_MAX(first, CVY_MIN(w->dst[2], (w->src[2] + pad) / stride));
    for (int64_t q = 0; q < first; q++)
        for (int64_t phase = 0; phase < stride; phase++)
            gather_position(half, s, taps, stride, touch, count, q, phase, out, 0);
    for (int64_t q = first; q < end; q++)
#pragma GCC unroll 4
        for (int64_t phase = 0; phase < stride; phase++)
            gather_position(half, s, taps, stride, touch, count, q, phase, out, 1);
    for (int64_t q = end; q < all; q++)
        for (int64_t phase = 0; phase < stride; phase++)
            gather_position(half, s, taps, stride, touch, count, q, phase, out, 0);
}

/* The windows first .. end-1 whose taps in dimension d touch source coordinate `at`. */
LEAF void windows_over(const cvy_pool_walk *w, int d, int64_t at, int64_t *first_out, int64_t *end_out)
{
    const int64_t from = at + w->pad[d] - w->kernel[d] + 1;
    *first_out = from <= 0 ? 0 : (from + w->stride[d] - 1) / w->stride[d];
    *end_out = CVY_MIN(w->dst[d], (at + w->pad[d]) / w->stride[d] + 1);
}

/* The rows of windows over row z, y of a plane of the source. */
LEAF void find_touches(const cvy_max_pool *s, int64_t plane, int64_t z, int64_t y, struct touches *t)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block;
    int64_t d0, d1, h0, h1;
    windows_over(w, 0, z, &d0, &d1);
    windows_over(w, 1, y, &h0, &h1);
    t->count = 0;
    for (int64_t d = d0; d < d1; d++)
        for (int64_t h = h0; h < h1; h++, t->count++) {
            const int64_t tap_d = z + w->pad[0] - d * w->stride[0], tap_h = y + w->pad[1] - h * w->stride[1];
            const int64_t at = (plane * w->dst_elems + (d * w->dst[1] + h) * w->dst[2]) * B;
            t->touch[t->count] = (struct touch){at, (tap_d * w->kernel[1] + tap_h) * w->kernel[2]};
        }
    t->out = (plane * w->src_elems + (z * w->src[1] + y) * w->src[2]) * B;
}

LEAF void gather_rows(const int half, const cvy_max_pool *s, int64_t first, int64_t last)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t nrow = w->src[0] * w->src[1], taps = w->kernel[2], stride = w->stride[2];
    struct touches t = {.count = 0};
    for (int64_t row = first; row < last; row++) {
        find_touches(s, row / nrow, row % nrow / w->src[1], row % w->src[1], &t);
        /* One or two of them lie in registers. */
        const struct touch few[2] = {t.touch[0], t.touch[1]};
        if (taps == 2 && stride == 2 && t.count == 1)
            gather_row(half, s, 2, 2, few, 1, t.out);
        else if (taps == 3 && stride == 2 && t.count == 1)
            gather_row(half, s, 3, 2, few, 1, t.out);
        else if (taps == 3 && stride == 2 && t.count == 2)
            gather_row(half, s, 3, 2, few, 2, t.out);
        else if (taps == 3 && stride == 1)
            gather_row(half, s, 3, 1, t.touch, t.count, t.out);
        else
            gather_row(half, s, taps, stride, t.touch, t.count, t.out);
    }
}

TARGET static void max_pool_grad_f32(int64_t first, int64_t last, void *arg)
{
    gather_rows(0, arg, first, last);
}

TARGET static void max_pool_grad_bf16(int64_t first, int64_t last, void *arg)
{
    gather_rows(1, arg, first, last);
}

/*
 * native_max_pool_simd.h: the loops of max pooling over channels in blocks, for one kind of vectors: see
 * native_simd_loops.h.
 *
 * A window's maximum and winner stay in registers while its taps are seen. Backward gathers: each row of the source
 * takes from the rows of windows that touch it one after the other; the first of them writes, so nothing is cleared,
 * and with windows that do not overlap memory is passed over once. Windows of 2 and 3 taps a row are unrolled.
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
    const float *origin;    /* row of tap 0, 0, which may lie outside */
};

/* Windows first .. end-1 of a row. taps: of a row of the window, if all of them touch the source, else 0. */
LEAF void pool_windows(const cvy_max_pool *s, const int64_t taps, const struct tap_rows *rows, int64_t first,
                       int64_t end, float *dst, uint8_t *index)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, row_elems = w->src[2] * B;
    for (int64_t x = first; x < end; x++) {
        int64_t k0 = 0, k1 = taps;
        const int64_t start = taps ? x * w->stride[2] - w->pad[2] : cvy_pool_taps(w, 2, x, &k0, &k1);
        const int32_t nobody =
            s->relu ? s->nobody : (int32_t)((rows->d0 * w->kernel[1] + rows->h0) * w->kernel[2] + k0);
        for (int64_t l = 0; l < B; l += LANES) {
            vec best = spread(s->relu ? 0 : -INFINITY);
            ivec winner = spread_int(nobody);
            for (int64_t i = rows->d0; i < rows->d1; i++)
                for (int64_t j = rows->h0; j < rows->h1; j++) {
                    const float *row = rows->origin + (i * w->src[1] + j) * row_elems + start * B + l;
                    const int64_t tap = (i * w->kernel[1] + j) * w->kernel[2];
#pragma GCC unroll 4
                    for (int64_t k = k0; k < k1; k++)
                        see(load(row + k * B), (int32_t)(tap + k), &best, &winner);
                }
            store(dst + x * B + l, best);
            if (index)
                store_bytes(index + x * B + l, winner);
        }
    }
}

/* The first and the last windows of a row may hang over the edge. */
LEAF void pool_row(const cvy_max_pool *s, const int64_t taps, const struct tap_rows *rows, float *dst, uint8_t *index)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t end = CVY_MAX(0, w->reach[w->kernel[2] - 1].end), first = CVY_MIN(w->reach[0].first, end);
    pool_windows(s, 0, rows, 0, first, dst, index);
    pool_windows(s, taps, rows, first, end, dst, index);
    pool_windows(s, 0, rows, end, w->dst[2], dst, index);
}

TARGET static void max_pool_range(int64_t first, int64_t end, void *arg)
{
    const cvy_max_pool *s = arg;
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, nrow = w->dst[0] * w->dst[1];
    for (int64_t row = first * nrow; row < end * nrow; row++) {
        const int64_t plane = row / nrow, d = row % nrow / w->dst[1], h = row % w->dst[1];
        struct tap_rows rows;
        const int64_t ds = cvy_pool_taps(w, 0, d, &rows.d0, &rows.d1), hs = cvy_pool_taps(w, 1, h, &rows.h0, &rows.h1);
        rows.origin = s->src + (plane * w->src_elems + (ds * w->src[1] + hs) * w->src[2]) * B;
        float *dst = s->dst + row * w->dst[2] * B;
        uint8_t *index = s->index ? (uint8_t *)s->index + row * w->dst[2] * B : NULL;
        switch (w->kernel[2]) {
        case 2: pool_row(s, 2, &rows, dst, index); break;
        case 3: pool_row(s, 3, &rows, dst, index); break;
        default: pool_row(s, w->kernel[2], &rows, dst, index); break;
        }
    }
}

/* ---- backward ---- */

/* One row of windows and the row of the source that its taps from `tap` on touch; add: to what the row holds. */
struct touch {
    const float *ddst;
    const uint8_t *index;
    int32_t tap;
    int add;
    float *dsrc;
};

/* Source position q * stride + phase - pad takes from the windows q, q-1, ... with the taps phase, phase + stride, ...
 */
LEAF void gather_position(const cvy_max_pool *s, const int64_t taps, const int64_t stride, const struct touch *t,
                          int64_t q, int64_t phase, const int inside)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t B = w->planes.block, x = q * stride + phase - w->pad[2];
    if (!inside && (x < 0 || x >= w->src[2]))
        return;
    for (int64_t l = 0; l < B; l += LANES) {
        vec sum = t->add ? load(t->dsrc + x * B + l) : spread(0);
#pragma GCC unroll 4
        for (int64_t i = 0; phase + i * stride < taps; i++) {
            if (!inside && (q - i < 0 || q - i >= w->dst[2]))
                continue;
            const int64_t at = (q - i) * B + l;
            const ivec won = load_bytes(t->index + at) == spread_int(t->tap + (int32_t)(phase + i * stride));
            sum += keep(won, load(t->ddst + at));
        }
        store(t->dsrc + x * B + l, sum);
    }
}

LEAF void gather_row(const cvy_max_pool *s, const int64_t taps, const int64_t stride, const struct touch *t)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t pad = w->pad[2], all = (w->src[2] - 1 + pad) / stride + 1;
    const int64_t first = CVY_MIN(all, CVY_MAX((taps - 1) / stride, (pad + stride - 1) / stride)),
                  end = CVY_MAX(first, CVY_MIN(w->dst[2], (w->src[2] + pad) / stride));
    for (int64_t q = 0; q < first; q++)
        for (int64_t phase = 0; phase < stride; phase++)
            gather_position(s, taps, stride, t, q, phase, 0);
    for (int64_t q = first; q < end; q++)
#pragma GCC unroll 4
        for (int64_t phase = 0; phase < stride; phase++)
            gather_position(s, taps, stride, t, q, phase, 1);
    for (int64_t q = end; q < all; q++)
        for (int64_t phase = 0; phase < stride; phase++)
            gather_position(s, taps, stride, t, q, phase, 0);
}

/* The windows first .. end-1 whose taps in dimension d touch source coordinate `at`. */
LEAF void windows_over(const cvy_pool_walk *w, int d, int64_t at, int64_t *first_out, int64_t *end_out)
{
    const int64_t from = at + w->pad[d] - w->kernel[d] + 1;
    *first_out = from <= 0 ? 0 : (from + w->stride[d] - 1) / w->stride[d];
    *end_out = CVY_MIN(w->dst[d], (at + w->pad[d]) / w->stride[d] + 1);
}

LEAF void gather(const cvy_max_pool *s, const struct touch *t)
{
    const int64_t taps = s->w.kernel[2], stride = s->w.stride[2];
    if (taps == 2 && stride == 2)
        gather_row(s, 2, 2, t);
    else if (taps == 3 && stride == 2)
        gather_row(s, 3, 2, t);
    else if (taps == 3 && stride == 1)
        gather_row(s, 3, 1, t);
    else
        gather_row(s, taps, stride, t);
}

TARGET static void max_pool_grad_range(int64_t first, int64_t end, void *arg)
{
    const cvy_max_pool *s = arg;
    const cvy_pool_walk *w = &s->w;
    const int64_t row_elems = w->src[2] * w->planes.block, nrow = w->src[0] * w->src[1];
    for (int64_t row = first * nrow; row < end * nrow; row++) {
        const int64_t plane = row / nrow, z = row % nrow / w->src[1], y = row % w->src[1];
        struct touch t = {.dsrc = s->dsrc + row * row_elems};
        int64_t d0, d1, h0, h1;
        windows_over(w, 0, z, &d0, &d1);
        windows_over(w, 1, y, &h0, &h1);
        for (int64_t d = d0; d < d1; d++)
            for (int64_t h = h0; h < h1; h++) {
                const int64_t tap_d = z + w->pad[0] - d * w->stride[0], tap_h = y + w->pad[1] - h * w->stride[1];
                const int64_t at = (plane * w->dst_elems + (d * w->dst[1] + h) * w->dst[2]) * w->planes.block;
                t.ddst = s->ddst + at;
                t.index = (const uint8_t *)s->index_in + at;
                t.tap = (int32_t)((tap_d * w->kernel[1] + tap_h) * w->kernel[2]);
                gather(s, &t);
                t.add = 1;
            }
        if (!t.add)
            memset(t.dsrc, 0, (size_t)row_elems * sizeof *t.dsrc);
    }
}

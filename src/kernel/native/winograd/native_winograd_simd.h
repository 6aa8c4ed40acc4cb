/*
 * native_winograd_simd.h: the body of native_winograd_<isa>.c, compiled for one kind of vectors.
 *
 * The including file defines LANES, ROWS, EACH_ROWS (all supported numbers of rows, ascending to ROWS), SUM_ROWS and
 * TARGET (the attribute of every function). With PAIRS, products read bf16: a word of 32 bits holds the values for two
 * consecutive indices of the sum. Points are in pairs +-p, so a transform computes an even and an odd part,
 * and then their sum and their difference. Loops over points have constant bounds and are unrolled; all factors are
 * compile-time constants.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/winograd/native_winograd.h"

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float memory_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias)); /* at any address */
typedef int mask __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef uint16_t memory_halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

#define LEAF TARGET static inline __attribute__((always_inline))

/* ---- vectors in memory ---- */

/* Loads vector i of a plane of f32 or, if half, of bf16 (base_bf16.h). */
LEAF void get(const int half, const void *plane, int64_t i, vec *v)
{
    if (half)
        *v = (vec)(CVY_CONVERT(words, LANES, *(const memory_halves *)((const cvy_bf16 *)plane + i * LANES)) << 16);
    else
        *v = *(const memory_vec *)((const float *)plane + i * LANES);
}

#ifdef PAIRS

enum { WORDS = LANES / 2 }; /* of a block of channels */

LEAF void put_half(const vec *v, cvy_bf16 *to)
{
    _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh((__m512)*v));
}

#else

enum { WORDS = LANES };

LEAF void put_half(const vec *v, cvy_bf16 *to)
{
    const words bits = (words)*v, is_nan = (words)(*v != *v), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16,
                nan = bits >> 16 | 0x40, chosen = (rounded & ~is_nan) | (nan & is_nan);
    *(memory_halves *)to = CVY_CONVERT(halves, LANES, chosen);
}

#endif

LEAF void put(const int half, const vec *v, void *plane, int64_t i)
{
    if (half)
        put_half(v, (cvy_bf16 *)plane + i * LANES);
    else
        *(memory_vec *)((float *)plane + i * LANES) = *v;
}

/* ---- transforms ---- */

/* The positive point of pair k; there are 2 pairs for n = 6, 3 for n = 8, 5 for n = 12. */
LEAF float point(int pairs, int k)
{
    if (pairs == 2)
        return k == 0 ? 0.625F : 1.5F;
    if (pairs == 3)
        return k == 0 ? 0.5F : k == 1 ? 1 : 2;
    return k == 0 ? 0.375F : k == 1 ? 0.625F : k == 2 ? 1 : k == 3 ? 1.5F : 2.875F;
}

LEAF float square(int pairs, int k)
{
    return point(pairs, k) * point(pairs, k);
}

LEAF float power(int pairs, int k, int j)
{
    float p = 1;
#pragma GCC unroll 8
    for (int i = 0; i < j; i++)
        p *= point(pairs, k);
    return p;
}

/* 1 / product of the differences between a point and all others. k: the pair +-p; -1: the point 0. */
LEAF float scale(int pairs, int k)
{
    float others = k < 0 ? 1 : 2 * square(pairs, k);
#pragma GCC unroll 5
    for (int i = 0; i < pairs; i++)
        if (i != k)
            others *= k < 0 ? -square(pairs, i) : square(pairs, k) - square(pairs, i);
    return 1 / others;
}

/* The coefficients, without their signs, of the product of (t - square) over all pairs except `skip`. e[i] belongs to
 * t^(pairs - i). */
LEAF void expand(int pairs, int skip, float *e)
{
    e[0] = 1;
    e[1] = e[2] = e[3] = e[4] = e[5] = 0;
#pragma GCC unroll 5
    for (int k = 0; k < pairs; k++) {
        const float p = k == skip ? 0 : square(pairs, k);
        e[5] += p * e[4];
        e[4] += p * e[3];
        e[3] += p * e[2];
        e[2] += p * e[1];
        e[1] += p;
    }
}

/* y = x[2 count - 2] - e[1] x[2 count - 4] + e[2] x[2 count - 6] - ... */
LEAF void alternate(int count, const float *e, const vec *x, vec *y)
{
    vec sum = x[2 * count - 2];
#pragma GCC unroll 6
    for (int i = 1; i < count; i++)
        sum += (i % 2 ? -e[i] : e[i]) * x[2 * (count - 1 - i)];
    *y = sum;
}

/* y = B^T x. Each row of B^T is the polynomial whose roots are all points but one. */
LEAF void interpolate(int pairs, const vec *x, vec *y)
{
    float e[6];
    expand(pairs, -1, e);
    alternate(pairs + 1, e, x, &y[0]);
    alternate(pairs + 1, e, x + 1, &y[2 * pairs + 1]);
#pragma GCC unroll 5
    for (int k = 0; k < pairs; k++) {
        vec even, odd;
        expand(pairs, k, e);
        alternate(pairs, e, x + 2, &even);
        alternate(pairs, e, x + 1, &odd);
        y[1 + 2 * k] = even + point(pairs, k) * odd;
        y[2 + 2 * k] = even - point(pairs, k) * odd;
    }
}

/* y = A x, or G x if scaled: the values, at all points, of the polynomial with the `count` coefficients x. */
LEAF void evaluate(int pairs, int count, int scaled, const vec *x, vec *y)
{
    y[0] = (scaled ? scale(pairs, -1) : 1) * x[0];
    y[2 * pairs + 1] = x[count - 1];
#pragma GCC unroll 5
    for (int k = 0; k < pairs; k++) {
        const float s = scaled ? scale(pairs, k) : 1;
        vec even = s * x[0], odd = s * power(pairs, k, 1) * x[1];
#pragma GCC unroll 8
        for (int j = 2; j < count; j++)
            if (j % 2 == 0)
                even += s * power(pairs, k, j) * x[j];
            else
                odd += s * power(pairs, k, j) * x[j];
        y[1 + 2 * k] = even + odd;
        y[2 + 2 * k] = even - odd;
    }
}

/* y = A^T x, or G^T x if scaled: the transpose of evaluate. */
LEAF void collect(int pairs, int count, int scaled, const vec *x, vec *y)
{
    vec even[5], odd[5];
#pragma GCC unroll 5
    for (int k = 0; k < pairs; k++) {
        const float s = scaled ? scale(pairs, k) : 1;
        even[k] = s * (x[1 + 2 * k] + x[2 + 2 * k]);
        odd[k] = s * (x[1 + 2 * k] - x[2 + 2 * k]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < count; j++) {
        y[j] = power(pairs, 0, j) * (j % 2 == 0 ? even[0] : odd[0]);
#pragma GCC unroll 5
        for (int k = 1; k < pairs; k++)
            y[j] += power(pairs, k, j) * (j % 2 == 0 ? even[k] : odd[k]);
    }
    y[0] += (scaled ? scale(pairs, -1) : 1) * x[0];
    y[count - 1] += x[2 * pairs + 1];
}

enum kind { SRC, WEIGHT, DST, DDST, DWEIGHT };

/* Writes a point of a transformed tile. With PAIRS, one that a product reads is rounded to bf16. */
LEAF void put_point(enum kind kind, const vec *v, float *to)
{
    put(WORDS < LANES && kind != DST && kind != DWEIGHT, v, to, 0);
}

/* Transforms along one dimension: m results, r taps. m = r = 1 needs no transform. */
LEAF void apply(enum kind kind, int m, int r, const vec *x, vec *y)
{
    const int pairs = (m + r - 1) / 2 - 1;
    if (m + r == 2) {
        y[0] = x[0];
        return;
    }
    switch (kind) {
    case SRC: interpolate(pairs, x, y); break;
    case WEIGHT: evaluate(pairs, r, 1, x, y); break;
    case DST: collect(pairs, m, 0, x, y); break;
    case DDST: evaluate(pairs, m, 0, x, y); break;
    case DWEIGHT: collect(pairs, r, 1, x, y); break;
    }
}

LEAF int extent_in(enum kind kind, int m, int r)
{
    return kind == WEIGHT ? r : kind == DDST ? m : m + r - 1;
}

LEAF int extent_out(enum kind kind, int m, int r)
{
    return kind == DST ? m : kind == DWEIGHT ? r : m + r - 1;
}

/* Transforms the columns (mh results, rh taps), then the rows (mw results, rw taps). */
LEAF void transform(enum kind kind, int mh, int mw, int rh, int rw, const float *from, int64_t row, int64_t col,
                    float *to, int64_t step)
{
    enum { N = CVY_WINOGRAD_N_MAX };
    const int in_h = extent_in(kind, mh, rh), in_w = extent_in(kind, mw, rw), out_h = extent_out(kind, mh, rh),
              out_w = extent_out(kind, mw, rw);
    vec half[N][N];
    for (int j = 0; j < in_w; j++) {
        vec x[N], y[N];
#pragma GCC unroll 12
        for (int i = 0; i < in_h; i++) {
            x[i] = *(const memory_vec *)(from + i * row + j * col);
            if ((kind == SRC && j >= in_w - mw) || kind == DDST)
                __builtin_prefetch(from + i * row + (j + mw) * col);
        }
        apply(kind, mh, rh, x, y);
#pragma GCC unroll 12
        for (int i = 0; i < out_h; i++)
            half[i][j] = y[i];
    }
    for (int i = 0; i < out_h; i++) {
        vec x[N], y[N];
#pragma GCC unroll 12
        for (int j = 0; j < in_w; j++)
            x[j] = half[i][j];
        apply(kind, mw, rw, x, y);
#pragma GCC unroll 12
        for (int j = 0; j < out_w; j++)
            put_point(kind, &y[j], to + (i * out_w + j) * step);
    }
}

#define TRANSFORM(name, kind, mh, mw, rh, rw)                                                                          \
    TARGET static void name##_##mh##mw##_##rh##rw(const float *from, int64_t row, int64_t col, float *to,              \
                                                  int64_t step)                                                        \
    {                                                                                                                  \
        transform(kind, mh, mw, rh, rw, from, row, col, to, step);                                                     \
    }
#define TRANSFORMS(mh, mw, rh, rw)                                                                                     \
    TRANSFORM(src, SRC, mh, mw, rh, rw)                                                                                \
    TRANSFORM(weight, WEIGHT, mh, mw, rh, rw)                                                                          \
    TRANSFORM(dst, DST, mh, mw, rh, rw)                                                                                \
    TRANSFORM(ddst, DDST, mh, mw, rh, rw)                                                                              \
    TRANSFORM(dweight, DWEIGHT, mh, mw, rh, rw)
#define TILE(mh, mw, rh, rw)                                                                                           \
    {                                                                                                                  \
        {mh, mw}, {rh, rw}, src_##mh##mw##_##rh##rw, weight_##mh##mw##_##rh##rw, dst_##mh##mw##_##rh##rw,              \
            ddst_##mh##mw##_##rh##rw, dweight_##mh##mw##_##rh##rw                                                      \
    }

TRANSFORMS(4, 4, 3, 3)
TRANSFORMS(6, 6, 3, 3)
TRANSFORMS(4, 4, 5, 5)
TRANSFORMS(5, 5, 2, 2)
TRANSFORMS(7, 7, 2, 2)
TRANSFORMS(1, 4, 1, 3)
TRANSFORMS(4, 1, 3, 1)
TRANSFORMS(4, 1, 5, 1)
TRANSFORMS(1, 6, 1, 7)
TRANSFORMS(6, 1, 7, 1)

static const cvy_winograd_tile tiles[] = {
    TILE(4, 4, 3, 3), TILE(6, 6, 3, 3), TILE(4, 4, 5, 5), TILE(5, 5, 2, 2), TILE(7, 7, 2, 2),
    TILE(1, 4, 1, 3), TILE(4, 1, 3, 1), TILE(4, 1, 5, 1), TILE(1, 6, 1, 7), TILE(6, 1, 7, 1),
};

/* ---- tiles in memory ---- */

/* Copies a tile of the plane [h, w], whose values are `step` apart; values outside the plane are zero. */
LEAF void load_tile(const int half, const void *plane, int64_t h, int64_t w, int64_t y0, int64_t x0, int step,
                    const int *n, float *to)
{
    const vec zero = {0};
    for (int i = 0; i < n[0]; i++)
        for (int j = 0; j < n[1]; j++, to += LANES) {
            const int64_t y = y0 + i * step, x = x0 + j * step;
            vec v = zero;
            if (y >= 0 && y < h && x >= 0 && x < w)
                get(half, plane, y * w + x, &v);
            *(memory_vec *)to = v;
        }
}

TARGET static void load_f32(const void *plane, int64_t h, int64_t w, int64_t y0, int64_t x0, int step, const int *n,
                            float *to)
{
    load_tile(0, plane, h, w, y0, x0, step, n, to);
}

TARGET static void load_bf16(const void *plane, int64_t h, int64_t w, int64_t y0, int64_t x0, int step, const int *n,
                             float *to)
{
    load_tile(1, plane, h, w, y0, x0, step, n, to);
}

/* Writes an area of a tile into a plane of width w, adds the bias if there is one, and applies ReLU if relu. */
LEAF void store_tile(const int half, const float *tile, const cvy_winograd_area *a, const float *bias, int relu,
                     void *plane, int64_t w)
{
    const vec zero = {0};
    vec add = zero;
    if (bias)
        add = *(const memory_vec *)bias;
    for (int y = a->first[0]; y < a->end[0]; y++)
        for (int x = a->first[1]; x < a->end[1]; x++) {
            vec v = *(const memory_vec *)(tile + (y * a->m + x) * LANES) + add;
            if (relu)
                v = (vec)((mask)v & (v > zero));
            put(half, &v, plane, (a->y + y * a->step) * w + a->x + x * a->step);
        }
}

TARGET static void store_f32(const float *tile, const cvy_winograd_area *area, const float *bias, int relu, void *plane,
                             int64_t w)
{
    store_tile(0, tile, area, bias, relu, plane, w);
}

TARGET static void store_bf16(const float *tile, const cvy_winograd_area *area, const float *bias, int relu,
                              void *plane, int64_t w)
{
    store_tile(1, tile, area, bias, relu, plane, w);
}

/* Adds all vectors of a tile to sum. */
TARGET static void add_up(const float *tile, int64_t row, int64_t col, const int *m, float *sum)
{
    vec total = *(const memory_vec *)sum;
    for (int y = 0; y < m[0]; y++)
        for (int x = 0; x < m[1]; x++)
            total += *(const memory_vec *)(tile + y * row + x * col);
    *(memory_vec *)sum = total;
}

/* ---- products ---- */

/* So many vectors ahead are prefetched from the outer caches. A prefetch beyond the end is harmless. */
enum { AHEAD = 32 };

#ifdef PAIRS

LEAF void multiply_add(float a, const vec *b, vec *sum)
{
    *sum = (vec)_mm512_dpbf16_ps((__m512)*sum, (__m512bh)_mm512_set1_ps(a), (__m512bh)*b);
}

/* Pairs the n vectors of bf16 at `lower` with those at `upper`. */
TARGET static void interleave(int64_t n, const float *lower, const float *upper, float *to, int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(lower + i * WORDS))),
                      high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(upper + i * WORDS)));
        _mm512_storeu_si512(to + i * step, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

#else

LEAF void multiply_add(float a, const vec *b, vec *sum)
{
    *sum += a * *b;
}

#endif

LEAF void product(const int rows, const int w, int64_t blocks, const float *a, const float *b, float *c)
{
    vec sum[ROWS][2];
    memset(sum, 0, sizeof sum);
    for (int64_t p = 0; p < blocks; p++, a += rows * WORDS)
        for (int l = 0; l < WORDS; l++, b += w * LANES) {
            const vec b0 = *(const memory_vec *)b, b1 = *(const memory_vec *)(b + (w - 1) * LANES);
            __builtin_prefetch(b + AHEAD * w * LANES);
            __builtin_prefetch(b + AHEAD * w * LANES + (w - 1) * LANES);
            __builtin_prefetch(a + (2 * rows + l) * WORDS);
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) {
                multiply_add(a[i * WORDS + l], &b0, &sum[i][0]);
                if (w > 1)
                    multiply_add(a[i * WORDS + l], &b1, &sum[i][1]);
            }
        }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < w; j++)
            *(memory_vec *)(c + (i * w + j) * LANES) = sum[i][j];
}

LEAF void sum_tiles(int w, int64_t k, const float *a, const float *b, int add, float *c)
{
    vec sum[SUM_ROWS][2];
    memset(sum, 0, sizeof sum);
    for (int64_t p = 0; p < k; p++, a += LANES, b += w * LANES) {
        const vec b0 = *(const memory_vec *)b, b1 = *(const memory_vec *)(b + (w - 1) * LANES);
        __builtin_prefetch(a + AHEAD * LANES);
        __builtin_prefetch(b + AHEAD * w * LANES);
        __builtin_prefetch(b + AHEAD * w * LANES + (w - 1) * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < SUM_ROWS; i++) {
            multiply_add(a[i], &b0, &sum[i][0]);
            if (w > 1)
                multiply_add(a[i], &b1, &sum[i][1]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < SUM_ROWS; i++)
#pragma GCC unroll 2
        for (int j = 0; j < w; j++) {
            memory_vec *to = (memory_vec *)(c + (i * w + j) * LANES);
            if (add)
                sum[i][j] += *to;
            *to = sum[i][j];
        }
}

#define PRODUCTS(rows)                                                                                                 \
    TARGET static void product_1_##rows(int64_t blocks, const float *a, const float *b, float *c)                      \
    {                                                                                                                  \
        product(rows, 1, blocks, a, b, c);                                                                             \
    }                                                                                                                  \
    TARGET static void product_2_##rows(int64_t blocks, const float *a, const float *b, float *c)                      \
    {                                                                                                                  \
        product(rows, 2, blocks, a, b, c);                                                                             \
    }
#define PRODUCTS_OF(rows) {product_1_##rows, product_2_##rows},

EACH_ROWS(PRODUCTS)

static const cvy_winograd_products products[] = {EACH_ROWS(PRODUCTS_OF)};

TARGET static void sum_1(int64_t k, const float *a, const float *b, int add, float *c)
{
    sum_tiles(1, k, a, b, add, c);
}

TARGET static void sum_2(int64_t k, const float *a, const float *b, int add, float *c)
{
    sum_tiles(2, k, a, b, add, c);
}

static const cvy_winograd_isa isa = {
    .lanes = LANES,
    .per_word = LANES / WORDS,
    .rows_most = ROWS,
    .rows_least = ROWS + 1 - CVY_COUNT(products),
    .sum_rows = SUM_ROWS,
    .tile = tiles,
    .ntile = CVY_COUNT(tiles),
    .products = products,
    .sum = {sum_1, sum_2},
    .load = {load_f32, load_bf16},
    .store = {store_f32, store_bf16},
    .add_up = add_up,
#ifdef PAIRS
    .interleave = interleave,
#endif
};

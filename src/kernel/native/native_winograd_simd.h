/*
 * native_winograd_simd.h: the body of native_winograd_<isa>.c, compiled for one kind of vectors. The including file
 * defines LANES, ROWS, SUM_ROWS and TARGET (the attribute of every function).
 *
 * Points come in pairs +-p, so a transform is an even and an odd part, their sum and their difference. Loops over
 * points have constant bounds and unroll; all factors are constants of the compiler.
 */
#include <string.h>

#include "kernel/native/native_winograd.h"

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float memory_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias)); /* wherever it lies */
typedef int mask __attribute__((vector_size(4 * LANES)));

#define LEAF TARGET static inline __attribute__((always_inline))

/* Of the pair k of 2 (n = 6) or 3 (n = 8). */
LEAF float point(int pairs, int k)
{
    if (pairs == 2)
        return k == 0 ? 0.625F : 1.5F;
    return k == 0 ? 0.5F : k == 1 ? 1 : 2;
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

/* 1 / product of the differences between this point and the others: of +-p, and of 0 where k is -1. */
LEAF float scale(int pairs, int k)
{
    float others = k < 0 ? 1 : 2 * square(pairs, k);
#pragma GCC unroll 4
    for (int i = 0; i < pairs; i++)
        if (i != k)
            others *= k < 0 ? -square(pairs, i) : square(pairs, k) - square(pairs, i);
    return 1 / others;
}

/* B^T x. x is scaled by the polynomials whose roots are all points but one. */
LEAF void interpolate(int pairs, const vec *x, vec *y)
{
    const float a = square(pairs, 0), b = square(pairs, 1);
    if (pairs == 2) {
        y[0] = x[4] - (a + b) * x[2] + a * b * x[0];
        y[5] = x[5] - (a + b) * x[3] + a * b * x[1];
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const float other = square(pairs, 1 - k);
            const vec even = x[4] - other * x[2], odd = point(pairs, k) * (x[3] - other * x[1]);
            y[1 + 2 * k] = even + odd;
            y[2 + 2 * k] = even - odd;
        }
        return;
    }
    const float c = square(pairs, 2), one = a + b + c, two = a * b + b * c + a * c, three = a * b * c;
    y[0] = x[6] - one * x[4] + two * x[2] - three * x[0];
    y[7] = x[7] - one * x[5] + two * x[3] - three * x[1];
#pragma GCC unroll 3
    for (int k = 0; k < 3; k++) {
        const float p = square(pairs, (k + 1) % 3), q = square(pairs, (k + 2) % 3);
        const vec even = x[6] - (p + q) * x[4] + p * q * x[2],
                  odd = point(pairs, k) * (x[5] - (p + q) * x[3] + p * q * x[1]);
        y[1 + 2 * k] = even + odd;
        y[2 + 2 * k] = even - odd;
    }
}

/* A x, or G x where scaled: the polynomial with `count` coefficients x at all points. */
LEAF void evaluate(int pairs, int count, int scaled, const vec *x, vec *y)
{
    y[0] = (scaled ? scale(pairs, -1) : 1) * x[0];
    y[2 * pairs + 1] = x[count - 1];
#pragma GCC unroll 3
    for (int k = 0; k < pairs; k++) {
        const float s = scaled ? scale(pairs, k) : 1;
        vec even = s * x[0], odd = s * power(pairs, k, 1) * x[1];
#pragma GCC unroll 6
        for (int j = 2; j < count; j++)
            if (j % 2 == 0)
                even += s * power(pairs, k, j) * x[j];
            else
                odd += s * power(pairs, k, j) * x[j];
        y[1 + 2 * k] = even + odd;
        y[2 + 2 * k] = even - odd;
    }
}

/* A^T x, or G^T x where scaled: the transpose of evaluate. */
LEAF void collect(int pairs, int count, int scaled, const vec *x, vec *y)
{
    vec even[3], odd[3];
#pragma GCC unroll 3
    for (int k = 0; k < pairs; k++) {
        const float s = scaled ? scale(pairs, k) : 1;
        even[k] = s * (x[1 + 2 * k] + x[2 + 2 * k]);
        odd[k] = s * (x[1 + 2 * k] - x[2 + 2 * k]);
    }
#pragma GCC unroll 6
    for (int j = 0; j < count; j++) {
        y[j] = power(pairs, 0, j) * (j % 2 == 0 ? even[0] : odd[0]);
#pragma GCC unroll 3
        for (int k = 1; k < pairs; k++)
            y[j] += power(pairs, k, j) * (j % 2 == 0 ? even[k] : odd[k]);
    }
    y[0] += (scaled ? scale(pairs, -1) : 1) * x[0];
    y[count - 1] += x[2 * pairs + 1];
}

enum kind { SRC, WEIGHT, DST, DDST, DWEIGHT };

LEAF void apply(enum kind kind, int pairs, int m, int r, const vec *x, vec *y)
{
    switch (kind) {
    case SRC: interpolate(pairs, x, y); break;
    case WEIGHT: evaluate(pairs, r, 1, x, y); break;
    case DST: collect(pairs, m, 0, x, y); break;
    case DDST: evaluate(pairs, m, 0, x, y); break;
    case DWEIGHT: collect(pairs, r, 1, x, y); break;
    }
}

/* Columns, then rows. */
LEAF void transform(enum kind kind, int m, int r, const float *from, int64_t row, int64_t col, float *to, int64_t step)
{
    enum { N = CVY_WINOGRAD_N_MAX };
    const int n = m + r - 1, pairs = n / 2 - 1;
    const int in = kind == WEIGHT ? r : kind == DDST ? m : n, out = kind == DST ? m : kind == DWEIGHT ? r : n;
    vec half[N][N];
    for (int j = 0; j < in; j++) {
        vec x[N], y[N];
#pragma GCC unroll 8
        for (int i = 0; i < in; i++) {
            x[i] = *(const memory_vec *)(from + i * row + j * col);
            if ((kind == SRC && j >= n - m) || kind == DDST)
                __builtin_prefetch(from + i * row + (j + m) * col);
        }
        apply(kind, pairs, m, r, x, y);
#pragma GCC unroll 8
        for (int i = 0; i < out; i++)
            half[i][j] = y[i];
    }
    for (int i = 0; i < out; i++) {
        vec x[N], y[N];
#pragma GCC unroll 8
        for (int j = 0; j < in; j++)
            x[j] = half[i][j];
        apply(kind, pairs, m, r, x, y);
#pragma GCC unroll 8
        for (int j = 0; j < out; j++)
            *(memory_vec *)(to + (i * out + j) * step) = y[j];
    }
}

#define TRANSFORM(name, kind, m, r)                                                                                    \
    TARGET static void name##_##m##_##r(const float *from, int64_t row, int64_t col, float *to, int64_t step)          \
    {                                                                                                                  \
        transform(kind, m, r, from, row, col, to, step);                                                               \
    }
#define TRANSFORMS(m, r)                                                                                               \
    TRANSFORM(src, SRC, m, r)                                                                                          \
    TRANSFORM(weight, WEIGHT, m, r)                                                                                    \
    TRANSFORM(dst, DST, m, r)                                                                                          \
    TRANSFORM(ddst, DDST, m, r)                                                                                        \
    TRANSFORM(dweight, DWEIGHT, m, r)
#define TILE(m, r)                                                                                                     \
    {                                                                                                                  \
        m, r, src_##m##_##r, weight_##m##_##r, dst_##m##_##r, ddst_##m##_##r, dweight_##m##_##r                        \
    }

TRANSFORMS(4, 3)
TRANSFORMS(6, 3)
TRANSFORMS(4, 5)

static const cvy_winograd_tile tiles[] = {TILE(4, 3), TILE(6, 3), TILE(4, 5)};

/* ---- tiles in memory ---- */

/* Copies a tile that hangs over the edge of the plane [h, w], and zeros where there is nothing. */
TARGET static void load_edge(const float *plane, int64_t h, int64_t w, int64_t y0, int64_t x0, int n, float *to)
{
    const vec zero = {0};
    for (int64_t y = y0; y < y0 + n; y++)
        for (int64_t x = x0; x < x0 + n; x++, to += LANES) {
            const int inside = y >= 0 && y < h && x >= 0 && x < w;
            *(memory_vec *)to = zero;
            if (inside)
                *(memory_vec *)to = *(const memory_vec *)(plane + (y * w + x) * LANES);
        }
}

/* Writes rows x cols of a tile m wide into a plane w wide, adds the bias if there is one, rectifies. */
TARGET static void store(const float *tile, int m, int rows, int cols, const float *bias, int relu, float *to,
                         int64_t w)
{
    const vec zero = {0};
    vec add = zero;
    if (bias)
        add = *(const memory_vec *)bias;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < cols; x++) {
            vec v = *(const memory_vec *)(tile + (y * m + x) * LANES) + add;
            if (relu)
                v = (vec)((mask)v & (v > zero));
            *(memory_vec *)(to + (y * w + x) * LANES) = v;
        }
}

/* sum += all vectors of a tile m x m. */
TARGET static void add_up(const float *tile, int64_t row, int m, float *sum)
{
    vec total = *(const memory_vec *)sum;
    for (int y = 0; y < m; y++)
        for (int x = 0; x < m; x++)
            total += *(const memory_vec *)(tile + y * row + x * LANES);
    *(memory_vec *)sum = total;
}

/* ---- products ---- */

enum {
    AHEAD = 32
}; /* vectors from now, those that are fetched from the outer caches; beyond the end it does no harm */

LEAF void product(int w, int64_t blocks, const float *a, const float *b, float *c)
{
    vec sum[ROWS][2];
    memset(sum, 0, sizeof sum);
    for (int64_t p = 0; p < blocks; p++, a += ROWS * LANES)
        for (int l = 0; l < LANES; l++, b += w * LANES) {
            const vec b0 = *(const memory_vec *)b, b1 = *(const memory_vec *)(b + (w - 1) * LANES);
            __builtin_prefetch(b + AHEAD * w * LANES);
            __builtin_prefetch(b + AHEAD * w * LANES + (w - 1) * LANES);
            __builtin_prefetch(a + (2 * ROWS + l) * LANES);
#pragma GCC unroll 16
            for (int i = 0; i < ROWS; i++) {
                sum[i][0] += a[i * LANES + l] * b0;
                if (w > 1)
                    sum[i][1] += a[i * LANES + l] * b1;
            }
        }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
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
            sum[i][0] += a[i] * b0;
            if (w > 1)
                sum[i][1] += a[i] * b1;
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

TARGET static void product_1(int64_t blocks, const float *a, const float *b, float *c)
{
    product(1, blocks, a, b, c);
}

TARGET static void product_2(int64_t blocks, const float *a, const float *b, float *c)
{
    product(2, blocks, a, b, c);
}

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
    .rows = ROWS,
    .sum_rows = SUM_ROWS,
    .tile = tiles,
    .ntile = CVY_COUNT(tiles),
    .product = {product_1, product_2},
    .sum = {sum_1, sum_2},
    .load_edge = load_edge,
    .store = store,
    .add_up = add_up,
};

/*
 * native_winograd.h: the parts of a Winograd convolution that depend on the CPU's vectors: the transforms of one tile
 * and the matrix products between them.
 *
 * A convolution with an r x r filter computes m x m results at a time (Winograd 1980; Lavin and Gray 2016). A source
 * tile is n x n, n = m + r - 1:
 *
 *     forward   dst tile = A^T [ sum over channels of (G w G^T) * (B^T src B) ] A
 *     gradient  dw = G^T [ sum over tiles of (B^T src B) * (A ddst A^T) ] G
 *
 * The sums are n x n independent matrix products, which need m^2 r^2 / n^2 times fewer multiplications than the direct
 * sum. The gradient of the source is a forward convolution of ddst with the filter rotated by 180 degrees. The
 * interpolation points are 0, +-p and infinity. A search over multiples of 1/8 found the points with the smallest
 * rounding error: +-5/8, +-3/2 for n = 6; +-1/2, +-1, +-2 for n = 8; +-3/8, +-5/8, +-1, +-3/2, +-23/8 for n = 12. A
 * filter of one row or column is transformed along one dimension only, so the error is amplified only once, and n = 12
 * is no worse there than n = 8 in two dimensions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_WINOGRAD_H
#define CVY_NATIVE_WINOGRAD_H

#include "kernel/native/native_common.h"

enum { CVY_WINOGRAD_LANES_MAX = 16, CVY_WINOGRAD_N_MAX = 12 };

/* Transforms one tile of one block of channels. from: vectors whose rows and columns are `row` and `col` floats apart.
 * to: the vectors of the result, row by row, `step` floats apart. */
typedef void (*cvy_winograd_transform)(const float *from, int64_t row, int64_t col, float *to, int64_t step);

/* F(m[0] x m[1], r[0] x r[1]). */
typedef struct cvy_winograd_tile {
    int m[2], r[2];
    cvy_winograd_transform src, weight, dst; /* B^T x B, G x G^T, A^T x A */
    cvy_winograd_transform ddst, dweight;    /* A x A^T, G^T x G */
} cvy_winograd_tile;

/* c [rows, w] = a [blocks, rows, lanes] b [blocks * lanes, w], a sum over channels. w: [0] one vector, [1] two. */
typedef void (*cvy_winograd_products[2])(int64_t blocks, const float *a, const float *b, float *c);

typedef struct cvy_winograd_isa {
    int lanes;                 /* floats in a vector; also the block of channels */
    int rows_least, rows_most; /* range of the number of tiles in one product */
    int sum_rows;              /* channels in one sum over tiles; divides lanes */
    const cvy_winograd_tile *tile;
    int ntile;
    const cvy_winograd_products *products; /* [rows - rows_least] */
    /* c [sum_rows, w] = (or += if add) a [k, lanes]^T b [k, w], a sum over tiles. Uses a's first sum_rows columns. */
    void (*sum[2])(int64_t k, const float *a, const float *b, int add, float *c);
    /* These copy between tiles and planes [h, w] of vectors; [0] f32, [1] bf16. load copies a tile of n x n at (y0,
     * x0), which may extend beyond the edge. store writes the first rows and columns of a tile to (y0, x0), with bias
     * (or NULL) and ReLU. add_up adds all vectors of a tile to `sum`. */
    void (*load[2])(const void *plane, int64_t h, int64_t w, int64_t y0, int64_t x0, const int *n, float *to);
    void (*store[2])(const float *tile, int m, int rows, int cols, const float *bias, int relu, void *plane, int64_t w,
                     int64_t y0, int64_t x0);
    void (*add_up)(const float *tile, int64_t row, const int *m, float *sum);
} cvy_winograd_isa;

/* Each returns NULL if the build or the CPU does not have these vectors. */
const cvy_winograd_isa *cvy_winograd_avx512(void);
const cvy_winograd_isa *cvy_winograd_avx2(void);
const cvy_winograd_isa *cvy_winograd_plain(void);

#endif

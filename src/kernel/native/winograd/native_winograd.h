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
 * A filter of stride 2 is cut into four, by the parity of its rows and columns: each works on the positions of the
 * source with one parity, and has stride 1 there. So it is a convolution of stride 1 with four times as many channels,
 * whose filters have half as many rows and columns; those of an odd size are filled up with zeros. In the same
 * way a slice of a volume is a convolution in two dimensions whose channels are those of all slices that the filter
 * reaches.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_WINOGRAD_H
#define CVY_NATIVE_WINOGRAD_H

#include "kernel/native/native_common.h"

enum { CVY_WINOGRAD_LANES_MAX = 16, CVY_WINOGRAD_N_MAX = 12 };

/* Transforms one tile of one block of channels. from: vectors whose rows and columns are `row` and `col` floats apart.
 * to: the vectors of the result, row by row, `step` floats apart. With two values per word, src, weight and ddst make
 * vectors of bf16, which have half the size. */
typedef void (*cvy_winograd_transform)(const float *from, int64_t row, int64_t col, float *to, int64_t step);

/* F(m[0] x m[1], r[0] x r[1]). */
typedef struct cvy_winograd_tile {
    int m[2], r[2];
    cvy_winograd_transform src, weight, dst; /* B^T x B, G x G^T, A^T x A */
    cvy_winograd_transform ddst, dweight;    /* A x A^T, G^T x G */
} cvy_winograd_tile;

/* c [rows, w] = a [blocks, rows, words] b [blocks * words, w], a sum over channels; a block has lanes / per_word words.
 * w: [0] one vector, [1] two. */
typedef void (*cvy_winograd_products[2])(int64_t blocks, const float *a, const float *b, float *c);

/* Where the results of a tile of width m go: its rows first[0] .. end[0] - 1 and columns first[1] .. end[1] - 1, of
 * which that at (0, 0) belongs to (y, x), and neighbours are `step` apart. */
typedef struct cvy_winograd_area {
    int m, step, first[2], end[2];
    int64_t y, x;
} cvy_winograd_area;

typedef struct cvy_winograd_isa {
    int lanes;                 /* floats in a vector; also the block of channels */
    int per_word;              /* consecutive values of a sum in a word of 32 bits: 1 f32, or 2 bf16 */
    int rows_least, rows_most; /* range of the number of tiles in one product */
    int sum_rows;              /* channels in one sum over tiles; divides lanes */
    const cvy_winograd_tile *tile;
    int ntile;
    const cvy_winograd_products *products; /* [rows - rows_least] */
    /* c [sum_rows, w] = (or += if add) a [k, lanes]^T b [k, w], a sum over tiles. Uses a's first sum_rows columns. */
    void (*sum[2])(int64_t k, const float *a, const float *b, int add, float *c);
    /* These copy between tiles and planes [h, w] of vectors; [0] f32, [1] bf16. load copies a tile of n x n at (y0,
     * x0), whose values are `step` apart and which may extend beyond the edge. store writes an area of a tile, with
     * bias (or NULL) and ReLU. add_up adds all vectors of a tile to `sum`. */
    void (*load[2])(const void *plane, int64_t h, int64_t w, int64_t y0, int64_t x0, int step, const int *n, float *to);
    void (*store[2])(const float *tile, const cvy_winograd_area *area, const float *bias, int relu, void *plane,
                     int64_t w);
    void (*add_up)(const float *tile, int64_t row, int64_t col, const int *m, float *sum);
    /* Makes n vectors of words, `step` apart, of 2 n vectors of bf16; NULL if a word has one value. */
    void (*interleave)(int64_t n, const float *lower, const float *upper, float *to, int64_t step);
} cvy_winograd_isa;

/* All but the last return NULL if the build or the CPU does not have these vectors. Products of the first one are of
 * bf16, with sums in f32. */
const cvy_winograd_isa *cvy_winograd_avx512_bf16(void);
const cvy_winograd_isa *cvy_winograd_avx512(void);
const cvy_winograd_isa *cvy_winograd_avx2(void);
const cvy_winograd_isa *cvy_winograd_sve512(void);
const cvy_winograd_isa *cvy_winograd_sve256(void);
const cvy_winograd_isa *cvy_winograd_plain(void);
/* The widest vectors of f32 with at most this many lanes. */
const cvy_winograd_isa *cvy_winograd_find(int lanes);

#endif

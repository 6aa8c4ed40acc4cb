/*
 * native_amx_split.h: products of f32 values on tiles of bf16 (AMX), at the accuracy of f32: the innermost functions of
 * our f32 convolutions.
 *
 * A value is cut into three parts, x = h + m + l, of 8 significant bits each: h is the upper half of its bits, m that
 * of x - h, l what is left. f32 has 24 bits, so nothing is lost. Of the nine products of two values' parts six are
 * summed, in f32:
 *
 *     x y  =  h h' + (h m' + m h') + (m m' + h l' + l h')  +  what is dropped, at most 2^-21 |x y|, on average 2^-24 |x
 * y|
 *
 * Each product is exact, and a tile adds 32 of them before it rounds into the sum, so the sum rounds less often than a
 * plain one: its error is the smaller one (tests/kernel/test_kernel_amx_split.c). Tiles take values below 2^-126 for
 * zero, so of parts and products nothing below that counts. The lower parts of an infinity are zero; its products with
 * a zero part are NaN, so a sum that a plain one makes infinite may become NaN, and every other stays finite.
 *
 * Tiles lie as native_amx.h has them, each part by itself. A tile's rows are pairs of 16-bit words: of two vectors of
 * 16 values, lane by lane. Source: Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For
 * Higher-Precision Computations (2019).
 */
#ifndef CVY_NATIVE_AMX_SPLIT_H
#define CVY_NATIVE_AMX_SPLIT_H

#include "kernel/native/amx/native_amx_window.h"

enum { CVY_SPLIT_PARTS = 3 };

/* c [32 rows of a][32 columns of b] = the sum over blocks of 32 summands, and over taps. */
typedef struct cvy_split_sum {
    const cvy_bf16 *a, *b;
    int64_t a_block, a_part, a_row; /* elements between blocks, between parts, between the two tiles of rows; rows of a
                                       tile follow each other */
    int64_t b_block, b_part, b_column; /* the same of b, whose tiles are columns */
    int64_t blocks, taps;
    const cvy_amx_shift *tap;
    float *c;
    int64_t c_line, c_row, c_column; /* floats between lines of a tile, between tiles of rows, of columns */
    int rows, columns;               /* of tiles: 1 or 2 */
    int add;                         /* to what c holds */
    const float *begin;              /* else to these values, one a column, in every row; NULL: to zero */
    const float *ahead; /* what is read soon: vectors, ahead_step floats apart, this many for each product of parts;
                           brought nearer */
    int64_t ahead_step;
    int ahead_count;
} cvy_split_sum;

typedef struct cvy_split {
    void (*products)(const cvy_split_sum *s);
    /* Rows 0 .. count - 1 of tiles, 32 elements each, from vectors of 16 values `step` floats apart: lane l becomes the
     * pair (low[l], high[l]); high may be NULL: zeros. The parts are `part` elements apart. */
    void (*split)(const float *low, const float *high, int64_t step, int64_t count, cvy_bf16 *to, int64_t part);
    /* Adds `count` vectors of 16 values, step floats apart, to 16 sums. */
    void (*add_up)(const float *from, int64_t step, int64_t count, float *sums);
    /* 16 x 16 words of 32 bits, rows and columns exchanged. */
    void (*turn)(const void *from, int64_t from_row, void *to, int64_t to_row);
    /* Copies `count` vectors of 16 values, from_line and to_line floats apart; with relu, what is negative becomes
     * zero. past: straight to memory, `to` on 64 bytes. */
    void (*store)(const float *from, int64_t from_line, int64_t count, int relu, int past, float *to, int64_t to_line);
} cvy_split;

/* CVY_NOT_APPLICABLE, with the reason, where cvy_amx_get says so. */
cvy_status cvy_split_get(const cvy_amx **tiles_out, const cvy_split **out);

/* ---- geometry (native_amx_split_side.c): activations that lie in blocks of 16 channels ---- */

/* Where positions of one block of 16 channels lie, in floats. */
typedef struct cvy_split_side {
    int64_t channels, blocks; /* blocks: of 16 */
    int64_t sample, plane;    /* between samples, between blocks */
    int64_t positions;        /* of a sample */
    int flat;                 /* the window counts the positions of all samples in rows of one */
} cvy_split_side;

/* layout: in blocks of 16 channels, maybe a slice. */
cvy_split_side cvy_split_side_make(const cvy_shape *shape, const cvy_layout *layout, const cvy_window *w);
/* The longest run of positions that follow each other in a staged band from `at` on and either all exist or all do not.
 */
typedef struct cvy_split_run {
    int64_t count, from,
        step; /* from: in floats, behind channel 0 of sample 0, -1: zeros; step: floats between positions */
} cvy_split_run;
cvy_split_run cvy_split_run_at(const cvy_amx_window *w, const cvy_split_side *side, int64_t sample, int64_t band,
                               int64_t at);

/* Where a weight lies in a variable: the sum of the three. k and c are in whole blocks of 32, -1 where there is no such
 * channel. k is what is freed. */
typedef struct cvy_split_places {
    int64_t *k, *c, *tap;
    int64_t floats; /* of the variable, with padding */
} cvy_split_places;
cvy_status cvy_split_place(const cvy_layout *layout, const cvy_shape *weight, cvy_split_places *out);
/* Whether 16 places that exist follow each other at one distance. */
int cvy_split_is_even(const int64_t *at, int64_t *step_out);

#endif

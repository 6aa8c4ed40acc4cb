/*
 * native_amx_split.h: products of f32 values on bf16 tiles (AMX) with the accuracy of f32: the innermost functions of
 * convoy's f32 convolutions.
 *
 * A value is split into three parts of 8 significant bits each, x = h + m + l: h is the upper half of the bits of x, m
 * is the upper half of the bits of x - h, and l is the rest. f32 has 24 significant bits, so nothing is lost. The parts
 * of two values have nine products; six of them are summed, in f32:
 *
 *     x y  =  h h' + (h m' + m h') + (m m' + h l' + l h')  +  dropped
 *
 * The dropped products are at most 2^-21 |x y|, and on average 2^-24 |x y|. Each product is exact, and a tile adds 32
 * of them before it rounds. The sum is therefore rounded less often than a plain f32 sum, and its error is smaller
 * (tests/kernel/test_kernel_amx_split.c). Tiles treat values below 2^-126 as zero, so smaller parts and products are
 * lost. The lower parts of an infinity are zero, and infinity times a zero part is NaN. So a sum that is infinite in
 * plain f32 may be NaN here; every other sum stays finite.
 *
 * Tiles have the form that native_amx.h describes; each part has its own tiles. A row of a tile holds 16 pairs of
 * 16-bit words: pair i has lane i of each of two vectors of 16 values. Source: Henry, Tang, Heinecke: Leveraging the
 * bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations (2019).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_AMX_SPLIT_H
#define CVY_NATIVE_AMX_SPLIT_H

#include "kernel/native/amx/native_amx_window.h"

enum { CVY_SPLIT_PARTS = 3 };

/* c [32 rows of a][32 columns of b] = the sum over blocks of 32 elements and over filter taps. */
typedef struct cvy_split_sum {
    const cvy_bf16 *a, *b;
    /* Elements between blocks, between parts, and between the two tiles of rows of a (columns of b). The rows of one
     * tile are adjacent. */
    int64_t a_block, a_part, a_row;
    int64_t b_block, b_part, b_column;
    int64_t blocks, taps;
    const cvy_amx_shift *tap;
    float *c;
    int64_t c_line, c_row, c_column; /* floats between lines of a tile, rows of tiles, columns of tiles */
    int rows, columns;               /* of tiles: 1 or 2 */
    int add;                         /* 1: adds to c; 0: starts from `begin` */
    const float *begin;              /* start values, one for each column, the same in every row; NULL: zero */
    const float *prefetch; /* read soon: prefetch_count vectors for each product of parts, prefetch_step floats apart */
    int64_t prefetch_step;
    int prefetch_count;
} cvy_split_sum;

typedef struct cvy_amx_split {
    void (*products)(const cvy_split_sum *s);
    /* Writes rows 0 .. count - 1 of tiles, 32 elements each, from vectors of 16 values that are `step` floats apart.
     * Lane l becomes the pair (low[l], high[l]). high = NULL means zeros. The parts are `part` elements apart. */
    void (*split)(const float *low, const float *high, int64_t step, int64_t count, cvy_bf16 *to, int64_t part);
    /* Adds `count` vectors of 16 values, step floats apart, to 16 sums. */
    void (*add_up)(const float *from, int64_t step, int64_t count, float *sums);
    /* Transposes 16 x 16 words of 32 bits; from_row, to_row: words between rows. */
    void (*transpose)(const void *from, int64_t from_row, void *to, int64_t to_row);
    /* Copies `count` vectors of 16 values, from_line and to_line floats apart. relu: negative values become zero.
     * stream: non-temporal stores; `to` must then be aligned to 64 bytes. */
    void (*store)(const float *from, int64_t from_line, int64_t count, int relu, int stream, float *to,
                  int64_t to_line);
} cvy_amx_split;

/* Returns CVY_NOT_APPLICABLE, with the reason, if cvy_amx_get does. */
cvy_status cvy_amx_split_get(const cvy_amx **tiles_out, const cvy_amx_split **out);

/* ---- geometry (native_amx_split_side.c): activations in blocks of 16 channels ---- */

/* Where the positions of one block of 16 channels are in memory, in floats. */
typedef struct cvy_split_side {
    int64_t channels, blocks; /* blocks: of 16 channels */
    int64_t sample, plane;    /* between samples, between blocks */
    int64_t positions;        /* of a sample */
    int flat;                 /* the window has one long column: each position of each sample is a row */
} cvy_split_side;

/* layout: blocks of 16 channels; it may be a slice. */
cvy_split_side cvy_split_side_make(const cvy_shape *shape, const cvy_layout *layout, const cvy_window *w);
/* The longest run of successive positions of a staged band, from `at` on, that all exist or are all padding. */
typedef struct cvy_split_run {
    int64_t count, from,
        step; /* from: floats after channel 0 of sample 0, -1: padding (zeros); step: floats between positions */
} cvy_split_run;
cvy_split_run cvy_split_run_at(const cvy_amx_window *w, const cvy_split_side *side, int64_t sample, int64_t band,
                               int64_t at);

/* Offsets of weights in a variable, in floats: a weight is at k[its k] + c[its c] + tap[its tap]. k and c are filled up
 * to whole blocks of 32; -1 marks a channel that does not exist. The caller frees k; c and tap are in the same block of
 * memory. */
typedef struct cvy_split_offsets {
    int64_t *k, *c, *tap;
    int64_t floats; /* size of the variable, with padding */
} cvy_split_offsets;
cvy_status cvy_split_offsets_make(const cvy_layout *layout, const cvy_shape *weight, cvy_split_offsets *out);
/* Whether 16 offsets all exist and have the same positive distance, which is then *step_out. */
int cvy_split_is_even(const int64_t *at, int64_t *step_out);

#endif

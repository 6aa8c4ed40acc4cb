/*
 * native_amx.h: products of bf16 tiles (AMX), the CPU-specific part of convoy's bf16 convolutions and fully connected
 * layers.
 *
 * A tile is 16 rows of 64 bytes. One product multiplies 16 x 32 bf16 by 32 x 16 bf16 and adds to 16 x 16 f32 sums. The
 * right-hand tile has pairs of rows interleaved, so it is [16 pairs][16 columns][2]. Four of the eight tiles hold 32 x
 * 32 sums, so each loaded tile is used in two products. Products are exact, sums are f32, and a result is rounded once.
 * Source: Intel, Architecture Instruction Set Extensions Programming Reference, chapter 3; Optimization Reference
 * Manual, chapter 20.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_AMX_H
#define CVY_NATIVE_AMX_H

#include "base/number/base_bf16.h"
#include "kernel/kernel.h"

enum {
    CVY_AMX_ROWS = 16,  /* rows, and columns, of a tile of sums */
    CVY_AMX_DEPTH = 32, /* products that are added to each sum at once */
    CVY_AMX_BLOCK = 32, /* positions, and channels, of a block of four tiles of sums */
    CVY_AMX_TILE = 512  /* bf16 elements in a tile */
};

typedef struct cvy_amx_shift {
    int64_t a, b; /* offsets in elements from the start of a and of b */
} cvy_amx_shift;

/* A sum over blocks of 32 channels and over filter taps. a is [blocks][positions][32] or [positions][channels]; b is
 * tiles. */
typedef struct cvy_amx_sum {
    const cvy_bf16 *a, *b;
    int64_t a_row, a_block;    /* of a: elements between positions, between blocks */
    int64_t b_block, b_column; /* of b: elements between blocks, between columns of tiles */
    int64_t blocks, taps;
    const cvy_amx_shift *tap;
} cvy_amx_sum;

/* The destination of the sums of successive positions. A row has `pitch` positions; the first `width` are stored. */
typedef struct cvy_amx_store {
    cvy_bf16 *to;          /* address of row 0, position 0 */
    int64_t row, position; /* elements between rows, between positions */
    int64_t pitch, width;
    int64_t channels;
    const float *bias; /* may be NULL */
    int relu;
    int stream; /* 1: non-temporal stores; needs whole blocks of channels in whole cache lines */
} cvy_amx_store;

/* A sum over positions. c is tiles of f32, [16 rows of a][16 columns of b]; a is [channels][positions]; b is tiles. */
typedef struct cvy_amx_outer {
    const cvy_bf16 *a, *b;
    int64_t a_row, a_step;         /* of a: elements between rows, between steps */
    int64_t b_column;              /* of b: elements between columns of tiles */
    int64_t parts, a_part, b_part; /* runs of positions; elements between runs of a, of b */
    int64_t steps;                 /* steps of 32 positions in each run */
    float *c;
    int64_t c_row, c_column; /* elements between rows, columns of tiles of c */
    int rows, columns;       /* of tiles: 1 or 2 */
    int add;                 /* 1: adds to c; 0: overwrites c */
} cvy_amx_outer;

/* A sum over blocks. c is f32 [32][32]; a is blocks of 32 rows of 32 elements; b is pairs of adjacent tiles. */
typedef struct cvy_amx_blocks {
    const cvy_bf16 *a, *b;
    int64_t a_step, b_step; /* elements between successive blocks */
    int64_t steps;
    const cvy_bf16 *
        next; /* prefetched during the sum: rows next_row .. next_end - 1 of a block of 32 x 32 in each step; or NULL */
    int64_t next_step; /* elements between blocks of next */
    int next_row, next_end;
    float *c;
    int rows, columns; /* of tiles: 1 or 2 */
    int add;           /* 1: adds to c; 0: overwrites c */
} cvy_amx_blocks;

/* Some lanes of a line of 32 that are contiguous in memory: lane i is read from element `from` + i. */
typedef struct cvy_amx_piece {
    int64_t from;
    uint32_t lanes; /* one bit for each lane */
} cvy_amx_piece;

typedef struct cvy_amx {
    /* A thread calls begin before its work and end after it. begin configures the tiles. end releases them and makes
     * non-temporal stores visible to other threads. */
    void (*begin)(void);
    void (*end)(void);
    /* Computes the first `count` positions. It reads a up to a whole block of 32 positions. */
    void (*positions)(const cvy_amx_sum *s, const cvy_amx_store *to, int64_t count);
    void (*outer)(const cvy_amx_outer *s);
    /* from: 32 positions of 32 channels, from_row elements apart. transpose makes 32 rows of 32 positions,
     * `row` elements apart. pair interleaves pairs of positions, in two tiles of 16 channels, `column` elements apart.
     * sum adds the positions to 32 sums. */
    void (*transpose)(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to, int64_t row);
    void (*pair)(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to, int64_t column);
    void (*sum)(const cvy_bf16 *from, int64_t from_row, float *sums);
    /* Writes `count` lines, `row` elements apart. A line has n pieces; its other lanes are zero. The sources of
     * successive lines begin `step` elements apart. */
    void (*patch)(const cvy_amx_piece *piece, int n, const cvy_bf16 *from, int64_t step, int64_t count, cvy_bf16 *to,
                  int64_t row);
    void (*blocks)(const cvy_amx_blocks *s);
    /* Makes a tile of 16 pairs of channels from 16 positions of 32 channels, from_row elements apart. */
    void (*transpose_pairs)(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to);
    /* Stores the first `count` positions of a block of sums. c is [position][channel], or [channel][position] if
     * transposed. */
    void (*store)(const float *c, int transposed, int64_t count, const cvy_amx_store *to);
    /* Copies a block of sums with non-temporal stores. */
    void (*stream)(const float *c, float *to);
    /* Prefetches 32 rows of `elems` elements, in whole blocks of 32, that are needed soon. */
    void (*prefetch)(const cvy_bf16 *from, int64_t row, int64_t elems);
    /* Copies `count` positions, from_row elements apart, and distributes their channels over blocks of 32, `block`
     * elements apart. The last block is filled up with zeros. */
    void (*distribute)(const cvy_bf16 *from, int64_t from_row, int64_t count, int64_t channels, cvy_bf16 *to,
                       int64_t block);
} cvy_amx;

/* Returns CVY_NOT_APPLICABLE, with the reason, if the build, the CPU, the system or the user's environment rules out
 * tiles. */
cvy_status cvy_amx_get(const cvy_amx **out);

#endif

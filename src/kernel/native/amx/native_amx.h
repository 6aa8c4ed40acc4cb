/*
 * native_amx.h: products of tiles of bf16 (AMX), the parts of our own bf16 convolutions and fully connected layers
 * that are made for one CPU.
 *
 * A tile is 16 rows of 64 bytes. One product takes 16 x 32 bf16 by 32 x 16 bf16 into 16 x 16 f32 sums; of the right
 * side two rows lie interleaved, so a tile is [16 pairs][16 columns][2]. Four of the eight tiles hold sums, 32 x 32, so
 * each tile that is loaded serves two products. Rounding: products are exact, sums f32, and a result is rounded once.
 * Source: Intel, Architecture Instruction Set Extensions Programming Reference, chapter 3; Optimization Reference
 * Manual, chapter 20.
 */
#ifndef CVY_NATIVE_AMX_H
#define CVY_NATIVE_AMX_H

#include "base/base_bf16.h"
#include "kernel/kernel.h"

enum {
    CVY_AMX_ROWS = 16,  /* of a tile of sums; its columns too */
    CVY_AMX_DEPTH = 32, /* summands of one product */
    CVY_AMX_BLOCK = 32, /* positions, channels of a block of four tiles of sums */
    CVY_AMX_TILE = 512  /* bf16 of a tile */
};

typedef struct cvy_amx_shift {
    int64_t a, b; /* elements from the beginning of each side */
} cvy_amx_shift;

/* Sums over blocks of 32 channels and over taps: a [blocks][positions][32] or [positions][channels], b tiles. */
typedef struct cvy_amx_sum {
    const cvy_bf16 *a, *b;
    int64_t a_row, a_block;    /* elements between positions, between blocks of a */
    int64_t b_block, b_column; /* elements between blocks, between columns of tiles of b */
    int64_t blocks, taps;
    const cvy_amx_shift *tap;
} cvy_amx_sum;

/* Where the sums of successive positions go. A row holds `pitch` positions of which the first `width` exist. */
typedef struct cvy_amx_store {
    cvy_bf16 *to;          /* of row 0, position 0 */
    int64_t row, position; /* elements between rows, between positions */
    int64_t pitch, width;
    int64_t channels;
    const float *bias; /* may be NULL */
    int relu;
    int stream; /* past the caches: all channels are whole blocks, and lie in whole cache lines */
} cvy_amx_store;

/* Sums over positions: c [16 rows of a][16 columns of b] tiles of f32, a [channels][positions], b tiles. */
typedef struct cvy_amx_outer {
    const cvy_bf16 *a, *b;
    int64_t a_row, a_step;         /* elements between rows of a, between steps */
    int64_t b_column;              /* elements between columns of tiles of b */
    int64_t parts, a_part, b_part; /* runs of positions, elements between them */
    int64_t steps;                 /* of 32 positions in each */
    float *c;
    int64_t c_row, c_column; /* elements between tiles of c */
    int rows, columns;       /* of tiles: 1 or 2 */
    int add;                 /* to what c holds */
} cvy_amx_outer;

/* Sums over blocks: c [32][32] of f32, a blocks of 32 rows of 32 summands, b two tiles that follow each other. */
typedef struct cvy_amx_blocks {
    const cvy_bf16 *a, *b;
    int64_t a_step, b_step; /* elements between successive blocks */
    int64_t steps;
    const cvy_bf16 *
        next; /* memory asked for meanwhile, a block of 32 x 32 a step, its rows next_row .. next_end - 1; NULL: none */
    int64_t next_step;
    int next_row, next_end;
    float *c;
    int rows, columns; /* of tiles: 1 or 2 */
    int add;           /* to what c holds */
} cvy_amx_blocks;

/* Lanes of a line of 32, as they lie in memory: lane i comes from `from` + i. */
typedef struct cvy_amx_piece {
    int64_t from;
    uint32_t lanes; /* one bit each */
} cvy_amx_piece;

typedef struct cvy_amx {
    /* Brackets around a thread's work: configures its tiles; releases them and lets others see what was streamed. */
    void (*begin)(void);
    void (*end)(void);
    /* The first `count` positions; a is read up to a whole block of 32. */
    void (*positions)(const cvy_amx_sum *s, const cvy_amx_store *to, int64_t count);
    void (*outer)(const cvy_amx_outer *s);
    /* from: 32 positions of 32 channels, from_row elements apart. turn: to 32 rows of 32 positions, `row` elements
     * apart; pair: to two tiles of 16 channels, `column` elements apart; sum: adds the positions to 32 sums. */
    void (*turn)(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to, int64_t row);
    void (*pair)(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to, int64_t column);
    void (*sum)(const cvy_bf16 *from, int64_t from_row, float *sums);
    /* `count` lines, `row` apart, each of n pieces and zeros; their sources begin `step` apart. */
    void (*patch)(const cvy_amx_piece *piece, int n, const cvy_bf16 *from, int64_t step, int64_t count, cvy_bf16 *to,
                  int64_t row);
    void (*blocks)(const cvy_amx_blocks *s);
    /* 16 positions of 32 channels, from_row elements apart, to a tile of 16 pairs of channels. */
    void (*turn_pairs)(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to);
    /* The first `count` positions of a block of sums [position][channel], or [channel][position] where turned. */
    void (*store)(const float *c, int turned, int64_t count, const cvy_amx_store *to);
    /* A block of sums as it lies, past the caches. */
    void (*stream)(const float *c, float *to);
    /* Asks for 32 rows of elements, in whole blocks of 32, that are needed soon. */
    void (*fetch)(const cvy_bf16 *from, int64_t row, int64_t elems);
    /* Copies the channels of `count` positions, from_row apart, to blocks of 32, `block` elements apart; zeros behind
     * them. */
    void (*deal)(const cvy_bf16 *from, int64_t from_row, int64_t count, int64_t channels, cvy_bf16 *to, int64_t block);
} cvy_amx;

/* CVY_NOT_APPLICABLE, with the reason, where the build, the CPU, the system or the user's environment has no tiles. */
cvy_status cvy_amx_get(const cvy_amx **out);

#endif

/*
 * native_amx.c: products of tiles of bf16, and the shuffles that make tiles.
 *
 * These functions do all arithmetic of convoy's bf16 convolutions and fully connected layers. native_amx.h describes
 * them. They are called through pointers, so that the compiler has stored to memory all that their tiles read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/amx/native_amx.h"

#include <math.h>
#include <string.h>

#include "base/machine/base_isa.h"

#if CVY_HAVE_AMX_BF16 && defined(__linux__)

#include "kernel/native/amx/native_amx_tiles.h"

enum { TILES = 8, PALETTE = 1, BLOCK = CVY_AMX_BLOCK };

/* All eight tiles at full size. This is a constant and not on the stack, because compilers do not see that the
 * instruction reads 64 bytes. */
static const struct {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[TILES + 8];
    uint8_t rows[TILES + 8];
} whole_tiles = {.palette = PALETTE,
                 .row_bytes = {TILE_ROW_BYTES, TILE_ROW_BYTES, TILE_ROW_BYTES, TILE_ROW_BYTES, TILE_ROW_BYTES,
                               TILE_ROW_BYTES, TILE_ROW_BYTES, TILE_ROW_BYTES},
                 .rows = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS}};

TARGET static void begin(void)
{
    _tile_loadconfig(&whole_tiles);
}

TARGET static void end(void)
{
    _tile_release();
    _mm_sfence();
}

/* ---- sums over channels and taps ---- */

enum {
    SUMS = BLOCK * BLOCK, /* floats for a block of positions: 4 KB */
    RUN = 8               /* blocks of positions that are computed with the same columns */
};

/* Multiplies two tiles of a, whose rows are a_row elements apart, by two tiles of b, b_column elements apart. */
LEAF void add_products(int two_rows, int two_columns, const cvy_bf16 *a, int64_t a_row, const cvy_bf16 *b,
                       int64_t b_column)
{
    const int64_t row_bytes = a_row * (int64_t)sizeof *a;
    _tile_loadd(4, a, row_bytes);
    _tile_loadd(6, b, TILE_ROW_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    if (two_columns) {
        _tile_loadd(7, b + b_column, TILE_ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
    }
    if (two_rows) {
        _tile_loadd(5, a + ROWS * a_row, row_bytes);
        _tile_dpbf16ps(2, 5, 6);
    }
    if (two_rows && two_columns)
        _tile_dpbf16ps(3, 5, 7);
}

/* Finished sums of a block of positions that are being stored: a few rows at a time, between the products of the next
 * block, which hide the stores. */
struct pending_store {
    const float *c;
    cvy_bf16 *to;
    const float *bias;
    int64_t x, left; /* position in the row; positions still to store */
    __mmask16 low, high;
};

LEAF __mmask16 first_lanes(int64_t count)
{
    return (__mmask16)(count >= ROWS ? 0xffff : (1 << CVY_MAX(count, 0)) - 1);
}

LEAF struct pending_store pending_of(const float *c, const cvy_amx_store *s, int64_t position, int64_t channel,
                                     int64_t count)
{
    const int64_t y = position / s->pitch, x = position % s->pitch;
    return (struct pending_store){.c = c,
                                  .to = s->to + y * s->row + x * s->position + channel,
                                  .bias = s->bias ? s->bias + channel : NULL,
                                  .x = x,
                                  .left = count,
                                  .low = first_lanes(s->channels - channel),
                                  .high = first_lanes(s->channels - channel - ROWS)};
}

LEAF void store_pending(struct pending_store *p, const cvy_amx_store *s, int64_t rows)
{
    const __mmask32 mask = (__mmask32)p->low | (__mmask32)p->high << ROWS;
    const __m512 zero = _mm512_setzero_ps(), floor = _mm512_set1_ps(s->relu ? 0 : -INFINITY);
    const __m512 low = p->bias ? _mm512_maskz_loadu_ps(p->low, p->bias) : zero,
                 high = p->bias && p->high ? _mm512_maskz_loadu_ps(p->high, p->bias + ROWS) : zero;
    const float *c = p->c;
    cvy_bf16 *to = p->to;
    int64_t x = p->x;
    rows = CVY_MIN(rows, p->left);
    for (int64_t i = 0; i < rows; i++, c += BLOCK, to += s->position) {
        if (x < s->width) {
            const __m512 v0 = _mm512_add_ps(_mm512_load_ps(c), low), v1 = _mm512_add_ps(_mm512_load_ps(c + ROWS), high);
            const __m512bh v = _mm512_cvtne2ps_pbh(_mm512_max_ps(floor, v1), _mm512_max_ps(floor, v0));
            if (s->stream)
                _mm512_stream_si512((void *)to, (__m512i)v);
            else
                _mm512_mask_storeu_epi16(to, mask, (__m512i)v);
        }
        if (++x == s->pitch) {
            x = 0;
            to += s->row - s->pitch * s->position;
        }
    }
    p->c = c;
    p->to = to;
    p->x = x;
    p->left -= rows;
}

LEAF void sum_block(int two_rows, int two_columns, const cvy_amx_sum *s, const cvy_bf16 *a, const cvy_bf16 *b, float *c,
                    const cvy_amx_store *to, struct pending_store *p)
{
    const int64_t steps = CVY_MAX(1, s->blocks * s->taps), rows = (p->left + steps - 1) / steps;
    zero_sums();
    for (int64_t i = 0; i < s->blocks; i++, a += s->a_block, b += s->b_block)
        for (int64_t t = 0; t < s->taps; t++) {
            add_products(two_rows, two_columns, a + s->tap[t].a, s->a_row, b + s->tap[t].b, s->b_column);
            store_pending(p, to, rows);
        }
    store_sums(two_rows, two_columns, c, ROWS * BLOCK, ROWS, BLOCK * sizeof *c);
}

/* For each run of positions the pairs of columns are computed one after the other, so that the few weights of a pair
 * are read from the first-level cache. */
TARGET static void positions(const cvy_amx_sum *s, const cvy_amx_store *to, int64_t count)
{
    float c[2 * SUMS] __attribute__((aligned(64))), *sums = c;
    struct pending_store p = {0};
    memset(c, 0, sizeof c); /* columns that do not exist are read too */
    for (int64_t run = 0; run < count; run += RUN * BLOCK)
        for (int64_t first = 0; first < to->channels; first += BLOCK)
            for (int64_t i = run; i < CVY_MIN(count, run + RUN * BLOCK); i += BLOCK) {
                const cvy_bf16 *a = s->a + i * s->a_row, *b = s->b + first / ROWS * s->b_column;
                const int two_rows = count - i > ROWS, two_columns = to->channels - first > ROWS;
                sums = sums == c ? c + SUMS : c;
                if (two_rows && two_columns)
                    sum_block(1, 1, s, a, b, sums, to, &p);
                else if (two_rows)
                    sum_block(1, 0, s, a, b, sums, to, &p);
                else if (two_columns)
                    sum_block(0, 1, s, a, b, sums, to, &p);
                else
                    sum_block(0, 0, s, a, b, sums, to, &p);
                store_pending(&p, to, p.left);
                p = pending_of(sums, to, i, first, CVY_MIN(BLOCK, count - i));
            }
    store_pending(&p, to, p.left);
}

/* ---- sums over positions ---- */

LEAF void sum_outer(int two_rows, int two_columns, const cvy_amx_outer *s)
{
    float *c = s->c;
    if (s->add)
        load_sums(two_rows, two_columns, c, s->c_row, s->c_column, TILE_ROW_BYTES);
    else
        zero_sums();
    for (int64_t p = 0; p < s->parts; p++) {
        const cvy_bf16 *a = s->a + p * s->a_part, *b = s->b + p * s->b_part;
        for (int64_t i = 0; i < s->steps; i++, a += s->a_step, b += CVY_AMX_TILE)
            add_products(two_rows, two_columns, a, s->a_row, b, s->b_column);
    }
    store_sums(two_rows, two_columns, c, s->c_row, s->c_column, TILE_ROW_BYTES);
}

TARGET static void outer(const cvy_amx_outer *s)
{
    if (s->rows > 1 && s->columns > 1)
        sum_outer(1, 1, s);
    else if (s->rows > 1)
        sum_outer(1, 0, s);
    else if (s->columns > 1)
        sum_outer(0, 1, s);
    else
        sum_outer(0, 0, s);
}

/* ---- sums over blocks ---- */

LEAF void sum_blocks(int two_rows, int two_columns, const cvy_amx_blocks *s)
{
    if (s->add)
        load_sums(two_rows, two_columns, s->c, ROWS * BLOCK, ROWS, BLOCK * sizeof *s->c);
    else
        zero_sums();
    const cvy_bf16 *a = s->a, *b = s->b;
    for (int64_t i = 0; i < s->steps; i++, a += s->a_step, b += s->b_step) {
        for (int row = s->next_row; s->next && row < s->next_end; row++)
            _mm_prefetch((const char *)(s->next + i * s->next_step + row * BLOCK), _MM_HINT_T1);
        add_products(two_rows, two_columns, a, CVY_AMX_DEPTH, b, CVY_AMX_TILE);
    }
    store_sums(two_rows, two_columns, s->c, ROWS * BLOCK, ROWS, BLOCK * sizeof *s->c);
}

TARGET static void blocks(const cvy_amx_blocks *s)
{
    if (s->rows > 1 && s->columns > 1)
        sum_blocks(1, 1, s);
    else if (s->rows > 1)
        sum_blocks(1, 0, s);
    else if (s->columns > 1)
        sum_blocks(0, 1, s);
    else
        sum_blocks(0, 0, s);
}

/* ---- shuffles ---- */

/* Interleaves two positions of 32 channels: [16 channels][2] of the lower and of the upper half. */
LEAF void interleave(const cvy_bf16 *from, int64_t row, __m512i *lower, __m512i *upper)
{
    const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                           37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0),
                  half = _mm512_set1_epi16(16);
    const __m512i even = _mm512_loadu_si512(from), odd = _mm512_loadu_si512(from + row);
    *lower = _mm512_permutex2var_epi16(even, order, odd);
    *upper = _mm512_permutex2var_epi16(even, _mm512_add_epi16(order, half), odd);
}

TARGET static void pair(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to, int64_t column)
{
    for (int i = 0; i < ROWS; i++) {
        __m512i lower, upper;
        interleave(from + 2 * i * from_row, from_row, &lower, &upper);
        _mm512_storeu_si512(to + i * BLOCK, lower);
        _mm512_storeu_si512(to + column + i * BLOCK, upper);
    }
}

TARGET static void transpose(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to, int64_t row)
{
    __m512i lower[ROWS], upper[ROWS];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
        interleave(from + 2 * i * from_row, from_row, &lower[i], &upper[i]);
    store_transposed(lower, to, row * (int64_t)sizeof *to);
    store_transposed(upper, to + ROWS * row, row * (int64_t)sizeof *to);
}

TARGET static void transpose_pairs(const cvy_bf16 *from, int64_t from_row, cvy_bf16 *to)
{
    transpose_words(from, from_row * (int64_t)sizeof *from, to, TILE_ROW_BYTES);
}

TARGET static void store(const float *c, int transposed, int64_t count, const cvy_amx_store *to)
{
    float by_position[BLOCK * BLOCK] __attribute__((aligned(64)));
    for (int tile = 0; transposed && tile < 4; tile++) {
        const int upper = tile / 2 * ROWS, left = tile % 2 * ROWS;
        transpose_words(c + upper * BLOCK + left, BLOCK * sizeof *c, by_position + left * BLOCK + upper,
                        BLOCK * sizeof *c);
    }
    struct pending_store p = pending_of(transposed ? by_position : c, to, 0, 0, count);
    store_pending(&p, to, count);
}

TARGET static void stream(const float *c, float *to)
{
    for (int i = 0; i < BLOCK * BLOCK; i += ROWS)
        _mm512_stream_ps(to + i, _mm512_load_ps(c + i));
}

/* Even and odd channels are summed separately, because a bf16 is the upper half of its float. Two rows are summed
 * independently, because an addition has a latency of several cycles. */
TARGET static void sum(const cvy_bf16 *from, int64_t from_row, float *sums)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u),
                  order = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),
                  half = _mm512_set1_epi32(8);
    __m512 even[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}, odd[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int i = 0; i < BLOCK; i += 2)
        for (int k = 0; k < 2; k++, from += from_row) {
            const __m512i v = _mm512_loadu_si512(from);
            even[k] = _mm512_add_ps(even[k], _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)));
            odd[k] = _mm512_add_ps(odd[k], _mm512_castsi512_ps(_mm512_and_si512(v, upper)));
        }
    const __m512 e = _mm512_add_ps(even[0], even[1]), o = _mm512_add_ps(odd[0], odd[1]);
    _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), _mm512_permutex2var_ps(e, order, o)));
    _mm512_storeu_ps(sums + ROWS, _mm512_add_ps(_mm512_loadu_ps(sums + ROWS),
                                                _mm512_permutex2var_ps(e, _mm512_add_epi32(order, half), o)));
}

/* Inlined with a constant n if n is small. */
LEAF void patch_pieces(int n, const cvy_amx_piece *piece, const cvy_bf16 *from, int64_t step, int64_t count,
                       cvy_bf16 *to, int64_t row)
{
    for (int64_t i = 0; i < count; i++, from += step, to += row) {
        __m512i v = _mm512_setzero_si512();
        for (int k = 0; k < n; k++)
            v = _mm512_mask_loadu_epi16(v, piece[k].lanes, from + piece[k].from);
        _mm512_storeu_si512(to, v);
    }
}

TARGET static void patch(const cvy_amx_piece *piece, int n, const cvy_bf16 *from, int64_t step, int64_t count,
                         cvy_bf16 *to, int64_t row)
{
    switch (n) {
    case 1: patch_pieces(1, piece, from, step, count, to, row); break;
    case 2: patch_pieces(2, piece, from, step, count, to, row); break;
    case 3: patch_pieces(3, piece, from, step, count, to, row); break;
    default: patch_pieces(n, piece, from, step, count, to, row); break;
    }
}

TARGET static void prefetch(const cvy_bf16 *from, int64_t row, int64_t elems)
{
    for (int i = 0; i < BLOCK; i++, from += row)
        for (int64_t k = 0; k < elems; k += BLOCK)
            _mm_prefetch((const char *)(from + k), _MM_HINT_T0);
}

TARGET static void distribute(const cvy_bf16 *from, int64_t from_row, int64_t count, int64_t channels, cvy_bf16 *to,
                              int64_t block)
{
    for (int64_t i = 0; i < count; i++, from += from_row, to += BLOCK)
        for (int64_t c = 0; c < channels; c += BLOCK) {
            const __mmask32 mask = channels - c >= BLOCK ? 0xffffffffu : (1u << (channels - c)) - 1;
            _mm512_storeu_si512(to + c / BLOCK * block, _mm512_maskz_loadu_epi16(mask, from + c));
        }
}

static const cvy_amx amx = {begin, end,    positions,       outer, transpose, pair,     sum,
                            patch, blocks, transpose_pairs, store, stream,    prefetch, distribute};

cvy_status cvy_amx_get(const cvy_amx **out)
{
    CVY_CHECK(cvy_isa_has(CVY_ISA_AMX_BF16), CVY_NOT_APPLICABLE,
              "tile products need AMX-BF16, AVX512_BF16 and the operating system's permission to use tiles");
    CVY_CHECK(cvy_isa_may_use(CVY_ISA_AMX_BF16), CVY_NOT_APPLICABLE,
              "tile products (AMX) are excluded by ONEDNN_MAX_CPU_ISA");
    *out = &amx;
    return CVY_OK;
}

#else

cvy_status cvy_amx_get(const cvy_amx **out)
{
    (void)out;
    return cvy_error_set(CVY_NOT_APPLICABLE,
                         "tile products (AMX) need Linux on x86-64, and a compiler that knows them (gcc 11, clang 11)");
}

#endif

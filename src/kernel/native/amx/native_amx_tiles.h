/*
 * native_amx_tiles.h: what the files with tile instructions share: the target, the four tiles of sums of a block, and
 * the transpose that makes tiles. Only native_amx.c and native_amx_split.c include it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_AMX_TILES_H
#define CVY_NATIVE_AMX_TILES_H

#include <immintrin.h>

#include "kernel/native/amx/native_amx.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))
#define LEAF TARGET static inline __attribute__((always_inline))

enum { TILE_ROW_BYTES = 64, ROWS = CVY_AMX_ROWS };

/* ---- sums: tiles 0 to 3, two rows of tiles by two columns ---- */

LEAF void zero_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* row, column: floats between tiles. row_bytes: bytes between the rows of a tile. */
LEAF void load_sums(int two_rows, int two_columns, const float *c, int64_t row, int64_t column, int64_t row_bytes)
{
    _tile_loadd(0, c, row_bytes);
    if (two_columns)
        _tile_loadd(1, c + column, row_bytes);
    if (two_rows)
        _tile_loadd(2, c + row, row_bytes);
    if (two_rows && two_columns)
        _tile_loadd(3, c + row + column, row_bytes);
}

LEAF void store_sums(int two_rows, int two_columns, float *c, int64_t row, int64_t column, int64_t row_bytes)
{
    _tile_stored(0, c, row_bytes);
    if (two_columns)
        _tile_stored(1, c + column, row_bytes);
    if (two_rows)
        _tile_stored(2, c + row, row_bytes);
    if (two_rows && two_columns)
        _tile_stored(3, c + row + column, row_bytes);
}

/* ---- the transpose of 16 x 16 words of 32 bits ---- */

/* Writes the columns of v as rows, row_bytes apart. */
LEAF void store_transposed(const __m512i *v, void *to, int64_t row_bytes)
{
    __m512i a[ROWS], b[ROWS];
    char *out = to;
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i += 2) {
        a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    /* b[4 g + k] holds rows 4 g .. 4 g + 3 of columns k, 4 + k, 8 + k and 12 + k, in one quarter each. */
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512i p = _mm512_shuffle_i32x4(b[k], b[4 + k], 0x88),
                      q = _mm512_shuffle_i32x4(b[8 + k], b[12 + k], 0x88),
                      r = _mm512_shuffle_i32x4(b[k], b[4 + k], 0xdd),
                      t = _mm512_shuffle_i32x4(b[8 + k], b[12 + k], 0xdd);
        _mm512_storeu_si512(out + k * row_bytes, _mm512_shuffle_i32x4(p, q, 0x88));
        _mm512_storeu_si512(out + (8 + k) * row_bytes, _mm512_shuffle_i32x4(p, q, 0xdd));
        _mm512_storeu_si512(out + (4 + k) * row_bytes, _mm512_shuffle_i32x4(r, t, 0x88));
        _mm512_storeu_si512(out + (12 + k) * row_bytes, _mm512_shuffle_i32x4(r, t, 0xdd));
    }
}

/* The same for 16 rows in memory. */
LEAF void transpose_words(const void *from, int64_t from_bytes, void *to, int64_t to_bytes)
{
    __m512i v[ROWS];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
        v[i] = _mm512_loadu_si512((const char *)from + i * from_bytes);
    store_transposed(v, to, to_bytes);
}

#endif

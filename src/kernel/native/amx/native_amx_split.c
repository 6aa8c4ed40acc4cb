/*
 * native_amx_split.c: sums of products of f32 values on bf16 tiles, and the splitting of f32 values that makes the
 * tiles.
 *
 * These functions do all arithmetic of convoy's f32 convolutions, except Winograd's. native_amx_split.h describes them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/amx/native_amx_split.h"

#if CVY_HAVE_AMX_BF16 && defined(__linux__)

#include "kernel/native/amx/native_amx_tiles.h"

/* ---- sums ---- */

LEAF void begin_sums(int two_rows, int two_columns, const cvy_split_sum *s)
{
    if (s->add)
        load_sums(two_rows, two_columns, s->c, s->c_row, s->c_column, s->c_line * (int64_t)sizeof *s->c);
    else if (s->begin)
        load_sums(two_rows, two_columns, s->begin, 0, ROWS, 0);
    else
        zero_sums();
}

LEAF void load_rows(int two_rows, const cvy_bf16 *a, int64_t row)
{
    _tile_loadd(4, a, TILE_ROW_BYTES);
    if (two_rows)
        _tile_loadd(5, a + row, TILE_ROW_BYTES);
}

LEAF void load_columns(int two_columns, const cvy_bf16 *b, int64_t column)
{
    _tile_loadd(6, b, TILE_ROW_BYTES);
    if (two_columns)
        _tile_loadd(7, b + column, TILE_ROW_BYTES);
}

LEAF void multiply(int two_rows, int two_columns, const cvy_split_sum *s, const float **prefetch)
{
    for (int i = 0; i < s->prefetch_count; i++, *prefetch += s->prefetch_step)
        _mm_prefetch((const char *)*prefetch, _MM_HINT_T1);
    _tile_dpbf16ps(0, 4, 6);
    if (two_columns)
        _tile_dpbf16ps(1, 4, 7);
    if (two_rows)
        _tile_dpbf16ps(2, 5, 6);
    if (two_rows && two_columns)
        _tile_dpbf16ps(3, 5, 7);
}

/* Adds the six products. In this order, each product after the first needs only one side to be loaded. */
LEAF void add_products(int two_rows, int two_columns, const cvy_bf16 *a, const cvy_bf16 *b, const cvy_split_sum *s,
                       const float **prefetch)
{
    const cvy_bf16 *a_m = a + s->a_part, *a_l = a_m + s->a_part, *b_m = b + s->b_part, *b_l = b_m + s->b_part;
    load_rows(two_rows, a, s->a_row);
    load_columns(two_columns, b_l, s->b_column);
    multiply(two_rows, two_columns, s, prefetch);
    load_columns(two_columns, b_m, s->b_column);
    multiply(two_rows, two_columns, s, prefetch);
    load_rows(two_rows, a_m, s->a_row);
    multiply(two_rows, two_columns, s, prefetch);
    load_columns(two_columns, b, s->b_column);
    multiply(two_rows, two_columns, s, prefetch);
    load_rows(two_rows, a_l, s->a_row);
    multiply(two_rows, two_columns, s, prefetch);
    load_rows(two_rows, a, s->a_row);
    multiply(two_rows, two_columns, s, prefetch);
}

LEAF void sum(int two_rows, int two_columns, const cvy_split_sum *s)
{
    const float *prefetch = s->prefetch;
    begin_sums(two_rows, two_columns, s);
    for (int64_t i = 0; i < s->blocks; i++)
        for (int64_t t = 0; t < s->taps; t++)
            add_products(two_rows, two_columns, s->a + i * s->a_block + s->tap[t].a,
                         s->b + i * s->b_block + s->tap[t].b, s, &prefetch);
    store_sums(two_rows, two_columns, s->c, s->c_row, s->c_column, s->c_line * (int64_t)sizeof *s->c);
}

TARGET static void products(const cvy_split_sum *s)
{
    if (s->rows > 1 && s->columns > 1)
        sum(1, 1, s);
    else if (s->rows > 1)
        sum(1, 0, s);
    else if (s->columns > 1)
        sum(0, 1, s);
    else
        sum(0, 0, s);
}

/* ---- splitting values ---- */

LEAF __m512 upper_half(__m512 x)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32((int)0xffff0000u)));
}

/* x minus its upper half; zero if x is infinite. */
LEAF __m512 rest_of(__m512 x)
{
    const __mmask16 infinite = _mm512_fpclass_ps_mask(x, 0x18);
    return _mm512_maskz_sub_ps((__mmask16)~infinite, x, upper_half(x));
}

LEAF void store_pairs(__m512 low, __m512 high, cvy_bf16 *to)
{
    const __m512i l = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
    _mm512_storeu_si512(to, _mm512_mask_blend_epi16(0xaaaaaaaau, l, _mm512_castps_si512(high)));
}

LEAF void split_pair(__m512 low, __m512 high, cvy_bf16 *to, int64_t part)
{
    store_pairs(low, high, to);
    low = rest_of(low);
    high = rest_of(high);
    store_pairs(low, high, to + part);
    store_pairs(_mm512_sub_ps(low, upper_half(low)), _mm512_sub_ps(high, upper_half(high)), to + 2 * part);
}

TARGET static void split(const float *low, const float *high, int64_t step, int64_t count, cvy_bf16 *to, int64_t part)
{
    for (int64_t i = 0; i < count; i++, to += CVY_AMX_DEPTH)
        split_pair(_mm512_loadu_ps(low + i * step), high ? _mm512_loadu_ps(high + i * step) : _mm512_setzero_ps(), to,
                   part);
}

TARGET static void add_up(const float *from, int64_t step, int64_t count, float *sums)
{
    __m512 sum[4] = {_mm512_loadu_ps(sums), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] = _mm512_add_ps(sum[k], _mm512_loadu_ps(from + (i + k) * step));
    for (; i < count; i++)
        sum[0] = _mm512_add_ps(sum[0], _mm512_loadu_ps(from + i * step));
    _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
}

TARGET static void transpose(const void *from, int64_t from_row, void *to, int64_t to_row)
{
    transpose_words(from, from_row * (int64_t)sizeof(float), to, to_row * (int64_t)sizeof(float));
}

LEAF void store_all(const float *from, int64_t from_line, int64_t count, int relu, int stream, float *to,
                    int64_t to_line)
{
    for (int64_t i = 0; i < count; i++, to += to_line) {
        __m512 v = _mm512_loadu_ps(from + i * from_line);
        /* If v is NaN, the maximum returns its second operand, so NaN stays NaN. */
        if (relu)
            v = _mm512_max_ps(_mm512_setzero_ps(), v);
        if (stream)
            _mm512_stream_ps(to, v);
        else
            _mm512_storeu_ps(to, v);
    }
}

TARGET static void store(const float *from, int64_t from_line, int64_t count, int relu, int stream, float *to,
                         int64_t to_line)
{
    if (stream)
        store_all(from, from_line, count, relu, 1, to, to_line);
    else
        store_all(from, from_line, count, relu, 0, to, to_line);
}

static const cvy_amx_split table = {products, split, add_up, transpose, store};

cvy_status cvy_amx_split_get(const cvy_amx **tiles_out, const cvy_amx_split **out)
{
    CVY_TRY(cvy_amx_get(tiles_out));
    *out = &table;
    return CVY_OK;
}

#else

cvy_status cvy_amx_split_get(const cvy_amx **tiles_out, const cvy_amx_split **out)
{
    (void)out;
    return cvy_amx_get(tiles_out);
}

#endif

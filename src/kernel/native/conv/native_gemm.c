/*
 * native_gemm.c: blocked matrix product, for builds and machines without oneDNN.
 *
 * Source: Goto and van de Geijn 2008, in the form of BLIS. Panels of b and a are packed so that the innermost loop
 * reads both in order, and a tile of c stays in registers. The size of the tile depends on the instruction set: there
 * are three versions of the innermost function, and one of them is chosen at planning time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/conv/native_gemm.h"
#include "base/machine/base_isa.h"

#include <string.h>

enum { KC = 256, MC = 96, NC = 480, TILE_MAX = 8 * 32 }; /* blocks of k, m, n: multiples of every version's tile */

/* c [mr, nr] (a separate tile, its rows are nr apart) = packed a [k, mr] times packed b [k, nr]. */
typedef void (*tile_fn)(int64_t k, const float *a, const float *b, float *c);

struct cvy_gemm_tile {
    int mr, nr;
    tile_fn run;
};

#if defined(__GNUC__)

typedef float vec8 __attribute__((vector_size(32), aligned(32)));

/* 6 x 16: twelve vectors of eight. */
CVY_INLINE void tile_6x16(int64_t k, const float *a, const float *b, float *c)
{
    vec8 sum[6][2] = {{{0}}};
    for (int64_t p = 0; p < k; p++, a += 6, b += 16) {
        const vec8 b0 = *(const vec8 *)b, b1 = *(const vec8 *)(b + 8);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            sum[i][0] += a[i] * b0;
            sum[i][1] += a[i] * b1;
        }
    }
    memcpy(c, sum, sizeof sum);
}

static void tile_plain(int64_t k, const float *a, const float *b, float *c)
{
    tile_6x16(k, a, b, c);
}

#if defined(__x86_64__)

typedef float vec16 __attribute__((vector_size(64), aligned(64)));

/* 8 x 32: sixteen vectors of sixteen. */
__attribute__((target("avx512f"))) static void tile_avx512(int64_t k, const float *a, const float *b, float *c)
{
    vec16 sum[8][2] = {{{0}}};
    for (int64_t p = 0; p < k; p++, a += 8, b += 32) {
        const vec16 b0 = *(const vec16 *)b, b1 = *(const vec16 *)(b + 16);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            sum[i][0] += a[i] * b0;
            sum[i][1] += a[i] * b1;
        }
    }
    memcpy(c, sum, sizeof sum);
}

__attribute__((target("fma"))) static void tile_fma(int64_t k, const float *a, const float *b, float *c)
{
    tile_6x16(k, a, b, c);
}

#endif

const cvy_gemm_tile *cvy_gemm_choose(void)
{
    static const cvy_gemm_tile plain = {6, 16, tile_plain};
#if defined(__x86_64__)
    static const cvy_gemm_tile avx512 = {8, 32, tile_avx512}, fma = {6, 16, tile_fma};
    if (cvy_isa_may_use(CVY_ISA_AVX512F))
        return &avx512;
    if (cvy_isa_may_use(CVY_ISA_AVX2))
        return &fma;
#endif
    return &plain;
}

#else

static void tile_plain(int64_t k, const float *a, const float *b, float *c)
{
    memset(c, 0, 6 * 16 * sizeof *c);
    for (int64_t p = 0; p < k; p++, a += 6, b += 16)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 16; j++)
                c[i * 16 + j] += a[i] * b[j];
}

const cvy_gemm_tile *cvy_gemm_choose(void)
{
    static const cvy_gemm_tile plain = {6, 16, tile_plain};
    return &plain;
}

#endif

int64_t cvy_gemm_scratch(void)
{
    return KC * (MC + NC) + TILE_MAX;
}

/* Packs x [rows, k] in strips of `width` rows, each [k, width]. The last strip is filled up with zeros. */
CVY_SIMD static void pack(const float *x, int64_t row, int64_t col, int64_t rows, int64_t k, int64_t width, float *out)
{
    for (int64_t r = 0; r < rows; r += width, out += width * k) {
        const int64_t used = CVY_MIN(width, rows - r);
        if (used < width)
            memset(out, 0, (size_t)(width * k) * sizeof *out);
        if (row == 1)
            for (int64_t p = 0; p < k; p++)
                memcpy(out + p * width, x + r + p * col, (size_t)used * sizeof *out);
        else
            for (int64_t i = 0; i < used; i++)
                for (int64_t p = 0; p < k; p++)
                    out[p * width + i] = x[(r + i) * row + p * col];
    }
}

CVY_SIMD static void store(const float *tile, int64_t nr, int64_t m, int64_t n, int add, float *c, int64_t c_row)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * c_row + j] = tile[i * nr + j] + (add ? c[i * c_row + j] : 0);
}

/* Multiplies one packed block of a by one packed panel of b. */
static void block(const cvy_gemm_tile *v, int64_t m, int64_t n, int64_t k, const float *a, const float *b, int add,
                  float *c, int64_t c_row, float *tile)
{
    for (int64_t j = 0; j < n; j += v->nr)
        for (int64_t i = 0; i < m; i += v->mr) {
            v->run(k, a + i * k, b + j * k, tile);
            store(tile, v->nr, CVY_MIN(v->mr, m - i), CVY_MIN(v->nr, n - j), add, c + i * c_row + j, c_row);
        }
}

void cvy_gemm_run(const cvy_gemm *g, float *scratch)
{
    const cvy_gemm_tile *v = g->tile;
    float *panel = scratch, *part = panel + KC * NC, *tile = part + KC * MC;
    for (int64_t j = 0; j < g->n; j += NC)
        for (int64_t p = 0; p < g->k; p += KC) {
            const int64_t n = CVY_MIN(NC, g->n - j), k = CVY_MIN(KC, g->k - p);
            pack(g->b + p * g->b_row + j * g->b_col, g->b_col, g->b_row, n, k, v->nr, panel);
            for (int64_t i = 0; i < g->m; i += MC) {
                const int64_t m = CVY_MIN(MC, g->m - i);
                pack(g->a + i * g->a_row + p * g->a_col, g->a_row, g->a_col, m, k, v->mr, part);
                block(v, m, n, k, part, panel, g->add || p > 0, g->c + i * g->c_row + j, g->c_row, tile);
            }
        }
}

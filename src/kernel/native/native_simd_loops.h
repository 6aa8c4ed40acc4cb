/*
 * native_simd_loops.h: vectors of LANES floats, operations on them, and the table of the loops.
 *
 * The including file defines LANES; TARGET, the attribute of every function; and ROUNDS_BF16 if the CPU has an
 * instruction that rounds to bf16.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(__x86_64__) && LANES > 4
#include <immintrin.h>
#define X86_LANES LANES
#else
#define X86_LANES 0
#endif
#include <math.h>
#include <string.h>

#include "base/number/base_bf16.h"

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
typedef double dvec __attribute__((vector_size(4 * LANES)));                             /* half as many elements */
typedef float memory_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias)); /* at any address */
typedef float memory_half_vec __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
typedef uint16_t memory_shorts __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint8_t memory_bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef uint16_t short_vec __attribute__((vector_size(2 * LANES)));
typedef uint8_t byte_vec __attribute__((vector_size(LANES)));

#define LEAF TARGET static inline __attribute__((always_inline))

LEAF vec load(const float *p)
{
    return *(const memory_vec *)p;
}

LEAF dvec load_doubles(const float *p)
{
#if X86_LANES == 16
    return (dvec)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif X86_LANES == 8
    return (dvec)_mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    return CVY_CONVERT(dvec, LANES / 2, *(const memory_half_vec *)p);
#endif
}

LEAF void store(float *p, vec v)
{
    *(memory_vec *)p = v;
}

LEAF vec spread(float x)
{
    return x - (vec){0};
}

LEAF ivec spread_int(int32_t x)
{
    return x - (ivec){0};
}

/* Takes a if the mask of the lane is set, else b. */
LEAF vec choose(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

LEAF ivec choose_int(ivec mask, ivec a, ivec b)
{
    return (a & mask) | (b & ~mask);
}

LEAF vec keep(ivec mask, vec a)
{
    return (vec)((ivec)a & mask);
}

/* ---- f32 or bf16: `half` says which (1 = bf16); it is a constant after inlining. i is the first element ---- */

/* Bytes of i elements. */
LEAF int64_t offset_as(const int half, int64_t i)
{
    return i * (half ? 2 : 4);
}

LEAF vec load_as(const int half, const void *p, int64_t i)
{
    if (!half)
        return load((const float *)p + i);
    const cvy_bf16 *at = (const cvy_bf16 *)p + i;
#if X86_LANES == 16
    return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)at)), 16);
#elif X86_LANES == 8
    return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)at)), 16);
#else
    return (vec)(CVY_CONVERT(uvec, LANES, *(const memory_shorts *)at) << 16);
#endif
}

/* Rounds as cvy_bf16_of does. */
LEAF void store_as(const int half, void *p, int64_t i, vec v)
{
    if (!half) {
        store((float *)p + i, v);
        return;
    }
    cvy_bf16 *at = (cvy_bf16 *)p + i;
#ifdef ROUNDS_BF16
    _mm256_storeu_si256((void *)at, (__m256i)_mm512_cvtneps_pbh(v));
#else
    const uvec bits = (uvec)v, rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const ivec r = choose_int(v == v, (ivec)rounded, (ivec)(bits >> 16 | 0x40));
#if X86_LANES == 16
    _mm256_storeu_si256((void *)at, _mm512_cvtepi32_epi16((__m512i)r));
#elif X86_LANES == 8
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)r, (__m256i)r), 0xd8);
    _mm_storeu_si128((void *)at, _mm256_castsi256_si128(shorts));
#else
    *(memory_shorts *)at = CVY_CONVERT(short_vec, LANES, r);
#endif
#endif
}

typedef uint32_t memory_uvec __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

/* Loads 2 * LANES elements of bf16: the even ones to *even, the odd ones to *odd. This is half the work of load_as. */
LEAF void load_even_odd(const cvy_bf16 *p, vec *even, vec *odd)
{
    const uvec pairs = *(const memory_uvec *)(const void *)p;
    *even = (vec)(pairs << 16);
    *odd = (vec)(pairs & 0xffff0000u);
}

/* Rounds as cvy_bf16_of does: the upper half of each lane of the result is the bf16 nearest to v. */
LEAF uvec rounded_up(vec v)
{
    const uvec bits = (uvec)v;
    return (uvec)choose_int(v == v, (ivec)(bits + 0x7fff + (bits >> 16 & 1)), (ivec)(bits | 0x400000));
}

/* The inverse of load_even_odd. exact: both vectors hold bf16 values already, so nothing is rounded. */
LEAF uvec merge_even_odd(const int exact, vec even, vec odd)
{
#ifdef ROUNDS_BF16
    /* The conversion puts the even elements into the lower half. */
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    if (!exact)
        return (uvec)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
#endif
    return exact ? (uvec)even >> 16 | (uvec)odd : rounded_up(even) >> 16 | (rounded_up(odd) & 0xffff0000u);
}

/* stream: a non-temporal store, which bypasses the cache and does not read the line first; p must be aligned to the
 * vector. */
LEAF void store_words(const int stream, void *p, uvec v)
{
#if X86_LANES == 16
    if (stream) {
        _mm512_stream_si512(p, (__m512i)v);
        return;
    }
#elif X86_LANES == 8
    if (stream) {
        _mm256_stream_si256(p, (__m256i)v);
        return;
    }
#endif
    (void)stream;
    *(memory_uvec *)p = v;
}

LEAF ivec load_bytes(const uint8_t *p)
{
#if X86_LANES == 16
    return (ivec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
#elif X86_LANES == 8
    return (ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
#else
    return CVY_CONVERT(ivec, LANES, *(const memory_bytes *)p);
#endif
}

/* Each element of v is from 0 to 255. */
LEAF void store_bytes(uint8_t *p, ivec v)
{
#if X86_LANES == 16
    _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8((__m512i)v));
#elif X86_LANES == 8
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)v, (__m256i)v), 0xd8);
    _mm_storel_epi64((void *)p, _mm_packus_epi16(_mm256_castsi256_si128(shorts), _mm256_castsi256_si128(shorts)));
#else
    *(memory_bytes *)p = CVY_CONVERT(byte_vec, LANES, v);
#endif
}

/* Loads 2 * LANES bytes, in the order of load_even_odd. */
LEAF void load_bytes_even_odd(const uint8_t *p, ivec *even, ivec *odd)
{
#if X86_LANES == 16
    const ivec pairs = (ivec)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
#elif X86_LANES == 8
    const ivec pairs = (ivec)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
#else
    const ivec pairs = CVY_CONVERT(ivec, LANES, *(const memory_shorts *)(const void *)p);
#endif
    *even = pairs & 0xff;
    *odd = pairs >> 8;
}

LEAF void store_bytes_even_odd(const int stream, uint8_t *p, ivec even, ivec odd)
{
#if X86_LANES == 16
    const __m256i bytes = _mm512_cvtepi32_epi16((__m512i)(even | odd << 8));
    if (stream)
        _mm256_stream_si256((void *)p, bytes);
    else
        _mm256_storeu_si256((void *)p, bytes);
#elif X86_LANES == 8
    const __m256i pairs = (__m256i)(even | odd << 8);
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32(pairs, pairs), 0xd8);
    _mm_storeu_si128((void *)p, _mm256_castsi256_si128(shorts));
#else
    *(memory_shorts *)(void *)p = CVY_CONVERT(short_vec, LANES, even | odd << 8);
#endif
    (void)stream;
}

#include "kernel/native/norm/native_bn_train_simd.h"
#include "kernel/native/pool/native_avg_pool_simd.h"
#include "kernel/native/pool/native_max_pool_simd.h"

static const cvy_simd simd = {
    .lanes = LANES,
    .bn = {{bn_sums_f32, bn_apply_f32, bn_grad_sums_f32, bn_grad_apply_f32, CVY_BN_RUN_F32, LANES},
           {bn_sums_bf16, bn_apply_bf16, bn_grad_sums_bf16, bn_grad_apply_bf16, CVY_BN_RUN_BF16, LANES}},
    .avg_pool_range = {avg_pool_f32, avg_pool_bf16},
    .avg_pool_grad_range = {avg_pool_grad_f32, avg_pool_grad_bf16},
    .max_pool_range = {max_pool_f32, max_pool_bf16},
    .max_pool_grad_range = {max_pool_grad_f32, max_pool_grad_bf16},
};

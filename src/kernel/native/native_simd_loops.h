/*
 * native_simd_loops.h: vectors of LANES floats and what the loops do with them, and the table of the loops. The
 * including file defines LANES and TARGET, the attribute of every function.
 */
#if LANES > 4
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef double dvec __attribute__((vector_size(4 * LANES)));                             /* half as many */
typedef float memory_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias)); /* wherever it lies */

#define LEAF TARGET static inline __attribute__((always_inline))

LEAF vec load(const float *p)
{
    return *(const memory_vec *)p;
}

LEAF dvec load_doubles(const float *p)
{
#if LANES == 16
    return (dvec)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif LANES == 8
    return (dvec)_mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    return (dvec){p[0], p[1]};
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

/* a where the mask is set, else b. */
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

LEAF ivec load_bytes(const uint8_t *p)
{
#if LANES == 16
    return (ivec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
#elif LANES == 8
    return (ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
#else
    return (ivec){p[0], p[1], p[2], p[3]};
#endif
}

/* Each element is 0 to 255. */
LEAF void store_bytes(uint8_t *p, ivec v)
{
#if LANES == 16
    _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8((__m512i)v));
#elif LANES == 8
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)v, (__m256i)v), 0xd8);
    _mm_storel_epi64((void *)p, _mm_packus_epi16(_mm256_castsi256_si128(shorts), _mm256_castsi256_si128(shorts)));
#else
    for (int l = 0; l < LANES; l++)
        p[l] = (uint8_t)v[l];
#endif
}

#include "kernel/native/native_bn_train_simd.h"
#include "kernel/native/native_max_pool_simd.h"

static const cvy_simd simd = {
    .lanes = LANES,
    .bn = {bn_sums, bn_apply, bn_grad_sums, bn_grad_apply},
    .max_pool_range = max_pool_range,
    .max_pool_grad_range = max_pool_grad_range,
};

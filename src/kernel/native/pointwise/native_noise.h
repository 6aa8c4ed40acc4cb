/*
 * native_noise.h: noise from the words of one block of the generator, in f32 and without branches, for vector lanes.
 *
 * The logarithm and the cosine are those of Cephes (Moshier 1989). The logarithm of 1 - u is taken from u if u is
 * small, so that numbers near zero keep their digits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_NOISE_H
#define CVY_NATIVE_NOISE_H

#include <math.h>
#include <string.h>

#include "kernel/native/native_common.h"

/* A number in [0, 1) from the 53 bits that cvy_rng_uniform() takes. The words are signed in the conversion, because
 * few machines convert unsigned numbers in vectors. */
CVY_INLINE float cvy_noise_unit(uint32_t high, uint32_t low)
{
    return (float)(int32_t)(high >> 5) * 0x1p-27f + (float)(int32_t)(low >> 6) * 0x1p-53f;
}

/* -log(1 - u). rest: 1 - u, not computed from the rounded u. */
CVY_INLINE float cvy_noise_minus_log(float u, float rest)
{
    uint32_t bits;
    float m;
    memcpy(&bits, &rest, sizeof bits);
    int32_t e = (int32_t)(bits >> 23) - 126;
    bits = (bits & 0x007FFFFFu) | 0x3F000000u; /* 0.5 .. 1 */
    memcpy(&m, &bits, sizeof m);
    const int is_low = m < 0.707106781f;
    e = is_low ? e - 1 : e;
    m = is_low ? 2 * m : m;
    const float x = e == 0 ? -u : m - 1, z = x * x;
    float p = 7.0376836292e-2f;
    p = p * x - 1.1514610310e-1f;
    p = p * x + 1.1676998740e-1f;
    p = p * x - 1.2420140846e-1f;
    p = p * x + 1.4249322787e-1f;
    p = p * x - 1.6668057665e-1f;
    p = p * x + 2.0000714765e-1f;
    p = p * x - 2.4999993993e-1f;
    p = p * x + 3.3333331174e-1f;
    const float y = p * x * z - 0.5f * z + (float)e * -2.12194440e-4f;
    return -(x + y + (float)e * 0.693359375f);
}

/* cos(2 pi t), t in [0, 1). */
CVY_INLINE float cvy_noise_cosine(float t)
{
    const int32_t quarter = (int32_t)(4 * t + 0.5f);
    const float x = (t - 0.25f * (float)quarter) * 6.28318530718f, z = x * x;
    float c = 2.443315711809948e-5f, s = -1.9515295891e-4f;
    c = c * z - 1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * z * z - 0.5f * z + 1.0f;
    s = s * z + 8.3321608736e-3f;
    s = s * z - 1.6666654611e-1f;
    s = s * z * x + x;
    const float size = quarter & 1 ? s : c;
    return (quarter + 1) & 2 ? -size : size;
}

/* The normal number that cvy_rng_normal() makes of these words. 1 - u is a sum of two numbers that are not negative,
 * the second of which is not zero: their difference from 1 would round to 0 if u is just below 1. */
CVY_INLINE float cvy_noise_normal(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const float rest = (float)(int32_t)(~a >> 5) * 0x1p-27f + (float)(0x4000000 - (int32_t)(b >> 6)) * 0x1p-53f;
    return sqrtf(2 * cvy_noise_minus_log(cvy_noise_unit(a, b), rest)) * cvy_noise_cosine(cvy_noise_unit(c, d));
}

/* A number in [-1, 1]. */
CVY_INLINE float cvy_noise_uniform(uint32_t a, uint32_t b)
{
    return 2 * cvy_noise_unit(a, b) - 1;
}

#endif

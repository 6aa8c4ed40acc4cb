/*
 * native_math.h: exponential, hyperbolic tangent and logarithm in f32 that compilers vectorise in a CVY_SIMD loop.
 *
 * Errors are below 2 units in the last place. NaN stays NaN, overflow gives infinity, and tiny results become subnormal
 * as they should. Source: Cephes (Moshier 1989): range reduction in two parts and minimax polynomials.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_MATH_H
#define CVY_NATIVE_MATH_H

#include <stdint.h>
#include <string.h>

#include "kernel/native/native_common.h"

/* 2^n for n in -126 .. 127. */
CVY_INLINE float cvy_exp2_int(int32_t n)
{
    const uint32_t bits = (uint32_t)(n + 127) << 23; /* for a NaN n is arbitrary, but does not overflow */
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

CVY_INLINE float cvy_exp(float x)
{
    /* 1.5 * 2^23: adding it rounds to a whole number, which is then in the low bits. */
    const float round = 12582912.0f;
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float shifted = x * 1.44269504088896341f + round, n = shifted - round;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    const int32_t whole = bits - 0x4B400000, half = whole >> 1;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    /* Two factors, because 2^whole itself may not be a normal number. */
    return p * cvy_exp2_int(half) * cvy_exp2_int(whole - half);
}

CVY_INLINE float cvy_tanh(float x)
{
    const float a = x < 0 ? -x : x, z = x * x;
    const float large = 1.0f - 2.0f / (cvy_exp(2.0f * a) + 1.0f);
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float small = p * z * x + x;
    return a < 0.625f ? small : x < 0 ? -large : large;
}

/* log(1 + x) for x in 0 .. 1: the series of the inverse hyperbolic tangent of x / (2 + x), which is at most 1/3. */
CVY_INLINE float cvy_log_1_plus(float x)
{
    const float t = x / (2.0f + x), z = t * t;
    float p = 1.0f / 15;
    p = p * z + 1.0f / 13;
    p = p * z + 1.0f / 11;
    p = p * z + 1.0f / 9;
    p = p * z + 1.0f / 7;
    p = p * z + 1.0f / 5;
    p = p * z + 1.0f / 3;
    return 2.0f * (p * z * t + t);
}

#endif

/*
 * base_bf16.h: bfloat16, the upper half of an f32: eight bits of exponent, eight of significand with the hidden one.
 *
 * Activations and their gradients have this type if `train.dtype` is bf16; arithmetic on them is done in f32. Rounding
 * is to nearest, ties to even; a NaN stays a NaN. The loops of kernels inline these functions, so that compilers
 * vectorise them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_BF16_H
#define CVY_BASE_BF16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t cvy_bf16;

static inline float cvy_bf16_get(cvy_bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline cvy_bf16 cvy_bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, nan = bits >> 16 | 0x40u;
    return (cvy_bf16)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

#endif

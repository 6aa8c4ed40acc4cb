/*
 * data_half.h: converts IEEE 754 half precision (f16: one bit of sign, five of exponent, ten of significand) to f32,
 * exactly.
 *
 * Scientists store images as f16 to halve the size of their files. The code moves the bits to their places and changes
 * the exponent's bias; one subtraction turns subnormal numbers into normal ones. There are no branches, so compilers
 * can vectorise it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_HALF_H
#define CVY_DATA_HALF_H

#include <stdint.h>
#include <string.h>

static inline float cvy_half_get(uint16_t half)
{
    const uint32_t tiny_bits = 113u << 23; /* 2^-14, the smallest normal half */
    const uint32_t low = (uint32_t)(half & 0x7fffu) << 13, exponent = low & 0x0f800000u;
    const uint32_t normal = low + (112u << 23), special = low + (224u << 23), shifted = low + tiny_bits;
    float tiny, value;
    uint32_t subnormal, bits;
    memcpy(&tiny, &tiny_bits, sizeof tiny);
    memcpy(&value, &shifted, sizeof value);
    value -= tiny;
    memcpy(&subnormal, &value, sizeof subnormal);
    bits = exponent == 0 ? subnormal : exponent == 0x0f800000u ? special : normal;
    bits |= (uint32_t)(half & 0x8000u) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts n values. fast: the result of cvy_half_is_fast(), which the caller asks once, because it is slow. */
int cvy_half_is_fast(void);
void cvy_half_to_f32(const uint16_t *half, int64_t n, int fast, float *restrict out);

#endif

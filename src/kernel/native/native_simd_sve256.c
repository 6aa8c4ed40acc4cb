/*
 * native_simd_sve256.c: the loops of native_simd.h with SVE vectors of eight floats.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/native_simd.h"

#if __ARM_FEATURE_SVE_BITS == 256

#define LANES 8
#define TARGET
#include "kernel/native/native_simd_loops.h"

const cvy_simd *cvy_simd_sve256(void)
{
    return cvy_isa_sve_bits() == 256 ? &simd : NULL;
}

#else

const cvy_simd *cvy_simd_sve256(void)
{
    return NULL;
}

#endif

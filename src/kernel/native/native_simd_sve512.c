/*
 * native_simd_sve512.c: the loops of native_simd.h with SVE vectors of sixteen floats.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/native_simd.h"

#if __ARM_FEATURE_SVE_BITS == 512

#define LANES 16
#define TARGET
#include "kernel/native/native_simd_loops.h"

const cvy_simd *cvy_simd_sve512(void)
{
    return cvy_isa_sve_bits() == 512 ? &simd : NULL;
}

#else

const cvy_simd *cvy_simd_sve512(void)
{
    return NULL;
}

#endif

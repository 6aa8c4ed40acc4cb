/*
 * native_simd_avx2.c: the loops of native_simd.h with vectors of eight floats.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/native_simd.h"

#if defined(__x86_64__) && defined(__GNUC__)

#define LANES 8
#define TARGET __attribute__((target("avx2,fma")))
#include "kernel/native/native_simd_loops.h"

const cvy_simd *cvy_simd_avx2(void)
{
    return cvy_isa_may_use(CVY_ISA_AVX2) ? &simd : NULL;
}

#else

const cvy_simd *cvy_simd_avx2(void)
{
    return NULL;
}

#endif

/*
 * native_simd_avx512.c: the loops of native_simd.h with vectors of sixteen floats.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/native_simd.h"

#if defined(__x86_64__) && defined(__GNUC__)

#define LANES 16
#define TARGET __attribute__((target("avx512f")))
#include "kernel/native/native_simd_loops.h"

const cvy_simd *cvy_simd_avx512(void)
{
    return cvy_isa_may_use(CVY_ISA_AVX512F) ? &simd : NULL;
}

#else

const cvy_simd *cvy_simd_avx512(void)
{
    return NULL;
}

#endif

/*
 * native_simd_avx512_bf16.c: the loops of native_simd.h with vectors of sixteen floats, for CPUs that have an
 * instruction which rounds to bf16. A store of bf16 then needs a fifth of the operations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/native_simd.h"

#if CVY_HAVE_AVX512_BF16

#define LANES 16
#define ROUNDS_BF16 1
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#include "kernel/native/native_simd_loops.h"

const cvy_simd *cvy_simd_avx512_bf16(void)
{
    return cvy_isa_may_use(CVY_ISA_AVX512_BF16) ? &simd : NULL;
}

#else

const cvy_simd *cvy_simd_avx512_bf16(void)
{
    return NULL;
}

#endif

/*
 * native_winograd_avx512_bf16.c: Winograd's transforms in f32 and products in bf16, two at a time, with sums in f32.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/winograd/native_winograd.h"

#if CVY_HAVE_AVX512_BF16

#include <immintrin.h>

#define PAIRS
#define LANES 16
#define ROWS 14
#define EACH_ROWS(X) X(10) X(11) X(12) X(13) X(14)
#define SUM_ROWS 8
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")))
#include "kernel/native/winograd/native_winograd_simd.h"

const cvy_winograd_isa *cvy_winograd_avx512_bf16(void)
{
    return cvy_isa_may_use(CVY_ISA_AVX512_BF16) ? &isa : NULL;
}

#else

const cvy_winograd_isa *cvy_winograd_avx512_bf16(void)
{
    return NULL;
}

#endif

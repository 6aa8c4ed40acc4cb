/*
 * native_winograd_avx2.c: Winograd's transforms and products with vectors of eight floats. A product keeps its sums
 * in 6 x 2 of the 16 registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/winograd/native_winograd.h"

#if defined(__x86_64__) && defined(__GNUC__)

#define LANES 8
#define ROWS 6
#define EACH_ROWS(X) X(4) X(5) X(6)
#define SUM_ROWS 4
#define TARGET __attribute__((target("avx2,fma")))
#include "kernel/native/winograd/native_winograd_simd.h"

const cvy_winograd_isa *cvy_winograd_avx2(void)
{
    return cvy_isa_may_use(CVY_ISA_AVX2) ? &isa : NULL;
}

#else

const cvy_winograd_isa *cvy_winograd_avx2(void)
{
    return NULL;
}

#endif

/*
 * native_winograd_sve256.c: Winograd's transforms and products with SVE vectors of eight floats (Neoverse V1). A
 * product keeps its sums in 14 x 2 of the 32 registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/winograd/native_winograd.h"

#if __ARM_FEATURE_SVE_BITS == 256

#define LANES 8
#define ROWS 14
#define EACH_ROWS(X) X(10) X(11) X(12) X(13) X(14)
#define SUM_ROWS 8
#define TARGET
#include "kernel/native/winograd/native_winograd_simd.h"

const cvy_winograd_isa *cvy_winograd_sve256(void)
{
    return cvy_isa_sve_bits() == 256 ? &isa : NULL;
}

#else

const cvy_winograd_isa *cvy_winograd_sve256(void)
{
    return NULL;
}

#endif

/*
 * native_winograd_sve512.c: Winograd's transforms and products with SVE vectors of sixteen floats (A64FX). A product
 * keeps its sums in 14 x 2 of the 32 registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/native/winograd/native_winograd.h"

#if __ARM_FEATURE_SVE_BITS == 512

#define LANES 16
#define ROWS 14
#define EACH_ROWS(X) X(10) X(11) X(12) X(13) X(14)
#define SUM_ROWS 8
#define TARGET
#include "kernel/native/winograd/native_winograd_simd.h"

const cvy_winograd_isa *cvy_winograd_sve512(void)
{
    return cvy_isa_sve_bits() == 512 ? &isa : NULL;
}

#else

const cvy_winograd_isa *cvy_winograd_sve512(void)
{
    return NULL;
}

#endif

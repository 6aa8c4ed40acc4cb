/*
 * native_simd_plain.c: the loops of native_simd.h with vectors of four floats, which work on every CPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_simd.h"

#if defined(__GNUC__)

#define LANES 4
#define TARGET
#include "kernel/native/native_simd_loops.h"

const cvy_simd *cvy_simd_plain(void)
{
    return &simd;
}

#else

const cvy_simd *cvy_simd_plain(void)
{
    return NULL;
}

#endif

/*
 * native_simd_avx512.c: the loops of native_simd.h on vectors of sixteen.
 */
#include "kernel/native/native_simd.h"

#if defined(__x86_64__) && defined(__GNUC__)

#define LANES 16
#define TARGET __attribute__((target("avx512f")))
#include "kernel/native/native_simd_loops.h"

const cvy_simd *cvy_simd_avx512(void)
{
    return __builtin_cpu_supports("avx512f") ? &simd : NULL;
}

#else

const cvy_simd *cvy_simd_avx512(void)
{
    return NULL;
}

#endif

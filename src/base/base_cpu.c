/*
 * base_cpu.c: asks CPUID, and Linux for the leave to use tiles. Not in the step.
 * Source: Intel, Software Developer's Manual, volume 2 (CPUID) and 1, chapter 18 (AMX); Linux, arch_prctl(2).
 */
#include "base/base_cpu.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PERMIT_XSTATE = 0x1023, TILE_DATA = 18, LEAF_FEATURES = 7, LEAF_TILES = 0x1d };
enum { EDX_AMX_BF16 = 1 << 22, EDX_AMX_TILE = 1 << 24, SUBLEAF_EAX_AVX512_BF16 = 1 << 5 };

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

int cvy_cpu_has_avx512_bf16(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return has_avx512() && __get_cpuid_count(LEAF_FEATURES, 1, &a, &b, &c, &d) && (a & SUBLEAF_EAX_AVX512_BF16) != 0;
}

int cvy_cpu_has_amx_bf16(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    const unsigned both = EDX_AMX_BF16 | EDX_AMX_TILE;
    return has_avx512() && __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) && (d & both) == both &&
           syscall(SYS_arch_prctl, PERMIT_XSTATE, TILE_DATA) == 0;
}

int cvy_cpu_describes_amx(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_max(0, 0) >= LEAF_TILES && __get_cpuid_count(LEAF_TILES, 0, &a, &b, &c, &d) && a >= 1;
}

#else

int cvy_cpu_has_avx512_bf16(void)
{
    return 0;
}

int cvy_cpu_has_amx_bf16(void)
{
    return 0;
}

int cvy_cpu_describes_amx(void)
{
    return 0;
}

#endif

/*
 * base_isa.c: asks CPUID and the environment, and asks Linux for permission to use tiles. No step calls it. Sources:
 * Intel, Software Developer's Manual, volume 2 (CPUID) and volume 1, chapter 18 (AMX); Linux, arch_prctl(2).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <stdlib.h>
#include <strings.h>

#include "base/base_status.h"

enum { LEAF_FEATURES = 7, LEAF_TILES = 0x1d };
enum { EDX_AMX_BF16 = 1 << 22, EDX_AMX_TILE = 1 << 24, SUBLEAF_EAX_AVX512_BF16 = 1 << 5 };

/* The last instruction set that the environment allows. Words that are not in the list, such as ALL and newer sets,
 * allow all. */
static int limit(void)
{
    static const struct {
        const char *word;
        int last;
    } limits[] = {
        {"AVX2", CVY_ISA_AVX2},
        {"AVX2_VNNI", CVY_ISA_AVX2},
        {"AVX2_VNNI_2", CVY_ISA_AVX2},
        {"AVX512_MIC", CVY_ISA_AVX512F},
        {"AVX512_MIC_4OPS", CVY_ISA_AVX512F},
        {"AVX512_CORE", CVY_ISA_AVX512},
        {"AVX512_CORE_VNNI", CVY_ISA_AVX512},
        {"AVX512_CORE_BF16", CVY_ISA_AVX512_BF16},
        {"AVX512_CORE_FP16", CVY_ISA_AVX512_BF16},
    };
    const char *word = getenv("ONEDNN_MAX_CPU_ISA");
    if (!word)
        word = getenv("DNNL_MAX_CPU_ISA");
    if (!word)
        return CVY_ISA_AMX_BF16;
    if (strcasecmp(word, "SSE41") == 0 || strcasecmp(word, "AVX") == 0)
        return CVY_ISA_AVX2 - 1;
    for (int i = 0; i < CVY_COUNT(limits); i++)
        if (strcasecmp(word, limits[i].word) == 0)
            return limits[i].last;
    return CVY_ISA_AMX_BF16;
}

#if defined(__linux__)

#include <sys/syscall.h>
#include <unistd.h>

#include "base/base_status.h"

static int tiles_permitted(void)
{
    enum { PERMIT_XSTATE = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, PERMIT_XSTATE, TILE_DATA) == 0;
}

#else

static int tiles_permitted(void)
{
    return 0;
}

#endif

int cvy_isa_has(cvy_isa isa)
{
    const unsigned amx = EDX_AMX_BF16 | EDX_AMX_TILE;
    unsigned a = 0, b = 0, c = 0, d = 0;
    switch (isa) {
    case CVY_ISA_AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case CVY_ISA_AVX512F: return __builtin_cpu_supports("avx512f") != 0;
    case CVY_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case CVY_ISA_AVX512_BF16:
        return cvy_isa_has(CVY_ISA_AVX512) && __get_cpuid_count(LEAF_FEATURES, 1, &a, &b, &c, &d) &&
               (a & SUBLEAF_EAX_AVX512_BF16);
    case CVY_ISA_AMX_BF16:
        return cvy_isa_has(CVY_ISA_AVX512_BF16) && __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) &&
               (d & amx) == amx && tiles_permitted();
    }
    return 0;
}

int cvy_isa_may_use(cvy_isa isa)
{
    return (int)isa <= limit() && cvy_isa_has(isa);
}

int cvy_isa_describes_amx(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_max(0, 0) >= LEAF_TILES && __get_cpuid_count(LEAF_TILES, 0, &a, &b, &c, &d) && a >= 1;
}

#else

int cvy_isa_has(cvy_isa isa)
{
    (void)isa;
    return 0;
}

int cvy_isa_may_use(cvy_isa isa)
{
    return cvy_isa_has(isa);
}

int cvy_isa_describes_amx(void)
{
    return 0;
}

#endif

#if defined(__aarch64__) && defined(__linux__)

#include <stdlib.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "base/base_status.h"

enum { HARDWARE_HAS_SVE = 1 << 22, GET_VECTOR_LENGTH = 51, LENGTH_BYTES = 0xffff }; /* hwcap.h, prctl.h */

static int limit_bits(void)
{
    static const struct {
        const char *word;
        int bits;
    } limits[] = {{"ADVSIMD", 0}, {"SVE_128", 128}, {"SVE_256", 256}};
    const char *word = getenv("ONEDNN_MAX_CPU_ISA");
    if (!word)
        word = getenv("DNNL_MAX_CPU_ISA");
    for (int i = 0; word && i < CVY_COUNT(limits); i++)
        if (strcasecmp(word, limits[i].word) == 0)
            return limits[i].bits;
    return LENGTH_BYTES;
}

int cvy_isa_sve_bits(void)
{
    if (!(getauxval(AT_HWCAP) & HARDWARE_HAS_SVE))
        return 0;
    const int length = prctl(GET_VECTOR_LENGTH, 0, 0, 0, 0), bits = length < 0 ? 0 : 8 * (length & LENGTH_BYTES);
    return bits <= limit_bits() ? bits : 0;
}

#else

int cvy_isa_sve_bits(void)
{
    return 0;
}

#endif

/*
 * data_half.c: half precision to f32, many values at once; see data_half.h. Most x86 processors have an instruction
 * that converts eight halves at once (F16C).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_half.h"

#include "base/machine/base_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

int cvy_half_is_fast(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return cvy_isa_has(CVY_ISA_AVX2) && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

__attribute__((target("avx,f16c"))) static int64_t convert_eights(const uint16_t *half, int64_t n, float *out)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(half + i))));
    return i;
}
#else
int cvy_half_is_fast(void)
{
    return 0;
}

static int64_t convert_eights(const uint16_t *half, int64_t n, float *out)
{
    (void)half, (void)n, (void)out;
    return 0;
}
#endif

void cvy_half_to_f32(const uint16_t *half, int64_t n, int fast, float *restrict out)
{
    for (int64_t i = fast ? convert_eights(half, n, out) : 0; i < n; i++)
        out[i] = cvy_half_get(half[i]);
}

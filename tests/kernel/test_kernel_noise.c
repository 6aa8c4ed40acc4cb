/* rows: clang asan minimal */
/*
 * test_kernel_noise.c: the noise of the fast kernel has the digits of the formula in double, also for the random words
 * that come once in 2^27 draws or more rarely, where u is just above 0 or just below 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#include "kernel/native/pointwise/native_noise.h"

static const uint32_t words[] = {0,          1 << 5,     1 << 6,     0x00000fff, 0x12345678, 0x3fffffff, 0x40000000,
                                 0x4afb0ccc, 0x5fffffff, 0x7fffffff, 0x80000000, 0x9e3779b9, 0xbfffffff, 0xc0000000,
                                 0xf0000001, 0xfffff000, 0xffffff7f, 0xffffffbf, 0xffffffdf, 0xffffffff};

static double unit(uint32_t high, uint32_t low)
{
    return ((double)(high >> 5) * 0x1p26 + (double)(low >> 6)) * 0x1p-53;
}

/* The radius is within a few eps of its size. The cosine is within a few eps of 1. */
static void normal(void)
{
    for (int a = 0; a < CVY_COUNT(words); a++)
        for (int b = 0; b < CVY_COUNT(words); b++)
            for (int c = 0; c < CVY_COUNT(words); c++) {
                const double radius = sqrt(-2 * log1p(-unit(words[a], words[b]))),
                             want = radius * cos(6.283185307179586476925 * unit(words[c], words[b])),
                             is = cvy_noise_normal(words[a], words[b], words[c], words[b]);
                EXPECT(fabs(is - want) <= 8 * 1.2e-7 * radius);
            }
}

static void uniform(void)
{
    for (int a = 0; a < CVY_COUNT(words); a++)
        for (int b = 0; b < CVY_COUNT(words); b++)
            EXPECT_NEAR(cvy_noise_uniform(words[a], words[b]), 2 * unit(words[a], words[b]) - 1, 2 * 1.2e-7);
}

int main(void)
{
    TEST(normal);
    TEST(uniform);
    return test_end();
}

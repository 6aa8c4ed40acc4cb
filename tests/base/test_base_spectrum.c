/*
 * test_base_spectrum.c: the power spectrum of single waves is theirs, for square and other maps, of lengths that are
 * powers of two and that are not; its sum is the variance of a map whose waves all have a bin.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "base/number/base_spectrum.h"
#include "test_util.h"

static cvy_pool *pool = NULL;
static void begin(void)
{
    EXPECT_OK(cvy_pool_create(&pool));
}
static void end(void)
{
    cvy_pool_destroy(&pool);
}

/* A wave of amplitude 3, ky and kx times around a map of h x w, is in the bin `wave` alone. */
static void expect_wave(int64_t h, int64_t w, int ky, int kx, int64_t wave)
{
    float x[32 * 32];
    double power[16] = {0};
    cvy_spectrum s = {0};
    EXPECT_OK(cvy_spectrum_make(pool, h, w, &s));
    EXPECT_INT(s.nbin, CVY_MIN(h, w) / 2);
    for (int64_t i = 0; i < h * w; i++)
        x[i] = 7 + 3 * (float)cos(2 * 3.14159265358979323846 *
                                  ((double)(ky * (i / w)) / (double)h + (double)(kx * (i % w)) / (double)w));
    cvy_spectrum_add(&s, x, power);
    for (int64_t b = 0; b < s.nbin; b++)
        EXPECT_NEAR(power[b] * (double)s.nwave[b], b == wave - 1 ? 4.5 : 0, 1e-5); /* 3^2 / 2 */
}

static void single_waves(void)
{
    expect_wave(16, 16, 0, 3, 3);
    expect_wave(16, 16, 4, 0, 4);
    expect_wave(16, 16, 3, -4, 5);
    expect_wave(32, 32, 15, 1, 15);
    expect_wave(15, 15, 2, 2, 3); /* 2.83 */
    expect_wave(12, 20, 3, 5, 4); /* both are a quarter of a wave a position: hypot(3, 3) = 4.24 */
    expect_wave(20, 16, 5, 0, 4); /* the shorter side has 16 positions: 5 * 16 / 20 */
    expect_wave(16, 9, 0, 4, 4);
}

static void variance(void)
{
    enum { N = 16 };
    float x[N * N];
    double power[N / 2] = {0}, sum = 0, mean = 0, square = 0;
    const cvy_rng rng = cvy_rng_make(1, "test", 0, 0);
    cvy_spectrum s = {0};
    EXPECT_OK(cvy_spectrum_make(pool, N, N, &s));
    for (int i = 0; i < N * N; i++)
        x[i] = 0;
    for (int k = 1; k <= 5; k++) /* waves that all have a bin */
        for (int i = 0; i < N * N; i++)
            x[i] += (float)(cvy_rng_normal(&rng, (uint64_t)k) *
                            cos(2 * 3.14159265358979323846 * (k * (i % N) + i / N) / N));
    for (int i = 0; i < N * N; i++)
        mean += x[i] / (double)(N * N);
    for (int i = 0; i < N * N; i++)
        square += (x[i] - mean) * (x[i] - mean) / (N * N);
    cvy_spectrum_add(&s, x, power);
    for (int64_t b = 0; b < s.nbin; b++)
        sum += power[b] * (double)s.nwave[b];
    EXPECT_NEAR(sum, square, 1e-5 * square);
}

static void too_small(void)
{
    cvy_spectrum s;
    EXPECT_FAULT(cvy_spectrum_make(pool, 1, 8, &s), CVY_E_ARGUMENT, "maps of 1 x 8");
}

int main(void)
{
    TEST_WITH(begin, single_waves, end);
    TEST_WITH(begin, variance, end);
    TEST_WITH(begin, too_small, end);
    return test_end();
}

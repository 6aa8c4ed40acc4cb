/*
 * test_base_spectrum.c: the power spectrum of planes of any size equals sums over all elements by its definition; a
 * wave has its power at its wave number in any direction, and a constant at 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_spectrum.h"
#include "test_util.h"

enum { SIDE_MAX = 40 };

static const double pi = 3.14159265358979323846;

/* By the definition: each wave is summed over the plane. */
static void expected_power(const double *plane, int H, int W, double *power)
{
    const int longer = H > W ? H : W, count = longer / 2 + 1;
    int waves[SIDE_MAX] = {0};
    for (int k = 0; k < count; k++)
        power[k] = 0;
    for (int v = 0; v < H; v++)
        for (int u = 0; u < W; u++) {
            const double down = v > H / 2 ? v - H : v, right = u > W / 2 ? u - W : u;
            const int k = (int)floor(longer * sqrt(down * down / H / H + right * right / W / W) + 0.5);
            double re = 0, im = 0;
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++) {
                    const double angle = 2 * pi * ((double)(v * y % H) / H + (double)(u * x % W) / W);
                    re += plane[y * W + x] * cos(angle);
                    im -= plane[y * W + x] * sin(angle);
                }
            if (k >= count)
                continue;
            power[k] += (re * re + im * im) / ((double)H * W * H * W);
            waves[k]++;
        }
    for (int k = 0; k < count; k++)
        power[k] /= waves[k] > 0 ? waves[k] : 1;
}

static cvy_spectrum *spectrum_of(cvy_pool *pool, int H, int W)
{
    cvy_spectrum *s = NULL;
    EXPECT_OK(cvy_spectrum_create(pool, H, W, &s));
    return s;
}

/* The error of a transform of n numbers is within some eps log n of the largest of them, and the power is of order 1.
 */
static void sizes(cvy_pool *pool)
{
    static const int size[][2] = {{8, 8},   {1, 1},  {1, 16}, {16, 1}, {5, 7},   {9, 6},  {12, 10},
                                  {13, 13}, {2, 31}, {32, 3}, {24, 9}, {17, 16}, {33, 2}, {20, 39}};
    double plane[SIDE_MAX * SIDE_MAX], got[SIDE_MAX], want[SIDE_MAX];
    for (int i = 0; i < CVY_COUNT(size); i++) {
        const int H = size[i][0], W = size[i][1], count = (int)cvy_spectrum_count(H, W);
        cvy_spectrum *s = spectrum_of(pool, H, W);
        for (int again = 0; again < 2; again++) {
            for (int k = 0; k < H * W; k++)
                plane[k] = sin(0.7 * k * k + again) + 0.25;
            memcpy(cvy_spectrum_plane(s), plane, sizeof *plane * (size_t)(H * W));
            cvy_spectrum_compute(s, got);
            expected_power(plane, H, W, want);
            for (int k = 0; k < count; k++)
                if (fabs(got[k] - want[k]) > 1e-14) {
                    printf("%dx%d, k %d: %.17g, expected %.17g\n", H, W, k, got[k], want[k]);
                    EXPECT(0);
                }
        }
    }
}

/* 3 waves down and 4 to the right have the wave number 5: two of the transform's elements have a quarter of the squared
 * amplitude each. */
static void waves(cvy_pool *pool)
{
    enum { N = 30 };
    double power[N];
    int others = 0;
    cvy_spectrum *s = spectrum_of(pool, N, N);
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++)
            cvy_spectrum_plane(s)[y * N + x] = 2 + 3 * cos(2 * pi * (3 * y + 4 * x) / N);
    cvy_spectrum_compute(s, power);
    EXPECT_NEAR(power[0], 4, 1e-13);
    for (int v = -N / 2 + 1; v <= N / 2; v++)
        for (int u = -N / 2 + 1; u <= N / 2; u++)
            others += (int)floor(sqrt(v * v + u * u) + 0.5) == 5;
    EXPECT_NEAR(power[5], 2 * 9.0 / 4 / others, 1e-13);
    for (int k = 1; k < (int)cvy_spectrum_count(N, N); k++)
        EXPECT(k == 5 || fabs(power[k]) < 1e-28);
}

static void refused(cvy_pool *pool)
{
    cvy_spectrum *s = NULL;
    double power[8] = {0};
    EXPECT_INT(cvy_spectrum_create(pool, 0, 5, &s), CVY_E_SHAPE);
    s = spectrum_of(pool, 6, 5);
    for (int i = 0; i < 30; i++)
        cvy_spectrum_plane(s)[i] = i == 7 ? NAN : 1;
    cvy_spectrum_compute(s, power);
    for (int k = 0; k < (int)cvy_spectrum_count(6, 5); k++)
        EXPECT(isnan(power[k]));
}

int main(void)
{
    cvy_pool *pool = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    sizes(pool);
    waves(pool);
    refused(pool);
    cvy_pool_destroy(&pool);
    return test_end();
}

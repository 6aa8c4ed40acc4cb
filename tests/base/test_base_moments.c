/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_moments.c: means and deviations far from 0, tiny and huge, whole, one by one and merged, as numpy gives
 * them in long double; a variance from twofold sums; one number, none, and numbers that do not count; the digits of
 * a mean. */
#include <string.h>

#include "base/base_status.h"
#include "base/number/base_moments.h"
#include "base/number/base_twofold.h"

#include "golden/moments_golden.h"
#include "test_util.h"

enum { N = 1000, PARTS = 7 };

static double unit_at(int i)
{
    return i * 7919 % 1009 / 1009.0;
}

static void expect_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance * fabs(wanted)))
        TEST_FAIL("%.17g, expected %.17g", value, wanted);
}

static double spread_of(const double *x)
{
    double sum[2] = {0}, rest[2] = {0};
    for (int i = 0; i < N; i++) {
        cvy_twofold_sum_add(sum, rest, 0, (cvy_twofold){x[i], 0});
        cvy_twofold_sum_add(sum, rest, 1, cvy_twofold_product(x[i], x[i]));
    }
    return cvy_twofold_spread((cvy_twofold){sum[1], rest[1]}, (cvy_twofold){sum[0], rest[0]}, (cvy_twofold){N, 0});
}

static void far_from_zero(void)
{
    static double x[N];
    static float f[N];
    for (int k = 0; k < CVY_COUNT(moments_golden); k++) {
        const struct moments_golden *g = &moments_golden[k];
        cvy_moments single = {0}, merged = {0};
        for (int i = 0; i < N; i++) {
            f[i] = (float)(g->offset + g->spread * unit_at(i));
            x[i] = g->is_f32 ? f[i] : g->offset + g->spread * unit_at(i);
            cvy_moments_add(&single, x[i]);
        }
        for (int p = 0; p < PARTS; p++) {
            const int from = N * p / PARTS, n = N * (p + 1) / PARTS - from;
            const cvy_moments part =
                g->is_f32 ? cvy_moments_of_f32(f + from, NULL, n) : cvy_moments_of_f64(x + from, n);
            cvy_moments_merge(&merged, &part);
        }
        /* a mean is off by its last digit, which is so much of the deviation */
        const double tolerance = 1e-14 + 1e-14 * fabs(g->mean) / g->std;
        expect_near(single.mean, g->mean, 1e-14);
        expect_near(merged.mean, g->mean, 1e-14);
        expect_near(cvy_moments_std(&single), g->std, tolerance);
        expect_near(cvy_moments_std(&merged), g->std, tolerance);
        expect_near(sqrt(spread_of(x) / N), g->std, 1e-14 + 1e-30 * pow(g->mean / g->std, 2));
        expect_near(cvy_moments_sample_std(&single), g->std * sqrt((double)N / (N - 1)), tolerance);
    }
}

static void few(void)
{
    static const float x[] = {5, 1e30F, 7, -2};
    static const float mask[] = {1, 0, 1, 0};
    const cvy_moments none = cvy_moments_of_f32(x, NULL, 0), one = cvy_moments_of_f32(x, NULL, 1);
    cvy_moments two = cvy_moments_of_f32(x, mask, 4);
    EXPECT(none.n == 0 && cvy_moments_std(&none) == 0 && cvy_moments_sample_std(&none) == 0);
    EXPECT(one.mean == 5 && cvy_moments_std(&one) == 0 && cvy_moments_sample_std(&one) == 0);
    EXPECT(two.n == 2 && two.mean == 6 && cvy_moments_std(&two) == 1);
    cvy_moments_merge(&two, &none);
    EXPECT(two.n == 2 && two.mean == 6);
}

static void constants_and_signs(void)
{
    static double x[N];
    for (int i = 0; i < N; i++)
        x[i] = 0.1;
    EXPECT(spread_of(x) == 0);
    /* two numbers with the weights 2 and -1: less than 0 */
    EXPECT(isnan(cvy_twofold_spread((cvy_twofold){2 * 1 - 9, 0}, (cvy_twofold){2 * 1 - 3, 0}, (cvy_twofold){1, 0})));
}

static void steps_of_f32(void)
{
    EXPECT(cvy_f32_spacing(1e9) == 64 && cvy_f32_spacing(-1) == ldexp(1, -23));
    EXPECT(cvy_moments_are_coarse(1e9, 0, 0) && cvy_moments_are_coarse(1e9, 100, 1));
    EXPECT(!cvy_moments_are_coarse(1e7, 1, 1) && !cvy_moments_are_coarse(273.15, 0, 0));
    EXPECT(!cvy_moments_are_coarse(101325, 0.05, 0) && cvy_moments_are_coarse(101325, 0.005, 0));
}

static void digits(void)
{
    static const struct {
        double value, distance;
        const char *text;
    } of[] = {{101325.0302, 5e-4, "101325.0302"},
              {0.5, 0.01, "0.5"},
              {2147483000.4, 100, "2147483000"},
              {1.5e30, 1e28, "1.5e+30"},
              {0, 1, "0"},
              {-10.0000021, 1e-6, "-10.0000021"},
              {1e-30, 1e-36, "1e-30"},
              {NAN, 1, "nan"}};
    static const struct {
        float value;
        const char *text;
    } f32[] = {{273.15F, "273.15"}, {2147483648.0F, "2147483648"}, {1e30F, "1e+30"}, {101324.836F, "101324.836"}};
    char text[CVY_NUMBER_ROOM];
    for (int i = 0; i < CVY_COUNT(of); i++) {
        cvy_number_write(of[i].value, of[i].distance, text);
        EXPECT(strcmp(text, of[i].text) == 0 || !printf("%s, expected %s\n", text, of[i].text));
    }
    for (int i = 0; i < CVY_COUNT(f32); i++) {
        cvy_number_write_f32((double)f32[i].value, text);
        EXPECT(strcmp(text, f32[i].text) == 0 || !printf("%s, expected %s\n", text, f32[i].text));
    }
}

int main(void)
{
    TEST(far_from_zero);
    TEST(few);
    TEST(constants_and_signs);
    TEST(steps_of_f32);
    TEST(digits);
    return test_end();
}

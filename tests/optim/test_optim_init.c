/*
 * test_optim_init.c: initialisers: mean, spread and bounds of what they fill, and that a value depends only on seed,
 * name and element.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "optim/optim.h"
#include "test_util.h"

enum { ELEMS = 200 * 100 };

static cvy_variable variable(const char *name, const char *method, const char *options)
{
    return (cvy_variable){.name = (char *)(uintptr_t)name,
                          .dtype = CVY_DTYPE_F64,
                          .shape = {2, {200, 100}},
                          .init = {.method = method, .options = options, .fan_in = 100, .fan_out = 200}};
}

/* Means must be within five standard errors. The spread of n samples is known to a relative error of 1 / sqrt(2 n), or
 * less for uniform distributions. */
static void expect_moments(const char *method, const char *options, double mean, double std, double bound)
{
    static double x[ELEMS];
    const cvy_variable v = variable("conv1.weight", method, options);
    double sum = 0, squares = 0, largest = 0;
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, x));
    for (int i = 0; i < ELEMS; i++)
        sum += x[i];
    for (int i = 0; i < ELEMS; i++) {
        squares += (x[i] - sum / ELEMS) * (x[i] - sum / ELEMS);
        largest = fmax(largest, fabs(x[i]));
    }
    EXPECT_NEAR(sum / ELEMS, mean, 5 * std / sqrt(ELEMS) + 1e-12);
    EXPECT_NEAR(sqrt(squares / ELEMS), std, 5 * std / sqrt(2.0 * ELEMS) + 1e-12);
    EXPECT(largest <= bound);
    EXPECT(largest >= 0.99 * bound || isinf(bound));
}

static void moments_are_right(void)
{
    expect_moments("constant", "value: 0.25", 0.25, 0, 0.25);
    expect_moments("uniform", "min: -0.2, max: 0.2", 0, 0.4 / sqrt(12), 0.2);
    expect_moments("gaussian", "mean: 1, std: 0.5", 1, 0.5, INFINITY);
    expect_moments("xavier", NULL, 0, sqrt(2.0 / 300), sqrt(6.0 / 300));
    expect_moments("xavier", "distribution: gaussian, gain: 2", 0, 2 * sqrt(2.0 / 300), INFINITY);
    expect_moments("xavier", "fan: in", 0, sqrt(1.0 / 100), sqrt(3.0 / 100));
    expect_moments("xavier", "fan: out", 0, sqrt(1.0 / 200), sqrt(3.0 / 200));
    expect_moments("he", "fan: average", 0, sqrt(2.0 / 150), INFINITY);
    expect_moments("he", NULL, 0, sqrt(2.0 / 100), INFINITY);
    expect_moments("he", "fan: out, distribution: uniform", 0, sqrt(2.0 / 200), sqrt(6.0 / 200));
    expect_moments("he", "slope: 1", 0, sqrt(1.0 / 100), INFINITY);
    expect_moments("torch", NULL, 0, 0.1 / sqrt(3), 0.1);
}

static void a_share_of_a_gaussian_is_zero(void)
{
    static double x[ELEMS];
    const cvy_variable v = variable("conv1.weight", "gaussian", "std: 1, mean: 3, nonzero: 0.15");
    int nonzero = 0;
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, x));
    for (int i = 0; i < ELEMS; i++)
        nonzero += x[i] != 0;
    EXPECT_NEAR((double)nonzero / ELEMS, 0.15, 5 * sqrt(0.15 * 0.85 / ELEMS));
}

static void rows_have_the_sum_1(void)
{
    static double x[ELEMS];
    const cvy_variable v = variable("conv1.weight", "positive_unit_sum", NULL);
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, x));
    for (int i = 0; i < ELEMS; i += 100) {
        double sum = 0, least = 1;
        for (int k = i; k < i + 100; k++) {
            sum += x[k];
            least = fmin(least, x[k]);
        }
        EXPECT_NEAR(sum, 1, 1e-13);
        EXPECT(least >= 0);
    }
}

/* The values of Caffe's filler for 4 x 4 positions: f = 2, c = 0.75. */
static void a_bilinear_filter_has_the_known_values(void)
{
    static const double row[4] = {0.25, 0.75, 0.75, 0.25};
    double x[48];
    cvy_variable v = variable("up.weight", "bilinear", "positions: 4");
    v.shape = (cvy_shape){4, {3, 1, 4, 4}};
    EXPECT_OK(cvy_init_fill(&v, 7, 0, 48, x));
    for (int i = 0; i < 48; i++)
        EXPECT_NEAR(x[i], row[i / 4 % 4] * row[i % 4], 1e-15);
}

static void values_depend_on_name_and_seed(void)
{
    static double a[ELEMS], b[ELEMS];
    static float f[ELEMS];
    cvy_variable v = variable("conv1.weight", "he", NULL);
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, a));
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, b));
    EXPECT(memcmp(a, b, sizeof a) == 0);
    EXPECT_OK(cvy_init_fill(&v, 8, 0, ELEMS, b));
    EXPECT(a[0] != b[0] && a[777] != b[777]);
    v = variable("conv2.weight", "he", NULL);
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, b));
    EXPECT(a[0] != b[0] && a[777] != b[777]);
    v = variable("conv1.weight", "he", NULL);
    v.dtype = CVY_DTYPE_F32;
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, f));
    EXPECT(f[777] == (float)a[777]);
    EXPECT_OK(cvy_init_fill(&v, 7, 700, 100, f));
    EXPECT(f[77] == (float)a[777]);
}

static void mistakes_are_named(void)
{
    static double x[ELEMS];
    cvy_variable v = variable("conv1.weight", "xaver", NULL);
    EXPECT_FAULT(cvy_init_fill(&v, 7, 0, ELEMS, x), CVY_E_CONFIG, "did you mean 'xavier'?");
    v = variable("conv1.weight", "he", "fan: both");
    EXPECT_FAULT(cvy_init_fill(&v, 7, 0, ELEMS, x), CVY_E_CONFIG, "fan");
    v = variable("bn1.scale", "he", NULL);
    v.init.fan_in = 0;
    EXPECT_FAULT(cvy_init_fill(&v, 7, 0, ELEMS, x), CVY_E_CONFIG, "bn1.scale");
    v.init.method = NULL;
    x[0] = 1;
    EXPECT_OK(cvy_init_fill(&v, 7, 0, ELEMS, x));
    EXPECT(x[0] == 0);
}

int main(void)
{
    TEST(moments_are_right);
    TEST(a_share_of_a_gaussian_is_zero);
    TEST(rows_have_the_sum_1);
    TEST(a_bilinear_filter_has_the_known_values);
    TEST(values_depend_on_name_and_seed);
    TEST(mistakes_are_named);
    return test_end();
}

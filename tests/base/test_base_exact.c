/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_exact.c: exact sums have the same bits in any order, over the whole range of doubles, also when they are
 * added digit by digit as ranks do; windows have the same bits in any order, too, and are off by very little. */
#include <float.h>

#include "base/base_status.h"
#include "base/number/base_exact.h"

#include "test_util.h"

static double sum_of(const double *x, int n)
{
    cvy_exact sum = {{0}};
    for (int i = 0; i < n; i++)
        cvy_exact_add(&sum, x[i]);
    return cvy_exact_read(&sum);
}

static double window_of(const double *x, int n)
{
    cvy_exact_window sum = {.top = 0};
    for (int i = 0; i < n; i++)
        cvy_exact_window_add(&sum, x[i]);
    return cvy_exact_window_read(&sum);
}

static void single_numbers(void)
{
    static const double numbers[] = {
        0,        1,       -1,           0.1,           -0.1,           1e300,        -1e300,        DBL_MAX,
        -DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, DBL_MIN * 0.75, 4294967296.0, -4294967295.5, 1.0 / 3};
    for (int i = 0; i < CVY_COUNT(numbers); i++)
        EXPECT(sum_of(&numbers[i], 1) == numbers[i] && window_of(&numbers[i], 1) == numbers[i]);
}

static void nothing_is_lost(void)
{
    EXPECT(sum_of((const double[]){1e300, 1, -1e300}, 3) == 1);
    EXPECT(sum_of((const double[]){DBL_TRUE_MIN, DBL_MAX, -DBL_MAX}, 3) == DBL_TRUE_MIN);
    EXPECT(sum_of((const double[]){1, 1e-30, -1}, 3) == 1e-30);
    EXPECT(sum_of((const double[]){-3, 1, 1}, 3) == -1);
    EXPECT(isnan(sum_of((const double[]){1, NAN}, 2)));
    EXPECT(isnan(sum_of((const double[]){INFINITY, 1}, 2)));
}

static double number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const double x = (double)(int64_t)(*state >> 11) / 9007199254740992.0 - 0.5;
    return ldexp(x, (int)(*state >> 58) - 32);
}

static void any_order(void)
{
    enum { N = 5000, RANKS = 7 };
    static double x[N];
    uint64_t state = 1;
    cvy_exact rank[RANKS] = {{{0}}};
    double plain = 0, backward = 0;
    for (int i = 0; i < N; i++)
        x[i] = number(&state);
    const double expected = sum_of(x, N);
    for (int i = 0; i < N; i++) {
        cvy_exact_add(&rank[i * i % RANKS], x[N - 1 - i]);
        plain += x[i];
        backward += x[N - 1 - i];
    }
    for (int r = 1; r < RANKS; r++)
        for (int w = 0; w < CVY_EXACT_WORDS; w++)
            rank[0].word[w] += rank[r].word[w];
    EXPECT(cvy_exact_read(&rank[0]) == expected);
    EXPECT(plain != backward);
    EXPECT_NEAR(plain, expected, 1e-9 * 4294967296.0);
}

/* The numbers have magnitudes from 2^-33 to 2^31, the windows of the ranks begin at different places. */
static void windows(void)
{
    enum { N = 5000, RANKS = 3 };
    static double x[N];
    uint64_t state = 2;
    cvy_exact_window rank[RANKS] = {{.top = 0}};
    int64_t top = 0;
    for (int i = 0; i < N; i++)
        x[i] = ldexp(number(&state), i % 3 ? -300 : -20 * (i % 11));
    const double exact = sum_of(x, N), forward = window_of(x, N);
    for (int i = N - 1; i >= 0; i--)
        cvy_exact_window_add(&rank[i % RANKS], x[i]);
    EXPECT(rank[0].top != rank[1].top);
    for (int r = 0; r < RANKS; r++)
        top = CVY_MAX(top, rank[r].top);
    for (int r = 0; r < RANKS; r++) {
        cvy_exact_window_raise(&rank[r], top);
        for (int d = 0; r > 0 && d < CVY_EXACT_WINDOW_DIGITS; d++)
            rank[0].digit[d] += rank[r].digit[d];
    }
    EXPECT(cvy_exact_window_read(&rank[0]) == forward);
    EXPECT_NEAR(forward, exact, 1e-16 * fabs(exact));
    EXPECT(window_of((const double[]){3, -4.5, 1.25}, 3) == -0.25);
    EXPECT(window_of((const double[]){1, 1e-20, -1}, 3) == window_of((const double[]){1e-20, -1, 1}, 3));
    EXPECT_NEAR(window_of((const double[]){1, 1e-20, -1}, 3), 1e-20, 3 * ldexp(1, -96));
    EXPECT(isnan(window_of((const double[]){1, NAN}, 2)) && isnan(window_of((const double[]){-INFINITY}, 1)));
}

int main(void)
{
    TEST(single_numbers);
    TEST(nothing_is_lost);
    TEST(any_order);
    TEST(windows);
    return test_end();
}

/*
 * base_twofold.h: numbers with the digits of two doubles, for differences of large sums.
 *
 * A cvy_twofold is hi + lo, where lo is at most half a unit in the last place of hi (Dekker 1971). So it has 106 bits,
 * and a variance that is 1e-14 of the mean square still has 17 digits. Metrics add such sums over batches and ranks,
 * where moments that are merged one after the other (base_moments.h) would depend on the order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_TWOFOLD_H
#define CVY_BASE_TWOFOLD_H

#include <math.h>
#include <stdint.h>

typedef struct cvy_twofold {
    double hi, lo;
} cvy_twofold;

/* Differences below this share of the largest sum are rounding errors. */
#define CVY_TWOFOLD_ROUNDING 1e-27

/* a + b, exactly (Knuth 1969). */
static inline cvy_twofold cvy_twofold_sum(double a, double b)
{
    const double sum = a + b, part = sum - a;
    return (cvy_twofold){sum, (a - (sum - part)) + (b - part)};
}

/* a b, exactly. */
static inline cvy_twofold cvy_twofold_product(double a, double b)
{
    const double product = a * b;
    return (cvy_twofold){product, fma(a, b, -product)};
}

static inline cvy_twofold cvy_twofold_add(cvy_twofold a, cvy_twofold b)
{
    const cvy_twofold s = cvy_twofold_sum(a.hi, b.hi);
    return cvy_twofold_sum(s.hi, s.lo + a.lo + b.lo);
}

static inline cvy_twofold cvy_twofold_minus(cvy_twofold a)
{
    return (cvy_twofold){-a.hi, -a.lo};
}

static inline cvy_twofold cvy_twofold_multiply(cvy_twofold a, cvy_twofold b)
{
    const cvy_twofold p = cvy_twofold_product(a.hi, b.hi);
    return cvy_twofold_sum(p.hi, p.lo + a.hi * b.lo + a.lo * b.hi);
}

static inline cvy_twofold cvy_twofold_divide(cvy_twofold a, cvy_twofold b)
{
    const double first = a.hi / b.hi;
    const cvy_twofold left = cvy_twofold_add(a, cvy_twofold_minus(cvy_twofold_multiply((cvy_twofold){first, 0}, b)));
    return cvy_twofold_sum(first, left.hi / b.hi);
}

/* Adds x to sum number i, which is sum[i] + rest[i]. */
static inline void cvy_twofold_sum_add(double *sum, double *rest, int64_t i, cvy_twofold x)
{
    const cvy_twofold all = cvy_twofold_sum(sum[i], x.hi);
    sum[i] = all.hi;
    rest[i] += all.lo + x.lo;
}

/* The sum of squared deviations from the mean, from the sums of the squares, of the numbers and of their weights. It is
 * 0 if it is within rounding error of 0, and NaN if negative weights make it less. */
static inline double cvy_twofold_spread(cvy_twofold squares, cvy_twofold sum, cvy_twofold weight)
{
    const double rounding = CVY_TWOFOLD_ROUNDING * fabs(squares.hi);
    const cvy_twofold of_mean = cvy_twofold_divide(cvy_twofold_multiply(sum, sum), weight),
                      rest = cvy_twofold_add(squares, cvy_twofold_minus(of_mean));
    return rest.hi < -rounding ? NAN : rest.hi <= rounding ? 0 : rest.hi;
}

#endif

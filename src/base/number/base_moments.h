/*
 * base_moments.h: mean and variance of numbers, without the cancellation of "mean of squares less square of the mean",
 * which has no right digit left for a pressure of 101325 Pa that varies by 0.05 Pa.
 *
 * Numbers are added by the rule of Welford (1962), and moments are merged by that of Chan, Golub and LeVeque (1979).
 * All that people read of means and deviations comes from here. Sums that ranks merge in any order are cvy_twofold
 * (base_twofold.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_MOMENTS_H
#define CVY_BASE_MOMENTS_H

#include <math.h>
#include <stdint.h>

typedef struct cvy_moments { /* zero-initialised, it has no numbers */
    double n, mean, m2;      /* m2: the sum of squared deviations from the mean */
} cvy_moments;

static inline void cvy_moments_add(cvy_moments *m, double x)
{
    const double before = x - m->mean;
    m->n++;
    m->mean += before / m->n;
    m->m2 += before * (x - m->mean);
}

/* Adds the numbers of b to a. */
void cvy_moments_merge(cvy_moments *a, const cvy_moments *b);
/* The moments of n numbers. mask: NULL, or which of them count: those with a value above 0. */
cvy_moments cvy_moments_of_f32(const float *x, const float *mask, int64_t n);
cvy_moments cvy_moments_of_f64(const double *x, int64_t n);

/* The standard deviation with the divisor n; 0 if there are no numbers, or all are equal. */
static inline double cvy_moments_std(const cvy_moments *m)
{
    return m->m2 > 0 ? sqrt(m->m2 / m->n) : 0;
}

/* The same with the divisor n - 1, of samples that stand for more; 0 for one number. */
static inline double cvy_moments_sample_std(const cvy_moments *m)
{
    return m->n > 1 ? sqrt(m->m2 / (m->n - 1)) : 0;
}

/* Writes a number with enough digits to tell it from another at this distance; six at least. */
enum { CVY_NUMBER_ROOM = 40 };
void cvy_number_write(double value, double distance, char text[CVY_NUMBER_ROOM]);
/* Writes a value that is an f32: an integer with all its digits, others with as few as give it back; six at least. */
void cvy_number_write_f32(double value, char text[CVY_NUMBER_ROOM]);

/* The distance from a number of this size to the next f32. */
static inline double cvy_f32_spacing(double size)
{
    const float x = (float)fabs(size);
    return (double)nextafterf(x, INFINITY) - (double)x;
}

/* Whether numbers of this size vary by so few steps of f32 that more may have been lost when they were read. */
static inline int cvy_moments_are_coarse(double size, double std, int are_integers)
{
    const double step = cvy_f32_spacing(size);
    if (are_integers && size < 1 << 24) /* all of them are f32 numbers */
        return 0;
    return std > 0 ? std < 4 * step : step >= 1;
}

#endif

/*
 * base_moments.c: mean and variance of numbers: see base_moments.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_moments.h"

void cvy_moments_merge(cvy_moments *a, const cvy_moments *b)
{
    const double n = a->n + b->n, delta = b->mean - a->mean;
    if (b->n == 0)
        return;
    a->mean += delta * b->n / n;
    a->m2 += b->m2 + delta * delta * a->n * b->n / n;
    a->n = n;
}

/* All numbers are at hand, so there are two passes, which have no division for each. */
cvy_moments cvy_moments_of_f32(const float *x, const float *mask, int64_t n)
{
    cvy_moments m = {0};
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (!mask || mask[i] > 0) {
            sum += (double)x[i];
            m.n++;
        }
    m.mean = m.n > 0 ? sum / m.n : 0;
    for (int64_t i = 0; i < n; i++)
        if (!mask || mask[i] > 0)
            m.m2 += ((double)x[i] - m.mean) * ((double)x[i] - m.mean);
    return m;
}

cvy_moments cvy_moments_of_f64(const double *x, int64_t n)
{
    cvy_moments m = {0};
    for (int64_t i = 0; i < n; i++)
        cvy_moments_add(&m, x[i]);
    return m;
}

/*
 * base_moments.c: mean and variance of numbers: see base_moments.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_moments.h"

#include <stdio.h>
#include <stdlib.h>

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

void cvy_number_write(double value, double distance, char text[CVY_NUMBER_ROOM])
{
    const double size = value != 0 ? log10(fabs(value)) : 0,
                 digits = distance > 0 ? ceil(size - log10(distance)) + 1 : 0;
    if (size >= 5 && size < 12) /* as people write it, without an exponent */
        snprintf(text, CVY_NUMBER_ROOM, "%.*f", (int)fmin(fmax(digits - floor(size) - 1, 0), 12), value);
    else
        snprintf(text, CVY_NUMBER_ROOM, "%.*g", (int)fmin(fmax(digits, 6), 17), value);
}

void cvy_number_write_f32(double value, char text[CVY_NUMBER_ROOM])
{
    if (value == floor(value) && fabs(value) < 1e12) {
        snprintf(text, CVY_NUMBER_ROOM, "%.0f", value);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, CVY_NUMBER_ROOM, "%.*g", digits, value);
        if (strtof(text, NULL) == (float)value)
            return;
    }
}

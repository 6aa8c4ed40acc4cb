/*
 * monitor_histogram.c: counts the values of tensors in buckets; see monitor_histogram.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_histogram.h"

#include <math.h>
#include <string.h>

void cvy_histogram_begin(cvy_histogram *h)
{
    memset(h, 0, sizeof *h);
    h->min = INFINITY;
    h->max = -INFINITY;
}

/* The bucket of a finite value: sign, exponent and three bits of the mantissa. */
static int bucket_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int size = (int)(bits >> 20 & 0x7ff);
    return value < 0 ? CVY_HISTOGRAM_HALF - 1 - size : CVY_HISTOGRAM_HALF + size;
}

static void add(cvy_histogram *h, double value)
{
    const float rounded = (float)value;
    if (!isfinite(rounded))
        return;
    h->min = fmin(h->min, value);
    h->max = fmax(h->max, value);
    h->sum += value;
    h->sum_squares += value * value;
    h->count[bucket_of(rounded)]++;
}

void cvy_histogram_add(cvy_histogram *h, const void *data, cvy_dtype dtype, int64_t n)
{
    const float *f32 = data;
    const double *f64 = data;
    for (int64_t i = 0; i < n && dtype == CVY_DTYPE_F32; i++)
        add(h, f32[i]);
    for (int64_t i = 0; i < n && dtype == CVY_DTYPE_F64; i++)
        add(h, f64[i]);
}

/* The smallest absolute value with these bits of exponent and mantissa; 2^128 follows the largest float. */
static double least(int size)
{
    const uint32_t bits = (uint32_t)size << 20;
    float value;
    memcpy(&value, &bits, sizeof value);
    return size >= CVY_HISTOGRAM_HALF ? ldexp(1, 128) : value;
}

double cvy_histogram_end(int bucket)
{
    return bucket < CVY_HISTOGRAM_HALF ? -least(CVY_HISTOGRAM_HALF - 1 - bucket)
                                       : least(bucket - CVY_HISTOGRAM_HALF + 1);
}

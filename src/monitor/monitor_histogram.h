/*
 * monitor_histogram.h: how the values of a tensor are distributed, in buckets that are the same for all tensors. So the
 * histograms of several ranks can be added.
 *
 * A bucket has the floats with one sign, one exponent and the same first three bits of the mantissa: eight buckets for
 * each power of two.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_HISTOGRAM_H
#define CVY_MONITOR_HISTOGRAM_H

#include "base/base_status.h"

enum { CVY_HISTOGRAM_HALF = 255 * 8, CVY_HISTOGRAM_BUCKETS = 2 * CVY_HISTOGRAM_HALF };

typedef struct cvy_histogram { /* of no values: see cvy_histogram_begin() */
    double min, max;           /* infinity and -infinity if there are no values */
    double sum, sum_squares;
    /* number of values, from the most negative bucket to the largest positive one; the first bucket of the second half
     * begins at 0 */
    int64_t count[CVY_HISTOGRAM_BUCKETS];
} cvy_histogram;

void cvy_histogram_begin(cvy_histogram *h);
/* Adds n values of dtype f32 or f64. Values that are not finite are left out. */
void cvy_histogram_add(cvy_histogram *h, const void *data, cvy_dtype dtype, int64_t n);
/* The upper end of a bucket, which it does not contain. (The largest buckets end at infinity in f32, so it is a
 * double.) */
double cvy_histogram_end(int bucket);

#endif

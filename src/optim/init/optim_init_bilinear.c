/*
 * initialiser bilinear: the filter of a bilinear interpolation, for a deconvolution that enlarges each channel.
 * It runs before step 0, once for each variable that names it.
 * Source: Long, Shelhamer and Darrell 2015 (fully convolutional networks); Caffe's filler "bilinear".
 *
 *     value[.., y, x] = (1 - |y / f - c|) * (1 - |x / f - c|)     f = ceil(positions / 2), c = (positions - 1) / (2 f)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_rng.h"
#include "optim/optim.h"

struct bilinear {
    int64_t positions;
};

static const cvy_option bilinear_opts[] = {
    {"positions", CVY_TYPE_INT, CVY_FIELD(bilinear, positions), NULL, "1..", "", "rows and columns of the filter"},
    {0},
};

static double bilinear_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    (void)init;
    (void)rng;
    const uint64_t n = (uint64_t)((const struct bilinear *)options)->positions;
    const double f = ceil((double)n / 2), c = (double)(n - 1) / (2 * f);
    const double x = (double)(i % n), y = (double)(i / n % n);
    return (1 - fabs(x / f - c)) * (1 - fabs(y / f - c));
}

CVY_INIT_DEFINE(bilinear) = {
    .name = "bilinear",
    .summary = "the filter of a bilinear interpolation",
    .options = bilinear_opts,
    .options_size = sizeof(struct bilinear),
    .value = bilinear_value,
};

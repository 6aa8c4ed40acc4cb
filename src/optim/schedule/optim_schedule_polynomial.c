/*
 * schedule polynomial: falls to its end value as a power of the remaining share of the run.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: as Caffe's poly; Chen et al. 2018.
 *
 *     factor = end + (1 - end) * (1 - samples / total) ^ power
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct polynomial {
    double power, end;
};

static const cvy_option polynomial_opts[] = {
    {"power", CVY_TYPE_REAL, CVY_FIELD(polynomial, power), "1", "0..", "", "exponent; 1 is a straight line"},
    {"end", CVY_TYPE_REAL, CVY_FIELD(polynomial, end), "0", "0..", "", "factor at the end of the run"},
    {0},
};

static double polynomial_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)epoch_samples;
    const struct polynomial *o = options;
    const double rest = total > 0 && samples < total ? 1 - samples / total : 0;
    return o->end + (1 - o->end) * pow(rest, o->power);
}

CVY_SCHEDULE_DEFINE(polynomial) = {
    .name = "polynomial",
    .summary = "falls to its end as a power of the rest of the run",
    .options = polynomial_opts,
    .options_size = sizeof(struct polynomial),
    .factor = polynomial_factor,
};

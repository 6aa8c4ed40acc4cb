/*
 * schedule inverse: falls as an inverse power.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: as Caffe's inv; Bottou 2010 for power 1.
 *
 *     factor = (1 + gamma * samples / every) ^ -power
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct inverse {
    double every, gamma, power;
};

static const cvy_option inverse_opts[] = {
    {"every", CVY_TYPE_REAL, CVY_FIELD(inverse, every), "0", "0..", "samples", "period; 0 is one epoch"},
    {"gamma", CVY_TYPE_REAL, CVY_FIELD(inverse, gamma), "1", "0..", "", "growth of the divisor in a period"},
    {"power", CVY_TYPE_REAL, CVY_FIELD(inverse, power), "0.75", "0..", "", "exponent"},
    {0},
};

static double inverse_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)total;
    const struct inverse *o = options;
    return pow(1 + o->gamma * samples / (o->every > 0 ? o->every : epoch_samples), -o->power);
}

CVY_SCHEDULE_DEFINE(inverse) = {
    .name = "inverse",
    .summary = "falls as an inverse power",
    .options = inverse_opts,
    .options_size = sizeof(struct inverse),
    .factor = inverse_factor,
};

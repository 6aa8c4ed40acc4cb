/*
 * schedule exponential: falls continuously, by a constant factor in each period.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: as Caffe's exp, in periods of samples.
 *
 *     factor = factor ^ (samples / every)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct exponential {
    double every, factor;
};

static const cvy_option exponential_opts[] = {
    {"every", CVY_TYPE_REAL, CVY_FIELD(exponential, every), "0", "0..", "samples", "period; 0 is one epoch"},
    {"factor", CVY_TYPE_REAL, CVY_FIELD(exponential, factor), "0.95", ">0", "", "factor on the rate in each period"},
    {0},
};

static double exponential_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)total;
    const struct exponential *o = options;
    return pow(o->factor, samples / (o->every > 0 ? o->every : epoch_samples));
}

CVY_SCHEDULE_DEFINE(exponential) = {
    .name = "exponential",
    .summary = "falls exponentially, by a factor in each period",
    .options = exponential_opts,
    .options_size = sizeof(struct exponential),
    .factor = exponential_factor,
};

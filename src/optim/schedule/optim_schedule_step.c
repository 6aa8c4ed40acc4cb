/*
 * schedule step: falls by a factor at equal intervals.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: Krizhevsky, Sutskever and Hinton 2012, as in Caffe and PyTorch
 * (StepLR).
 *
 *     factor = factor ^ floor(samples / every)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct step {
    double every, factor;
};

static const cvy_option step_opts[] = {
    {"every", CVY_TYPE_REAL, CVY_FIELD(step, every), NULL, ">0", "samples", "length between two reductions"},
    {"factor", CVY_TYPE_REAL, CVY_FIELD(step, factor), "0.1", ">0", "", "factor on the rate"},
    {0},
};

static double step_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)total;
    (void)epoch_samples;
    const struct step *o = options;
    return pow(o->factor, floor(samples / o->every));
}

CVY_SCHEDULE_DEFINE(step) = {
    .name = "step",
    .summary = "falls by a factor at equal intervals",
    .options = step_opts,
    .options_size = sizeof(struct step),
    .factor = step_factor,
};

/*
 * schedule sigmoid: falls or rises along a sigmoid.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: as Caffe's sigmoid.
 *
 *     factor = 1 / (1 + exp(-slope * (samples - middle) / every))
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct sigmoid {
    double middle, every, slope;
};

static const cvy_option sigmoid_opts[] = {
    {"middle", CVY_TYPE_REAL, CVY_FIELD(sigmoid, middle), NULL, "0..", "samples", "where the factor is 1/2"},
    {"every", CVY_TYPE_REAL, CVY_FIELD(sigmoid, every), "0", "0..", "samples", "period; 0 is one epoch"},
    {"slope", CVY_TYPE_REAL, CVY_FIELD(sigmoid, slope), "-1", "", "",
     "growth of the exponent in a period; negative: the factor falls"},
    {0},
};

static double sigmoid_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)total;
    const struct sigmoid *o = options;
    return 1 / (1 + exp(-o->slope * (samples - o->middle) / (o->every > 0 ? o->every : epoch_samples)));
}

CVY_SCHEDULE_DEFINE(sigmoid) = {
    .name = "sigmoid",
    .summary = "follows a sigmoid, down or up",
    .options = sigmoid_opts,
    .options_size = sizeof(struct sigmoid),
    .factor = sigmoid_factor,
};

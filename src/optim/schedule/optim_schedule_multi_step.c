/*
 * schedule multi_step: falls by a factor at given points of the run.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: as Caffe's multistep and PyTorch's MultiStepLR.
 *
 *     factor = product of the factors of the points at or before samples
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct multi_step {
    cvy_reals at, factor;
};

static const cvy_option multi_step_opts[] = {
    {"at", CVY_TYPE_REALS, CVY_FIELD(multi_step, at), NULL, "0..", "samples", "when the rate is reduced"},
    {"factor", CVY_TYPE_REALS, CVY_FIELD(multi_step, factor), "0.1", ">0", "",
     "factor on the rate, one for all times or one for each"},
    {0},
};

static double multi_step_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)total;
    (void)epoch_samples;
    const struct multi_step *o = options;
    double factor = 1;
    if (o->factor.count == 1) {
        int passed = 0;
        for (int i = 0; i < o->at.count; i++)
            passed += samples >= o->at.at[i];
        return pow(o->factor.at[0], passed);
    }
    for (int i = 0; i < o->at.count; i++)
        factor *= samples >= o->at.at[i] ? o->factor.at[i] : 1;
    return factor;
}

static cvy_status multi_step_check(const void *options)
{
    const struct multi_step *o = options;
    CVY_CHECK(o->factor.count == 1 || o->factor.count == o->at.count, CVY_E_CONFIG,
              "multi_step has %d factors and %d times, expected one factor or one for each time", o->factor.count,
              o->at.count);
    return CVY_OK;
}

CVY_SCHEDULE_DEFINE(multi_step) = {
    .name = "multi_step",
    .summary = "falls by a factor at given times",
    .options = multi_step_opts,
    .options_size = sizeof(struct multi_step),
    .factor = multi_step_factor,
    .check = multi_step_check,
};

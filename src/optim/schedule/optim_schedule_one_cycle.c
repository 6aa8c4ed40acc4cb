/*
 * schedule one_cycle: rises to the base rate, then falls far below it.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: Smith and Topin 2018, in the form of PyTorch's OneCycleLR (the base
 * rate is its max_lr; momentum does not change).
 *
 *     factor rises from 1 / div to 1 in the share `rise` of the run, then falls to 1 / (div * final_div),
 *     both along half a cosine
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct one_cycle {
    double rise, div, final_div;
};

static const cvy_option one_cycle_opts[] = {
    {"rise", CVY_TYPE_REAL, CVY_FIELD(one_cycle, rise), "0.3", "0..1", "", "share of the run in which the rate rises"},
    {"div", CVY_TYPE_REAL, CVY_FIELD(one_cycle, div), "25", "1..", "", "base rate divided by the first rate"},
    {"final_div", CVY_TYPE_REAL, CVY_FIELD(one_cycle, final_div), "1e4", "1..", "",
     "first rate divided by the last rate"},
    {0},
};

static double between(double from, double to, double done)
{
    return to + (from - to) * (1 + cos(3.14159265358979323846 * done)) / 2;
}

static double one_cycle_factor(const void *options, double samples, double total, double epoch_samples)
{
    const struct one_cycle *o = options;
    const double first = 1 / o->div, last = first / o->final_div,
                 done = total > 0 && samples < total ? samples / total : 1;
    (void)epoch_samples;
    return done < o->rise ? between(first, 1, done / o->rise)
           : o->rise < 1  ? between(1, last, (done - o->rise) / (1 - o->rise))
                          : 1;
}

CVY_SCHEDULE_DEFINE(one_cycle) = {
    .name = "one_cycle",
    .summary = "rises to the base rate, then falls far below it",
    .options = one_cycle_opts,
    .options_size = sizeof(struct one_cycle),
    .factor = one_cycle_factor,
};

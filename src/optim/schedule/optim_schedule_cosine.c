/*
 * schedule cosine: falls to its end value along half a cosine.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size. Source: Loshchilov and Hutter 2017, without restarts.
 *
 *     factor = end + (1 - end) * (1 + cos(pi * samples / total)) / 2
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim.h"

struct cosine {
    double end;
};

static const cvy_option cosine_opts[] = {
    {"end", CVY_TYPE_REAL, CVY_FIELD(cosine, end), "0", "0..", "", "factor at the end of the run"},
    {0},
};

static double cosine_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)epoch_samples;
    const struct cosine *o = options;
    const double pi = 3.14159265358979323846, done = total > 0 && samples < total ? samples / total : 1;
    return o->end + (1 - o->end) * (1 + cos(pi * done)) / 2;
}

CVY_SCHEDULE_DEFINE(cosine) = {
    .name = "cosine",
    .summary = "falls to its end along half a cosine",
    .options = cosine_opts,
    .options_size = sizeof(struct cosine),
    .factor = cosine_factor,
};

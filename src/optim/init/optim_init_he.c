/*
 * initialiser he: keeps the variance of activations across layers with ReLU.
 * It runs before step 0, once for each variable that names it.
 * Source: He, Zhang, Ren and Sun 2015 (also called MSRA or Kaiming).
 *
 *     value: variance 2 / ((1 + slope^2) * fan), uniform or gaussian
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_rng.h"
#include "optim/optim.h"

struct he {
    int gaussian; /* index into the words of `distribution` */
    int fan;      /* index into the words of `fan` */
    double slope;
};

static const cvy_option he_opts[] = {
    {"distribution", CVY_TYPE_CHOICE, CVY_FIELD(he, gaussian), "gaussian", "uniform|gaussian", "",
     "shape of the distribution"},
    {"fan", CVY_TYPE_CHOICE, CVY_FIELD(he, fan), "in", "in|out|average", "",
     "keep the variance forward or backward, or the average of both"},
    {"slope", CVY_TYPE_REAL, CVY_FIELD(he, slope), "0", "0..", "", "slope of the leaky ReLU that follows"},
    {0},
};

static double he_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    const struct he *o = options;
    const double in = (double)init->fan_in, out = (double)init->fan_out;
    const double fan = o->fan == 0 ? in : o->fan == 1 ? out : (in + out) / 2;
    const double std = sqrt(2 / ((1 + o->slope * o->slope) * fan));
    return o->gaussian ? std * cvy_rng_normal(rng, i) : sqrt(3.0) * std * (2 * cvy_rng_uniform(rng, i) - 1);
}

CVY_INIT_DEFINE(he) = {
    .name = "he",
    .summary = "keeps the variance of activations through rectified layers",
    .options = he_opts,
    .options_size = sizeof(struct he),
    .needs_fans = 1,
    .value = he_value,
};

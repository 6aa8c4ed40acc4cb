/*
 * initialiser xavier: keeps the variance of activations and gradients across linear layers.
 * It runs before step 0, once for each variable that names it.
 * Source: Glorot and Bengio 2010; Caffe's filler has fan: in.
 *
 *     value: variance gain^2 / fan, uniform or gaussian; fan: by default (fan_in + fan_out) / 2
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_rng.h"
#include "optim/optim.h"

struct xavier {
    int gaussian; /* index into the words of `distribution` */
    double gain;
    int fan; /* index into the words of `fan` */
};

static const cvy_option xavier_opts[] = {
    {"distribution", CVY_TYPE_CHOICE, CVY_FIELD(xavier, gaussian), "uniform", "uniform|gaussian", "",
     "shape of the distribution"},
    {"gain", CVY_TYPE_REAL, CVY_FIELD(xavier, gain), "1", ">0", "", "factor for the nonlinearity that follows"},
    {"fan", CVY_TYPE_CHOICE, CVY_FIELD(xavier, fan), "average", "average|in|out", "",
     "what is kept: the average of both, the variance forward, or backward"},
    {0},
};

static double xavier_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    const struct xavier *o = options;
    const double in = (double)init->fan_in, out = (double)init->fan_out;
    const double std = o->gain / sqrt(o->fan == 0 ? (in + out) / 2 : o->fan == 1 ? in : out);
    return o->gaussian ? std * cvy_rng_normal(rng, i) : sqrt(3.0) * std * (2 * cvy_rng_uniform(rng, i) - 1);
}

CVY_INIT_DEFINE(xavier) = {
    .name = "xavier",
    .summary = "keeps the variance of activations and gradients through linear layers",
    .options = xavier_opts,
    .options_size = sizeof(struct xavier),
    .needs_fans = 1,
    .value = xavier_value,
};

/*
 * initialiser xavier: keeps the variance of activations and gradients across linear layers.
 * It runs before step 0, once for each variable that names it.
 * Source: Glorot and Bengio 2010.
 *
 *     value: variance gain^2 * 2 / (fan_in + fan_out), uniform or gaussian
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_rng.h"
#include "optim/optim.h"

struct xavier {
    int gaussian; /* index into the words of `distribution` */
    double gain;
};

static const cvy_option xavier_opts[] = {
    {"distribution", CVY_TYPE_CHOICE, CVY_FIELD(xavier, gaussian), "uniform", "uniform|gaussian", "",
     "shape of the distribution"},
    {"gain", CVY_TYPE_REAL, CVY_FIELD(xavier, gain), "1", ">0", "", "factor for the nonlinearity that follows"},
    {0},
};

static double xavier_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    const struct xavier *o = options;
    const double std = o->gain * sqrt(2.0 / (double)(init->fan_in + init->fan_out));
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

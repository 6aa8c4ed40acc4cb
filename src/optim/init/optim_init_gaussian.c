/*
 * initialiser gaussian: normally distributed.
 * It runs before step 0, once for each variable that names it.
 *
 *     value = mean + std * z, z standard normal; 0 with the probability 1 - nonzero
 *
 * Few inputs of each output begin with a weight in the deep autoencoders of Martens 2010 ("sparse initialisation").
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "optim/optim.h"

struct gaussian {
    double mean, std, nonzero;
};

static const cvy_option gaussian_opts[] = {
    {"mean", CVY_TYPE_REAL, CVY_FIELD(gaussian, mean), "0", "", "", "mean"},
    {"std", CVY_TYPE_REAL, CVY_FIELD(gaussian, std), "0.01", "0..", "", "standard deviation"},
    {"nonzero", CVY_TYPE_REAL, CVY_FIELD(gaussian, nonzero), "1", "0..1", "", "share of the elements that are not 0"},
    {0},
};

static double gaussian_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    (void)init;
    const struct gaussian *o = options;
    const uint64_t choice = i | (uint64_t)1 << 63; /* a number of its own */
    if (o->nonzero < 1 && cvy_rng_uniform(rng, choice) >= o->nonzero)
        return 0;
    return o->mean + o->std * cvy_rng_normal(rng, i);
}

CVY_INIT_DEFINE(gaussian) = {
    .name = "gaussian",
    .summary = "normally distributed",
    .options = gaussian_opts,
    .options_size = sizeof(struct gaussian),
    .value = gaussian_value,
};

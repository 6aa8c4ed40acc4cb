/*
 * initialiser gaussian: normally distributed.
 * It runs before step 0, once for each variable that names it.
 *
 *     value = mean + std * z, z standard normal
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "optim/optim.h"

struct gaussian {
    double mean, std;
};

static const cvy_option gaussian_opts[] = {
    {"mean", CVY_TYPE_REAL, CVY_FIELD(gaussian, mean), "0", "", "", "mean"},
    {"std", CVY_TYPE_REAL, CVY_FIELD(gaussian, std), "0.01", "0..", "", "standard deviation"},
    {0},
};

static double gaussian_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    (void)init;
    const struct gaussian *o = options;
    return o->mean + o->std * cvy_rng_normal(rng, i);
}

CVY_INIT_DEFINE(gaussian) = {
    .name = "gaussian",
    .summary = "normally distributed",
    .options = gaussian_opts,
    .options_size = sizeof(struct gaussian),
    .value = gaussian_value,
};

/*
 * initialiser uniform: uniformly distributed between two bounds.
 * It runs before step 0, once for each variable that names it.
 *
 *     value = min + (max - min) * u, u uniform in [0, 1)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "optim/optim.h"

struct uniform {
    double min, max;
};

static const cvy_option uniform_opts[] = {
    {"min", CVY_TYPE_REAL, CVY_FIELD(uniform, min), "-0.05", "", "", "lower bound"},
    {"max", CVY_TYPE_REAL, CVY_FIELD(uniform, max), "0.05", "", "", "upper bound"},
    {0},
};

static double uniform_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    (void)init;
    const struct uniform *o = options;
    return o->min + (o->max - o->min) * cvy_rng_uniform(rng, i);
}

CVY_INIT_DEFINE(uniform) = {
    .name = "uniform",
    .summary = "uniform between two bounds",
    .options = uniform_opts,
    .options_size = sizeof(struct uniform),
    .value = uniform_value,
};

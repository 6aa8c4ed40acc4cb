/*
 * initialiser constant: the same value for every element.
 * It runs before step 0, once for each variable that names it.
 *
 *     value = value
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "optim/optim.h"

struct constant {
    double value;
};

static const cvy_option constant_opts[] = {
    {"value", CVY_TYPE_REAL, CVY_FIELD(constant, value), "0", "", "", "value of every element"},
    {0},
};

static double constant_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    (void)init;
    (void)rng;
    (void)i;
    const struct constant *o = options;
    return o->value;
}

CVY_INIT_DEFINE(constant) = {
    .name = "constant",
    .summary = "the same value everywhere",
    .options = constant_opts,
    .options_size = sizeof(struct constant),
    .value = constant_value,
};

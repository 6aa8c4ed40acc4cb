/*
 * initialiser positive_unit_sum: positive numbers, whose sum over the inputs of each output is 1.
 * It runs before step 0, once for each variable that names it. Outputs then begin as weighted means of their inputs.
 * Source: Caffe's filler "positive_unitball".
 *
 *     value = u[i] / sum of u over the elements of i's row, u uniform in [0, 1)
 *
 * Each element adds up its row again, as it may depend on its own number only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "optim/optim.h"

struct unit_sum {
    int64_t inputs;
};

static const cvy_option unit_sum_opts[] = {
    {"inputs", CVY_TYPE_INT, CVY_FIELD(unit_sum, inputs), "0", "0..", "",
     "length of a row; 0: the number of inputs of an output"},
    {0},
};

static double unit_sum_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    const struct unit_sum *o = options;
    const uint64_t n = (uint64_t)(o->inputs ? o->inputs : init->fan_in), first = i / n * n;
    double sum = 0;
    for (uint64_t k = first; k < first + n; k++)
        sum += cvy_rng_uniform(rng, k);
    return cvy_rng_uniform(rng, i) / sum;
}

CVY_INIT_DEFINE(positive_unit_sum) = {
    .name = "positive_unit_sum",
    .summary = "positive, with the sum 1 over the inputs of each output",
    .options = unit_sum_opts,
    .options_size = sizeof(struct unit_sum),
    .needs_fans = 1,
    .value = unit_sum_value,
};

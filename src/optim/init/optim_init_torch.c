/*
 * initialiser torch: PyTorch's default for weights and biases of linear and convolution layers.
 * It runs before step 0, once for each variable that names it.
 * Source: PyTorch's kaiming_uniform_(a = sqrt(5)) for weights, which gives the same bound as PyTorch's biases have.
 *
 *     value = (2 u - 1) / sqrt(fan_in), u uniform in [0, 1)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_rng.h"
#include "optim/optim.h"

static double torch_value(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i)
{
    (void)options;
    return (2 * cvy_rng_uniform(rng, i) - 1) / sqrt((double)init->fan_in);
}

CVY_INIT_DEFINE(torch) = {
    .name = "torch",
    .summary = "as PyTorch fills its linear and convolution layers, weights and biases",
    .needs_fans = 1,
    .value = torch_value,
};

/*
 * schedule constant: the base rate throughout.
 * It is called before each step and gives one factor on the base rate. The factor is a function of the samples seen, so
 * it does not depend on the batch size.
 *
 *     factor = 1
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "optim/optim.h"

static double constant_factor(const void *options, double samples, double total, double epoch_samples)
{
    (void)options;
    (void)samples;
    (void)total;
    (void)epoch_samples;
    return 1;
}

CVY_SCHEDULE_DEFINE(constant) = {
    .name = "constant",
    .summary = "the base rate throughout",
    .factor = constant_factor,
};

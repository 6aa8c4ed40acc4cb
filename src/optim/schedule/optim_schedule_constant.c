/*
 * schedule constant: the base rate throughout.
 * Before each step: one factor on the base rate, as a function of samples seen, so that it does not change with the
 * batch.
 *
 *     factor = 1
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

/*
 * softplus: a smooth form of relu whose values are above zero, for scales and variances. Source: Dugas et al. 2001; the
 * threshold is PyTorch's.
 *
 *     dst  = log(1 + exp(beta * src)) / beta, or src if beta * src > threshold
 *     dsrc = ddst / (1 + exp(-beta * src)), or ddst if beta * src > threshold
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/pointwise/op_activation.h"

static const cvy_option softplus_opts[] = {
    {"beta", CVY_TYPE_REAL, CVY_FIELD(cvy_softplus, beta), "1", ">0", "", "sharpness of the bend at 0"},
    {"threshold", CVY_TYPE_REAL, CVY_FIELD(cvy_softplus, threshold), "20", "", "",
     "if beta times the source is above it, the result is the source"},
    {0},
};

static double softplus_value(const void *options, double x)
{
    const struct cvy_softplus *o = options;
    const double z = o->beta * x;
    return z > o->threshold ? x : (fmax(z, 0) + log1p(exp(-fabs(z)))) / o->beta;
}

static double softplus_slope(const void *options, double x)
{
    const struct cvy_softplus *o = options;
    const double z = o->beta * x;
    return z > o->threshold ? 1 : 1 / (1 + exp(-z));
}

static const cvy_activation_def softplus_family = {"softplus_grad", softplus_value, softplus_slope, .flop = 30,
                                                   .slope_flop = 13};

static const cvy_sample softplus_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4", .options = "beta: 2"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(softplus) = {
    .name = "softplus",
    .summary = "smooth rectified linear unit, log(1 + exp(x))",
    .options = softplus_opts,
    .options_size = sizeof(struct cvy_softplus),
    /* not elementwise, because softplus(0) is not 0 */
    .family = &softplus_family,
    .samples = softplus_samples,
    CVY_ACTIVATION_FIELDS,
};

static const cvy_sample softplus_grad_samples[] = {
    {.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4", .options = "beta: 2, threshold: 0.5"}, {0}};

CVY_OP_DEFINE(softplus_grad) = {
    .name = "softplus_grad",
    .summary = "gradient of softplus",
    .options = softplus_opts,
    .options_size = sizeof(struct cvy_softplus),
    .family = &softplus_family,
    .samples = softplus_grad_samples,
    CVY_ACTIVATION_GRAD_FIELDS,
};

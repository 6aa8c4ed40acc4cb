/*
 * elu: exponential linear unit: it falls smoothly to -alpha for negative values. Networks have it after convolutions
 * and fully connected layers. Source: Clevert, Unterthiner and Hochreiter 2016.
 *
 *     dst  = src if src > 0, else alpha * (exp(src) - 1)
 *     dsrc = ddst if dst > 0, else ddst * (dst + alpha)      (alpha >= 0, so dst has the sign of src)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/pointwise/op_activation.h"

static const cvy_option elu_opts[] = {
    {"alpha", CVY_TYPE_REAL, CVY_FIELD(cvy_elu, alpha), "1", "0..", "",
     "the value for large negative values is -alpha"},
    {0},
};

static double elu_value(const void *options, double x)
{
    const struct cvy_elu *o = options;
    return x > 0 ? x : o->alpha * expm1(x);
}

static double elu_slope(const void *options, double y)
{
    const struct cvy_elu *o = options;
    return y > 0 ? 1 : y + o->alpha;
}

static const cvy_activation_def elu_family = {"elu_grad",    elu_value,  elu_slope,
                                              .from_dst = 1, .flop = 12, .slope_flop = 1};

static const cvy_sample elu_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4", .options = "alpha: 0.3"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(elu) = {
    .name = "elu",
    .summary = "exponential linear unit",
    .options = elu_opts,
    .options_size = sizeof(struct cvy_elu),
    .flags = CVY_OP_ELEMENTWISE,
    .family = &elu_family,
    .samples = elu_samples,
    CVY_ACTIVATION_FIELDS,
};

static const cvy_sample elu_grad_samples[] = {
    {.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4", .options = "alpha: 0.3"}, {0}};

CVY_OP_DEFINE(elu_grad) = {
    .name = "elu_grad",
    .summary = "gradient of elu",
    .options = elu_opts,
    .options_size = sizeof(struct cvy_elu),
    .family = &elu_family,
    .samples = elu_grad_samples,
    CVY_ACTIVATION_GRAD_FIELDS,
};

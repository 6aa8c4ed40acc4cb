/*
 * silu: sigmoid-weighted linear unit, also called swish. EfficientNet and many later convolutional networks have it
 * instead of relu. Source: Elfwing, Uchibe and Doya 2018; Ramachandran, Zoph and Le 2017.
 *
 *     dst  = src * s                                  s = 1 / (1 + exp(-src))
 *     dsrc = ddst * s * (1 + src * (1 - s))
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/pointwise/op_activation.h"

static double silu_value(const void *options, double x)
{
    (void)options;
    return x / (1 + exp(-x));
}

static double silu_slope(const void *options, double x)
{
    (void)options;
    const double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}

static const cvy_activation_def silu_family = {"silu_grad", silu_value, silu_slope, .flop = 13, .slope_flop = 16};

static const cvy_sample silu_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(silu) = {
    .name = "silu",
    .summary = "x * sigmoid(x), also called swish",
    .flags = CVY_OP_ELEMENTWISE,
    .family = &silu_family,
    .samples = silu_samples,
    CVY_ACTIVATION_FIELDS,
};

static const cvy_sample silu_grad_samples[] = {{.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4"}, {0}};

CVY_OP_DEFINE(silu_grad) = {
    .name = "silu_grad",
    .summary = "gradient of silu",
    .family = &silu_family,
    .samples = silu_grad_samples,
    CVY_ACTIVATION_GRAD_FIELDS,
};

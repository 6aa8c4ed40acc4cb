/*
 * hard_swish: an approximation of silu by pieces of a parabola, without an exponential. MobileNetV3 has it. Source:
 * Howard et al. 2019, section 5.2.
 *
 *     dst  = src * min(max(src + 3, 0), 6) / 6
 *     dsrc = ddst * (0 if src <= -3, 1 if src >= 3, else src / 3 + 1/2)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_activation.h"

static double hard_swish_value(const void *options, double x)
{
    (void)options;
    return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
}

static double hard_swish_slope(const void *options, double x)
{
    (void)options;
    return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
}

static const cvy_activation_def hard_swish_family = {"hard_swish_grad", hard_swish_value, hard_swish_slope, .flop = 5,
                                                     .slope_flop = 4};

static const cvy_sample hard_swish_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(hard_swish) = {
    .name = "hard_swish",
    .summary = "x * min(max(x + 3, 0), 6) / 6",
    .flags = CVY_OP_ELEMENTWISE,
    .family = &hard_swish_family,
    .samples = hard_swish_samples,
    CVY_ACTIVATION_FIELDS,
};

static const cvy_sample hard_swish_grad_samples[] = {{.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4"}, {0}};

CVY_OP_DEFINE(hard_swish_grad) = {
    .name = "hard_swish_grad",
    .summary = "gradient of hard_swish",
    .family = &hard_swish_family,
    .samples = hard_swish_grad_samples,
    CVY_ACTIVATION_GRAD_FIELDS,
};

/*
 * gelu: Gaussian error linear unit. Transformers and ConvNeXt have it. Source: Hendrycks and Gimpel 2016.
 *
 *     dst  = src * P(src)                                    P: distribution function of the normal distribution
 *     dsrc = ddst * (P(src) + src * p(src))                  p: its density
 *
 * With approximate: tanh
 *
 *     P(x) = (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2         p: the derivative of this P
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/pointwise/op_activation.h"

static const cvy_option gelu_opts[] = {
    {"approximate", CVY_TYPE_CHOICE, CVY_FIELD(cvy_gelu, tanh), "none", "none|tanh", "",
     "none: the error function; tanh: the approximation that older transformers were trained with"},
    {0},
};

/* The argument of the hyperbolic tangent. */
static double tanh_argument(double x)
{
    return sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

static double distribution(const struct cvy_gelu *o, double x)
{
    return o->tanh ? 0.5 + 0.5 * tanh(tanh_argument(x)) : 0.5 * erfc(-x * sqrt(0.5));
}

static double density(const struct cvy_gelu *o, double x)
{
    if (!o->tanh)
        return exp(-0.5 * x * x) * sqrt(0.5 / M_PI);
    const double t = tanh(tanh_argument(x));
    return (1 - t) * (1 + t) * sqrt(0.5 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

static double gelu_value(const void *options, double x)
{
    return x * distribution(options, x);
}

static double gelu_slope(const void *options, double x)
{
    return distribution(options, x) + x * density(options, x);
}

static const cvy_activation_def gelu_family = {"gelu_grad", gelu_value, gelu_slope, .flop = 30, .slope_flop = 45};

static const cvy_sample gelu_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4", .options = "approximate: tanh"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(gelu) = {
    .name = "gelu",
    .summary = "Gaussian error linear unit",
    .options = gelu_opts,
    .options_size = sizeof(struct cvy_gelu),
    .flags = CVY_OP_ELEMENTWISE,
    .family = &gelu_family,
    .samples = gelu_samples,
    CVY_ACTIVATION_FIELDS,
};

static const cvy_sample gelu_grad_samples[] = {
    {.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4", .options = "approximate: tanh"}, {0}};

CVY_OP_DEFINE(gelu_grad) = {
    .name = "gelu_grad",
    .summary = "gradient of gelu",
    .options = gelu_opts,
    .options_size = sizeof(struct cvy_gelu),
    .family = &gelu_family,
    .samples = gelu_grad_samples,
    CVY_ACTIVATION_GRAD_FIELDS,
};

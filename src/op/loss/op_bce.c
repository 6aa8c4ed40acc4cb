/*
 * bce: binary cross-entropy with logits, for two classes with one output, or several independent yes-or-no outputs. It
 * is the end of forward. Source: as PyTorch's BCEWithLogitsLoss; the formula does not overflow for any x. The target is
 * a probability, or an integer 0 or 1.
 *
 *     term   = (1 - t) x + q (log(1 + exp(-|x|)) + max(-x, 0)), with output x, target t, q = 1 + (pos_weight - 1) t
 *     dterm  = (1 - t) - q (1 - s), with s = 1 / (1 + exp(-x))
 *     loss   = the weighted mean of the terms, see op_loss.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_loss.h"

static const cvy_option bce_opts[] = {
    {"pos_weight", CVY_TYPE_REAL, CVY_FIELD(cvy_loss_each, parameter), "1", "0..", "",
     "factor on the terms of positive targets"},
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double bce_term(double pos_weight, double x, double t)
{
    const double q = 1 + (pos_weight - 1) * t;
    return (1 - t) * x + q * (log1p(exp(-fabs(x))) + fmax(-x, 0));
}

static double bce_slope(double pos_weight, double x, double t)
{
    const double q = 1 + (pos_weight - 1) * t;
    return (1 - t) - q / (1 + exp(x));
}

static const cvy_loss_each_def bce_each = {.grad = "bce_grad", .term = bce_term, .slope = bce_slope, .target_max = 1};

static const cvy_sample bce_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "6x1,6:i32,scalar:f64,6", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(bce) = {
    .name = "bce",
    .summary = "binary cross-entropy with logits",
    .options = bce_opts,
    .family = &bce_each,
    CVY_LOSS_EACH_FIELDS,
    .samples = bce_samples,
};

static const cvy_sample bce_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,6x1,6:i32,scalar:f64,6", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(bce_grad) = {
    .name = "bce_grad",
    .summary = "gradient of bce",
    .options = bce_opts,
    .family = &bce_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = bce_grad_samples,
};

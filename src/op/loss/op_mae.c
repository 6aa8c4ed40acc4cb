/*
 * mae: mean absolute error. It is the end of forward, for regression in which outliers should not dominate. Source:
 * least absolute deviations, as PyTorch's L1Loss; the derivative at 0 is 0.
 *
 *     term   = |output - target|
 *     dterm  = sign(output - target)
 *     loss   = the weighted mean of the terms, see op_loss.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_loss.h"

static const cvy_option mae_opts[] = {
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double mae_term(double parameter, double x, double t)
{
    (void)parameter;
    return fabs(x - t);
}

/* 0 for equal numbers, NaN if one of them is NaN. */
static double mae_slope(double parameter, double x, double t)
{
    (void)parameter;
    return x > t ? 1 : x < t ? -1 : x - t;
}

static const cvy_loss_each_def mae_each = {.grad = "mae_grad", .term = mae_term, .slope = mae_slope, .symmetric = 1};

static const cvy_sample mae_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mae) = {
    .name = "mae",
    .summary = "mean absolute error",
    .options = mae_opts,
    .family = &mae_each,
    CVY_LOSS_EACH_FIELDS,
    .samples = mae_samples,
};

static const cvy_sample mae_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mae_grad) = {
    .name = "mae_grad",
    .summary = "gradient of mae",
    .options = mae_opts,
    .family = &mae_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = mae_grad_samples,
};

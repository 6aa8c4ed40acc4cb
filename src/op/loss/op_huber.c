/*
 * huber: Huber error: squared near the target, absolute far from it. It is the end of forward, for regression in which
 * outliers should not dominate. Source: Huber 1964, as PyTorch's HuberLoss.
 *
 *     term   = d^2 / 2 if |d| <= delta, else delta (|d| - delta / 2), with d = output - target
 *     dterm  = d, clamped to -delta .. delta
 *     loss   = the weighted mean of the terms, see op_loss.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_loss.h"

static const cvy_option huber_opts[] = {
    {"delta", CVY_TYPE_REAL, CVY_FIELD(cvy_loss_each, parameter), "1", ">0", "",
     "difference above which the error grows linearly"},
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double huber_term(double delta, double x, double t)
{
    const double d = fabs(x - t);
    return d <= delta ? d * d / 2 : delta * (d - delta / 2);
}

/* NaN stays NaN. */
static double huber_slope(double delta, double x, double t)
{
    const double d = x - t;
    return d > delta ? delta : d < -delta ? -delta : d;
}

static const cvy_loss_each_def huber_each = {
    .grad = "huber_grad", .term = huber_term, .slope = huber_slope, .symmetric = 1};

static const cvy_sample huber_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .options = "delta: 0.2, loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(huber) = {
    .name = "huber",
    .summary = "Huber error: squared near the target, absolute far from it",
    .options = huber_opts,
    .family = &huber_each,
    CVY_LOSS_EACH_FIELDS,
    .samples = huber_samples,
};

static const cvy_sample huber_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .options = "delta: 0.2, loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(huber_grad) = {
    .name = "huber_grad",
    .summary = "gradient of huber",
    .options = huber_opts,
    .family = &huber_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = huber_grad_samples,
};

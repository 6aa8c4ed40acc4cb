/*
 * mse: mean squared error. It is the end of forward, for regression. Source: least squares; the mean over elements and
 * samples, without a factor of one half, as PyTorch's MSELoss.
 *
 *     term   = (output - target)^2
 *     dterm  = 2 (output - target)
 *     loss   = the weighted mean of the terms, see op_loss.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_loss.h"

static const cvy_option mse_opts[] = {
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double mse_term(double parameter, double x, double t)
{
    (void)parameter;
    return (x - t) * (x - t);
}

static double mse_slope(double parameter, double x, double t)
{
    (void)parameter;
    return 2 * (x - t);
}

static const cvy_loss_each_def mse_each = {.grad = "mse_grad", .term = mse_term, .slope = mse_slope, .symmetric = 1};

static const cvy_sample mse_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mse) = {
    .name = "mse",
    .summary = "mean squared error",
    .options = mse_opts,
    .family = &mse_each,
    CVY_LOSS_EACH_FIELDS,
    .samples = mse_samples,
};

static const cvy_sample mse_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x3x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x2,2x3x4x2,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mse_grad) = {
    .name = "mse_grad",
    .summary = "gradient of mse",
    .options = mse_opts,
    .family = &mse_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = mse_grad_samples,
};

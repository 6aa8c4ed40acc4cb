/*
 * mean: makes the result of any layer a loss, such as that of an operator of the program's own, which is a number for
 * each sample (convoy/operator.h).
 *
 *     term  = output
 *     dterm = 1
 *     loss  = the weighted mean of the terms, see op_loss.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_loss.h"

static const cvy_option mean_opts[] = {
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double mean_term(double parameter, double x, double t)
{
    (void)parameter;
    (void)t;
    return x;
}

static double mean_slope(double parameter, double x, double t)
{
    (void)parameter;
    (void)x;
    (void)t;
    return 1;
}

static const cvy_loss_each_def mean_each = {
    .grad = "mean_grad", .term = mean_term, .slope = mean_slope, .no_target = 1};

static const cvy_sample mean_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64"},
    {.src = "3x7,3x7,scalar:f64,3", .options = "loss_weight: 0.5"},
    {0},
};

CVY_OP_DEFINE(mean) = {
    .name = "mean",
    .summary = "mean of the output: makes the result of any layer a loss",
    .options = mean_opts,
    .family = &mean_each,
    CVY_LOSS_EACH_FIELDS,
    .samples = mean_samples,
};

static const cvy_sample mean_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64"},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .options = "loss_weight: 0.5"},
    {0},
};

CVY_OP_DEFINE(mean_grad) = {
    .name = "mean_grad",
    .summary = "gradient of mean",
    .options = mean_opts,
    .family = &mean_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = mean_grad_samples,
};

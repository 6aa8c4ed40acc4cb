/*
 * wasserstein: the loss of a critic, which scores real samples higher than generated ones. It is linear in the output.
 * Source: Arjovsky, Chintala and Bottou 2017.
 *
 *     term  = -target * output      the target is 1 for samples whose score is to rise, -1 for those to fall
 *     dterm = -target
 *     loss  = the weighted mean of the terms, see op_loss.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_loss.h"

static const cvy_option wasserstein_opts[] = {
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double wasserstein_term(double parameter, double x, double t)
{
    (void)parameter;
    return -t * x;
}

static double wasserstein_slope(double parameter, double x, double t)
{
    (void)parameter;
    (void)x;
    return -t;
}

static const cvy_loss_each_def wasserstein_each = {
    .grad = "wasserstein_grad", .term = wasserstein_term, .slope = wasserstein_slope, .symmetric = 1};

static const cvy_sample wasserstein_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(wasserstein) = {
    .name = "wasserstein",
    .summary = "mean of the output, negative where the target is 1: the loss of a critic",
    .options = wasserstein_opts,
    .family = &wasserstein_each,
    CVY_LOSS_EACH_FIELDS,
    .samples = wasserstein_samples,
};

static const cvy_sample wasserstein_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(wasserstein_grad) = {
    .name = "wasserstein_grad",
    .summary = "gradient of wasserstein",
    .options = wasserstein_opts,
    .family = &wasserstein_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = wasserstein_grad_samples,
};

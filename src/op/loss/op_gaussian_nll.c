/*
 * gaussian_nll: the negative log-likelihood of a target under a normal distribution whose mean and variance the
 * network gives. It is the end of forward, for regression that says how sure it is. Source: Nix and Weigend 1994; the
 * value is that of PyTorch's GaussianNLLLoss with var = exp(s).
 *
 *     term  = (s + d^2 exp(-s)) / 2 (+ log(2 pi) / 2 with full), with d = mean - target and s = log variance
 *     dmean = d exp(-s),  ds = (1 - d^2 exp(-s)) / 2
 *     loss  = the weighted mean of the terms, see op_distribution.h
 *
 * The log variance is any number, so no division by a small variance can occur. A log variance below log(eps) counts
 * as log(eps), also in its own gradient, which thus never vanishes. The output has two blocks of the target's shape:
 * the means, then the log variances, see op_distribution.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_distribution.h"

enum { MEAN, LOG_VARIANCE, COUNT };

static const cvy_option gaussian_opts[] = {
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_distribution, eps), "1e-6", ">0", "", "the least variance"},
    {"full", CVY_TYPE_BOOL, CVY_FIELD(cvy_distribution, full), "false", "", "", "adds the constant log(2 pi) / 2"},
    CVY_LOSS_WEIGHT_ROW(cvy_distribution),
    {0},
};

static int gaussian_count(const struct cvy_distribution *o)
{
    (void)o;
    return COUNT;
}

/* NaN stays NaN. */
static double log_variance(const struct cvy_distribution *o, const double *x)
{
    return x[LOG_VARIANCE] < log(o->eps) ? log(o->eps) : x[LOG_VARIANCE];
}

static double gaussian_term(const struct cvy_distribution *o, const double *x, double t)
{
    const double half_log_2pi = 0.91893853320467274178, d = x[MEAN] - t, s = log_variance(o, x);
    return (s + d * d * exp(-s)) / 2 + (o->full ? half_log_2pi : 0);
}

static void gaussian_slope(const struct cvy_distribution *o, const double *x, double t, double *slope_out)
{
    const double d = x[MEAN] - t, precision = exp(-log_variance(o, x));
    slope_out[MEAN] = d * precision;
    slope_out[LOG_VARIANCE] = (1 - d * d * precision) / 2;
}

static int is_log_variance(int b)
{
    return b == LOG_VARIANCE;
}

static const cvy_distribution_def gaussian_def = {.grad = "gaussian_nll_grad",
                                                  .count = gaussian_count,
                                                  .term = gaussian_term,
                                                  .slope = gaussian_slope,
                                                  .is_log_variance = is_log_variance};

static const cvy_sample gaussian_samples[] = {
    {.src = "3x4x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5x2,5,scalar:f64", .options = "full: true", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x14,3x7,scalar:f64,3", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x2x5,4x5,scalar:f64,4", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x4x3,2x2x3,scalar:f64,2x3", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(gaussian_nll) = {
    .name = "gaussian_nll",
    .summary = "negative log-likelihood of a normal distribution: the output gives mean and log variance",
    .options = gaussian_opts,
    .family = &gaussian_def,
    CVY_DISTRIBUTION_FIELDS,
    .samples = gaussian_samples,
};

static const cvy_sample gaussian_grad_samples[] = {
    {.src = "scalar:f64,3x4x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5x2,5,scalar:f64", .options = "full: true", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x14,3x7,scalar:f64,3", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x4x3,2x2x3,scalar:f64,2x3", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(gaussian_nll_grad) = {
    .name = "gaussian_nll_grad",
    .summary = "gradient of gaussian_nll",
    .options = gaussian_opts,
    .family = &gaussian_def,
    CVY_DISTRIBUTION_GRAD_FIELDS,
    .samples = gaussian_grad_samples,
};

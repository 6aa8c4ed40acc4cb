/*
 * quantile: the pinball loss, whose least mean is at the quantiles of the target. It is the end of forward, for
 * regression that gives intervals. Source: Koenker and Bassett 1978.
 *
 *     term      = mean over the levels q of (q d if d >= 0, else (q - 1) d), with d = target - output of the level
 *     dterm     = -q / levels if d > 0, (1 - q) / levels if d < 0; 1 / 2 - q over levels at d = 0
 *     loss      = the weighted mean of the terms, see op_distribution.h
 *
 * The output has a block of the target's shape for each level, in the order of `levels`, see op_distribution.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_distribution.h"

static const cvy_option quantile_opts[] = {
    {"levels", CVY_TYPE_REALS, CVY_FIELD(cvy_distribution, levels), "0.5", "0..1", "",
     "the quantiles that the output gives, such as [0.05, 0.5, 0.95]"},
    CVY_LOSS_WEIGHT_ROW(cvy_distribution),
    {0},
};

/* A quantile of level 0 or 1 is the end of the distribution, which no loss finds. */
static cvy_status quantile_check(const cvy_node *node)
{
    const cvy_reals *levels = &((const struct cvy_distribution *)node->options)->levels;
    CVY_CHECK(levels->count > 0, CVY_E_CONFIG,
              "layer %s (quantile) has no levels, give some: levels: [0.05, 0.5, 0.95]", node->layer);
    for (int i = 0; i < levels->count; i++)
        CVY_CHECK(
            levels->at[i] > 0 &&
                    levels->at[i]<1, CVY_E_CONFIG,
                                  "layer %s (quantile): level %d is %g, expected a number between 0 and 1, such as %g",
                                  node->layer, i + 1, levels->at[i], levels->at[i]> 0
                ? 0.95
                : 0.05);
    return CVY_OK;
}

static int quantile_count(const struct cvy_distribution *o)
{
    return o->levels.count;
}

static double quantile_term(const struct cvy_distribution *o, const double *x, double t)
{
    double sum = 0;
    for (int b = 0; b < o->levels.count; b++) {
        const double d = t - x[b];
        sum += d >= 0 ? o->levels.at[b] * d : (o->levels.at[b] - 1) * d;
    }
    return sum / o->levels.count;
}

/* A difference that is NaN gives NaN. */
static void quantile_slope(const struct cvy_distribution *o, const double *x, double t, double *slope_out)
{
    for (int b = 0; b < o->levels.count; b++) {
        const double d = t - x[b], q = o->levels.at[b];
        slope_out[b] = (d > 0 ? -q : d < 0 ? 1 - q : d == 0 ? 0.5 - q : d) / o->levels.count;
    }
}

static const cvy_distribution_def quantile_def = {.grad = "quantile_grad",
                                                  .check = quantile_check,
                                                  .count = quantile_count,
                                                  .term = quantile_term,
                                                  .slope = quantile_slope};

static const cvy_sample quantile_samples[] = {
    {.src = "3x6x4,3x2x4,scalar:f64", .options = "levels: [0.1, 0.5, 0.8]"},
    {.src = "5x1,5,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x14,3x7,scalar:f64,3", .options = "levels: [0.2, 0.9], loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x2x5,4x5,scalar:f64,4", .options = "levels: [0.05, 0.95]", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "2x4x3,2x2x3,scalar:f64,2x3", .options = "levels: [0.1, 0.75]", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(quantile) = {
    .name = "quantile",
    .summary = "pinball loss: the output gives quantiles of the target",
    .options = quantile_opts,
    .family = &quantile_def,
    CVY_DISTRIBUTION_FIELDS,
    .samples = quantile_samples,
};

static const cvy_sample quantile_grad_samples[] = {
    {.src = "scalar:f64,3x6x4,3x2x4,scalar:f64", .options = "levels: [0.1, 0.5, 0.8]"},
    {.src = "scalar:f64,5x1,5,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x14,3x7,scalar:f64,3",
     .options = "levels: [0.2, 0.9], loss_weight: 2",
     .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x4x3,2x2x3,scalar:f64,2x3", .options = "levels: [0.1, 0.75]", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(quantile_grad) = {
    .name = "quantile_grad",
    .summary = "gradient of quantile",
    .options = quantile_opts,
    .family = &quantile_def,
    CVY_DISTRIBUTION_GRAD_FIELDS,
    .samples = quantile_grad_samples,
};

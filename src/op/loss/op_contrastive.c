/*
 * contrastive: the contrastive loss of pairs, on squared distances. It is the end of forward, for networks that map
 * similar inputs close to each other. The target is 1 for a similar pair and 0 for a dissimilar one. Source: Hadsell,
 * Chopra and LeCun 2006, as Caffe's ContrastiveLoss without legacy_version.
 *
 *     term   = (t s + (1 - t) max(margin - sqrt(s), 0)^2) / 2, with s = output, the squared distance, and t = target
 *     dterm  = (t - (1 - t) max(margin / sqrt(s) - 1, 0)) / 2;  t / 2 at s = 0, where the distance has no gradient
 *     loss   = the weighted mean of the terms, see op_loss.h
 *
 * The squared distance of a and b is made by subtract, multiply and reduction.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_loss.h"

static const cvy_option contrastive_opts[] = {
    {"margin", CVY_TYPE_REAL, CVY_FIELD(cvy_loss_each, parameter), "1", ">0", "",
     "distance from which on a dissimilar pair costs nothing"},
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

/* The distance of an output below 0, which no square is, counts as 0. NaN stays NaN. */
static double distance_of(double s)
{
    return s > 0 ? sqrt(s) : s == s ? 0 : s;
}

static double contrastive_term(double margin, double s, double t)
{
    const double lacks = margin - distance_of(s);
    return (t * s + (1 - t) * (lacks > 0 || lacks != lacks ? lacks * lacks : 0)) / 2;
}

static double contrastive_slope(double margin, double s, double t)
{
    const double d = distance_of(s), lacks = d > 0 ? margin / d - 1 : d == d ? 0 : d;
    return (t - (1 - t) * (lacks > 0 || lacks != lacks ? lacks : 0)) / 2;
}

static const cvy_loss_each_def contrastive_each = {
    .grad = "contrastive_grad", .term = contrastive_term, .slope = contrastive_slope, .target_min = 0, .target_max = 1};

static const cvy_sample contrastive_samples[] = {
    {.src = "7,7:i32,scalar:f64", .options = "margin: 0.9", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 2},
    {.src = "5x1,5:i32,scalar:f64,5",
     .options = "margin: 1.4, loss_weight: 2",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 2},
    {0},
};

CVY_OP_DEFINE(contrastive) = {
    .name = "contrastive",
    .summary = "contrastive loss of pairs, on squared distances",
    .options = contrastive_opts,
    .family = &contrastive_each,
    CVY_LOSS_EACH_FIELDS,
    .samples = contrastive_samples,
};

static const cvy_sample contrastive_grad_samples[] = {
    {.src = "scalar:f64,7,7:i32,scalar:f64", .options = "margin: 0.9", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 2},
    {.src = "scalar:f64,5x1,5:i32,scalar:f64,5",
     .options = "margin: 1.4",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 2},
    {0},
};

CVY_OP_DEFINE(contrastive_grad) = {
    .name = "contrastive_grad",
    .summary = "gradient of contrastive",
    .options = contrastive_opts,
    .family = &contrastive_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = contrastive_grad_samples,
};

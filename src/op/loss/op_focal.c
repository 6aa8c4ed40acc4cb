/*
 * focal: cross-entropy of softmax in which positions that are classified well count less, for classes of very unequal
 * size, as in segmentation and detection. It is the end of forward, on raw outputs (logits). Source: Lin et al. 2017,
 * Focal loss for dense object detection, with softmax over all classes in place of a sigmoid; class_weights are its
 * alpha.
 *
 *     log p     = log_softmax(output) over axis 1
 *     term      = -c[t] (1 - p[t])^gamma log p[t]
 *     dterm[k]  = c[t] * s * ([k = t] - p[k])
 *     s         = gamma (1 - p[t])^(gamma - 1) p[t] log p[t] - (1 - p[t])^gamma
 *
 * Here t is the label and c = class_weights; op_label_loss.h has the loss. It equals softmax_cross_entropy if gamma is
 * 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_label_loss.h"

static const cvy_option focal_opts[] = {
    {"gamma", CVY_TYPE_REAL, CVY_FIELD(cvy_focal, gamma), "2", "0..", "",
     "power of the probability of an error; with 0 the loss is softmax_cross_entropy"},
    CVY_LABEL_LOSS_ROWS(cvy_focal, loss),
    {0},
};

static double focal_term(const void *options, const cvy_logits *z, int64_t label)
{
    const struct cvy_focal *o = options;
    const double log_p = cvy_logit(z, label) - cvy_log_sum_exp(z);
    return -cvy_class_weight(&o->loss.labels, label) * pow(-expm1(fmin(log_p, 0)), o->gamma) * log_p;
}

double cvy_focal_slope(double gamma, double log_p)
{
    const double q = -expm1(fmin(log_p, 0));
    return (gamma > 0 && q > 0 ? gamma * pow(q, gamma - 1) * exp(log_p) * log_p : 0) - pow(q, gamma);
}

static void focal_slope(const void *options, const cvy_logits *z, int64_t label, double factor, const cvy_span *dst)
{
    const struct cvy_focal *o = options;
    const double total = cvy_log_sum_exp(z), here = factor * cvy_class_weight(&o->loss.labels, label) *
                                                    cvy_focal_slope(o->gamma, cvy_logit(z, label) - total);
    for (int64_t k = 0; k < z->K; k++)
        cvy_set(dst, z->at + k * z->stride, here * ((k == label) - exp(cvy_logit(z, k) - total)));
}

static const cvy_label_loss_def focal_def = {.grad = "focal_grad", .term = focal_term, .slope = focal_slope};

static const cvy_sample focal_samples[] = {
    {.src = "5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "1x1,1:i32,scalar:f64", .options = "gamma: 0", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 1},
    {.src = "4x37,4:i32,scalar:f64,4", .options = "gamma: 0.5", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 37},
    {.src = "6x3,6:i32,scalar:f64",
     .options = "class_weights: [0.5, 1, 3], ignore_label: 1, gamma: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "2x4x3x5,2x3x5:i32,scalar:f64,2",
     .options = "loss_weight: 0.5, ignore_label: 0",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 4},
    {.src = "2x3x4x2,2x4x2:i32,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "3x70,3:i32,scalar:f64", .options = "ignore_label: 1", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(focal) = {
    .name = "focal",
    .summary = "focal loss of softmax, for classes of unequal size",
    .options = focal_opts,
    .family = &focal_def,
    CVY_LABEL_LOSS_FIELDS(cvy_focal),
    .samples = focal_samples,
};

static int64_t focal_grad_summands(const cvy_node *node)
{
    return cvy_node_src(node, 1)->dim[1] + 8;
}

static const cvy_sample focal_grad_samples[] = {
    {.src = "scalar:f64,5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,4x37,4:i32,scalar:f64,4",
     .options = "gamma: 0.5",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 37},
    {.src = "scalar:f64,6x3,6:i32,scalar:f64",
     .options = "class_weights: [0.5, 1, 3], ignore_label: 1, gamma: 0",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "scalar:f64,2x4x3x5,2x3x5:i32,scalar:f64,2",
     .options = "loss_weight: 0.5, ignore_label: 0",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 4},
    {.src = "scalar:f64,2x3x4x2,2x4x2:i32,scalar:f64,2x4x2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,3x70,3:i32,scalar:f64",
     .options = "ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(focal_grad) = {
    .name = "focal_grad",
    .summary = "gradient of focal",
    .options = focal_opts,
    .family = &focal_def,
    CVY_LABEL_LOSS_GRAD_FIELDS(cvy_focal),
    .summands = focal_grad_summands,
    .samples = focal_grad_samples,
};

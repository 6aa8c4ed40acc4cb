/*
 * softmax_cross_entropy: the loss of a classifier, on raw outputs (logits). It is the end of forward.
 * Source: as PyTorch's CrossEntropyLoss with reduction 'mean': the sum is also divided by the class weights, smoothing
 * is spread over all classes with their weights (Szegedy et al. 2016), and positions (of a segmentation) are averaged.
 *
 *     log p     = log_softmax(output) over axis 1
 *     term      = -(1 - s) c[t] log p[t] - s / K * sum over k of c[k] log p[k]
 *     dterm[k]  = p[k] ((1 - s) c[t] + s / K * sum c) - (1 - s) c[t] [k = t] - s / K * c[k]
 *
 * Here t is the label, c = class_weights and s = label_smoothing; op_label_loss.h has the loss.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_label_loss.h"

static const cvy_option cross_entropy_opts[] = {
    {"label_smoothing", CVY_TYPE_REAL, CVY_FIELD(cvy_cross_entropy, label_smoothing), "0", "0..1", "",
     "share of the target that is spread over all classes"},
    CVY_LABEL_LOSS_ROWS(cvy_cross_entropy, loss),
    {0},
};

static double cross_entropy_term(const void *options, const cvy_logits *z, int64_t label)
{
    const struct cvy_cross_entropy *o = options;
    const double total = cvy_log_sum_exp(z);
    double spread = 0;
    for (int64_t k = 0; o->label_smoothing > 0 && k < z->K; k++)
        spread += cvy_class_weight(&o->loss.labels, k) * (total - cvy_logit(z, k));
    return (1 - o->label_smoothing) * cvy_class_weight(&o->loss.labels, label) * (total - cvy_logit(z, label)) +
           o->label_smoothing / (double)z->K * spread;
}

static void cross_entropy_slope(const void *options, const cvy_logits *z, int64_t label, double factor,
                                const cvy_span *dst)
{
    const struct cvy_cross_entropy *o = options;
    const struct cvy_weight_sum *c = &o->loss.labels;
    const double total = cvy_log_sum_exp(z), spread = o->label_smoothing / (double)z->K,
                 here = (1 - o->label_smoothing) * cvy_class_weight(c, label);
    double all = 0;
    for (int64_t k = 0; k < z->K; k++)
        all += cvy_class_weight(c, k);
    for (int64_t k = 0; k < z->K; k++) {
        const double p = exp(cvy_logit(z, k) - total);
        cvy_set(dst, z->at + k * z->stride,
                factor * (p * (here + spread * all) - (k == label ? here : 0) - spread * cvy_class_weight(c, k)));
    }
}

static const cvy_label_loss_def cross_entropy_def = {
    .grad = "softmax_cross_entropy_grad", .term = cross_entropy_term, .slope = cross_entropy_slope};

static const cvy_sample cross_entropy_samples[] = {
    {.src = "5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "1x1,1:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 1},
    {.src = "4x37,4:i32,scalar:f64,4",
     .options = "label_smoothing: 0.1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 37},
    {.src = "6x3,6:i32,scalar:f64",
     .options = "class_weights: [0.5, 1, 3], ignore_label: 1, label_smoothing: 0.2",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "2x4x3x5,2x3x5:i32,scalar:f64,2",
     .options = "loss_weight: 0.5, ignore_label: 0",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 4},
    {.src = "2x3x71,2x71:i32,scalar:f64",
     .options = "class_weights: [2, 1, 0.1]",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "2x3x4x2,2x4x2:i32,scalar:f64,2x4x2",
     .options = "label_smoothing: 0.1, ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "3x80,3:i32,scalar:f64,3",
     .options = "label_smoothing: 0.1, ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "2x66x2,2x2:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 66},
    {0},
};

CVY_OP_DEFINE(softmax_cross_entropy) = {
    .name = "softmax_cross_entropy",
    .summary = "cross-entropy of softmax, for classes",
    .options = cross_entropy_opts,
    .family = &cross_entropy_def,
    CVY_LABEL_LOSS_FIELDS(cvy_cross_entropy),
    .samples = cross_entropy_samples,
};

static int64_t cross_entropy_grad_summands(const cvy_node *node)
{
    return cvy_node_src(node, 1)->dim[1] + 4;
}

static const cvy_sample cross_entropy_grad_samples[] = {
    {.src = "scalar:f64,5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,4x37,4:i32,scalar:f64,4",
     .options = "label_smoothing: 0.1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 37},
    {.src = "scalar:f64,6x3,6:i32,scalar:f64",
     .options = "class_weights: [0.5, 1, 3], ignore_label: 1, label_smoothing: 0.2",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "scalar:f64,2x4x3x5,2x3x5:i32,scalar:f64,2",
     .options = "loss_weight: 0.5, ignore_label: 0",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 4},
    {.src = "scalar:f64,2x3x71,2x71:i32,scalar:f64",
     .options = "class_weights: [2, 1, 0.1]",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "scalar:f64,2x3x4x2,2x4x2:i32,scalar:f64,2x4x2",
     .options = "label_smoothing: 0.1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "scalar:f64,3x300,3:i32,scalar:f64,3",
     .options = "label_smoothing: 0.1, ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "scalar:f64,2x66x2,2x2:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 66},
    {0},
};

CVY_OP_DEFINE(softmax_cross_entropy_grad) = {
    .name = "softmax_cross_entropy_grad",
    .summary = "gradient of softmax_cross_entropy",
    .options = cross_entropy_opts,
    .family = &cross_entropy_def,
    CVY_LABEL_LOSS_GRAD_FIELDS(cvy_cross_entropy),
    .summands = cross_entropy_grad_summands,
    .samples = cross_entropy_grad_samples,
};

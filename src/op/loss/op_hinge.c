/*
 * hinge: the hinge loss of a classifier, one class against all others. It is the end of forward. Source: as Caffe's
 * HingeLoss, whose L1 norm is Cortes and Vapnik 1995 for each class.
 *
 *     m[k]      = max(0, 1 - s output[k]), with s = 1 for the class k = t, the label, else -1
 *     term      = sum over k of m[k] (norm l1) or of m[k]^2 (norm l2)
 *     dterm[k]  = -s [m > 0] or -2 s m
 *
 * op_label_loss.h has the loss.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_label_loss.h"

enum { L1, L2 };

struct hinge {
    struct cvy_label_loss loss; /* first; all classes have the same weight */
    int norm;
};

static const cvy_option hinge_opts[] = {
    {"norm", CVY_TYPE_CHOICE, CVY_FIELD(hinge, norm), "l1", "l1|l2", "",
     "whether margins count as they are or squared"},
    CVY_IGNORED_LABEL_ROW(hinge, loss),
    {"loss_weight", CVY_TYPE_REAL, CVY_FIELD(hinge, loss.loss_weight), "1", "", "", "factor in the sum of losses"},
    {0},
};

/* The margin that class k lacks; NaN if the output is NaN. */
static double lacking(const cvy_logits *z, int64_t k, int64_t label)
{
    const double x = cvy_logit(z, k), m = 1 - (k == label ? x : -x);
    return m > 0 || m != m ? m : 0;
}

static double hinge_term(const void *options, const cvy_logits *z, int64_t label)
{
    double sum = 0;
    for (int64_t k = 0; k < z->K; k++) {
        const double m = lacking(z, k, label);
        sum += ((const struct hinge *)options)->norm == L1 ? m : m * m;
    }
    return sum;
}

static void hinge_slope(const void *options, const cvy_logits *z, int64_t label, double factor, const cvy_span *dst)
{
    const struct hinge *o = options;
    for (int64_t k = 0; k < z->K; k++) {
        const double m = lacking(z, k, label), sign = k == label ? -1 : 1;
        cvy_set(dst, z->at + k * z->stride, factor * sign * (o->norm == L1 ? (m > 0 ? 1 : m) : 2 * m));
    }
}

static const cvy_label_loss_def hinge_def = {.grad = "hinge_grad", .term = hinge_term, .slope = hinge_slope};

static const cvy_sample hinge_samples[] = {
    {.src = "5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "4x7,4:i32,scalar:f64,4", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 7},
    {.src = "6x3,6:i32,scalar:f64",
     .options = "norm: l2, ignore_label: 1, loss_weight: 0.5",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "2x3x4,2x4:i32,scalar:f64,2x4", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(hinge) = {
    .name = "hinge",
    .summary = "hinge loss of one class against all others",
    .options = hinge_opts,
    .family = &hinge_def,
    CVY_LABEL_LOSS_FIELDS(hinge),
    .samples = hinge_samples,
};

static const cvy_sample hinge_grad_samples[] = {
    {.src = "scalar:f64,5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,4x7,4:i32,scalar:f64,4", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 7},
    {.src = "scalar:f64,2x3x4,2x4:i32,scalar:f64,2x4", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(hinge_grad) = {
    .name = "hinge_grad",
    .summary = "gradient of hinge",
    .options = hinge_opts,
    .family = &hinge_def,
    CVY_LABEL_LOSS_GRAD_FIELDS(hinge),
    .samples = hinge_grad_samples,
};

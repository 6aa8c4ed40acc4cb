/*
 * hinge: the hinge loss of a classifier, one class against all others, or of a critic, whose scores of real and of
 * generated samples it keeps apart. It is the end of forward. Sources: as Caffe's HingeLoss, whose L1 norm is Cortes
 * and Vapnik 1995 for each class; critics: Lim and Ye 2017, Miyato et al. 2018.
 *
 *     m[k]      = max(0, 1 - s output[k]), with s = 1 for the class k = t, the label, else -1
 *     term      = sum over k of m[k] (norm l1) or of m[k]^2 (norm l2)
 *     dterm[k]  = -s [m > 0] or -2 s m
 *
 * op_label_loss.h has the loss. With a real target, which is 1 where the output is to be above 1 and -1 where it is to
 * be below -1, the operator hinge_each computes the mean over all elements:
 *
 *     term  = max(0, 1 - target * output), or its square
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_label_loss.h"

static const cvy_option hinge_opts[] = {
    {"norm", CVY_TYPE_CHOICE, CVY_FIELD(cvy_hinge, norm), "l1", "l1|l2", "",
     "whether margins count as they are or squared"},
    CVY_IGNORED_LABEL_ROW(cvy_hinge, loss),
    {"loss_weight", CVY_TYPE_REAL, CVY_FIELD(cvy_hinge, loss.loss_weight), "1", "", "", "factor in the sum of losses"},
    {0},
};

/* What a number that should be at least 1 lacks; NaN if it is NaN. */
static double lacking(double x)
{
    const double m = 1 - x;
    return m > 0 || m != m ? m : 0;
}

static double lacking_class(const cvy_logits *z, int64_t k, int64_t label)
{
    const double x = cvy_logit(z, k);
    return lacking(k == label ? x : -x);
}

static double hinge_term(const void *options, const cvy_logits *z, int64_t label)
{
    double sum = 0;
    for (int64_t k = 0; k < z->K; k++) {
        const double m = lacking_class(z, k, label);
        sum += ((const struct cvy_hinge *)options)->norm == CVY_HINGE_L1 ? m : m * m;
    }
    return sum;
}

static void hinge_slope(const void *options, const cvy_logits *z, int64_t label, double factor, const cvy_span *dst)
{
    const struct cvy_hinge *o = options;
    for (int64_t k = 0; k < z->K; k++) {
        const double m = lacking_class(z, k, label), sign = k == label ? -1 : 1;
        cvy_set(dst, z->at + k * z->stride, factor * sign * (o->norm == CVY_HINGE_L1 ? (m > 0 ? 1 : m) : 2 * m));
    }
}

static cvy_status hinge_build_real(cvy_graph *g, const char *name, const void *options, cvy_value *const *src, int nsrc,
                                   cvy_value **dst_out)
{
    const struct cvy_hinge *o = options;
    const struct cvy_loss_each each = {.loss_weight = o->loss.loss_weight, .parameter = o->norm == CVY_HINGE_L2};
    CVY_CHECK(o->loss.labels.ignore_label.count == 0, CVY_E_CONFIG,
              "ignore_label is for a target of labels, and %s has real numbers", src[1]->name);
    return cvy_loss_build(g, cvy_op_find("hinge_each"), name, &each, NULL, src, nsrc, dst_out);
}

static const cvy_label_loss_def hinge_def = {
    .grad = "hinge_grad", .term = hinge_term, .slope = hinge_slope, .build_real = hinge_build_real};

static const cvy_sample hinge_samples[] = {
    {.src = "5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "4x7,4:i32,scalar:f64,4", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 7},
    {.src = "6x3,6:i32,scalar:f64",
     .options = "norm: l2, ignore_label: 1, loss_weight: 0.5",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "2x3x4,2x4:i32,scalar:f64,2x4", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "3x70,3:i32,scalar:f64", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 70},
    {0},
};

CVY_OP_DEFINE(hinge) = {
    .name = "hinge",
    .summary = "hinge loss of one class against all others, or of a critic with targets 1 and -1",
    .options = hinge_opts,
    .family = &hinge_def,
    CVY_LABEL_LOSS_FIELDS(cvy_hinge),
    .samples = hinge_samples,
};

static const cvy_sample hinge_grad_samples[] = {
    {.src = "scalar:f64,5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,4x7,4:i32,scalar:f64,4", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 7},
    {.src = "scalar:f64,2x3x4,2x4:i32,scalar:f64,2x4", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,3x70,3:i32,scalar:f64", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 70},
    {0},
};

CVY_OP_DEFINE(hinge_grad) = {
    .name = "hinge_grad",
    .summary = "gradient of hinge",
    .options = hinge_opts,
    .family = &hinge_def,
    CVY_LABEL_LOSS_GRAD_FIELDS(cvy_hinge),
    .samples = hinge_grad_samples,
};

/* ---- of a critic ---- */

static const cvy_option hinge_each_opts[] = {
    {"squared", CVY_TYPE_REAL, CVY_FIELD(cvy_loss_each, parameter), "0", "0..1", "", "1: margins are squared"},
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double hinge_each_term(double squared, double x, double t)
{
    const double m = lacking(t * x);
    return squared > 0 ? m * m : m;
}

static double hinge_each_slope(double squared, double x, double t)
{
    const double m = lacking(t * x);
    return -t * (squared > 0 ? 2 * m : m > 0 ? 1 : m);
}

static const cvy_loss_each_def hinge_each = {
    .grad = "hinge_each_grad", .term = hinge_each_term, .slope = hinge_each_slope, .symmetric = 1};

static const cvy_sample hinge_each_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .options = "squared: 1, loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(hinge_each) = {
    .name = "hinge_each",
    .summary = "hinge loss of a critic",
    .options = hinge_each_opts,
    .options_size = sizeof(struct cvy_loss_each),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .part_splits = CVY_SPLIT_SPACE,
    .part = cvy_loss_each_part,
    .infer = cvy_loss_each_infer,
    .grad = cvy_loss_each_grad,
    .cost = cvy_loss_each_cost,
    .reference = cvy_loss_each_reference,
    .summands = cvy_loss_summands,
    .family = &hinge_each,
    .samples = hinge_each_samples,
};

static const cvy_sample hinge_each_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .options = "squared: 1, loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(hinge_each_grad) = {
    .name = "hinge_each_grad",
    .summary = "gradient of hinge_each",
    .options = hinge_each_opts,
    .family = &hinge_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = hinge_each_grad_samples,
};

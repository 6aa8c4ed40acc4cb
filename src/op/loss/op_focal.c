/*
 * focal: cross-entropy of softmax in which positions that are classified well count less, for classes of very unequal
 * size, as in segmentation and detection. It is the end of forward, on raw outputs (logits). Source: Lin et al. 2017,
 * Focal loss for dense object detection, with softmax over all classes in place of a sigmoid; class_weights are its
 * alpha.
 *
 *     log p          = log_softmax(output) over axis 1
 *     term[n,x]      = -c[t] (1 - p[t])^gamma log p[t]; 0 if t is ignored
 *     loss           = loss_weight / norm * sum over samples n of weight[n] * (mean over positions x of term[n,x])
 *     doutput[n,k,x] = loss_weight * dloss * weight[n] / norm / positions * c[t] * s * ([k = t] - p[k])
 *     s              = gamma (1 - p[t])^(gamma - 1) p[t] log p[t] - (1 - p[t])^gamma
 *
 * Here t = target[n,x] and c = class_weights. norm is that of softmax_cross_entropy, which focal equals if gamma is 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_loss.h"

static const cvy_option focal_opts[] = {
    {"gamma", CVY_TYPE_REAL, CVY_FIELD(cvy_focal, gamma), "2", "0..", "",
     "power of the probability of an error; with 0 the loss is softmax_cross_entropy"},
    CVY_LABEL_LOSS_ROWS(cvy_focal, loss),
    {0},
};

static cvy_status focal_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_focal o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, &o.loss.labels, src, nsrc, dst_out);
}

static cvy_status focal_infer(cvy_node *node)
{
    CVY_TRY(cvy_loss_check_labels(node, 0));
    return cvy_loss_set_dst(node);
}

static cvy_status focal_backward(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_loss_emit(g, fwd, "focal_grad", 0);
}

static void focal_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 13 * n, .read_elems = n, .write_elems = 1};
}

static cvy_status focal_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_focal *o = node->options;
    const struct cvy_weight_sum *labels = &o->loss.labels;
    const cvy_span *x = &src[0], *norm = &src[2], *weight = node->nsrc > 3 ? &src[3] : NULL;
    const int64_t N = x->dim[0], K = x->dim[1], P = cvy_span_prod(x, 2, x->ndim);
    double loss = 0;
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = (int64_t)cvy_get(&src[1], n * P + p), at = n * K * P + p;
            if (cvy_label_ignored(labels, label))
                continue;
            if (label < 0 || label >= K)
                return cvy_label_error(node, n, label, K);
            const double log_p = cvy_get(x, at + label * P) - cvy_log_sum_exp(x, at, K, P);
            sum -= cvy_class_weight(labels, label) * pow(-expm1(fmin(log_p, 0)), o->gamma) * log_p;
        }
        loss += cvy_loss_factor(norm, weight, n) * sum / (double)P;
    }
    cvy_set(dst, 0, o->loss.loss_weight * loss);
    return CVY_OK;
}

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
    {0},
};

CVY_OP_DEFINE(focal) = {
    .name = "focal",
    .summary = "focal loss of softmax, for classes of unequal size",
    .options = focal_opts,
    .options_size = sizeof(struct cvy_focal),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .splits = CVY_SPLIT_SAMPLES,
    .part_splits = CVY_SPLIT_SPACE,
    .part = cvy_label_loss_part,
    .infer = focal_infer,
    .grad = focal_backward,
    .build = focal_build,
    .cost = focal_cost,
    .reference = focal_reference,
    .summands = cvy_loss_summands,
    .samples = focal_samples,
};

/* focal_grad: dloss, output, target, norm, [weight] -> doutput. */
static cvy_status focal_grad_infer(cvy_node *node)
{
    CVY_TRY(cvy_loss_check_labels(node, 1));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

static void focal_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 1));
    *cost_out = (cvy_cost){.flop = 14 * n, .read_elems = n, .write_elems = n};
}

static int64_t focal_grad_summands(const cvy_node *node)
{
    return cvy_node_src(node, 1)->dim[1] + 8;
}

double cvy_focal_slope(double gamma, double log_p)
{
    const double q = -expm1(fmin(log_p, 0));
    return (gamma > 0 && q > 0 ? gamma * pow(q, gamma - 1) * exp(log_p) * log_p : 0) - pow(q, gamma);
}

static cvy_status focal_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_focal *o = node->options;
    const struct cvy_weight_sum *labels = &o->loss.labels;
    const cvy_span *x = &src[1], *norm = &src[3], *weight = node->nsrc > 4 ? &src[4] : NULL;
    const int64_t N = x->dim[0], K = x->dim[1], P = cvy_span_prod(x, 2, x->ndim);
    const double dloss = o->loss.loss_weight * cvy_get(&src[0], 0) / (double)P;
    for (int64_t n = 0; n < N; n++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = (int64_t)cvy_get(&src[2], n * P + p), at = n * K * P + p;
            const int counts = !cvy_label_ignored(labels, label);
            if (counts && (label < 0 || label >= K))
                return cvy_label_error(node, n, label, K);
            const double total = cvy_log_sum_exp(x, at, K, P);
            const double factor = !counts ? 0
                                          : dloss * cvy_loss_factor(norm, weight, n) * cvy_class_weight(labels, label) *
                                                cvy_focal_slope(o->gamma, cvy_get(x, at + label * P) - total);
            for (int64_t k = 0; k < K; k++)
                cvy_set(dst, at + k * P, factor * ((k == label) - exp(cvy_get(x, at + k * P) - total)));
        }
    return CVY_OK;
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
    {0},
};

CVY_OP_DEFINE(focal_grad) = {
    .name = "focal_grad",
    .summary = "gradient of focal",
    .options = focal_opts,
    .options_size = sizeof(struct cvy_focal),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = focal_grad_infer,
    .cost = focal_grad_cost,
    .reference = focal_grad_reference,
    .summands = focal_grad_summands,
    .samples = focal_grad_samples,
};

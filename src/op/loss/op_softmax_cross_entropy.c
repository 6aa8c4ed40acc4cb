/*
 * softmax_cross_entropy: the loss of a classifier, on raw outputs (logits). It is the end of forward.
 * Source: as PyTorch's CrossEntropyLoss with reduction 'mean': the sum is also divided by the class weights, smoothing
 * is spread over all classes with their weights (Szegedy et al. 2016), and positions (of a segmentation) are averaged.
 *
 *     log p          = log_softmax(output) over axis 1
 *     term[n,x]      = -(1 - s) c[t] log p[n,t,x] - s / K * sum over k of c[k] log p[n,k,x]; 0 if t is ignored
 *     loss           = loss_weight / norm * sum over samples n of weight[n] * (mean over positions x of term[n,x])
 *     doutput[n,k,x] = loss_weight * dloss * weight[n] / norm / positions
 *                      * (p[n,k,x] ((1 - s) c[t] + s / K * sum c) - (1 - s) c[t] [k = t] - s / K * c[k])
 *
 * Here t = target[n,x], c = class_weights and s = label_smoothing. norm is the number of samples, or the weight_sum of
 * op_loss.c if there are class weights, sample weights or ignored labels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "op/loss/op_loss.h"

static const cvy_option cross_entropy_opts[] = {
    {"label_smoothing", CVY_TYPE_REAL, CVY_FIELD(cvy_cross_entropy, label_smoothing), "0", "0..1", "",
     "share of the target that is spread over all classes"},
    CVY_LABEL_LOSS_ROWS(cvy_cross_entropy, loss),
    {0},
};

static cvy_status cross_entropy_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                      cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_cross_entropy o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, &o.loss.labels, src, nsrc, dst_out);
}

static cvy_status cross_entropy_infer(cvy_node *node)
{
    CVY_TRY(cvy_loss_check_labels(node, 0));
    return cvy_loss_set_dst(node);
}

static cvy_status cross_entropy_grad(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_loss_emit(g, fwd, "softmax_cross_entropy_grad", 0);
}

static void cross_entropy_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 13 * n, .read_elems = n, .write_elems = 1};
}

static double term(const struct cvy_cross_entropy *o, const cvy_span *x, int64_t at, int64_t K, int64_t P,
                   int64_t label)
{
    const double total = cvy_log_sum_exp(x, at, K, P);
    double spread = 0;
    for (int64_t k = 0; o->label_smoothing > 0 && k < K; k++)
        spread += cvy_class_weight(&o->loss.labels, k) * (total - cvy_get(x, at + k * P));
    return (1 - o->label_smoothing) * cvy_class_weight(&o->loss.labels, label) * (total - cvy_get(x, at + label * P)) +
           o->label_smoothing / (double)K * spread;
}

static cvy_status cross_entropy_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_cross_entropy *o = node->options;
    const cvy_span *x = &src[0], *target = &src[1], *norm = &src[2], *weight = node->nsrc > 3 ? &src[3] : NULL;
    const int64_t N = x->dim[0], K = x->dim[1], P = cvy_span_prod(x, 2, x->ndim);
    double loss = 0;
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = (int64_t)cvy_get(target, n * P + p);
            if (cvy_label_ignored(&o->loss.labels, label))
                continue;
            if (label < 0 || label >= K)
                return cvy_label_error(node, n, label, K);
            sum += term(o, x, n * K * P + p, K, P, label);
        }
        loss += cvy_loss_factor(norm, weight, n) * sum / (double)P;
    }
    cvy_set(dst, 0, o->loss.loss_weight * loss);
    return CVY_OK;
}

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
    {0},
};

CVY_OP_DEFINE(softmax_cross_entropy) = {
    .name = "softmax_cross_entropy",
    .summary = "cross-entropy of softmax, for classes",
    .options = cross_entropy_opts,
    .options_size = sizeof(struct cvy_cross_entropy),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .splits = CVY_SPLIT_SAMPLES,
    .part_splits = CVY_SPLIT_SPACE,
    .part = cvy_label_loss_part,
    .infer = cross_entropy_infer,
    .grad = cross_entropy_grad,
    .build = cross_entropy_build,
    .cost = cross_entropy_cost,
    .reference = cross_entropy_reference,
    .summands = cvy_loss_summands,
    .samples = cross_entropy_samples,
};

/* softmax_cross_entropy_grad: dloss, output, target, norm, [weight] -> doutput. */
static cvy_status cross_entropy_grad_infer(cvy_node *node)
{
    CVY_TRY(cvy_loss_check_labels(node, 1));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

static void cross_entropy_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 1));
    *cost_out = (cvy_cost){.flop = 14 * n, .read_elems = n, .write_elems = n};
}

static int64_t cross_entropy_grad_summands(const cvy_node *node)
{
    return cvy_node_src(node, 1)->dim[1] + 4;
}

static cvy_status cross_entropy_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_cross_entropy *o = node->options;
    const cvy_span *x = &src[1], *target = &src[2], *norm = &src[3], *weight = node->nsrc > 4 ? &src[4] : NULL;
    const int64_t N = x->dim[0], K = x->dim[1], P = cvy_span_prod(x, 2, x->ndim);
    const double dloss = o->loss.loss_weight * cvy_get(&src[0], 0) / (double)P, spread = o->label_smoothing / (double)K;
    double all = 0;
    for (int64_t k = 0; k < K; k++)
        all += cvy_class_weight(&o->loss.labels, k);
    for (int64_t n = 0; n < N; n++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = (int64_t)cvy_get(target, n * P + p), at = n * K * P + p;
            const int counts = !cvy_label_ignored(&o->loss.labels, label);
            if (counts && (label < 0 || label >= K))
                return cvy_label_error(node, n, label, K);
            const double factor = counts ? dloss * cvy_loss_factor(norm, weight, n) : 0,
                         total = cvy_log_sum_exp(x, at, K, P);
            const double here = counts ? (1 - o->label_smoothing) * cvy_class_weight(&o->loss.labels, label) : 0;
            for (int64_t k = 0; k < K; k++) {
                const double p_k = exp(cvy_get(x, at + k * P) - total);
                cvy_set(dst, at + k * P,
                        factor * (p_k * (here + spread * all) - (k == label ? here : 0) -
                                  spread * cvy_class_weight(&o->loss.labels, k)));
            }
        }
    return CVY_OK;
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
    {0},
};

CVY_OP_DEFINE(softmax_cross_entropy_grad) = {
    .name = "softmax_cross_entropy_grad",
    .summary = "gradient of softmax_cross_entropy",
    .options = cross_entropy_opts,
    .options_size = sizeof(struct cvy_cross_entropy),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = cross_entropy_grad_infer,
    .cost = cross_entropy_grad_cost,
    .reference = cross_entropy_grad_reference,
    .summands = cross_entropy_grad_summands,
    .samples = cross_entropy_grad_samples,
};

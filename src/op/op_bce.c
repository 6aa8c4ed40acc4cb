/*
 * bce: binary cross-entropy with logits. In the step: the end of forward, two classes with one output, or several
 * independent yes-or-no outputs. Source: as PyTorch's BCEWithLogitsLoss; the form does not overflow for any x. The
 * target is a probability, or an integer 0 or 1.
 *
 *     term   = (1 - t) x + q (log(1 + exp(-|x|)) + max(-x, 0)), with output x, target t, q = 1 + (pos_weight - 1) t
 *     dterm  = (1 - t) - q (1 - s), with s = 1 / (1 + exp(-x))
 *     loss   = loss_weight / norm * sum over samples n of weight[n] * (mean over n's elements of term), see op_loss.h
 */
#include <math.h>

#include "op/op_loss.h"

struct bce {
    double pos_weight, loss_weight;
};

static const cvy_option bce_opts[] = {
    {"pos_weight", CVY_TYPE_REAL, CVY_FIELD(bce, pos_weight), "1", "0..", "",
     "factor on the terms of positive targets"},
    CVY_LOSS_WEIGHT_ROW(bce),
    {0},
};

static double bce_term(const void *options, double x, double t)
{
    const double q = 1 + (((const struct bce *)options)->pos_weight - 1) * t;
    return (1 - t) * x + q * (log1p(exp(-fabs(x))) + fmax(-x, 0));
}

static double bce_slope(const void *options, double x, double t)
{
    const double q = 1 + (((const struct bce *)options)->pos_weight - 1) * t;
    return (1 - t) - q / (1 + exp(x));
}

static cvy_status bce_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                            cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct bce o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, NULL, src, nsrc, dst_out);
}

static cvy_status bce_grad(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_loss_emit(g, fwd, "bce_grad", 0);
}

/* Forward checks the targets, so that the gradient need not. */
static cvy_status bce_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t each = cvy_span_prod(src, 1, src->ndim);
    for (int64_t i = 0; i < src[1].elems; i++) {
        const double t = cvy_get(&src[1], i);
        CVY_CHECK(t >= 0 && t <= 1, CVY_E_FORMAT,
                  "layer %s (bce): row %lld of this rank's share has target %g, expected 0 .. 1", node->layer,
                  (long long)(i / each), t);
    }
    cvy_loss_each(node, ((const struct bce *)node->options)->loss_weight, bce_term, src, dst);
    return CVY_OK;
}

static const cvy_sample bce_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "6x1,6:i32,scalar:f64,6", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(bce) = {
    .name = "bce",
    .summary = "binary cross-entropy with logits",
    .options = bce_opts,
    .options_size = sizeof(struct bce),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .infer = cvy_loss_each_infer,
    .grad = bce_grad,
    .build = bce_build,
    .cost = cvy_loss_each_cost,
    .reference = bce_reference,
    .summands = cvy_loss_summands,
    .samples = bce_samples,
};

/* bce_grad: dloss, output, target, norm, [weight] -> doutput. */
static cvy_status bce_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_loss_each_grad(node, ((const struct bce *)node->options)->loss_weight, bce_slope, src, dst);
    return CVY_OK;
}

static const cvy_sample bce_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "pos_weight: 3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,6x1,6:i32,scalar:f64,6", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(bce_grad) = {
    .name = "bce_grad",
    .summary = "gradient of bce",
    .options = bce_opts,
    .options_size = sizeof(struct bce),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = cvy_loss_each_grad_infer,
    .cost = cvy_loss_each_grad_cost,
    .reference = bce_grad_reference,
    .samples = bce_grad_samples,
};

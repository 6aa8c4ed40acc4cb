/*
 * mae: mean absolute error. In the step: the end of forward, regression that outliers should not rule.
 * Source: least absolute deviations, as PyTorch's L1Loss; the derivative at 0 is 0.
 *
 *     term   = |output - target|
 *     dterm  = sign(output - target)
 *     loss   = loss_weight / norm * sum over samples n of weight[n] * (mean over n's elements of term), see op_loss.h
 */
#include <math.h>

#include "op/op_loss.h"

struct mae {
    double loss_weight;
};

static const cvy_option mae_opts[] = {
    CVY_LOSS_WEIGHT_ROW(mae),
    {0},
};

static double mae_term(const void *options, double x, double t)
{
    (void)options;
    return fabs(x - t);
}

static double mae_slope(const void *options, double x, double t)
{
    (void)options;
    return (x > t) - (x < t);
}

static cvy_status mae_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                            cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct mae o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, NULL, src, nsrc, dst_out);
}

static cvy_status mae_grad(cvy_grad *g, const cvy_node *fwd)
{
    CVY_TRY(cvy_loss_emit(g, fwd, "mae_grad", 0));
    return cvy_loss_emit(g, fwd, "mae_grad", 1); /* symmetric: the target may be computed too */
}

static cvy_status mae_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_loss_each(node, ((const struct mae *)node->options)->loss_weight, mae_term, src, dst);
    return CVY_OK;
}

static const cvy_sample mae_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mae) = {
    .name = "mae",
    .summary = "mean absolute error",
    .options = mae_opts,
    .options_size = sizeof(struct mae),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .infer = cvy_loss_each_infer,
    .grad = mae_grad,
    .build = mae_build,
    .cost = cvy_loss_each_cost,
    .reference = mae_reference,
    .summands = cvy_loss_summands,
    .samples = mae_samples,
};

/* mae_grad: dloss, output, target, norm, [weight] -> doutput. */
static cvy_status mae_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_loss_each_grad(node, ((const struct mae *)node->options)->loss_weight, mae_slope, src, dst);
    return CVY_OK;
}

static const cvy_sample mae_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mae_grad) = {
    .name = "mae_grad",
    .summary = "gradient of mae",
    .options = mae_opts,
    .options_size = sizeof(struct mae),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = cvy_loss_each_grad_infer,
    .cost = cvy_loss_each_grad_cost,
    .reference = mae_grad_reference,
    .samples = mae_grad_samples,
};

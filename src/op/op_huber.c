/*
 * huber: Huber error: squared near the target, absolute far from it. In the step: the end of forward, regression that
 * outliers should not rule. Source: Huber 1964, as PyTorch's HuberLoss.
 *
 *     term   = d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = output - target
 *     dterm  = d, held between -delta and delta
 *     loss   = loss_weight / norm * sum over samples n of weight[n] * (mean over n's elements of term), see op_loss.h
 */
#include <math.h>

#include "op/op_loss.h"

struct huber {
    double delta, loss_weight;
};

static const cvy_option huber_opts[] = {
    {"delta", CVY_TYPE_REAL, CVY_FIELD(huber, delta), "1", ">0", "",
     "difference from which on the error grows linearly"},
    CVY_LOSS_WEIGHT_ROW(huber),
    {0},
};

static double huber_term(const void *options, double x, double t)
{
    const double delta = ((const struct huber *)options)->delta, d = fabs(x - t);
    return d <= delta ? d * d / 2 : delta * (d - delta / 2);
}

static double huber_slope(const void *options, double x, double t)
{
    const double delta = ((const struct huber *)options)->delta;
    return fmax(-delta, fmin(delta, x - t));
}

static cvy_status huber_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct huber o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, NULL, src, nsrc, dst_out);
}

static cvy_status huber_grad(cvy_grad *g, const cvy_node *fwd)
{
    CVY_TRY(cvy_loss_emit(g, fwd, "huber_grad", 0));
    return cvy_loss_emit(g, fwd, "huber_grad", 1); /* symmetric: the target may be computed too */
}

static cvy_status huber_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_loss_each(node, ((const struct huber *)node->options)->loss_weight, huber_term, src, dst);
    return CVY_OK;
}

static const cvy_sample huber_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .options = "delta: 0.2, loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(huber) = {
    .name = "huber",
    .summary = "Huber error: squared near the target, absolute far from it",
    .options = huber_opts,
    .options_size = sizeof(struct huber),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .infer = cvy_loss_each_infer,
    .grad = huber_grad,
    .build = huber_build,
    .cost = cvy_loss_each_cost,
    .reference = huber_reference,
    .summands = cvy_loss_summands,
    .samples = huber_samples,
};

/* huber_grad: dloss, output, target, norm, [weight] -> doutput. */
static cvy_status huber_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_loss_each_grad(node, ((const struct huber *)node->options)->loss_weight, huber_slope, src, dst);
    return CVY_OK;
}

static const cvy_sample huber_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .options = "delta: 0.2, loss_weight: 2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "delta: 0.3", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(huber_grad) = {
    .name = "huber_grad",
    .summary = "gradient of huber",
    .options = huber_opts,
    .options_size = sizeof(struct huber),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = cvy_loss_each_grad_infer,
    .cost = cvy_loss_each_grad_cost,
    .reference = huber_grad_reference,
    .samples = huber_grad_samples,
};

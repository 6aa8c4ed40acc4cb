/*
 * mse: mean squared error. In the step: the end of forward, regression.
 * Source: least squares; the mean over elements and samples, without a factor of one half, as PyTorch's MSELoss.
 *
 *     term   = (output - target)^2
 *     dterm  = 2 (output - target)
 *     loss   = loss_weight / norm * sum over samples n of weight[n] * (mean over n's elements of term), see op_loss.h
 */
#include <math.h>

#include "op/op_loss.h"

struct mse {
    double loss_weight;
};

static const cvy_option mse_opts[] = {
    CVY_LOSS_WEIGHT_ROW(mse),
    {0},
};

static double mse_term(const void *options, double x, double t)
{
    (void)options;
    return (x - t) * (x - t);
}

static double mse_slope(const void *options, double x, double t)
{
    (void)options;
    return 2 * (x - t);
}

static cvy_status mse_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                            cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct mse o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, NULL, src, nsrc, dst_out);
}

static cvy_status mse_grad(cvy_grad *g, const cvy_node *fwd)
{
    CVY_TRY(cvy_loss_emit(g, fwd, "mse_grad", 0));
    return cvy_loss_emit(g, fwd, "mse_grad", 1); /* symmetric: the target may be computed too */
}

static cvy_status mse_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_loss_each(node, ((const struct mse *)node->options)->loss_weight, mse_term, src, dst);
    return CVY_OK;
}

static const cvy_sample mse_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5,5,scalar:f64", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "4x1,4,scalar:f64,4", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mse) = {
    .name = "mse",
    .summary = "mean squared error",
    .options = mse_opts,
    .options_size = sizeof(struct mse),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .infer = cvy_loss_each_infer,
    .grad = mse_grad,
    .build = mse_build,
    .cost = cvy_loss_each_cost,
    .reference = mse_reference,
    .summands = cvy_loss_summands,
    .samples = mse_samples,
};

/* mse_grad: dloss, output, target, norm, [weight] -> doutput. */
static cvy_status mse_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_loss_each_grad(node, ((const struct mse *)node->options)->loss_weight, mse_slope, src, dst);
    return CVY_OK;
}

static const cvy_sample mse_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5,5,scalar:f64", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,4x1,4,scalar:f64,4", .options = "loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(mse_grad) = {
    .name = "mse_grad",
    .summary = "gradient of mse",
    .options = mse_opts,
    .options_size = sizeof(struct mse),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = cvy_loss_each_grad_infer,
    .cost = cvy_loss_each_grad_cost,
    .reference = mse_grad_reference,
    .samples = mse_grad_samples,
};

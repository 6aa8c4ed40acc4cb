/*
 * clamp: limits each element to min .. max. relu6 is the clamp to 0 .. 6, which MobileNetV2 has after its convolutions.
 * Source: Krizhevsky 2010, "Convolutional deep belief networks on CIFAR-10".
 *
 *     dst  = min if src < min, max if src > max, else src; NaN stays NaN
 *     dsrc = ddst if min < src < max, else 0
 *
 * If bf16 has both bounds exactly, the gradient reads dst, which gives the same, so that src need not be kept.
 *
 * At the bounds themselves the gradient is 0, as in PyTorch's relu6 and hardtanh. (PyTorch's clamp passes it on there.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_activation.h"

static const cvy_option clamp_rows[] = {
    {"min", CVY_TYPE_REAL, CVY_FIELD(cvy_clamp, min), "-1e38", "", "", "lower bound; -1e38: there is none"},
    {"max", CVY_TYPE_REAL, CVY_FIELD(cvy_clamp, max), "1e38", "", "", "upper bound; 1e38: there is none"},
    {0},
};

static cvy_status clamp_infer(cvy_node *node)
{
    const struct cvy_clamp *o = node->options;
    CVY_CHECK(o->min < o->max, CVY_E_ARGUMENT, "clamp: `min` is %g and `max` is %g; min must be smaller", o->min,
              o->max);
    return cvy_activation_infer(node);
}

static double clamp_value(const void *options, double x)
{
    const double low = cvy_clamp_low(options), high = cvy_clamp_high(options);
    return x < low ? low : x > high ? high : x;
}

static double clamp_slope(const void *options, double x)
{
    return x > cvy_clamp_low(options) && x < cvy_clamp_high(options);
}

static const cvy_activation_def clamp_family = {"clamp_grad", clamp_value, clamp_slope, .flop = 2, .slope_flop = 2};

static int is_exact(double bound)
{
    return isinf(bound) || cvy_bf16_get(cvy_bf16_of((float)bound)) == bound;
}

static cvy_status clamp_grad(cvy_grad *g, const cvy_node *fwd)
{
    const int from_dst = is_exact(cvy_clamp_low(fwd->options)) && is_exact(cvy_clamp_high(fwd->options));
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, from_dst ? fwd->dst[0] : fwd->src[0]};
    CVY_TRY(cvy_grad_emit(g, fwd, "clamp_grad", fwd->options, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static const cvy_sample clamp_samples[] = {
    {.src = "2x7x3x5", .options = "min: -0.26, max: 0.51"},
    {.src = "1x1", .options = "max: 0.5"},
    {.src = "2x33x4", .options = "min: 0.1"},
    {.src = "2x3x2x3x2", .options = "min: 0.2, max: 0.7"},
    {.src = "2x16x3x3", .options = "min: 0, max: 0.5"},
    {0},
};

/* Not CVY_OP_ELEMENTWISE: 0 may be outside the bounds, and then the padding of a blocked layout would not stay zero. */
CVY_OP_DEFINE(clamp) = {
    .name = "clamp",
    .summary = "limits each element to min .. max",
    .options = clamp_rows,
    .options_size = sizeof(struct cvy_clamp),
    .family = &clamp_family,
    .samples = clamp_samples,
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = clamp_infer,
    .grad = clamp_grad,
    .cost = cvy_activation_cost,
    .reference = cvy_activation_reference,
};

static const cvy_sample clamp_grad_samples[] = {{.src = "2x7x3x5,2x7x3x5", .options = "min: -0.26, max: 0.51"},
                                                {.src = "2x33x4,2x33x4", .options = "max: 0.3"},
                                                {0}};

CVY_OP_DEFINE(clamp_grad) = {
    .name = "clamp_grad",
    .summary = "gradient of clamp",
    .options = clamp_rows,
    .options_size = sizeof(struct cvy_clamp),
    .family = &clamp_family,
    .samples = clamp_grad_samples,
    CVY_ACTIVATION_GRAD_FIELDS,
};

/* ---- relu6: a node clamp ---- */

static cvy_status relu6_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    const struct cvy_clamp o = {.min = 0, .max = 6};
    cvy_node *node = NULL;
    (void)op;
    (void)options;
    CVY_CHECK(nsrc == 1, CVY_E_SHAPE, "relu6 takes one source, got %d", nsrc);
    CVY_TRY(cvy_graph_add_parsed(g, cvy_op_find("clamp"), name, name, &o, src, 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

static const cvy_sample relu6_samples[] = {{.src = "2x7x3x5"}, {.src = "3x32x3x3"}, {0}};

CVY_OP_DEFINE(relu6) = {
    .name = "relu6",
    .summary = "min(max(x, 0), 6)",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .build = relu6_build,
    .samples = relu6_samples,
};

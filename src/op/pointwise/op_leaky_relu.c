/*
 * leaky_relu: rectified linear unit with a small slope for negative values. Networks have it after convolutions and
 * fully connected layers. Source: Maas, Hannun and Ng 2013.
 *
 *     dst  = src if src > 0, else slope * src
 *     dsrc = ddst if dst > 0, else slope * ddst      (from dst: slope >= 0, so dst has the sign of src)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_activation.h"

static const cvy_option leaky_relu_opts[] = {
    {"slope", CVY_TYPE_REAL, CVY_FIELD(cvy_leaky_relu, slope), "0.01", "0..", "", "factor on negative values"},
    {0},
};

static cvy_status leaky_relu_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status leaky_relu_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, fwd->dst[0]};
    CVY_TRY(cvy_grad_emit(g, fwd, "leaky_relu_grad", fwd->options, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static cvy_status leaky_relu_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_leaky_relu *o = node->options;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double x = cvy_get(src, i);
        cvy_set(dst, i, x > 0 ? x : o->slope * x);
    }
    return CVY_OK;
}

static const cvy_sample leaky_relu_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4", .options = "slope: 0.2"}, {.src = "2x3x2x3x2"}, {0},
};

CVY_OP_DEFINE(leaky_relu) = {
    .name = "leaky_relu",
    .summary = "rectified linear unit with a slope for negative values",
    .options = leaky_relu_opts,
    .options_size = sizeof(struct cvy_leaky_relu),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = leaky_relu_infer,
    .grad = leaky_relu_grad,
    .reference = leaky_relu_reference,
    .samples = leaky_relu_samples,
};

/* leaky_relu_grad: ddst, dst -> dsrc. */
static cvy_status leaky_relu_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_leaky_relu *o = node->options;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double ddst = cvy_get(&src[0], i);
        cvy_set(dst, i, cvy_get(&src[1], i) > 0 ? ddst : o->slope * ddst);
    }
    return CVY_OK;
}

/* Its own gradient is tested by tests/op/test_op_gradient_penalty.c. */
static const cvy_sample leaky_relu_grad_samples[] = {
    {.src = "2x7x3x5,2x7x3x5", .flags = CVY_SAMPLE_NO_GRAD},
    {.src = "2x33x4,2x33x4", .options = "slope: 0.2", .flags = CVY_SAMPLE_NO_GRAD},
    {0},
};

CVY_OP_DEFINE(leaky_relu_grad) = {
    .name = "leaky_relu_grad",
    .summary = "gradient of leaky_relu",
    .options = leaky_relu_opts,
    .options_size = sizeof(struct cvy_leaky_relu),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = leaky_relu_infer,
    .grad = cvy_activation_grad_again,
    .reference = leaky_relu_grad_reference,
    .samples = leaky_relu_grad_samples,
};

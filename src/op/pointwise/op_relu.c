/*
 * relu: rectified linear unit. Networks have it after convolutions and fully connected layers, and the pass fuse-relu
 * fuses it into them. Source: Nair and Hinton 2010.
 *
 *     dst  = max(src, 0)
 *     dsrc = ddst if dst > 0, else 0          (from dst, so that src need not be kept)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_activation.h"

static cvy_status relu_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status relu_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, fwd->dst[0]};
    CVY_TRY(cvy_grad_emit(g, fwd, "relu_grad", NULL, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static cvy_status relu_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double x = cvy_get(src, i);
        cvy_set(dst, i, x > 0 ? x : 0);
    }
    return CVY_OK;
}

static const cvy_sample relu_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(relu) = {
    .name = "relu",
    .summary = "rectified linear unit",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = relu_infer,
    .grad = relu_grad,
    .reference = relu_reference,
    .samples = relu_samples,
};

/* relu_grad: ddst, dst -> dsrc. */
static cvy_status relu_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(&src[1], i) > 0 ? cvy_get(&src[0], i) : 0);
    return CVY_OK;
}

/* Its own gradient is tested by tests/op/test_op_gradient_penalty.c. */
static const cvy_sample relu_grad_samples[] = {{.src = "2x7x3x5,2x7x3x5", .flags = CVY_SAMPLE_NO_GRAD},
                                               {.src = "2x33x4,2x33x4", .flags = CVY_SAMPLE_NO_GRAD},
                                               {0}};

CVY_OP_DEFINE(relu_grad) = {
    .name = "relu_grad",
    .summary = "gradient of relu",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = relu_infer,
    .grad = cvy_activation_grad_again,
    .reference = relu_grad_reference,
    .samples = relu_grad_samples,
};

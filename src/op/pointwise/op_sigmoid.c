/*
 * sigmoid: logistic function, for gates and probabilities of single outputs. Source: Rumelhart, Hinton and Williams
 * 1986.
 *
 *     dst  = 1 / (1 + exp(-src))
 *     dsrc = ddst * dst * (1 - dst)          (from dst, so that src need not be kept)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_grad.h"

static cvy_status sigmoid_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status sigmoid_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, fwd->dst[0]};
    CVY_TRY(cvy_grad_emit(g, fwd, "sigmoid_grad", NULL, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

/* One exponential takes about ten operations. */
static void sigmoid_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 12 * n, .read_elems = n, .write_elems = n};
}

static cvy_status sigmoid_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, 1 / (1 + exp(-cvy_get(src, i))));
    return CVY_OK;
}

static const cvy_sample sigmoid_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(sigmoid) = {
    /* not CVY_OP_ELEMENTWISE: sigmoid(0) is not 0, so the padding of a blocked layout would not stay zero */
    .name = "sigmoid",
    .summary = "logistic function",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = sigmoid_infer,
    .grad = sigmoid_grad,
    .cost = sigmoid_cost,
    .reference = sigmoid_reference,
    .samples = sigmoid_samples,
};

/* sigmoid_grad: ddst, dst -> dsrc. */
static cvy_status sigmoid_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double y = cvy_get(&src[1], i);
        cvy_set(dst, i, cvy_get(&src[0], i) * y * (1 - y));
    }
    return CVY_OK;
}

static void sigmoid_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 3 * n, .read_elems = 2 * n, .write_elems = n};
}

static const cvy_sample sigmoid_grad_samples[] = {{.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4"}, {0}};

CVY_OP_DEFINE(sigmoid_grad) = {
    .name = "sigmoid_grad",
    .summary = "gradient of sigmoid",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = sigmoid_infer,
    .cost = sigmoid_grad_cost,
    .reference = sigmoid_grad_reference,
    .samples = sigmoid_grad_samples,
};

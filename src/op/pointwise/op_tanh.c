/*
 * tanh: hyperbolic tangent, for small networks and approximations of smooth functions. Source: LeCun, Bottou, Orr and
 * Mueller 1998, section 4.4.
 *
 *     dst  = tanh(src)
 *     dsrc = ddst * (1 - dst^2)          (from dst, so that src need not be kept)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_grad.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_scale.h"

static cvy_status tanh_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status tanh_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, fwd->dst[0]};
    CVY_TRY(cvy_grad_emit(g, fwd, "tanh_grad", NULL, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

/* One exponential takes about ten operations. */
static void tanh_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 12 * n, .read_elems = n, .write_elems = n};
}

static cvy_status tanh_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, tanh(cvy_get(src, i)));
    return CVY_OK;
}

static const cvy_sample tanh_samples[] = {
    {.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4"}, {.src = "2x3x2x3x2"}, {0}};

CVY_OP_DEFINE(tanh) = {
    .name = "tanh",
    .summary = "hyperbolic tangent",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = tanh_infer,
    .grad = tanh_grad,
    .cost = tanh_cost,
    .reference = tanh_reference,
    .samples = tanh_samples,
};

/* tanh_grad: ddst, dst -> dsrc. */
static cvy_status tanh_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double y = cvy_get(&src[1], i);
        cvy_set(dst, i, cvy_get(&src[0], i) * (1 - y) * (1 + y));
    }
    return CVY_OK;
}

/* For second derivatives: that of ddst is the same operator, and that of dst is -2 dst ddst times the gradient. */
static cvy_status tanh_grad_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_scale_opts by = {-2};
    cvy_value *d = cvy_grad_of(g, fwd->dst[0]), *ddst = NULL;
    CVY_TRY(cvy_activation_grad_again(g, fwd));
    if (!d || !cvy_grad_wanted(g, fwd->src[1]))
        return CVY_OK;
    cvy_value *const from[] = {d, fwd->src[0], fwd->src[1]};
    CVY_TRY(cvy_grad_emit(g, fwd, "multiply", NULL, from, 3, &ddst, 1));
    CVY_TRY(cvy_grad_emit(g, fwd, "scale", &by, &ddst, 1, &ddst, 1));
    return cvy_grad_add(g, fwd->src[1], ddst);
}

static void tanh_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 3 * n, .read_elems = 2 * n, .write_elems = n};
}

static const cvy_sample tanh_grad_samples[] = {{.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4"}, {0}};

CVY_OP_DEFINE(tanh_grad) = {
    .name = "tanh_grad",
    .summary = "gradient of tanh",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = tanh_infer,
    .grad = tanh_grad_grad,
    .cost = tanh_grad_cost,
    .reference = tanh_grad_reference,
    .samples = tanh_grad_samples,
};

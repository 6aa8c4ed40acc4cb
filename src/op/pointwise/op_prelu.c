/*
 * prelu: rectified linear unit with a trained slope for negative values: one slope for the layer, or one for each
 * channel. Source: He et al. 2015, "Delving deep into rectifiers".
 *
 *     dst     = src if src > 0, else weight * src
 *     dsrc    = ddst if src > 0, else weight * ddst
 *     dweight = sum of ddst * src over the elements with src <= 0
 *
 * By default the weight has no weight decay, which would pull the slope towards that of relu, as the authors say.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "graph/graph_grad.h"
#include "op/pointwise/op_activation.h"

static const cvy_option prelu_opts[] = {
    {"per_channel", CVY_TYPE_BOOL, CVY_FIELD(cvy_prelu, per_channel), "false", "", "",
     "a slope for each channel, instead of one for the layer"},
    {"init", CVY_TYPE_REAL, CVY_FIELD(cvy_prelu, init), "0.25", "", "", "the slope at the start"},
    {0},
};

static cvy_status prelu_infer(cvy_node *node)
{
    const struct cvy_prelu *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    char value[48];
    CVY_CHECK(src->ndim >= 2 || !o->per_channel, CVY_E_SHAPE, "prelu per channel needs a source [N, C, ...], got %s",
              cvy_shape_text(src));
    const cvy_shape weight = {.ndim = 1, .dim = {o->per_channel ? src->dim[1] : 1}};
    snprintf(value, sizeof value, "value: %.17g", o->init);
    const cvy_init init = {.method = "constant", .options = value};
    CVY_TRY(cvy_node_param(node, "weight", &weight, &init, 0));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, src);
}

static cvy_status prelu_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *const from[] = {cvy_grad_of(g, fwd->dst[0]), fwd->src[0], fwd->src[1]};
    cvy_value *d[2] = {NULL, NULL};
    if (!from[0])
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, "prelu_grad", fwd->options, from, 3, d, 2));
    for (int i = 0; i < 2; i++)
        CVY_TRY(cvy_grad_add(g, fwd->src[i], d[i]));
    return CVY_OK;
}

static void prelu_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = n};
}

/* The weight of element i of a source [N, C, positions...]. */
static int64_t weight_at(const cvy_span *src, const cvy_span *weight, int64_t i)
{
    return weight->elems == 1 ? 0 : i / cvy_span_prod(src, 2, src->ndim) % weight->elems;
}

static cvy_status prelu_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double x = cvy_get(&src[0], i);
        cvy_set(dst, i, x > 0 ? x : cvy_get(&src[1], weight_at(&src[0], &src[1], i)) * x);
    }
    return CVY_OK;
}

static const cvy_sample prelu_samples[] = {
    {.src = "2x7x3x5"},
    {.src = "1x1"},
    {.src = "3"},
    {.src = "2x33x4", .options = "init: 0.1"},
    {.src = "2x7x3x5", .options = "per_channel: true"},
    {.src = "3x32x4x5", .options = "per_channel: true"},
    {.src = "2x33x2x3x2", .options = "per_channel: true"},
    {.src = "5x6", .options = "per_channel: true, init: 0"},
    {0},
};

CVY_OP_DEFINE(prelu) = {
    .name = "prelu",
    .summary = "rectified linear unit with a trained slope for negative values",
    .options = prelu_opts,
    .options_size = sizeof(struct cvy_prelu),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = prelu_infer,
    .grad = prelu_grad,
    .cost = prelu_cost,
    .reference = prelu_reference,
    .samples = prelu_samples,
};

/* prelu_grad: ddst, src, weight -> dsrc, dweight. It is tested with the samples of prelu, through its gradient. */
static cvy_status prelu_grad_infer(cvy_node *node)
{
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0)));
    return cvy_node_set_dst(node, 1, cvy_graph_weight_dtype(node->graph), cvy_node_src(node, 2));
}

static void prelu_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 3 * n, .read_elems = 2 * n, .write_elems = n};
}

static int64_t prelu_grad_summands(const cvy_node *node)
{
    return cvy_shape_elems(cvy_node_src(node, 0)) / cvy_shape_elems(cvy_node_src(node, 2)) + 1;
}

static cvy_status prelu_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t weights = src[2].elems, positions = cvy_span_prod(&src[1], 2, src[1].ndim);
    const int64_t run = weights == 1 ? src[1].elems : positions; /* adjacent elements of one weight */
    (void)node;
    for (int64_t k = 0; k < weights; k++) {
        const double weight = cvy_get(&src[2], k);
        double sum = 0;
        for (int64_t first = k * run; first < src[1].elems; first += weights * run)
            for (int64_t i = first; i < first + run; i++) {
                const double ddst = cvy_get(&src[0], i), x = cvy_get(&src[1], i);
                cvy_set(&dst[0], i, x > 0 ? ddst : weight * ddst);
                sum += x > 0 ? 0 : ddst * x;
            }
        cvy_set(&dst[1], k, sum);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(prelu_grad) = {
    .name = "prelu_grad",
    .summary = "gradient of prelu",
    .options = prelu_opts,
    .options_size = sizeof(struct cvy_prelu),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = prelu_grad_infer,
    .cost = prelu_grad_cost,
    .reference = prelu_grad_reference,
    .summands = prelu_grad_summands,
};

/*
 * bn_infer, bn_infer_grad, bn_infer_grad_params: normalisation by running statistics, which are constants, and its
 * gradient. It is what batch norm does in evaluation, and in training if its statistics are frozen. The operators are
 * tested with the samples of batch_norm: in a graph that does not train, and with the option `frozen` in one that does.
 *
 *     xhat   = (src - running_mean) / sqrt(running_var + eps)
 *     dst    = xhat * scale + shift
 *     dsrc   = ddst * scale / sqrt(running_var + eps)
 *     dscale = sum(ddst * xhat), dshift = sum(ddst)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_grad.h"
#include "op/norm/op_batch_norm.h"

/* bn_infer: src, scale, shift, running_mean, running_var [, residual] -> dst = (src - running_mean) /
 * sqrt(running_var + eps) * scale + shift [+ residual]. */
static cvy_status bn_infer_infer(cvy_node *node)
{
    const int64_t channels = cvy_node_src(node, 0)->dim[1];
    CVY_TRY(cvy_bn_scale_shift_params(node, channels));
    CVY_TRY(cvy_bn_running_params(node, channels));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status bn_infer_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_batch_norm_opts *o = fwd->options;
    cvy_value *const mean = fwd->src[cvy_bn_infer_mean(fwd)], *const variance = fwd->src[cvy_bn_infer_mean(fwd) + 1];
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *sums[2] = {NULL, NULL}, *dsrc = NULL;
    if (!ddst)
        return CVY_OK;
    if (o->relu) {
        cvy_value *const from[] = {ddst, fwd->dst[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, "relu_grad", NULL, from, 2, &ddst, 1));
    }
    if (o->scale_shift && (cvy_grad_wanted(g, fwd->src[1]) || cvy_grad_wanted(g, fwd->src[2]))) {
        cvy_value *const from[] = {fwd->src[0], ddst, mean, variance};
        CVY_TRY(cvy_grad_emit(g, fwd, "bn_infer_grad_params", o, from, 4, sums, 2));
        for (int i = 0; i < 2; i++)
            if (cvy_grad_wanted(g, fwd->src[1 + i]))
                CVY_TRY(cvy_grad_add(g, fwd->src[1 + i], sums[i]));
    }
    if (!cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, variance, o->scale_shift ? fwd->src[1] : NULL};
    CVY_TRY(cvy_grad_emit(g, fwd, "bn_infer_grad", o, from, o->scale_shift ? 3 : 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void bn_infer_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0)), adds = cvy_bn_infer_residual(node) >= 0;
    *cost_out = (cvy_cost){.flop = (2 + adds) * n, .read_elems = (1 + adds) * n, .write_elems = n};
}

static cvy_status bn_infer_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_span *mean = &src[cvy_bn_infer_mean(node)], *variance = mean + 1;
    const int residual = cvy_bn_infer_residual(node);
    const int64_t C = src->dim[1], positions = cvy_span_prod(src, 2, src->ndim);
    for (int64_t i = 0; i < dst->elems; i++) {
        const int64_t c = i / positions % C;
        double y = (cvy_get(src, i) - cvy_get(mean, c)) / sqrt(cvy_get(variance, c) + o->eps);
        if (o->scale_shift)
            y = y * cvy_get(&src[1], c) + cvy_get(&src[2], c);
        if (residual >= 0)
            y += cvy_get(&src[residual], i);
        cvy_set(dst, i, o->relu && y < 0 ? 0 : y);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_infer) = {
    .name = "bn_infer",
    .summary = "batch normalisation by running statistics",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = bn_infer_infer,
    .grad = bn_infer_grad,
    .cost = bn_infer_cost,
    .reference = bn_infer_reference,
};

/* bn_infer_grad: ddst, running_var [, scale] -> dsrc. */
static cvy_status bn_infer_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static void bn_infer_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = n};
}

static cvy_status bn_infer_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const int64_t C = src->dim[1], positions = cvy_span_prod(src, 2, src->ndim);
    for (int64_t i = 0; i < dst->elems; i++) {
        const int64_t c = i / positions % C;
        const double scale = o->scale_shift ? cvy_get(&src[2], c) : 1;
        cvy_set(dst, i, cvy_get(src, i) * scale / sqrt(cvy_get(&src[1], c) + o->eps));
    }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_infer_grad) = {
    .name = "bn_infer_grad",
    .summary = "gradient of bn_infer for its source",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 2,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = bn_infer_grad_infer,
    .cost = bn_infer_grad_cost,
    .reference = bn_infer_grad_reference,
};

/* bn_infer_grad_params: src, ddst, running_mean, running_var -> dscale, dshift. They are sums over this rank only,
 * because like all gradients they are reduced later. */
static cvy_status bn_infer_grad_params_infer(cvy_node *node)
{
    const cvy_shape channels = {.ndim = 1, .dim = {cvy_node_src(node, 0)->dim[1]}};
    for (int i = 0; i < 2; i++)
        CVY_TRY(cvy_node_set_dst(node, i, cvy_graph_weight_dtype(node->graph), &channels));
    return CVY_OK;
}

static void bn_infer_grad_params_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 4 * n, .read_elems = 2 * n, .write_elems = 2 * cvy_node_src(node, 0)->dim[1]};
}

static int64_t bn_infer_grad_params_summands(const cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    return CVY_MAX(src->dim[0], 1) * cvy_bn_positions(src);
}

static cvy_status bn_infer_grad_params_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const int64_t N = src->dim[0], C = src->dim[1], positions = cvy_span_prod(src, 2, src->ndim);
    for (int64_t c = 0; c < C; c++) {
        const double mean = cvy_get(&src[2], c), inv_std = 1 / sqrt(cvy_get(&src[3], c) + o->eps);
        double dscale = 0, dshift = 0;
        for (int64_t n = 0; n < N; n++)
            for (int64_t i = (n * C + c) * positions; i < (n * C + c + 1) * positions; i++) {
                dshift += cvy_get(&src[1], i);
                dscale += cvy_get(&src[1], i) * (cvy_get(&src[0], i) - mean) * inv_std;
            }
        cvy_set(&dst[0], c, dscale);
        cvy_set(&dst[1], c, dshift);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_infer_grad_params) = {
    .name = "bn_infer_grad_params",
    .summary = "gradient of bn_infer for scale and shift",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 4,
    .nsrc_max = 4,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = bn_infer_grad_params_infer,
    .cost = bn_infer_grad_params_cost,
    .reference = bn_infer_grad_params_reference,
    .summands = bn_infer_grad_params_summands,
};

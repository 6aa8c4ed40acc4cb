/*
 * mix: a random mixture of two tensors, sample by sample, such as of real and generated samples for a gradient penalty.
 * Source: Gulrajani et al. 2017.
 *
 *     dst[n] = e[n] * first[n] + (1 - e[n]) * second[n]       e[n] uniform from 0 to 1
 *     dfirst[n] = e[n] * ddst[n], dsecond[n] = (1 - e[n]) * ddst[n]
 *
 * e is a pure function of (seed, layer, step, sample id), as in noise. In evaluation there is no step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_mix.h"

#include "base/number/base_rng.h"
#include "graph/graph_grad.h"

static cvy_status mix_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                            cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_node *node = NULL;
    cvy_value *from[4] = {NULL};
    (void)options;
    CVY_CHECK(nsrc == 2, CVY_E_SHAPE, "mix takes two sources, got %d", nsrc);
    from[0] = src[0];
    from[1] = src[1];
    CVY_TRY(cvy_graph_sample_id(g, &from[2]));
    if (g->training)
        CVY_TRY(cvy_graph_step_number(g, &from[3]));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, NULL, from, g->training ? 4 : 3, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* The share of the first tensor in sample n. id, step: spans of the node's sources; step NULL: evaluation. */
static double share_of(const cvy_node *node, const cvy_span *id, const cvy_span *step, int64_t n)
{
    const cvy_rng stream =
        cvy_rng_make_hashed(node->graph->seed, cvy_rng_name(node->layer),
                            (uint64_t)(step ? ((const int64_t *)step->data)[0] : -1), ((const uint64_t *)id->data)[n]);
    return cvy_rng_uniform(&stream, 0);
}

/* first, second, sample id i64 [N] [, step i64 scalar] -> dst. */
static cvy_status mix_infer(cvy_node *node)
{
    const cvy_shape *a = cvy_node_src(node, 0), *b = cvy_node_src(node, 1);
    CVY_CHECK(cvy_shape_equal(a, b) && a->ndim >= 1, CVY_E_SHAPE, "mix takes two tensors of one shape, got %s and %s",
              cvy_shape_text(a), cvy_shape_text(b));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, a);
}

static cvy_status mix_backward(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    for (int64_t side = 0; ddst && side < 2; side++) {
        const cvy_mix_grad_opts o = {side};
        cvy_value *const from[] = {ddst, fwd->src[2], fwd->nsrc > 3 ? fwd->src[3] : NULL};
        cvy_value *dsrc = NULL;
        if (!cvy_grad_wanted(g, fwd->src[side]))
            continue;
        CVY_TRY(cvy_grad_emit(g, fwd, "mix_grad", &o, from, fwd->nsrc - 1, &dsrc, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[side], dsrc));
    }
    return CVY_OK;
}

static void mix_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 3 * n, .read_elems = 2 * n, .write_elems = n};
}

static cvy_status mix_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t N = dst->dim[0], each = cvy_span_prod(dst, 1, dst->ndim);
    for (int64_t n = 0; n < N; n++) {
        const double e = share_of(node, &src[2], node->nsrc > 3 ? &src[3] : NULL, n);
        for (int64_t i = n * each; i < (n + 1) * each; i++)
            cvy_set(dst, i, e * cvy_get(&src[0], i) + (1 - e) * cvy_get(&src[1], i));
    }
    return CVY_OK;
}

static const cvy_sample mix_samples[] = {
    {.src = "3x2x4,3x2x4,3:i64,scalar:i64", .int_bound = 1000},
    {.src = "2x5,2x5,2:i64", .int_bound = 1000},
    {0},
};

CVY_OP_DEFINE(mix) = {
    .name = "mix",
    .summary = "a random mixture of two tensors, sample by sample",
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = mix_infer,
    .grad = mix_backward,
    .build = mix_build,
    .cost = mix_cost,
    .reference = mix_reference,
    .samples = mix_samples,
};

/* mix_grad: ddst, sample id [, step] -> dsrc. */
static const cvy_option mix_grad_opts[] = {
    {"side", CVY_TYPE_INT, CVY_FIELD(cvy_mix_grad_opts, side), "0", "0..1", "", "which of the two tensors"},
    {0},
};

static cvy_status mix_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status mix_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_mix_grad_opts *o = node->options;
    const int64_t N = dst->dim[0], each = cvy_span_prod(dst, 1, dst->ndim);
    for (int64_t n = 0; n < N; n++) {
        const double e = share_of(node, &src[1], node->nsrc > 2 ? &src[2] : NULL, n);
        for (int64_t i = n * each; i < (n + 1) * each; i++)
            cvy_set(dst, i, (o->side ? 1 - e : e) * cvy_get(&src[0], i));
    }
    return CVY_OK;
}

static const cvy_sample mix_grad_samples[] = {
    {.src = "3x2x4,3:i64,scalar:i64", .int_bound = 1000},
    {.src = "2x5,2:i64", .options = "side: 1", .int_bound = 1000},
    {0},
};

CVY_OP_DEFINE(mix_grad) = {
    .name = "mix_grad",
    .summary = "gradient of mix for one of its tensors",
    .options = mix_grad_opts,
    .options_size = sizeof(cvy_mix_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = mix_grad_infer,
    .reference = mix_grad_reference,
    .samples = mix_grad_samples,
};

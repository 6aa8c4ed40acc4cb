/*
 * scale: multiplication by a constant, for weighted branches and losses. With 1 it is a copy.
 *
 *     dst  = by * src
 *     dsrc = by * ddst
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_scale.h"
#include "graph/graph_grad.h"

static const cvy_option scale_rows[] = {
    {"by", CVY_TYPE_REAL, CVY_FIELD(cvy_scale_opts, by), "1", "", "", "the factor"},
    {0},
};

static cvy_status scale_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status scale_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, "scale", fwd->options, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static cvy_status scale_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_scale_opts *o = node->options;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, o->by * cvy_get(src, i));
    return CVY_OK;
}

static const cvy_sample scale_samples[] = {
    {.src = "2x3x5x4", .options = "by: -0.25"}, {.src = "1"}, {.src = "2x33", .options = "by: 3"},
    {.src = "2x16x3x3", .options = "by: 0.1"},  {0},
};

CVY_OP_DEFINE(scale) = {
    .name = "scale",
    .summary = "multiplication by a constant",
    .options = scale_rows,
    .options_size = sizeof(cvy_scale_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = scale_infer,
    .grad = scale_grad,
    .reference = scale_reference,
    .samples = scale_samples,
};

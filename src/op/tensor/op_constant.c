/*
 * constant: a tensor of one value that has the shape of its source: the target of a loss on real or generated samples.
 *
 *     dst = value
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"

struct constant {
    double value;
};

static const cvy_option constant_opts[] = {
    {"value", CVY_TYPE_REAL, CVY_FIELD(constant, value), NULL, "", "", "of every element"},
    {0},
};

static cvy_status constant_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static void constant_cost(const cvy_node *node, cvy_cost *cost_out)
{
    *cost_out = (cvy_cost){.write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static cvy_status constant_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct constant *o = node->options;
    (void)src;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, o->value);
    return CVY_OK;
}

/* The result does not depend on the source. */
static cvy_status constant_grad(cvy_grad *g, const cvy_node *fwd)
{
    (void)g;
    (void)fwd;
    return CVY_OK;
}

static const cvy_sample constant_samples[] = {
    {.src = "3x2x4", .options = "value: 0.9"},
    {.src = "5", .options = "value: -1"},
    {0},
};

CVY_OP_DEFINE(constant) = {
    .name = "constant",
    .summary = "one value in the shape of the source",
    .options = constant_opts,
    .options_size = sizeof(struct constant),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = constant_infer,
    .grad = constant_grad,
    .cost = constant_cost,
    .reference = constant_reference,
    .samples = constant_samples,
};

/*
 * constant: a tensor of one value that has the shape of its source: the target of a loss on real or generated samples.
 *
 *     dst = value
 *
 * The source gives the shape only, and is not computed for it: the node reads the numbers of the samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "op/tensor/op_constant.h"

static const cvy_option constant_opts[] = {
    {"value", CVY_TYPE_REAL, CVY_FIELD(cvy_constant_opts, value), NULL, "", "", "of every element"},
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_constant_opts, of.shape), "", "1..", "",
     "dimensions of a sample; those of the source if not given"},
    {0},
};

static cvy_status constant_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                 cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_constant_opts o;
    cvy_ints *shape = &o.of.shape;
    CVY_TRY(cvy_per_sample_check(op, src, nsrc));
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    if (shape->count == 0) {
        shape->count = src[0]->shape.ndim - 1;
        memcpy(shape->at, src[0]->shape.dim + 1, sizeof *shape->at * (size_t)shape->count);
    }
    return cvy_per_sample_add(g, op, name, &o, 0, dst_out);
}

static void constant_cost(const cvy_node *node, cvy_cost *cost_out)
{
    *cost_out = (cvy_cost){.write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static cvy_status constant_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_constant_opts *o = node->options;
    (void)src;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, o->value);
    return CVY_OK;
}

static const cvy_sample constant_samples[] = {
    {.src = "3:i64", .options = "value: 0.9, shape: [2, 4]"},
    {.src = "5:i64", .options = "value: -1"},
    {0},
};

CVY_OP_DEFINE(constant) = {
    .name = "constant",
    .summary = "one value in the shape of the source",
    .options = constant_opts,
    .options_size = sizeof(cvy_constant_opts),
    .flags = CVY_OP_COUNTS,
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = cvy_per_sample_infer,
    .build = constant_build,
    .cost = constant_cost,
    .reference = constant_reference,
    .samples = constant_samples,
};

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

#include "graph/graph_op.h"

struct constant {
    double value;
    cvy_ints shape;
};

static const cvy_option constant_opts[] = {
    {"value", CVY_TYPE_REAL, CVY_FIELD(constant, value), NULL, "", "", "of every element"},
    {"shape", CVY_TYPE_INTS, CVY_FIELD(constant, shape), "", "1..", "",
     "dimensions of a sample; those of the source if not given"},
    {0},
};

static cvy_status constant_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                 cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct constant o;
    cvy_node *node = NULL;
    cvy_value *id = NULL;
    CVY_CHECK(nsrc == 1 && src[0]->shape.ndim >= 1, CVY_E_SHAPE, "constant takes one source [N, ...], got %d", nsrc);
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    if (o.shape.count == 0) {
        o.shape.count = src[0]->shape.ndim - 1;
        memcpy(o.shape.at, src[0]->shape.dim + 1, sizeof *o.shape.at * (size_t)o.shape.count);
    }
    CVY_TRY(cvy_graph_sample_id(g, &id));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, &o, &id, 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* sample id i64 [N] -> dst [N, shape]. */
static cvy_status constant_infer(cvy_node *node)
{
    const struct constant *o = node->options;
    cvy_shape dst = {.ndim = 1 + o->shape.count, .dim = {cvy_node_src(node, 0)->dim[0]}};
    CVY_CHECK(cvy_node_src(node, 0)->ndim == 1 && node->src[0]->dtype == CVY_DTYPE_I64, CVY_E_SHAPE,
              "constant needs sample ids, got %s", cvy_shape_text(cvy_node_src(node, 0)));
    CVY_CHECK(o->shape.count < CVY_NDIM_MAX, CVY_E_SHAPE, "constant has %d dimensions, at most %d", o->shape.count,
              CVY_NDIM_MAX - 1);
    for (int i = 0; i < o->shape.count; i++)
        dst.dim[1 + i] = o->shape.at[i];
    return cvy_node_set_dst(node, 0, node->graph->dtype, &dst);
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

static const cvy_sample constant_samples[] = {
    {.src = "3:i64", .options = "value: 0.9, shape: [2, 4]"},
    {.src = "5:i64", .options = "value: -1"},
    {0},
};

CVY_OP_DEFINE(constant) = {
    .name = "constant",
    .summary = "one value in the shape of the source",
    .options = constant_opts,
    .options_size = sizeof(struct constant),
    .flags = CVY_OP_COUNTS,
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = constant_infer,
    .build = constant_build,
    .cost = constant_cost,
    .reference = constant_reference,
    .samples = constant_samples,
};

/*
 * op_per_sample.c: see op_per_sample.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_per_sample.h"

cvy_status cvy_per_sample_check(const cvy_op_def *op, cvy_value *const *src, int nsrc)
{
    CVY_CHECK(nsrc == 1, CVY_E_SHAPE, "%s takes one source, got %d", op->name, nsrc);
    CVY_CHECK(src[0]->shape.ndim >= 1, CVY_E_SHAPE, "%s needs a source of samples, [N, ...], and %s is a scalar",
              op->name, src[0]->name);
    return CVY_OK;
}

cvy_status cvy_per_sample_add(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options, int with_step,
                              cvy_value **dst_out)
{
    const int has_step = with_step && g->training;
    cvy_value *from[2] = {NULL};
    cvy_node *node = NULL;
    CVY_TRY(cvy_graph_sample_id(g, &from[0]));
    if (has_step)
        CVY_TRY(cvy_graph_step_number(g, &from[1]));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, options, from, has_step ? 2 : 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

cvy_status cvy_per_sample_infer(cvy_node *node)
{
    const struct cvy_per_sample *o = node->options;
    const cvy_shape *id = cvy_node_src(node, 0);
    cvy_shape dst = {.ndim = 1 + o->shape.count};
    CVY_CHECK(id->ndim == 1 && node->src[0]->dtype == CVY_DTYPE_I64, CVY_E_SHAPE, "%s needs sample ids, got %s %s",
              node->op->name, cvy_dtype_text(node->src[0]->dtype), cvy_shape_text(id));
    CVY_CHECK(o->shape.count < CVY_NDIM_MAX, CVY_E_SHAPE, "%s: a sample has %d dimensions, expected at most %d",
              node->op->name, o->shape.count, CVY_NDIM_MAX - 1);
    dst.dim[0] = id->dim[0];
    for (int i = 0; i < o->shape.count; i++)
        dst.dim[1 + i] = o->shape.at[i];
    return cvy_node_set_dst(node, 0, node->graph->dtype, &dst);
}

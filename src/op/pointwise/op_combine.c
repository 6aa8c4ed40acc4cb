/*
 * op_combine.c: shapes, broadcasting and cost of operators on several tensors, see op_combine.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_combine.h"

#include <stdio.h>

#include "op/tensor/op_expand.h"

cvy_status cvy_combine_infer(cvy_node *node)
{
    const cvy_shape *first = cvy_node_src(node, 0);
    for (int i = 1; i < node->nsrc; i++)
        CVY_CHECK(cvy_shape_equal(first, cvy_node_src(node, i)) && node->src[i]->dtype == node->src[0]->dtype,
                  CVY_E_SHAPE, "%s needs sources of one shape and dtype, got %s %s and %s %s", node->op->name,
                  cvy_dtype_text(node->src[0]->dtype), cvy_shape_text(first), cvy_dtype_text(node->src[i]->dtype),
                  cvy_shape_text(cvy_node_src(node, i)));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, first);
}

/* The shape that all sources are broadcast to. */
static cvy_status common_shape(const cvy_op_def *op, cvy_value *const *src, int nsrc, cvy_shape *out)
{
    *out = src[0]->shape;
    for (int i = 1; i < nsrc; i++) {
        const cvy_shape a = *out, *b = &src[i]->shape;
        const int ndim = CVY_MAX(a.ndim, b->ndim);
        int fits = a.ndim > 0 && b->ndim > 0 && a.dim[0] == b->dim[0];
        *out = (cvy_shape){.ndim = ndim, .dim = {a.dim[0]}};
        for (int d = 1; fits && d < ndim; d++) {
            const int at = d - ndim + a.ndim, bt = d - ndim + b->ndim;
            const int64_t m = at >= 1 ? a.dim[at] : 1, n = bt >= 1 ? b->dim[bt] : 1;
            fits = m == n || m == 1 || n == 1;
            out->dim[d] = CVY_MAX(m, n);
        }
        CVY_CHECK(fits, CVY_E_SHAPE,
                  "%s: sources %s and %s do not fit: seen from the last axis of a sample, lengths must be equal, or 1",
                  op->name, cvy_shape_text(&a), cvy_shape_text(b));
    }
    return CVY_OK;
}

static cvy_status expand(cvy_graph *g, const char *name, int number, const cvy_shape *to, cvy_value **value)
{
    cvy_expand_opts opts = {.shape.count = to->ndim - 1};
    char *node_name = NULL;
    cvy_node *node = NULL;
    for (int d = 1; d < to->ndim; d++)
        opts.shape.at[d - 1] = to->dim[d];
    CVY_TRY(cvy_pool_printf(g->pool, &node_name, "%s_expand%d", name, number));
    CVY_TRY(cvy_graph_add_parsed(g, cvy_op_find("expand"), node_name, name, &opts, value, 1, CVY_PHASE_MICRO, &node));
    *value = node->dst[0];
    return CVY_OK;
}

cvy_status cvy_combine_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                             cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_value *from[CVY_NODE_SRC_MAX] = {NULL};
    cvy_shape shape;
    void *fields = NULL;
    cvy_node *node = NULL;
    if (op->options_size) {
        CVY_TRY(cvy_pool_alloc(g->pool, op->options_size, &fields));
        CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, fields, op->options_size));
    }
    CVY_TRY(common_shape(op, src, nsrc, &shape));
    for (int i = 0; i < nsrc; i++) {
        from[i] = src[i];
        if (!cvy_shape_equal(&src[i]->shape, &shape))
            CVY_TRY(expand(g, name, i, &shape, &from[i]));
    }
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, fields, from, nsrc, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

void cvy_combine_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.flop = n * (node->nsrc - 1), .read_elems = n * node->nsrc, .write_elems = n};
}

int64_t cvy_combine_summands(const cvy_node *node)
{
    return node->nsrc;
}

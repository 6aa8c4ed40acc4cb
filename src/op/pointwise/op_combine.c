/*
 * op_combine.c: shapes and cost of operators on several tensors of one shape, see op_combine.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_combine.h"

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

void cvy_combine_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.flop = n * (node->nsrc - 1), .read_elems = n * node->nsrc, .write_elems = n};
}

int64_t cvy_combine_summands(const cvy_node *node)
{
    return node->nsrc;
}

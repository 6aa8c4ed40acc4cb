/*
 * op_combine.h: what operators on several tensors, element by element, share: add, multiply, subtract, divide and
 * maximum. Their nodes have sources of one shape; a layer may have others, which are broadcast.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_COMBINE_H
#define CVY_OP_COMBINE_H

#include "graph/graph_op.h"

/* Checks that all sources have one shape and dtype, and gives them to the result. */
cvy_status cvy_combine_infer(cvy_node *node);
/* Builds a layer: sources whose samples have other shapes are expanded first, by NumPy's rules: the axes of samples are
 * aligned at the last one, and an axis of length 1 is repeated. */
cvy_status cvy_combine_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                             cvy_value *const *src, int nsrc, cvy_value **dst_out);
/* One flop for each source but the first. */
void cvy_combine_cost(const cvy_node *node, cvy_cost *cost_out);
int64_t cvy_combine_summands(const cvy_node *node);

/* The larger of two numbers; NaN if one of them is NaN. */
static inline double cvy_maximum(double a, double b)
{
    return a > b || a != a ? a : b;
}

#endif

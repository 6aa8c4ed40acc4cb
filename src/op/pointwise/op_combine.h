/*
 * op_combine.h: what operators on several tensors of one shape share: add, multiply, subtract and maximum.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_COMBINE_H
#define CVY_OP_COMBINE_H

#include "graph/graph_op.h"

/* Checks that all sources have one shape and dtype, and gives them to the result. */
cvy_status cvy_combine_infer(cvy_node *node);
/* One flop for each source but the first. */
void cvy_combine_cost(const cvy_node *node, cvy_cost *cost_out);
int64_t cvy_combine_summands(const cvy_node *node);

/* The larger of two numbers; NaN if one of them is NaN. */
static inline double cvy_maximum(double a, double b)
{
    return a > b || a != a ? a : b;
}

#endif

/*
 * op_per_sample.h: what layers share that make a tensor for each sample without reading one: constant and noise. Their
 * source gives the number of samples only: the node reads the numbers of the samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_PER_SAMPLE_H
#define CVY_OP_PER_SAMPLE_H

#include "graph/graph_op.h"

/* The first field of their options: the dimensions of a sample. */
struct cvy_per_sample {
    cvy_ints shape;
};

/* Checks that the layer has one source of samples. */
cvy_status cvy_per_sample_check(const cvy_op_def *op, cvy_value *const *src, int nsrc);
/* Adds the node, whose sources are the numbers of the samples and, with_step in training, the number of the step. */
cvy_status cvy_per_sample_add(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options, int with_step,
                              cvy_value **dst_out);
/* sample id i64 [N] [, step i64 scalar] -> dst [N, shape]. */
cvy_status cvy_per_sample_infer(cvy_node *node);

#endif

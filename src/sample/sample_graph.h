/*
 * sample_graph.h: builds one sample of an operator as a graph with values and gradients. The reference kernels have
 * computed all of them. For the tests of all operators, and for `convoy selftest`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SAMPLE_GRAPH_H
#define CVY_SAMPLE_GRAPH_H

#include "pass/pass.h"
#include "sample/sample_eval.h"

typedef struct cvy_sample_graph {
    const cvy_op_def *op;
    const cvy_sample *sample;
    int is_wide; /* its kernels are only compared between numbers of threads */
    cvy_dtype dtype;
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *src[CVY_NODE_SRC_MAX];
    int nsrc, is_fixed[CVY_NODE_SRC_MAX]; /* is_fixed: a feed, which is not differentiated */
    cvy_value *loss;
    cvy_gradients gradients;
    cvy_eval e;
} cvy_sample_graph;

/* Returns the number of samples in the batch: the first dimension of the first source that has one. */
int64_t cvy_sample_count(const char *src);
/* Builds the sample, fills its values and runs it. Call cvy_sample_close() afterwards, also after a fault. */
cvy_status cvy_sample_open(const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype, int training,
                           cvy_sample_graph *b);
/* The same for a sample whose sources hold the part `batch` of the whole batch. */
cvy_status cvy_sample_open_part(const cvy_op_def *op, const cvy_sample *sample, cvy_batch batch, cvy_dtype dtype,
                                int training, cvy_sample_graph *b);
void cvy_sample_close(cvy_sample_graph *b);

#endif

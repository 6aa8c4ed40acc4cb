/*
 * sample_eval.h: runs a graph with the reference kernels of its operators, node after node, without planner and
 * executor. Tests and `convoy selftest` compare other results with what it computes.
 *
 * Several graphs may run together as the ranks of one job. The operator allreduce then sums over them, and the update
 * phase sums the accumulators that are to be reduced.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SAMPLE_EVAL_H
#define CVY_SAMPLE_EVAL_H

#include "graph/graph_grad.h"

typedef struct cvy_eval {
    cvy_graph *graph;
    cvy_span *at; /* by the index of the value; a variable that is read has memory of its own here */
} cvy_eval;

/* After a fault of cvy_eval_create() the caller still calls cvy_eval_destroy(). */
cvy_status cvy_eval_create(cvy_graph *g, cvy_eval *out);
void cvy_eval_destroy(cvy_eval *e);
cvy_status cvy_eval_node(const cvy_eval *e, const cvy_node *node);
/* Replaces the value `value` of every rank by the sum over ranks. */
void cvy_eval_sum_ranks(cvy_eval *ranks, int nranks, int value);
cvy_status cvy_eval_phase(cvy_eval *ranks, int nranks, cvy_phase phase);
cvy_status cvy_eval_run(cvy_eval *ranks, int nranks);

static inline cvy_span *cvy_eval_of(const cvy_eval *e, const cvy_value *v)
{
    return &e->at[v->index];
}

/* A loss for tests of operators: sum of src * weights, whose gradient for src is the weights themselves. It is not in
 * the operator table. */
extern const cvy_op_def cvy_weighted_sum_op;

/* Makes the options of a layer from a sample's text, such as "kernel: 3, pad: 1"; NULL means none. */
cvy_status cvy_sample_options(cvy_pool *pool, const char *text, cvy_tree **out);

/* Fills a tensor. Real numbers are all different, evenly spread over (low, 1) and not near 0, so that no maximum and no
 * kink is sampled where it jumps. Integers are at least 0 and below bound. */
void cvy_sample_fill(cvy_span *s, double low, int64_t bound, uint64_t *state);
/* The generator of these values; it is not that of the library. */
uint64_t cvy_sample_random(uint64_t *state);

#endif

/*
 * graph_grad.h: the functions that an operator's grad() calls while a graph is differentiated, and their data.
 *
 * pass/pass_autodiff.c differentiates the losses of a graph, and an operator may differentiate a part of its graph.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GRAPH_GRAD_H
#define CVY_GRAPH_GRAD_H

#include "graph/graph_op.h"

struct cvy_grad {
    cvy_graph *g;
    int nforward;           /* values with a smaller index belong to the forward graph and can be targets */
    int nforward_nodes;     /* nodes of the forward graph */
    unsigned char *wanted;  /* by value index */
    cvy_value **sum;        /* the gradient as added up so far, by value index */
    cvy_value **partial;    /* another addend of the gradient, of which each rank has computed a part; by value index */
    unsigned *partial_over; /* the axes of the grid over which it must be summed; by value index */
    unsigned char *shared;  /* the sum is also the sum of another value (`add` passes it on): it never becomes an
                               accumulator itself */
    unsigned char *given;   /* by index - nforward: the value is already the sum of some value */
    int ngiven, given_room;
    const cvy_node *fwd; /* the node that is being differentiated */
};

/* Whether the gradient of this value is needed (a path from a trained variable leads to it). */
int cvy_grad_wanted(const cvy_grad *g, const cvy_value *v);
/* The gradient of a destination; NULL: there is none (treat it as zero). Call cvy_grad_complete() before. */
cvy_value *cvy_grad_of(cvy_grad *g, const cvy_value *dst);
/* Sums the parts of the gradient of a value that ranks have computed: then all ranks have the whole gradient. */
cvy_status cvy_grad_complete(cvy_grad *g, const cvy_value *v);
/* Adds nodes that sum *value over all these axes of the grid. */
cvy_status cvy_grad_allreduce(cvy_grad *g, const cvy_node *fwd, unsigned axes, cvy_value **value);
/* Saved destination i of the forward node (i counts all destinations). It is created now if it does not exist yet. */
cvy_status cvy_grad_saved(cvy_grad *g, const cvy_node *fwd, int i, cvy_value **out);
/* Adds a gradient node named "<fwd name>.<op>". options: a struct of the operator `op` (options_size bytes are copied),
 * or NULL. dst_out receives node->dst[0 .. ndst_out-1]. If a destination is not always needed, an option of the
 * operator must leave it out. */
cvy_status cvy_grad_emit(cvy_grad *g, const cvy_node *fwd, const char *op, const void *options, cvy_value *const *src,
                         int nsrc, cvy_value **dst_out, int ndst_out);
cvy_status cvy_grad_emit_op(cvy_grad *g, const cvy_node *fwd, const cvy_op_def *op, const void *options,
                            cvy_value *const *src, int nsrc, cvy_value **dst_out, int ndst_out);
/* Adds `contribution` to the gradient of `target`; a value with several consumers gets several contributions. For the
 * value of a variable, the sum becomes (or is added to) the accumulator of the variable's gradient. */
cvy_status cvy_grad_add(cvy_grad *g, cvy_value *target, cvy_value *contribution);

/* ---- a walk over the nodes ---- */
/* Begins one on the graph as it is now. Call cvy_grad_close() afterwards, but not after a fault. */
cvy_status cvy_grad_open(cvy_graph *graph, cvy_grad *out);
void cvy_grad_close(cvy_grad *g);
/* Marks as wanted what depends on the values that are marked. */
void cvy_grad_spread(cvy_grad *g);
/* Calls grad() of the operators, from the last node to the first, where a gradient is known and another one wanted. */
cvy_status cvy_grad_walk(cvy_grad *g);
/* Adds nodes to the forward graph that compute the gradient of y with respect to x, if dy is that of y. *dx_out: NULL
 * if y does not depend on x. */
cvy_status cvy_graph_gradient(cvy_graph *graph, const cvy_value *y, cvy_value *dy, const cvy_value *x,
                              cvy_value **dx_out);

#endif

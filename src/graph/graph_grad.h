/*
 * graph_grad.h: what an operator's grad() calls while a graph is differentiated, and the bookkeeping of it.
 *
 * The walk is pass/pass_autodiff.c: it calls op->grad in reverse order of the nodes.
 */
#ifndef CVY_GRAPH_GRAD_H
#define CVY_GRAPH_GRAD_H

#include "graph/graph_op.h"

struct cvy_grad {
    cvy_graph *g;
    int nforward;          /* values with a smaller index belong to the forward graph and can be targets */
    unsigned char *wanted; /* by value index */
    cvy_value **sum;       /* gradient that has arrived so far, by value index */
    unsigned char *shared; /* the sum is also another value's (passed through by `add`): never itself an accumulator */
    unsigned char *given;  /* by index - nforward: the value is a sum already */
    int ngiven, given_room;
    const cvy_node *fwd; /* the node that is being differentiated */
};

/* Whether anyone needs the gradient of this value (a path from a trained variable leads to it). */
int cvy_grad_wanted(const cvy_grad *g, const cvy_value *v);
/* The gradient that has arrived at a destination, or NULL if none flows there (treat as zero). */
cvy_value *cvy_grad_of(cvy_grad *g, const cvy_value *dst);
/* The forward node's saved destination i (index among all dst), made now if it was not. */
cvy_status cvy_grad_saved(cvy_grad *g, const cvy_node *fwd, int i, cvy_value **out);
/* Emits a gradient node named "<fwd name>.<op>"; options: a struct of the operator `op` (copied by its options_size),
 * or NULL for none. dst_out receives node->dst[0 .. ndst_out-1]. A destination that is wanted only sometimes: leave it
 * out with the operator's own option. */
cvy_status cvy_grad_emit(cvy_grad *g, const cvy_node *fwd, const char *op, const void *options, cvy_value *const *src,
                         int nsrc, cvy_value **dst_out, int ndst_out);
/* Says that `contribution` is (part of) the gradient of `target`; contributions of several consumers are added. For a
 * variable's value the contribution becomes (or is added to) the variable's gradient accumulator. */
cvy_status cvy_grad_add(cvy_grad *g, cvy_value *target, cvy_value *contribution);

#endif

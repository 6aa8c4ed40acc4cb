/*
 * op_distribution.h: code that losses of predicted distributions share: quantile and gaussian_nll. Their output has
 * `count` numbers for each target, which describe a distribution.
 *
 * The output has `count` blocks along axis 1, and each block has the shape of the target: the output is [N, count * C,
 * ...] for a target of [N, C, ...], and [N, count] for a target of [N]. Number b of target c is channel b * C + c.
 *
 *     loss = loss_weight / norm * sum over samples n of (mean over the targets t of n of weight[n,t] * term)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_DISTRIBUTION_H
#define CVY_OP_DISTRIBUTION_H

#include "op/loss/op_loss.h"

/* Options of all of these losses; each uses its part. */
struct cvy_distribution {
    double loss_weight;
    cvy_reals levels; /* of quantile */
    double eps;       /* of gaussian_nll: the least variance */
    int full;         /* of gaussian_nll */
};

typedef struct cvy_distribution_def {          /* the `family` of the operator and of its gradient */
    const char *grad;                          /* name of the gradient's operator */
    cvy_status (*check)(const cvy_node *node); /* checks the options; NULL: all are valid */
    /* Numbers for each target. */
    int (*count)(const struct cvy_distribution *o);
    /* The loss of one target t, whose distribution has the numbers x [count]. */
    double (*term)(const struct cvy_distribution *o, const double *x, double t);
    /* Writes the derivatives of the term with respect to x: [count]. */
    void (*slope)(const struct cvy_distribution *o, const double *x, double t, double *slope_out);
    /* The log variances of a scaled target are shifted when the scaling is undone; other numbers are scaled as the
     * target is. Whether number b is a log variance. */
    int (*is_log_variance)(int b);
} cvy_distribution_def;

/* The description of a loss of this kind, or NULL if the operator is something else. */
const cvy_distribution_def *cvy_distribution_of(const cvy_op_def *op);
/* Reads the options of such a loss, which are as in a job. */
cvy_status cvy_distribution_parse(const cvy_op_def *op, const cvy_tree *options, struct cvy_distribution *out);
/* Sets *count_out to the numbers for each target that the loss needs with these options, which are as in a job. 1 for
 * all other losses. */
cvy_status cvy_loss_count(const cvy_op_def *op, const cvy_tree *options, int *count_out);

cvy_status cvy_distribution_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                  cvy_value *const *src, int nsrc, cvy_value **dst_out);
cvy_status cvy_distribution_infer(cvy_node *node);
cvy_status cvy_distribution_part(const cvy_node *node, cvy_node_part *part, void *options);
cvy_status cvy_distribution_grad(cvy_grad *g, const cvy_node *fwd);
cvy_status cvy_distribution_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_distribution_cost(const cvy_node *node, cvy_cost *cost_out);
/* For the gradient's operator: dloss, output, target, norm, [weight] -> doutput. */
cvy_status cvy_distribution_grad_infer(cvy_node *node);
cvy_status cvy_distribution_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_distribution_grad_cost(const cvy_node *node, cvy_cost *cost_out);

#define CVY_DISTRIBUTION_FIELDS CVY_LOSS_FIELDS(distribution, cvy_distribution)
#define CVY_DISTRIBUTION_GRAD_FIELDS CVY_LOSS_GRAD_FIELDS(distribution, cvy_distribution)

#endif

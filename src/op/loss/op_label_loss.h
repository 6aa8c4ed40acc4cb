/*
 * op_label_loss.h: code that the losses on labels share: softmax_cross_entropy, focal and hinge; dice uses a part of
 * it.
 *
 * The output is [N, K, positions...], with K classes, and the target [N, positions...] has integers. Labels of
 * ignore_label, and positions of weight 0, are left out; class_weights multiplies the term of a position by a factor of
 * its class.
 *
 *     loss           = loss_weight / norm * sum over samples n of (mean over positions x of weight[n,x] * term[n,x])
 *     doutput[n,k,x] = loss_weight * dloss / norm / positions * weight[n,x] * dterm[n,k,x]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_LABEL_LOSS_H
#define CVY_OP_LABEL_LOSS_H

#include "op/loss/op_loss.h"

/* The first fields of the options of these losses. */
struct cvy_label_loss {
    struct cvy_weight_sum labels;
    double loss_weight;
};

/* clang-format off */
#define CVY_IGNORED_LABEL_ROW(type, member)                                                                            \
    {"ignore_label", CVY_TYPE_INTS, CVY_FIELD(type, member.labels.ignore_label), "", "", "", "labels that are ignored"}
#define CVY_LABEL_LOSS_ROWS(type, member)                                                                              \
    {"class_weights", CVY_TYPE_REALS, CVY_FIELD(type, member.labels.class_weights), "", "0..", "",                     \
     "a factor for each class"},                                                                                       \
    CVY_IGNORED_LABEL_ROW(type, member),                                                                               \
    {"loss_weight", CVY_TYPE_REAL, CVY_FIELD(type, member.loss_weight), "1", "", "", "factor in the sum of losses"}
/* clang-format on */

/* Options of softmax_cross_entropy and its gradient; their fast kernels read them too. */
struct cvy_cross_entropy {
    struct cvy_label_loss loss; /* first */
    double label_smoothing;
};

/* Options of focal and its gradient, likewise. */
struct cvy_focal {
    struct cvy_label_loss loss; /* first */
    double gamma;
};

/* Options of hinge and its gradient, likewise; all classes have the same weight. */
enum { CVY_HINGE_L1, CVY_HINGE_L2 };
struct cvy_hinge {
    struct cvy_label_loss loss; /* first */
    int norm;
};

/* Options of dice and its gradient, likewise. */
struct cvy_dice {
    struct cvy_label_loss loss; /* first */
    double smooth;
};

/* The derivative of the term -(1 - p)^gamma log p of focal with respect to log p. */
double cvy_focal_slope(double gamma, double log_p);

/* The outputs of a position. */
typedef struct cvy_logits {
    const cvy_span *x;
    int64_t at, K, stride;
} cvy_logits;

static inline double cvy_logit(const cvy_logits *z, int64_t k)
{
    return cvy_get(z->x, z->at + k * z->stride);
}

/* Logarithm of the sum of their exponentials. */
double cvy_log_sum_exp(const cvy_logits *z);

typedef struct cvy_label_loss_def { /* the `family` of the operator and of its gradient */
    const char *grad;               /* name of the gradient's operator */
    /* The term of a position, with the factor of its class. The options begin with cvy_label_loss. */
    double (*term)(const void *options, const cvy_logits *z, int64_t label);
    /* Writes factor times its derivative with respect to each logit, to the elements of dst that z has of x. */
    void (*slope)(const void *options, const cvy_logits *z, int64_t label, double factor, const cvy_span *dst);
    /* Adds the nodes of the loss if its target is real; NULL: labels are needed. */
    cvy_status (*build_real)(cvy_graph *g, const char *name, const void *options, cvy_value *const *src, int nsrc,
                             cvy_value **dst_out);
} cvy_label_loss_def;

/* Checks output and target, which are the sources from `first` on, and that there are as many class weights as classes.
 */
cvy_status cvy_label_loss_check(const cvy_node *node, int first);
/* Checks that each label that counts is a class. first: as above. */
cvy_status cvy_label_loss_check_range(const cvy_node *node, const cvy_span *src, int first);

cvy_status cvy_label_loss_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                cvy_value *const *src, int nsrc, cvy_value **dst_out);
cvy_status cvy_label_loss_infer(cvy_node *node);
cvy_status cvy_label_loss_part(const cvy_node *node, cvy_node_part *part, void *options);
cvy_status cvy_label_loss_grad(cvy_grad *g, const cvy_node *fwd);
cvy_status cvy_label_loss_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_label_loss_cost(const cvy_node *node, cvy_cost *cost_out);
/* For the gradient's operator: dloss, output, target, norm, [weight] -> doutput. */
cvy_status cvy_label_loss_grad_infer(cvy_node *node);
cvy_status cvy_label_loss_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_label_loss_grad_cost(const cvy_node *node, cvy_cost *cost_out);

#define CVY_LABEL_LOSS_FIELDS(type) CVY_LOSS_FIELDS(label_loss, type)
#define CVY_LABEL_LOSS_GRAD_FIELDS(type) CVY_LOSS_GRAD_FIELDS(label_loss, type)

#endif

/*
 * op_loss.h: code that all losses share: their sources, their normaliser, and the common functions of elementwise
 * losses.
 *
 * A loss node's sources are output, target, norm (f64 scalar) and, if samples have weights, weight [N]. Its destination
 * is the f64 scalar
 *
 *     loss = loss_weight / norm * sum over samples n of weight[n] * (mean over n's elements of term)
 *
 * over this rank's samples of the micro-batch. norm is the number of samples over all ranks and micro-batches of the
 * step, so the contributions add up to the global mean. With weights or ignored labels it is the sum of the weights
 * instead; the node weight_sum and an allreduce compute it before the first forward. If norm is zero (all labels are
 * ignored), the loss is zero. The gradient's sources are dloss (f64 scalar), then those of the loss.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_LOSS_H
#define CVY_OP_LOSS_H

#include "graph/graph_op.h"

/* Options of weight_sum. Losses on labels have them too. */
struct cvy_weight_sum {
    cvy_reals class_weights;
    cvy_ints ignore_label;
    double share; /* of weight_sum: the part of the positions of a sample that the target has; 0: it has all */
};

/* clang-format off */
#define CVY_LOSS_WEIGHT_ROW(type)                                                                                      \
    {"loss_weight", CVY_TYPE_REAL, CVY_FIELD(type, loss_weight), "1", "", "", "factor in the sum of losses"}
/* clang-format on */

/* The first fields of the options of losses that have an output for each class, and that weigh classes. */
struct cvy_label_loss {
    struct cvy_weight_sum labels;
    double loss_weight;
};

/* clang-format off */
#define CVY_LABEL_LOSS_ROWS(type, member)                                                                              \
    {"class_weights", CVY_TYPE_REALS, CVY_FIELD(type, member.labels.class_weights), "", "0..", "",                     \
     "a factor for each class"},                                                                                       \
    {"ignore_label", CVY_TYPE_INTS, CVY_FIELD(type, member.labels.ignore_label), "", "", "",                           \
     "labels that are ignored"},                                                                                       \
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

/* Options of dice and its gradient, likewise. */
struct cvy_dice {
    struct cvy_label_loss loss; /* first */
    double smooth;
};

/* The derivative of the term -(1 - p)^gamma log p of focal with respect to log p. */
double cvy_focal_slope(double gamma, double log_p);

/* Adds the nodes of a loss: weights and their sum if needed, then the loss itself. options: the loss's own struct.
 * labels: NULL if the loss has none. */
cvy_status cvy_loss_build(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options,
                          const struct cvy_weight_sum *labels, cvy_value *const *src, int nsrc, cvy_value **dst_out);

/* Checks norm and weight against the output of N samples. They are the sources from `first` on (2 in a loss, 3 in its
 * gradient). */
cvy_status cvy_loss_check_norm(const cvy_node *node, int first);
/* Checks that there is one target element for each output element; dimensions of 1 are ignored ([N] fits [N, 1]). */
cvy_status cvy_loss_check_same(const cvy_shape *output, const cvy_shape *target);
/* Checks output [N, K, positions...] and integer target [N, positions...], which are the sources from `first` on, and
 * that there are as many class weights as classes. The options of the node begin with cvy_label_loss. */
cvy_status cvy_loss_check_labels(const cvy_node *node, int first);
cvy_status cvy_loss_set_dst(cvy_node *node);
/* Sets *share_out to the part of the positions of the output, source 0, that a part along a spatial dimension has: its
 * mean counts so much of the whole one. `lacks`: the target has this many axes less. CVY_NOT_APPLICABLE: output and
 * target cannot be split alike. */
cvy_status cvy_loss_share(const cvy_node *node, const cvy_node_part *part, int lacks, double *share_out);

/* The `part` of a loss that is a mean over the positions of labels, which have no axis of channels. Its options begin
 * with cvy_label_loss. */
cvy_status cvy_label_loss_part(const cvy_node *node, cvy_node_part *part, void *options);

/* Adds the node grad_op with sources (dloss, the loss's sources), which makes the gradient of the output. swap: of the
 * target instead, for a loss that is symmetric in the two. */
cvy_status cvy_loss_emit(cvy_grad *g, const cvy_node *fwd, const char *grad_op, int swap);

/* The factor of sample n: weight[n] / norm, without loss_weight. weight NULL: all weights are 1. */
static inline double cvy_loss_factor(const cvy_span *norm, const cvy_span *weight, int64_t n)
{
    const double total = *(const double *)norm->data;
    return total > 0 ? (weight ? cvy_get(weight, n) : 1) / total : 0;
}

static inline int cvy_label_ignored(const struct cvy_weight_sum *o, int64_t label)
{
    for (int i = 0; i < o->ignore_label.count; i++)
        if (o->ignore_label.at[i] == label)
            return 1;
    return 0;
}

static inline double cvy_class_weight(const struct cvy_weight_sum *o, int64_t k)
{
    return o->class_weights.count ? o->class_weights.at[k] : 1;
}

/* Logarithm of the sum of exponentials of K logits, which start at `at` with stride P. */
double cvy_log_sum_exp(const cvy_span *x, int64_t at, int64_t K, int64_t P);

/* Sets the error for a label that no class has. row: index in this rank's share of the micro-batch. */
cvy_status cvy_label_error(const cvy_node *node, int64_t row, int64_t label, int64_t nclasses);

/* ---- elementwise losses: the `family` of the operator and of its gradient is a cvy_loss_each_def ---- */

/* The first fields of their options. `parameter` is the loss's own parameter, if it has one. */
struct cvy_loss_each {
    double loss_weight, parameter;
};
typedef double (*cvy_loss_term_fn)(double parameter, double x, double t);
typedef struct cvy_loss_each_def {
    const char *grad;              /* name of the gradient's operator */
    cvy_loss_term_fn term;         /* the loss of one element with output x and target t */
    cvy_loss_term_fn slope;        /* its derivative with respect to x */
    int symmetric;                 /* the target may have a gradient too: that of the output with both exchanged */
    double target_min, target_max; /* range of valid targets; if both are equal, all targets are valid */
} cvy_loss_each_def;

cvy_status cvy_loss_each_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                               cvy_value *const *src, int nsrc, cvy_value **dst_out);
cvy_status cvy_loss_each_infer(cvy_node *node);
cvy_status cvy_loss_each_part(const cvy_node *node, cvy_node_part *part, void *options);
cvy_status cvy_loss_each_grad(cvy_grad *g, const cvy_node *fwd);
cvy_status cvy_loss_each_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_loss_each_cost(const cvy_node *node, cvy_cost *cost_out);
/* For the gradient's operator: dloss, output, target, norm, [weight] -> doutput. */
cvy_status cvy_loss_each_grad_infer(cvy_node *node);
cvy_status cvy_loss_each_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_loss_each_grad_cost(const cvy_node *node, cvy_cost *cost_out);
int64_t cvy_loss_summands(const cvy_node *node);

/* What the descriptors of all elementwise losses, and those of their gradients, have in common. */
#define CVY_LOSS_EACH_FIELDS                                                                                           \
    .options_size = sizeof(struct cvy_loss_each), .nsrc_min = 2, .nsrc_max = 4, .ndst = 1, .flags = CVY_OP_LOSS,       \
    .splits = CVY_SPLIT_SAMPLES, .part_splits = CVY_SPLIT_SPACE, .part = cvy_loss_each_part,                           \
    .infer = cvy_loss_each_infer, .grad = cvy_loss_each_grad, .build = cvy_loss_each_build,                            \
    .cost = cvy_loss_each_cost, .reference = cvy_loss_each_reference, .summands = cvy_loss_summands
#define CVY_LOSS_EACH_GRAD_FIELDS                                                                                      \
    .options_size = sizeof(struct cvy_loss_each), .nsrc_min = 4, .nsrc_max = 5, .ndst = 1, .flags = CVY_OP_HIDDEN,     \
    .splits = CVY_SPLIT_SAMPLES, .infer = cvy_loss_each_grad_infer, .cost = cvy_loss_each_grad_cost,                   \
    .reference = cvy_loss_each_grad_reference

#endif

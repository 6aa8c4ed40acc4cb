/*
 * op_loss.h: code that all losses share: their sources, their normaliser, and the common functions of elementwise
 * losses. op_label_loss.h has those of the losses on labels, op_distribution.h those of predicted distributions.
 *
 * A loss node's sources are output, target, norm (f64 scalar) and perhaps weight. Its destination is the f64 scalar
 *
 *     loss = loss_weight / norm * sum over samples n of (mean over n's elements e of weight[n,e] * term[n,e])
 *
 * over this rank's samples of the micro-batch. The weight is [N], a number for each sample, or it has the shape of the
 * target, or that shape without its channels (axis 1): a mask. An element of weight 0 is left out, whatever output and
 * target are there.
 *
 * norm is the number of samples over all ranks and micro-batches of the step, so the contributions add up to the global
 * mean. With weights or ignored labels it is the sum over samples of the mean magnitude of their weights instead; the
 * node weight_sum and an allreduce compute it before the first forward. Samples of event generators have negative
 * weights, too: a sum of the weights themselves could be 0 or less in a batch, and the terms would grow without limit.
 * If norm is zero (all labels are ignored, or all weights are 0), the loss is zero. The gradient's sources are dloss
 * (f64 scalar), then those of the loss.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_LOSS_H
#define CVY_OP_LOSS_H

#include "graph/graph_op.h"

/* Options of weight_sum. Losses on labels have the first two as well. */
struct cvy_weight_sum {
    cvy_reals class_weights;
    cvy_ints ignore_label;
    double share;       /* the part of the positions of a sample that the target has; 0: it has all */
    int of_weights;     /* 1: source 0 is the weight of each position, in place of the target */
    int counts_samples; /* 1: a sample counts 1 if any of its positions has a weight, else 0 */
};

/* clang-format off */
#define CVY_LOSS_WEIGHT_ROW(type)                                                                                      \
    {"loss_weight", CVY_TYPE_REAL, CVY_FIELD(type, loss_weight), "1", "", "", "factor in the sum of losses"}
/* clang-format on */

/* Adds the nodes of a loss: weights and their sum if needed, then the loss itself. options: the loss's own struct.
 * labels: which labels count how much; NULL if the loss has none. */
cvy_status cvy_loss_build(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options,
                          const struct cvy_weight_sum *labels, cvy_value *const *src, int nsrc, cvy_value **dst_out);

/* Checks norm and weight against output and target. They are the sources from `first` on (2 in a loss, 3 in its
 * gradient). */
cvy_status cvy_loss_check_norm(const cvy_node *node, int first);
/* Checks that there is one target element for each output element; dimensions of 1 are ignored ([N] fits [N, 1]). */
cvy_status cvy_loss_check_same(const cvy_shape *output, const cvy_shape *target);
cvy_status cvy_loss_set_dst(cvy_node *node);
/* The number of elements of a sample's weight: 1, or one for each element or position of the target. */
int64_t cvy_loss_weight_elems(const cvy_shape *weight);

/* Describes a part along a spatial dimension of a loss that is a mean over positions, and multiplies *loss_weight by
 * the part of the positions that it has. `lacks`: the target has this many axes less than the output. `with_channels`:
 * a target with the axis of channels has one number for each of the output's. CVY_NOT_APPLICABLE: output, target and
 * weight cannot be split alike. */
cvy_status cvy_loss_part(const cvy_node *node, cvy_node_part *part, int lacks, double *loss_weight);

/* Adds the node grad_op with sources (dloss, the loss's sources), which makes the gradient of the output. swap: of the
 * target instead, for a loss that is symmetric in the two. */
cvy_status cvy_loss_emit(cvy_grad *g, const cvy_node *fwd, const char *grad_op, int swap);
int64_t cvy_loss_summands(const cvy_node *node);

/* The weights of a call, and their normaliser. */
typedef struct cvy_loss_weights {
    const cvy_span *at; /* NULL: all are 1 */
    int64_t each;       /* numbers for each sample */
    double norm;
} cvy_loss_weights;

/* norm and weight are the sources from `first` on. */
cvy_loss_weights cvy_loss_weights_of(const cvy_node *node, const cvy_span *src, int first);

/* The weight of element e of sample n, without the normaliser. */
static inline double cvy_loss_weight(const cvy_loss_weights *w, int64_t n, int64_t e)
{
    return !w->at ? 1 : w->each == 1 ? cvy_get(w->at, n) : cvy_get(w->at, n * w->each + e % w->each);
}

/* weight / norm, or 0 if no element of the step has a weight. It is without loss_weight. Weights that are not finite
 * make a norm, and a loss, that is not. */
static inline double cvy_loss_factor(const cvy_loss_weights *w, int64_t n, int64_t e)
{
    return w->norm == 0 ? 0 : cvy_loss_weight(w, n, e) / w->norm;
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

/* Sets the error for a label that no class has. row: index in this rank's share of the micro-batch. */
cvy_status cvy_label_error(const cvy_node *node, int64_t row, int64_t label, int64_t nclasses);

/* The source of a layer with this loss that is its weight, if the layer has so many sources. */
int cvy_loss_weight_source(const cvy_op_def *loss);

/* What the descriptors of a kind of losses, and those of their gradients, have in common. kind: loss_each, label_loss
 * or distribution, whose functions are cvy_<kind>_infer() and so on; type: the struct of the options. */
#define CVY_LOSS_FIELDS(kind, type)                                                                                    \
    .options_size = sizeof(struct type), .nsrc_min = 2, .nsrc_max = 4, .ndst = 1, .flags = CVY_OP_LOSS,                \
    .splits = CVY_SPLIT_SAMPLES, .part_splits = CVY_SPLIT_SPACE, .part = cvy_##kind##_part,                            \
    .infer = cvy_##kind##_infer, .grad = cvy_##kind##_grad, .build = cvy_##kind##_build, .cost = cvy_##kind##_cost,    \
    .reference = cvy_##kind##_reference, .summands = cvy_loss_summands
#define CVY_LOSS_GRAD_FIELDS(kind, type)                                                                               \
    .options_size = sizeof(struct type), .nsrc_min = 4, .nsrc_max = 5, .ndst = 1, .flags = CVY_OP_HIDDEN,              \
    .splits = CVY_SPLIT_SAMPLES, .infer = cvy_##kind##_grad_infer, .cost = cvy_##kind##_grad_cost,                     \
    .reference = cvy_##kind##_grad_reference

/* Options of gradient_penalty and its gradient; their kernels read them too. */
struct cvy_gradient_penalty {
    double target, loss_weight;
};

/* ---- elementwise losses: the `family` of the operator and of its gradient is a cvy_loss_each_def ---- */

/* Their options. `parameter` is the loss's own parameter, if it has one. */
struct cvy_loss_each {
    double loss_weight, parameter;
};
typedef double (*cvy_loss_term_fn)(double parameter, double x, double t);
typedef struct cvy_loss_each_def {
    const char *grad;              /* name of the gradient's operator */
    cvy_loss_term_fn term;         /* the loss of one element with output x and target t */
    cvy_loss_term_fn slope;        /* its derivative with respect to x */
    int symmetric;                 /* the target may have a gradient too: that of the output with both exchanged */
    int no_target;                 /* layers name output and weight only, and the node has the output as its target */
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

#define CVY_LOSS_EACH_FIELDS CVY_LOSS_FIELDS(loss_each, cvy_loss_each)
#define CVY_LOSS_EACH_GRAD_FIELDS CVY_LOSS_GRAD_FIELDS(loss_each, cvy_loss_each)

#endif

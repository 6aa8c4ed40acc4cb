/*
 * optim_update.h: the option structs of the optimisers, which fast kernels read too, and code that all optimisers
 * share.
 *
 * Sources 0 .. 4 of an update are weight, gradient, lr, scale and step; the states follow from 5 on, and the running
 * average of the weight is the last of them. Destination 0 is the weight and destination 1 + k the k-th state. If
 * weight, gradient and states are zero, every update leaves zero, so padding lanes stay zero in any layout. All
 * optimisers but lars and lamb are elementwise; these first need norms of the whole weight and of its gradient or step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OPTIM_UPDATE_H
#define CVY_OPTIM_UPDATE_H

#include "optim/optim.h"

enum { CVY_OPTIM_WEIGHT, CVY_OPTIM_GRADIENT, CVY_OPTIM_LR, CVY_OPTIM_SCALE, CVY_OPTIM_STEP, CVY_OPTIM_STATE };

struct cvy_sgd {
    double momentum;
    int nesterov;
    int64_t lookahead;
    int lr_inside;
    double weight_decay, lr_mult, clip_weights, average;
};

extern const cvy_option cvy_sgd_rows[];

/* The direction of a step with momentum is gradient * g + momentum * m. */
typedef struct cvy_sgd_share {
    double gradient, momentum;
} cvy_sgd_share;
cvy_sgd_share cvy_sgd_direction(const struct cvy_sgd *o);
struct cvy_adam { /* for adam, adamw and lamb; eps_hat is of adam and adamw only */
    double beta1, beta2, eps;
    int eps_hat;
    double weight_decay, lr_mult, clip_weights, average;
};

struct cvy_rmsprop {
    double alpha, eps, momentum;
    int centered;
    double weight_decay, lr_mult, clip_weights, average;
};

struct cvy_adagrad {
    double lr_decay, eps;
    double weight_decay, lr_mult, clip_weights, average;
};

struct cvy_adadelta {
    double rho, eps;
    double weight_decay, lr_mult, clip_weights, average;
};

struct cvy_lars {
    double momentum, trust_coefficient;
    double weight_decay, lr_mult, clip_weights, average;
};

/* clang-format off */
#define CVY_OPTIM_ROWS(type)                                                                                          \
    {"weight_decay", CVY_TYPE_REAL, CVY_FIELD(type, weight_decay), "0", "0..", "", "weight decay"},    \
    {"lr_mult",      CVY_TYPE_REAL, CVY_FIELD(type, lr_mult),      "1", "0..", "", "factor on the learning rate"},  \
    {"clip_weights", CVY_TYPE_REAL, CVY_FIELD(type, clip_weights), "0", "0..", "", "largest magnitude of a weight"},  \
    {"average",      CVY_TYPE_REAL, CVY_FIELD(type, average),      "0", "0.. <1", "",                                 \
     "decay factor of the running average of the weights (EMA), such as 0.999, which scores and weights.safetensors "  \
     "are of; 0: of the weights themselves"}
/* clang-format on */

/* Checks the five sources, appends the named states (a NULL-terminated list), and assigns weight and states. */
cvy_status cvy_update_infer(cvy_node *node, const char *const *states);
void cvy_update_cost(const cvy_node *node, cvy_cost *cost_out, int64_t flop_per_elem);

/* The scalars of one update, for reference kernels and fast ones. */
typedef struct cvy_update_scalars {
    double lr, scale;
    int64_t step;
} cvy_update_scalars;
static inline cvy_update_scalars cvy_update_read(const void *lr, const void *scale, const void *step, double lr_mult)
{
    return (cvy_update_scalars){*(const double *)lr * lr_mult, *(const double *)scale, *(const int64_t *)step};
}
static inline cvy_update_scalars cvy_update_read_spans(const cvy_span *src, double lr_mult)
{
    return cvy_update_read(src[CVY_OPTIM_LR].data, src[CVY_OPTIM_SCALE].data, src[CVY_OPTIM_STEP].data, lr_mult);
}

/* One step of sgd's reference: cvy_sgd_begin() reads its scalars, and cvy_sgd_element() updates element i of the weight
 * and of its momentum. */
typedef struct cvy_sgd_step {
    const struct cvy_sgd *options;
    cvy_sgd_share share;
    cvy_update_scalars scalars;
} cvy_sgd_step;
cvy_sgd_step cvy_sgd_begin(const struct cvy_sgd *o, const cvy_span *src);
void cvy_sgd_element(const cvy_sgd_step *s, const cvy_span *src, const cvy_span *dst, int64_t i, double gradient);

/* What an update writes, if weights are clipped to -limit .. limit; limit 0: they are not. NaN stays NaN. */
static inline double cvy_update_clip(double limit, double w)
{
    return limit > 0 && w > limit ? limit : limit > 0 && w < -limit ? -limit : w;
}
/* The limit of an update node. */
double cvy_update_limit(const cvy_node *update);

/* The running average of a weight (EMA; Polyak and Juditsky 1992): average = d * average + (1 - d) * weight with
 * d = min(decay, step / (step + 10)). So the first step copies the weight, and the first values are soon forgotten. */
static inline double cvy_update_average_decay(double decay, int64_t step)
{
    const double most = (double)step / ((double)step + 10);
    return decay < most ? decay : most;
}
/* The decay factor of an update node; 0: its weight has no average. */
double cvy_update_average(const cvy_node *update);
/* The end of every reference: writes the average, if there is one, from the new weight. */
void cvy_update_write_average(const cvy_node *update, const cvy_span *src, const cvy_span *dst);

/* The factor of lars on the learning rate of a weight, from the sum of squares of the weight and that of its scaled
 * gradient. */
double cvy_lars_trust(const struct cvy_lars *o, double weight_squares, double gradient_squares);
/* The same of lamb, from the sum of squares of the weight and that of its step. */
double cvy_lamb_trust(double weight_squares, double step_squares);
/* Whether the update computes that factor. Biases and norm layers, which have no weight decay, use 1. If the learning
 * rate comes from another node, it has the factor already. */
static inline int cvy_update_adapts(const cvy_node *update)
{
    return update->src[CVY_OPTIM_WEIGHT]->variable->decay && !update->src[CVY_OPTIM_LR]->producer;
}

/* Of a weight that is split over ranks, each rank knows the squares of its part only. Then three nodes precede the
 * update: NAME_squares has the sources of the update NAME and sums the squares of this part (f64, {weight, gradient or
 * step}), an all-reduce adds them over the ranks, and NAME_rate multiplies the learning rate by the factor. */
cvy_status cvy_update_squares_infer(cvy_node *node, const char *const *states);
cvy_status cvy_update_rate_infer(cvy_node *node);

#endif

/*
 * lamb: Adam with layer-wise adaptive rates, for large batches: the step of each weight tensor has the length of the
 * tensor times the learning rate. It runs in the update phase, once for each weight. Source: You et al. 2020, Large
 * Batch Optimization for Deep Learning: Training BERT in 76 minutes, algorithm 2, with phi(z) = z.
 *
 *     g = scale * gradient
 *     m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
 *     r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * weight,  t = step + 1
 *     trust = |weight| / |r|,  or 1 if one of them is 0
 *     weight -= lr * trust * r
 *
 * Norms are Euclidean, over the whole variable, and summed in f64. As in the authors' code, biases and norm layers
 * (variables without decay) have a trust of 1, because biases begin at 0.
 *
 * Tested by tests/optim, which compares it with numbers that numpy computed from the formula above.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim_update.h"

static const cvy_option lamb_opts[] = {
    {"beta1", CVY_TYPE_REAL, CVY_FIELD(cvy_adam, beta1), "0.9", "0.. <1", "",
     "decay factor of the running mean of the gradient"},
    {"beta2", CVY_TYPE_REAL, CVY_FIELD(cvy_adam, beta2), "0.999", "0.. <1", "",
     "decay factor of the running mean of the squared gradient"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_adam, eps), "1e-6", ">0", "",
     "added to the divisor, so that it is never zero"},
    CVY_OPTIM_ROWS(cvy_adam),
    {0},
};

double cvy_lamb_trust(double weight_squares, double step_squares)
{
    return weight_squares > 0 && step_squares > 0 ? sqrt(weight_squares) / sqrt(step_squares) : 1;
}

static cvy_status lamb_infer(cvy_node *node)
{
    static const char *const states[] = {"exp_avg", "exp_avg_sq", NULL};
    return cvy_update_infer(node, states);
}

/* Weight and moments are read once more, after the norms are known. */
static void lamb_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_update_cost(node, cost_out, 28);
    cost_out->read_elems += 3 * cvy_shape_elems(cvy_node_src(node, CVY_OPTIM_WEIGHT));
}

/* The direction r of a weight, from the new moments. */
static double direction_of(const struct cvy_adam *o, int64_t step, double weight, double mean, double square)
{
    const double t = (double)step + 1, m = mean / (1 - pow(o->beta1, t)), v = square / (1 - pow(o->beta2, t));
    return m / (sqrt(v) + o->eps) + o->weight_decay * weight;
}

static double direction(const struct cvy_adam *o, int64_t step, const cvy_span *weight, const cvy_span *moment,
                        int64_t i)
{
    return direction_of(o, step, cvy_get(weight, i), cvy_get(&moment[0], i), cvy_get(&moment[1], i));
}

static cvy_status lamb_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_adam *o = node->options;
    const cvy_update_scalars u = cvy_update_read_spans(src, o->lr_mult);
    double weight_squares = 0, step_squares = 0;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double g = u.scale * cvy_get(&src[CVY_OPTIM_GRADIENT], i), w = cvy_get(&src[CVY_OPTIM_WEIGHT], i);
        cvy_set(&dst[1], i, o->beta1 * cvy_get(&src[CVY_OPTIM_STATE], i) + (1 - o->beta1) * g);
        cvy_set(&dst[2], i, o->beta2 * cvy_get(&src[CVY_OPTIM_STATE + 1], i) + (1 - o->beta2) * g * g);
        const double r = direction(o, u.step, &src[CVY_OPTIM_WEIGHT], &dst[1], i);
        weight_squares += w * w;
        step_squares += r * r;
    }
    const double rate = u.lr * (cvy_update_adapts(node) ? cvy_lamb_trust(weight_squares, step_squares) : 1);
    for (int64_t i = 0; i < dst->elems; i++) {
        const double step = rate * direction(o, u.step, &src[CVY_OPTIM_WEIGHT], &dst[1], i);
        cvy_set(&dst[0], i, cvy_update_clip(o->clip_weights, cvy_get(&src[CVY_OPTIM_WEIGHT], i) - step));
    }
    cvy_update_write_average(node, src, dst);
    return CVY_OK;
}

CVY_OP_DEFINE(lamb) = {
    .name = "lamb",
    .summary = "Adam with a rate for each layer, for large batches",
    .options = lamb_opts,
    .options_size = sizeof(struct cvy_adam),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 4,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_LAYER_NORMS | CVY_OP_HIDDEN,
    .lr = 0.001,
    .infer = lamb_infer,
    .cost = lamb_cost,
    .reference = lamb_reference,
};

/* ---- of a weight that is split over ranks ---- */

static cvy_status lamb_squares_infer(cvy_node *node)
{
    static const char *const states[] = {"exp_avg", "exp_avg_sq", NULL};
    return cvy_update_squares_infer(node, states);
}

static void lamb_squares_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, CVY_OPTIM_WEIGHT));
    *cost_out = (cvy_cost){.flop = 16 * n, .read_elems = 4 * n, .write_elems = 2};
}

static cvy_status lamb_squares_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_adam *o = node->options;
    const cvy_update_scalars u = cvy_update_read_spans(src, o->lr_mult);
    double weight_squares = 0, step_squares = 0;
    for (int64_t i = 0; i < src[CVY_OPTIM_WEIGHT].elems; i++) {
        const double g = u.scale * cvy_get(&src[CVY_OPTIM_GRADIENT], i), w = cvy_get(&src[CVY_OPTIM_WEIGHT], i);
        const double r = direction_of(o, u.step, w, o->beta1 * cvy_get(&src[CVY_OPTIM_STATE], i) + (1 - o->beta1) * g,
                                      o->beta2 * cvy_get(&src[CVY_OPTIM_STATE + 1], i) + (1 - o->beta2) * g * g);
        weight_squares += w * w;
        step_squares += r * r;
    }
    cvy_set(dst, 0, weight_squares);
    cvy_set(dst, 1, step_squares);
    return CVY_OK;
}

CVY_OP_DEFINE(lamb_squares) = {
    .name = "lamb_squares",
    .summary = "sums of squares of a part of a weight and of its step",
    .options = lamb_opts,
    .options_size = sizeof(struct cvy_adam),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = lamb_squares_infer,
    .cost = lamb_squares_cost,
    .reference = lamb_squares_reference,
};

static cvy_status lamb_rate_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    cvy_set(dst, 0, cvy_get(&src[1], 0) * cvy_lamb_trust(cvy_get(&src[0], 0), cvy_get(&src[0], 1)));
    return CVY_OK;
}

CVY_OP_DEFINE(lamb_rate) = {
    .name = "lamb_rate",
    .summary = "the learning rate of a weight that is split over ranks",
    .options = lamb_opts,
    .options_size = sizeof(struct cvy_adam),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = cvy_update_rate_infer,
    .reference = lamb_rate_reference,
};

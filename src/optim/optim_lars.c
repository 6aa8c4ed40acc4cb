/*
 * lars: layer-wise adaptive rate scaling, for large batches: each weight tensor has its own learning rate, in
 * proportion to its norm divided by the norm of its gradient. So no layer moves by more than a small share of itself.
 * It runs in the update phase, once for each weight. Source: You, Gitman and Ginsburg 2017, arXiv:1708.03888, algorithm
 * 1: the learning rate is inside the momentum.
 *
 *     g = scale * gradient
 *     trust = trust_coefficient * |weight| / (|g| + weight_decay * |weight|),  or 1 if |weight| or the divisor is 0
 *     m = momentum * m + lr * trust * (g + weight_decay * weight)
 *     weight -= m
 *
 * Norms are Euclidean, over the whole variable, and summed in f64. Biases and norm layers (variables without decay)
 * have a trust of 1, as in the authors' later work and in MLPerf: biases begin at 0, and a rate in proportion to their
 * norm would keep them there.
 *
 * Tested by tests/optim, which compares it with numbers that numpy computed from the formula above and, without decay,
 * with PyTorch's SGD.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim_update.h"

static const cvy_option lars_opts[] = {
    {"momentum", CVY_TYPE_REAL, CVY_FIELD(cvy_lars, momentum), "0.9", "0.. <1", "",
     "momentum: share of the last step that is added"},
    {"trust_coefficient", CVY_TYPE_REAL, CVY_FIELD(cvy_lars, trust_coefficient), "0.001", ">0", "",
     "trust coefficient: length of an update relative to that of the weights, at lr 1"},
    CVY_OPTIM_ROWS(cvy_lars),
    {0},
};

double cvy_lars_trust(const struct cvy_lars *o, double weight_squares, double gradient_squares)
{
    const double weight = sqrt(weight_squares), below = sqrt(gradient_squares) + o->weight_decay * weight;
    return weight > 0 && below > 0 ? o->trust_coefficient * weight / below : 1;
}

static cvy_status lars_infer(cvy_node *node)
{
    static const char *const states[] = {"momentum", NULL};
    return cvy_update_infer(node, states);
}

/* Weight and gradient are read once more, for their norms. */
static void lars_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_update_cost(node, cost_out, 12);
    cost_out->read_elems += 2 * cvy_shape_elems(cvy_node_src(node, CVY_OPTIM_WEIGHT));
}

static void add_squares(const cvy_span *src, double scale, double *weight, double *gradient)
{
    *weight = *gradient = 0;
    for (int64_t i = 0; i < src[CVY_OPTIM_WEIGHT].elems; i++) {
        const double w = cvy_get(&src[CVY_OPTIM_WEIGHT], i), g = scale * cvy_get(&src[CVY_OPTIM_GRADIENT], i);
        *weight += w * w;
        *gradient += g * g;
    }
}

static double trust_of(const cvy_node *node, const cvy_span *src, double scale)
{
    double weight, gradient;
    add_squares(src, scale, &weight, &gradient);
    return cvy_lars_trust(node->options, weight, gradient);
}

static cvy_status lars_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_lars *o = node->options;
    const cvy_update_scalars u = cvy_update_read_spans(src, o->lr_mult);
    const double rate = u.lr * (cvy_update_adapts(node) ? trust_of(node, src, u.scale) : 1);
    for (int64_t i = 0; i < dst->elems; i++) {
        const double w = cvy_get(&src[0], i), g = u.scale * cvy_get(&src[1], i) + o->weight_decay * w;
        const double m = o->momentum * cvy_get(&src[CVY_OPTIM_STATE], i) + rate * g;
        cvy_set(&dst[1], i, m);
        cvy_set(&dst[0], i, cvy_update_clip(o->clip_weights, w - m));
    }
    cvy_update_write_average(node, src, dst);
    return CVY_OK;
}

CVY_OP_DEFINE(lars) = {
    .name = "lars",
    .summary = "SGD with momentum and a rate for each layer, for large batches",
    .options = lars_opts,
    .options_size = sizeof(struct cvy_lars),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 3,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_LAYER_NORMS | CVY_OP_HIDDEN,
    .lr = 1,
    .infer = lars_infer,
    .cost = lars_cost,
    .reference = lars_reference,
};

/* ---- of a weight that is split over ranks ---- */

static cvy_status lars_squares_infer(cvy_node *node)
{
    static const char *const none[] = {NULL};
    return cvy_update_squares_infer(node, none);
}

static void lars_squares_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, CVY_OPTIM_WEIGHT));
    *cost_out = (cvy_cost){.flop = 4 * n, .read_elems = 2 * n, .write_elems = 2};
}

static cvy_status lars_squares_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    double weight, gradient;
    (void)node;
    add_squares(src, cvy_get(&src[CVY_OPTIM_SCALE], 0), &weight, &gradient);
    cvy_set(dst, 0, weight);
    cvy_set(dst, 1, gradient);
    return CVY_OK;
}

CVY_OP_DEFINE(lars_squares) = {
    .name = "lars_squares",
    .summary = "sums of squares of a part of a weight and of its gradient",
    .options = lars_opts,
    .options_size = sizeof(struct cvy_lars),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = lars_squares_infer,
    .cost = lars_squares_cost,
    .reference = lars_squares_reference,
};

static cvy_status lars_rate_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    cvy_set(dst, 0, cvy_get(&src[1], 0) * cvy_lars_trust(node->options, cvy_get(&src[0], 0), cvy_get(&src[0], 1)));
    return CVY_OK;
}

CVY_OP_DEFINE(lars_rate) = {
    .name = "lars_rate",
    .summary = "the learning rate of a weight that is split over ranks",
    .options = lars_opts,
    .options_size = sizeof(struct cvy_lars),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = cvy_update_rate_infer,
    .reference = lars_rate_reference,
};

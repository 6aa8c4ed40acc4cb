/*
 * rmsprop: the gradient divided by its running root mean square. It runs in the update phase, once for each weight.
 * Source: Tieleman and Hinton 2012 (lecture 6.5), centred as in Graves 2013, in the form of PyTorch's RMSprop.
 *
 *     g = scale * gradient + weight_decay * weight
 *     s = alpha * s + (1 - alpha) * g^2;  a = alpha * a + (1 - alpha) * g          a with centered only, else 0
 *     d = g / (sqrt(s - a^2) + eps)
 *     m = momentum * m + d                                                         with momentum only
 *     weight -= lr * m                                                             without momentum: lr * d
 *
 * Tested by tests/optim, which compares it with PyTorch's numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim_update.h"

static const cvy_option rmsprop_opts[] = {
    {"alpha", CVY_TYPE_REAL, CVY_FIELD(cvy_rmsprop, alpha), "0.99", "0.. <1", "",
     "decay factor of the running mean of the squared gradient"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_rmsprop, eps), "1e-8", ">0", "",
     "added to the divisor, so that it is never zero"},
    {"momentum", CVY_TYPE_REAL, CVY_FIELD(cvy_rmsprop, momentum), "0", "0.. <1", "",
     "momentum: share of the last direction that is added"},
    {"centered", CVY_TYPE_BOOL, CVY_FIELD(cvy_rmsprop, centered), "false", "", "",
     "subtract the square of the gradient's mean (centered RMSprop)"},
    CVY_OPTIM_ROWS(cvy_rmsprop),
    {0},
};

/* The states, in this order: square_avg, then grad_avg and momentum if the options need them. */
static cvy_status rmsprop_infer(cvy_node *node)
{
    const struct cvy_rmsprop *o = node->options;
    const char *states[4] = {"square_avg"};
    int n = 1;
    if (o->centered)
        states[n++] = "grad_avg";
    if (o->momentum > 0)
        states[n++] = "momentum";
    return cvy_update_infer(node, states);
}

static void rmsprop_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_update_cost(node, cost_out, 14);
}

static cvy_status rmsprop_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_rmsprop *o = node->options;
    const cvy_update_scalars u = cvy_update_read_spans(src, o->lr_mult);
    const int square = 1, mean = 2, momentum = o->centered ? 3 : 2,
              state = CVY_OPTIM_STATE - 1; /* source state + k belongs to destination k */
    for (int64_t i = 0; i < dst->elems; i++) {
        const double w = cvy_get(&src[0], i), g = u.scale * cvy_get(&src[1], i) + o->weight_decay * w;
        const double s = o->alpha * cvy_get(&src[state + square], i) + (1 - o->alpha) * g * g;
        double a = 0;
        if (o->centered) {
            a = o->alpha * cvy_get(&src[state + mean], i) + (1 - o->alpha) * g;
            cvy_set(&dst[mean], i, a);
        }
        double direction = g / (sqrt(fmax(s - a * a, 0)) + o->eps);
        if (o->momentum > 0) {
            direction += o->momentum * cvy_get(&src[state + momentum], i);
            cvy_set(&dst[momentum], i, direction);
        }
        cvy_set(&dst[square], i, s);
        cvy_set(&dst[0], i, cvy_update_clip(o->clip_weights, w - u.lr * direction));
    }
    cvy_update_write_average(node, src, dst);
    return CVY_OK;
}

CVY_OP_DEFINE(rmsprop) = {
    .name = "rmsprop",
    .summary = "gradient divided by its running root mean square",
    .options = rmsprop_opts,
    .options_size = sizeof(struct cvy_rmsprop),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 5,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_HIDDEN,
    .lr = 0.01,
    .infer = rmsprop_infer,
    .cost = rmsprop_cost,
    .reference = rmsprop_reference,
};

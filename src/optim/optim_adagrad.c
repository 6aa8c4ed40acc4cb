/*
 * adagrad: the gradient divided by the root of the sum of all its squares. It runs in the update phase, once for each
 * weight. Source: Duchi, Hazan and Singer 2011, in the form of PyTorch's Adagrad.
 *
 *     g = scale * gradient + weight_decay * weight
 *     s = s + g^2
 *     weight -= lr / (1 + step * lr_decay) * g / (sqrt(s) + eps)
 *
 * Tested by tests/optim, which compares it with PyTorch's numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim_update.h"

static const cvy_option adagrad_opts[] = {
    {"lr_decay", CVY_TYPE_REAL, CVY_FIELD(cvy_adagrad, lr_decay), "0", "0..", "",
     "further decay of the learning rate with each step"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_adagrad, eps), "1e-10", ">0", "",
     "added to the divisor, so that it is never zero"},
    CVY_OPTIM_ROWS(cvy_adagrad),
    {0},
};

static cvy_status adagrad_infer(cvy_node *node)
{
    static const char *const states[] = {"square_sum", NULL};
    return cvy_update_infer(node, states);
}

static void adagrad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_update_cost(node, cost_out, 10);
}

static cvy_status adagrad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_adagrad *o = node->options;
    const cvy_update_scalars u = cvy_update_read_spans(src, o->lr_mult);
    const double rate = u.lr / (1 + (double)u.step * o->lr_decay);
    for (int64_t i = 0; i < dst->elems; i++) {
        const double w = cvy_get(&src[0], i), g = u.scale * cvy_get(&src[1], i) + o->weight_decay * w;
        const double s = cvy_get(&src[CVY_OPTIM_STATE], i) + g * g;
        cvy_set(&dst[0], i, cvy_update_clip(o->clip_weights, w - rate * g / (sqrt(s) + o->eps)));
        cvy_set(&dst[1], i, s);
    }
    cvy_update_write_average(node, src, dst);
    return CVY_OK;
}

CVY_OP_DEFINE(adagrad) = {
    .name = "adagrad",
    .summary = "gradient divided by the root of the sum of its squares",
    .options = adagrad_opts,
    .options_size = sizeof(struct cvy_adagrad),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 3,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_HIDDEN,
    .lr = 0.01,
    .infer = adagrad_infer,
    .cost = adagrad_cost,
    .reference = adagrad_reference,
};

/*
 * adadelta: the gradient times the ratio of the root mean squares of the past steps and of the gradients. It runs in
 * the update phase, once for each weight. Source: Zeiler 2012, in the form of PyTorch's Adadelta, which is Caffe's too.
 *
 *     g = scale * gradient + weight_decay * weight
 *     s = rho * s + (1 - rho) * g^2
 *     d = g * sqrt(q + eps) / sqrt(s + eps)
 *     q = rho * q + (1 - rho) * d^2
 *     weight -= lr * d
 *
 * Tested by tests/optim, which compares it with PyTorch's numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim_update.h"

static const cvy_option adadelta_opts[] = {
    {"rho", CVY_TYPE_REAL, CVY_FIELD(cvy_adadelta, rho), "0.9", "0.. <1", "",
     "decay factor of the running means of the squared gradient and of the squared step"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_adadelta, eps), "1e-6", ">0", "",
     "added to both means, so that the first step is not zero"},
    CVY_OPTIM_ROWS(cvy_adadelta),
    {0},
};

static cvy_status adadelta_infer(cvy_node *node)
{
    static const char *const states[] = {"square_avg", "acc_delta", NULL};
    return cvy_update_infer(node, states);
}

static void adadelta_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_update_cost(node, cost_out, 16);
}

static cvy_status adadelta_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_adadelta *o = node->options;
    const cvy_update_scalars u = cvy_update_read_spans(src, o->lr_mult);
    for (int64_t i = 0; i < dst->elems; i++) {
        const double w = cvy_get(&src[0], i), g = u.scale * cvy_get(&src[1], i) + o->weight_decay * w;
        const double s = o->rho * cvy_get(&src[CVY_OPTIM_STATE], i) + (1 - o->rho) * g * g,
                     q = cvy_get(&src[CVY_OPTIM_STATE + 1], i), d = g * sqrt(q + o->eps) / sqrt(s + o->eps);
        cvy_set(&dst[0], i, cvy_update_clip(o->clip_weights, w - u.lr * d));
        cvy_set(&dst[1], i, s);
        cvy_set(&dst[2], i, o->rho * q + (1 - o->rho) * d * d);
    }
    cvy_update_write_average(node, src, dst);
    return CVY_OK;
}

CVY_OP_DEFINE(adadelta) = {
    .name = "adadelta",
    .summary = "gradient times the ratio of the running root mean squares of steps and gradients",
    .options = adadelta_opts,
    .options_size = sizeof(struct cvy_adadelta),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 4,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_HIDDEN,
    .lr = 1,
    .infer = adadelta_infer,
    .cost = adadelta_cost,
    .reference = adadelta_reference,
};

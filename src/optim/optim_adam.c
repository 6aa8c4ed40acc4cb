/*
 * adam, adamw: steps scaled by running moments of the gradient. They run in the update phase, once for each weight.
 * Source: Kingma and Ba 2015 (adam); Loshchilov and Hutter 2019 (adamw: the decay is not part of the gradient); in
 * PyTorch's form.
 *
 *     adam:  g = scale * gradient + weight_decay * weight
 *     adamw: g = scale * gradient;  weight *= 1 - lr * weight_decay
 *     m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
 *     weight -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps),  t = step + 1
 *
 * With eps_hat, eps is added before the correction of v, as at the end of section 2 of Kingma and Ba, in Caffe and in
 * TensorFlow:
 *
 *     weight -= lr / (1 - beta1^t) * m / ((sqrt(v) + eps) / sqrt(1 - beta2^t))
 *
 * Tested by tests/optim, which compares both with PyTorch's numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "optim/optim_update.h"

static const cvy_option adam_opts[] = {
    {"beta1", CVY_TYPE_REAL, CVY_FIELD(cvy_adam, beta1), "0.9", "0.. <1", "",
     "decay factor of the running mean of the gradient"},
    {"beta2", CVY_TYPE_REAL, CVY_FIELD(cvy_adam, beta2), "0.999", "0.. <1", "",
     "decay factor of the running mean of the squared gradient"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_adam, eps), "1e-8", ">0", "",
     "added to the divisor, so that it is never zero"},
    {"eps_hat", CVY_TYPE_BOOL, CVY_FIELD(cvy_adam, eps_hat), "false", "", "",
     "eps is added before the divisor is corrected for the first steps, as in Caffe and TensorFlow; false: after it, "
     "as "
     "in PyTorch"},
    CVY_OPTIM_ROWS(cvy_adam),
    {0},
};

static cvy_status adam_infer(cvy_node *node)
{
    static const char *const states[] = {"exp_avg", "exp_avg_sq", NULL};
    return cvy_update_infer(node, states);
}

static void adam_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_update_cost(node, cost_out, 16);
}

static void update(const cvy_node *node, const cvy_span *src, const cvy_span *dst, int decoupled)
{
    const struct cvy_adam *o = node->options;
    const cvy_update_scalars u = cvy_update_read_spans(src, o->lr_mult);
    const double t = (double)u.step + 1, rate = u.lr / (1 - pow(o->beta1, t)), root = sqrt(1 - pow(o->beta2, t)),
                 eps = o->eps_hat ? o->eps / root : o->eps;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double w = cvy_get(&src[0], i), g = u.scale * cvy_get(&src[1], i) + (decoupled ? 0 : o->weight_decay * w);
        const double m = o->beta1 * cvy_get(&src[CVY_OPTIM_STATE], i) + (1 - o->beta1) * g;
        const double v = o->beta2 * cvy_get(&src[CVY_OPTIM_STATE + 1], i) + (1 - o->beta2) * g * g;
        const double keep = decoupled ? 1 - u.lr * o->weight_decay : 1;
        cvy_set(&dst[0], i, cvy_update_clip(o->clip_weights, w * keep - rate * m / (sqrt(v) / root + eps)));
        cvy_set(&dst[1], i, m);
        cvy_set(&dst[2], i, v);
    }
    cvy_update_write_average(node, src, dst);
}

static cvy_status adam_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    update(node, src, dst, 0);
    return CVY_OK;
}

static cvy_status adamw_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    update(node, src, dst, 1);
    return CVY_OK;
}

CVY_OP_DEFINE(adam) = {
    .name = "adam",
    .summary = "Adam",
    .options = adam_opts,
    .options_size = sizeof(struct cvy_adam),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 4,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_HIDDEN,
    .lr = 0.001,
    .infer = adam_infer,
    .cost = adam_cost,
    .reference = adam_reference,
};

CVY_OP_DEFINE(adamw) = {
    .name = "adamw",
    .summary = "Adam with decoupled weight decay",
    .options = adam_opts,
    .options_size = sizeof(struct cvy_adam),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 4,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_HIDDEN,
    .lr = 0.001,
    .infer = adam_infer,
    .cost = adam_cost,
    .reference = adamw_reference,
};

/*
 * sgd: stochastic gradient descent, with momentum and Nesterov's look-ahead. It runs in the update phase, once for each
 * weight. Source: Sutskever, Martens, Dahl and Hinton 2013, in the form of PyTorch's SGD with dampening 0 (the learning
 * rate is outside the momentum) unless lr_inside is set.
 *
 *     g = scale * gradient + weight_decay * weight
 *     m = momentum * m + g                                 with momentum only
 *     weight -= lr * (nesterov ? g + momentum * m : m)     without momentum: lr * g
 *
 * Nesterov's form stores the weights that one more step along the momentum would reach. With `lookahead: K` it stores
 * those that K further steps would reach, for gradients that are K steps stale. With D = 1 + K, the weights w without
 * look-ahead, and a constant learning rate:
 *
 *     weight = w - lr * (momentum + .. + momentum^D) m
 *
 * so a step computes
 *
 *     weight -= lr * ((1 + .. + momentum^(D-1)) g + momentum^D m)
 *
 * With lr_inside, g is multiplied by lr first, and the step is not: m is then the last step itself. This is the form of
 * Sutskever et al. and of Caffe. It differs from the other one after a change of the learning rate, because the steps
 * in m keep the rate that they were made with.
 *
 * Tested by tests/optim, which compares it with PyTorch's and Caffe's numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "optim/optim_update.h"

const cvy_option cvy_sgd_rows[] = {
    {"momentum", CVY_TYPE_REAL, CVY_FIELD(cvy_sgd, momentum), "0.9", "0.. <1", "",
     "momentum: share of the last direction that is added"},
    {"nesterov", CVY_TYPE_BOOL, CVY_FIELD(cvy_sgd, nesterov), "false", "", "",
     "Nesterov's momentum: the gradient is used as if it came from one step ahead"},
    {"lookahead", CVY_TYPE_INT, CVY_FIELD(cvy_sgd, lookahead), "0", "0..64", "",
     "with nesterov: number of further steps to look ahead, which is the gradient's lag (update: delayed: 1)"},
    {"lr_inside", CVY_TYPE_BOOL, CVY_FIELD(cvy_sgd, lr_inside), "false", "", "",
     "the momentum is a sum of steps, each with the learning rate of its time, as in Caffe; false: a sum of gradients, "
     "all multiplied by the rate of now, as in PyTorch"},
    CVY_OPTIM_ROWS(cvy_sgd),
    {0},
};

static cvy_status sgd_infer(cvy_node *node)
{
    const struct cvy_sgd *o = node->options;
    static const char *const with[] = {"momentum", NULL};
    CVY_CHECK(!o->nesterov || o->momentum > 0, CVY_E_CONFIG, "nesterov needs a momentum above 0");
    CVY_CHECK(!o->lookahead || o->nesterov, CVY_E_CONFIG, "lookahead is %lld, which needs nesterov: true",
              (long long)o->lookahead);
    return cvy_update_infer(node, o->momentum > 0 ? with : with + 1);
}

static void sgd_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_update_cost(node, cost_out, 8);
}

cvy_sgd_share cvy_sgd_direction(const struct cvy_sgd *o)
{
    cvy_sgd_share share = {0, 1};
    for (int64_t k = 0; o->nesterov && k <= o->lookahead; k++) {
        share.gradient += share.momentum;
        share.momentum *= o->momentum;
    }
    return share;
}

cvy_sgd_step cvy_sgd_begin(const struct cvy_sgd *o, const cvy_span *src)
{
    return (cvy_sgd_step){o, cvy_sgd_direction(o), cvy_update_read_spans(src, o->lr_mult)};
}

void cvy_sgd_element(const cvy_sgd_step *s, const cvy_span *src, const cvy_span *dst, int64_t i, double gradient)
{
    const struct cvy_sgd *o = s->options;
    const cvy_sgd_share share = s->share;
    const cvy_update_scalars u = s->scalars;
    const double w = cvy_get(&src[0], i), g = u.scale * gradient + o->weight_decay * w;
    double step = u.lr * g;
    if (o->momentum > 0) {
        const double added = o->lr_inside ? u.lr * g : g;
        const double m = o->momentum * cvy_get(&src[CVY_OPTIM_STATE], i) + added;
        cvy_set(&dst[1], i, m);
        step = (o->lr_inside ? 1 : u.lr) * (share.gradient * added + share.momentum * m);
    }
    cvy_set(&dst[0], i, cvy_update_clip(o->clip_weights, w - step));
}

static cvy_status sgd_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_sgd_step step = cvy_sgd_begin(node->options, src);
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_sgd_element(&step, src, dst, i, cvy_get(&src[CVY_OPTIM_GRADIENT], i));
    cvy_update_write_average(node, src, dst);
    return CVY_OK;
}

CVY_OP_DEFINE(sgd) = {
    .name = "sgd",
    .summary = "stochastic gradient descent with momentum",
    .options = cvy_sgd_rows,
    .options_size = sizeof(struct cvy_sgd),
    .nsrc_min = 5,
    .nsrc_max = 5,
    .ndst = 3,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_HIDDEN,
    .lr = 0.01,
    .infer = sgd_infer,
    .cost = sgd_cost,
    .reference = sgd_reference,
};

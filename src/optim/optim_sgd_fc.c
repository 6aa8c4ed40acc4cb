/*
 * fc_grad_sgd: sgd for the weight of a fully connected layer, whose gradient is never stored as a whole.
 *
 *     gradient[k,i] = sum over n of ddst[n,k] * src[n,i]      then the formula of optim_sgd.c
 *
 * Such a weight is much larger than src and ddst (AlexNet's fc6 at batch 64: 151 MB, 2.4 MB and 1 MB), so a pass over
 * it takes as long as memory needs. The gradient is used once. A kernel that uses each part of it at once neither
 * writes it to memory nor reads it back, and the plan has no memory for it. The pass fuse-update makes this operator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "optim/optim_sgd_fc.h"

/* The pass gives the node all its sources, states included. */
static cvy_status fc_sgd_infer(cvy_node *node)
{
    const cvy_fc_sgd_opts *o = node->options;
    const cvy_fc_matrix m = cvy_fc_matrix_of(&o->grad.fc, &o->grad.src);
    const cvy_shape *weight = cvy_node_src(node, CVY_OPTIM_WEIGHT);
    const int ddst = cvy_fc_sgd_ddst(node), states = ddst - CVY_OPTIM_STATE;
    CVY_EXPECT(states == (o->sgd.momentum > 0) && !(o->sgd.average > 0));
    CVY_EXPECT(weight->ndim == 2 && weight->dim[0] == o->grad.fc.channels && weight->dim[1] == m.width &&
               cvy_shape_elems(cvy_node_src(node, CVY_FC_SGD_SRC)) == m.rows * m.width &&
               cvy_shape_elems(cvy_node_src(node, ddst)) == m.rows * o->grad.fc.channels);
    CVY_TRY(cvy_node_assign(node, 0, CVY_OPTIM_WEIGHT));
    return states ? cvy_node_assign(node, 1, CVY_OPTIM_STATE) : CVY_OK;
}

static void fc_sgd_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_fc_sgd_opts *o = node->options;
    const cvy_fc_matrix m = cvy_fc_matrix_of(&o->grad.fc, &o->grad.src);
    const int64_t K = o->grad.fc.channels, weights = K * m.width, passes = 1 + (o->sgd.momentum > 0);
    *cost_out = (cvy_cost){.flop = (2 * m.rows + 8) * weights,
                           .read_elems = passes * weights + m.rows * (m.width + K),
                           .write_elems = passes * weights};
}

static cvy_status fc_sgd_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_fc_sgd_opts *o = node->options;
    const cvy_span *x = &src[CVY_FC_SGD_SRC], *d = &src[cvy_fc_sgd_ddst(node)];
    const int64_t K = dst->dim[0], width = dst->dim[1], rows = d->elems / K;
    const cvy_sgd_step step = cvy_sgd_begin(&o->sgd, src);
    for (int64_t e = 0; e < dst->elems; e++) {
        double gradient = 0;
        for (int64_t n = 0; n < rows; n++)
            gradient += cvy_get(x, n * width + e % width) * cvy_get(d, n * K + e / width);
        cvy_sgd_element(&step, src, dst, e, gradient);
    }
    return CVY_OK;
}

static unsigned fc_sgd_factors(const cvy_node *node)
{
    return 1u << CVY_FC_SGD_SRC | 1u << cvy_fc_sgd_ddst(node);
}

CVY_OP_DEFINE(fc_grad_sgd) = {
    .name = "fc_grad_sgd",
    .summary = "gradient of fc for its weight, and the update by sgd",
    .options = cvy_sgd_rows,
    .options_size = sizeof(cvy_fc_sgd_opts),
    .nsrc_min = 6,
    .nsrc_max = 7,
    .ndst = 2,
    .flags = CVY_OP_ASSIGNS | CVY_OP_OPTIMIZER | CVY_OP_PRODUCT | CVY_OP_HIDDEN,
    .infer = fc_sgd_infer,
    .cost = fc_sgd_cost,
    .factors = fc_sgd_factors,
    .reference = fc_sgd_reference,
};

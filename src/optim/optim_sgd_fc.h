/*
 * optim_sgd_fc.h: options of fc_grad_sgd, which computes the gradient of a fully connected layer's weight and updates
 * the weight with it.
 *
 *     fc_grad_sgd    the sources of sgd with src in the place of the gradient, and ddst after its states -> weight and
 *                    states
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OPTIM_SGD_FC_H
#define CVY_OPTIM_SGD_FC_H

#include "op/conv/op_fc.h"
#include "optim/optim_update.h"

enum { CVY_FC_SGD_SRC = CVY_OPTIM_GRADIENT }; /* the source of the layer */

typedef struct cvy_fc_sgd_opts {
    struct cvy_sgd sgd; /* without a running average */
    cvy_fc_grad_opts grad;
} cvy_fc_sgd_opts;

/* The gradient of the layer's result is the last source. */
static inline int cvy_fc_sgd_ddst(const cvy_node *node)
{
    return node->nsrc - 1;
}

#endif

/*
 * op_fc.h: options of the fully connected operator and its gradients.
 *
 *     fc              src [N, ...], weight [K, elements of a sample], bias [K] -> dst [N, K]
 *     fc_grad_src     ddst, weight -> dsrc
 *     fc_grad_weight  src, ddst -> dweight, and dbias if bias is set
 *
 * A row of the weight follows the row-major order of the logical sample, for every layout of the source.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_FC_H
#define CVY_OP_FC_H

#include "graph/graph_op.h"

typedef struct cvy_fc_opts {
    int64_t channels; /* K */
    int bias;
    const char *init, *init_options;
    int relu; /* set by the fusion pass: dst = max(fc, 0). The gradient operators ignore it */
} cvy_fc_opts;

typedef struct cvy_fc_grad_opts { /* of fc_grad_src and fc_grad_weight */
    cvy_fc_opts fc;
    cvy_shape src; /* of the forward source */
} cvy_fc_grad_opts;

#endif

/*
 * op_fc.h: options of the fully connected operator and its gradients.
 *
 *     fc              src [N, ...], weight [K, elements of a sample], bias [K] -> dst [N, K]
 *                     without flatten: src [N, ..., I], weight [K, I], bias [K] -> dst [N, ..., K]
 * With spectral_norm other nodes make the weight (op_spectral_norm.h).
 *
 *     fc_grad_src     ddst, weight -> dsrc
 *     fc_grad_weight  src, ddst -> dweight, and dbias if bias is set
 *     fc_grad_bias    ddst -> dbias
 *
 * A row of the weight follows the row-major order of the logical sample, for every layout of the source.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_FC_H
#define CVY_OP_FC_H

#include "op/conv/op_spectral_norm.h"

typedef struct cvy_fc_opts {
    int64_t channels; /* K */
    int bias;
    const char *init, *init_options;
    double bias_init;
    int relu; /* set by the fusion pass: dst = max(fc, 0). The gradient operators ignore it */
    int flatten;
    int spectral_norm;
} cvy_fc_opts;

typedef struct cvy_fc_grad_opts { /* of fc_grad_src and fc_grad_weight */
    cvy_fc_opts fc;
    cvy_shape src; /* of the forward source */
} cvy_fc_grad_opts;

/* The matrix [rows, width] that the source of fc is. */
typedef struct cvy_fc_matrix {
    int64_t rows, width;
    int64_t per_sample; /* rows of one sample: 1 with flatten */
} cvy_fc_matrix;

/* Width and per_sample do not depend on dim[0], because the batch may be empty on this rank. */
static inline cvy_fc_matrix cvy_fc_matrix_of(const cvy_fc_opts *o, const cvy_shape *src)
{
    cvy_fc_matrix m = {.width = 1, .per_sample = 1};
    for (int d = 1; d < src->ndim; d++)
        *(o->flatten || d == src->ndim - 1 ? &m.width : &m.per_sample) *= src->dim[d];
    m.rows = src->dim[0] * m.per_sample;
    return m;
}

#endif

/*
 * op_multiply.h: products of an activation and one factor for each channel, for the operators and their kernels.
 *
 *     multiply_channels       src [N, C, positions...], factor [N, C] or [N, C, 1, ...] -> dst
 *     multiply_channels_grad  ddst, src -> dfactor
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_MULTIPLY_H
#define CVY_OP_MULTIPLY_H

#include "graph/graph_op.h"

typedef struct cvy_multiply_channels_grad_opts {
    cvy_shape factor;
} cvy_multiply_channels_grad_opts;

/* Whether `factor` has one element for each sample and channel of src. */
int cvy_multiply_is_factor(const cvy_shape *src, const cvy_shape *factor);

#endif

/*
 * op_affine.h: options of affine and its gradients, and the shape that they work on.
 *
 *     affine              src, scale, shift -> dst       (scale and shift as the options say)
 *     affine_grad_src     ddst, scale -> dsrc            (only with scale; else dsrc is ddst)
 *     affine_grad_weight  ddst, src -> dscale, dshift    (src only with scale)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_AFFINE_H
#define CVY_OP_AFFINE_H

#include "graph/graph_op.h"

typedef struct cvy_affine_opts {
    cvy_ints shape;
    int scale, shift;
    double init, shift_init;
    cvy_ints tensor;
} cvy_affine_opts;

/* The shape of the trained tensors with a 1 for the batch: that of the options, or [1, C, 1, ...]. The options must be
 * valid. */
static inline cvy_shape cvy_affine_shape(const cvy_affine_opts *o, const cvy_shape *src)
{
    cvy_shape shape = {.ndim = src->ndim, .dim = {1}};
    for (int d = 1; d < src->ndim; d++)
        shape.dim[d] = o->shape.count ? o->shape.at[d - 1] : d == 1 ? src->dim[1] : 1;
    return shape;
}

#endif

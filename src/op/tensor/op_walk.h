/*
 * op_walk.h: elements of a tensor that are counted over some of its axes, for plain kernels that sum over axes or
 * broadcast along them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_WALK_H
#define CVY_OP_WALK_H

#include "graph/graph_op.h"

typedef struct cvy_walk {
    int ndim;
    int64_t dim[CVY_NDIM_MAX], stride[CVY_NDIM_MAX];
} cvy_walk;

/* The offset of number i, in row-major order. */
static inline int64_t cvy_walk_at(const cvy_walk *w, int64_t i)
{
    int64_t at = 0;
    for (int d = w->ndim - 1; d >= 0; d--) {
        at += i % w->dim[d] * w->stride[d];
        i /= w->dim[d];
    }
    return at;
}

static inline int64_t cvy_walk_count(const cvy_walk *w)
{
    int64_t n = 1;
    for (int d = 0; d < w->ndim; d++)
        n *= w->dim[d];
    return n;
}

/* Walks over a tensor of this shape: along the axes whose bit is set in `axes`, and along the others. */
static inline void cvy_walk_split(const cvy_shape *shape, unsigned axes, cvy_walk *along_out, cvy_walk *others_out)
{
    int64_t step = 1;
    *along_out = *others_out = (cvy_walk){0};
    for (int d = 0; d < shape->ndim; d++)
        step *= shape->dim[d];
    for (int d = 0; d < shape->ndim && step > 0; d++) {
        cvy_walk *w = axes >> d & 1 ? along_out : others_out;
        step /= shape->dim[d];
        w->dim[w->ndim] = shape->dim[d];
        w->stride[w->ndim++] = step;
    }
}

#endif

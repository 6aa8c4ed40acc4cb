/*
 * op_matmul.h: products of the matrices in the last two axes of two tensors, for the operators and their kernels.
 *
 *     matmul       a [N, axes..., M, K], b [N, axes..., K, P] -> dst [N, axes..., M, P]
 *     matmul_grad  the same for a gradient, which may be summed over axes along which a source was repeated
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_MATMUL_H
#define CVY_OP_MATMUL_H

#include "graph/graph_op.h"

typedef struct cvy_matmul_opts {
    int transpose_a, transpose_b; /* the last two axes of this source are swapped */
} cvy_matmul_opts;

typedef struct cvy_matmul_grad_opts {
    cvy_matmul_opts matmul;
    cvy_shape dst;
} cvy_matmul_grad_opts;

/* The products of a node: matrix `item` of dst is a sum of `sums` products of a matrix of a and one of b. */
typedef struct cvy_matmul {
    int64_t m, p, k;                    /* of one product: dst [m, p] */
    int64_t a_row, a_col, b_row, b_col; /* strides in elements */
    int64_t items, sums;
    int naxes; /* the axes before the last two */
    int64_t dim[CVY_NDIM_MAX], a_stride[CVY_NDIM_MAX], b_stride[CVY_NDIM_MAX];
    int is_summed[CVY_NDIM_MAX]; /* dst has one element along this axis, and the products are summed */
} cvy_matmul;

/* For a node of either operator, after its infer. */
cvy_matmul cvy_matmul_make(const cvy_node *node);
/* First elements of a and b in product number `sum` of an item. */
void cvy_matmul_at(const cvy_matmul *m, int64_t item, int64_t sum, int64_t *a_out, int64_t *b_out);

#endif

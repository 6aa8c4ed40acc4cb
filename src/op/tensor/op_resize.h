/*
 * op_resize.h: options of resize and its gradient, and the weights of the interpolation, for the operators and their
 * kernels.
 *
 *     resize        src [N, C, H, W] -> dst
 *     resize_grad   ddst -> dsrc
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_RESIZE_H
#define CVY_OP_RESIZE_H

#include "graph/graph_op.h"

typedef enum { CVY_RESIZE_NEAREST, CVY_RESIZE_BILINEAR, CVY_RESIZE_BICUBIC } cvy_resize_mode;
typedef enum { CVY_RESIZE_USUAL, CVY_RESIZE_HALF_PIXEL, CVY_RESIZE_ASYMMETRIC } cvy_resize_coordinates;
typedef enum { CVY_RESIZE_FLOOR, CVY_RESIZE_CEIL, CVY_RESIZE_ROUND_DOWN, CVY_RESIZE_ROUND_UP } cvy_resize_rounding;

typedef struct cvy_resize_opts {
    int mode;        /* a cvy_resize_mode */
    cvy_ints size;   /* rows and columns of the result; empty: by scale */
    cvy_reals scale; /* factors on rows and columns; empty: by size */
    int align_corners;
    int coordinates; /* a cvy_resize_coordinates */
    int rounding;    /* nearest: a cvy_resize_rounding; of halves round_down and round_up */
    double cubic_a;  /* bicubic: the coefficient of the cubic polynomials */
    int only_inside; /* bicubic: positions outside the source have no weight; else they have the value at the edge */
} cvy_resize_opts;

typedef struct cvy_resize_grad_opts {
    cvy_resize_opts resize;
    cvy_shape src; /* of the forward source */
} cvy_resize_grad_opts;

/* An element of the result is the sum of weight[k] * src[low + k] up to src[high], along each of the two dimensions. */
typedef struct cvy_resize_tap {
    int64_t low, high;
    double weight[4];
} cvy_resize_tap;

/* The tap of place `at` of the result along dimension d (0: rows, 1: columns), which has src positions before and dst
 * positions after. */
cvy_resize_tap cvy_resize_tap_at(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t at);
/* The weight of a source position in an element of the result. */
static inline double cvy_resize_weight(const cvy_resize_tap *tap, int64_t position)
{
    return position >= tap->low && position <= tap->high ? tap->weight[position - tap->low] : 0;
}
/* Places first .. end - 1 of the result are those whose tap has this source position; none if first == end. */
void cvy_resize_places(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t position, int64_t *first_out,
                       int64_t *end_out);

#endif

/*
 * op_window.h: the geometry of a filter or pooling window that slides over one to three spatial dimensions, and the
 * plain sums over it.
 *
 * Convolution, deconvolution, pooling and their kernels use it. Missing dimensions are added at the end, with one
 * position and a window of one tap. So every loop has three dimensions, and row-major offsets stay correct.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_WINDOW_H
#define CVY_OP_WINDOW_H

#include "graph/graph_op.h"

#define CVY_SPACE_MAX 3

typedef struct cvy_window {
    int nspace; /* number of spatial dimensions, 1 to 3; array entries from there on are 1 (pad: 0) */
    int64_t src[CVY_SPACE_MAX], dst[CVY_SPACE_MAX]; /* positions */
    int64_t kernel[CVY_SPACE_MAX], stride[CVY_SPACE_MAX], pad[CVY_SPACE_MAX], dilation[CVY_SPACE_MAX];
    int64_t pad_end[CVY_SPACE_MAX]; /* padding at the far end; the same as pad, but of a pooling that says otherwise */
    int64_t src_elems, dst_elems, taps; /* products of src, dst, kernel */
} cvy_window;

/* Option lists as the user gave them: one entry is for all dimensions; an empty stride is the same as the kernel. */
typedef struct cvy_window_lists {
    const cvy_ints *kernel, *stride, *pad, *dilation; /* dilation NULL: 1 */
    const cvy_ints *pad_end;                          /* NULL or empty: the same as pad */
} cvy_window_lists;

/* The window over src [N, C, positions...]: dst = (src + pad + pad_end - dilation (kernel - 1) - 1) / stride + 1,
 * rounded down. With ceil it is rounded up, but a window must start inside the source or its left padding (as in
 * PyTorch). CVY_E_SHAPE: the message names the dimension that does not fit. */
cvy_status cvy_window_make(const char *op, const cvy_shape *src, const cvy_window_lists *lists, int ceil,
                           cvy_window *out);
/* The window of a transposed convolution with source src. out->dst has the positions of src, and out->src those of the
 * deconvolution's result. */
cvy_status cvy_window_make_transposed(const char *op, const cvy_shape *src, const cvy_window_lists *lists,
                                      const cvy_ints *output_pad, cvy_window *out);
/* Fills in what `part` says about a window that is split along a spatial dimension, and changes `pad`, a list of the
 * part's options, so that along this dimension the part has no padding: what is outside its source is filled in. ndim:
 * of the source. */
cvy_status cvy_window_part(int ndim, const cvy_window_lists *lists, cvy_ints *pad, cvy_node_part *part);
/* The shape [n, channels, positions...] on the source side or the destination side of the window. */
cvy_shape cvy_window_src_shape(const cvy_window *w, int64_t n, int64_t channels);
cvy_shape cvy_window_dst_shape(const cvy_window *w, int64_t n, int64_t channels);

/* Row-major offset -> position. */
static inline void cvy_window_split(const int64_t dim[CVY_SPACE_MAX], int64_t offset, int64_t at_out[CVY_SPACE_MAX])
{
    at_out[2] = offset % dim[2];
    at_out[1] = offset / dim[2] % dim[1];
    at_out[0] = offset / dim[2] / dim[1];
}

/* The source coordinate in dimension d that tap `tap` of the window at destination coordinate `at` reads; -1: it is in
 * the padding. */
static inline int64_t cvy_window_touch(const cvy_window *w, int d, int64_t at, int64_t tap)
{
    const int64_t x = at * w->stride[d] - w->pad[d] + tap * w->dilation[d];
    return x >= 0 && x < w->src[d] ? x : -1;
}

/* The channels of the three plain sums of a (grouped) convolution, which are computed in double: src [n, nsrc, ...],
 * dst [n, ndst, ...], weight [ndst, nsrc / groups, kernel...]. Convolution uses them as forward, gradient of the source
 * and gradient of the weight; deconvolution swaps the sides. */
typedef struct cvy_window_channels {
    int64_t n, nsrc, ndst, groups;
} cvy_window_channels;

/* dst = bias + sum over source channels and taps; bias (of ndst) may be NULL. */
void cvy_window_forward(const cvy_window *w, const cvy_window_channels *c, const cvy_span *src, const cvy_span *weight,
                        const cvy_span *bias, const cvy_span *dst);
/* src = bias + sum over destination channels and the taps that touch the position; bias (of nsrc) may be NULL. */
void cvy_window_backward(const cvy_window *w, const cvy_window_channels *c, const cvy_span *dst, const cvy_span *weight,
                         const cvy_span *bias, const cvy_span *src);
/* weight = sum over samples and destination positions of src x dst. */
void cvy_window_weight(const cvy_window *w, const cvy_window_channels *c, const cvy_span *src, const cvy_span *dst,
                       const cvy_span *weight);
/* sum[c] = sum of x [N, C, positions...] over samples and positions: the gradient of a bias. */
void cvy_window_channel_sums(const cvy_span *x, const cvy_span *sum);

#endif

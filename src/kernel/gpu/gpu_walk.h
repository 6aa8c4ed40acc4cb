/*
 * gpu_walk.h: walks (device.h: struct walk) over the axes of tensors, for kernels that copy, broadcast or sum.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_WALK_H
#define CVY_GPU_WALK_H

#include "backend/gpu/device.h"
#include "kernel/gpu/gpu_common.h"

/* The axes of a walk before it is made: their lengths, and their steps in the two tensors. */
typedef struct cvy_gpu_axes {
    int ndim;
    int64_t dim[CVY_NDIM_MAX + 1], a[CVY_NDIM_MAX + 1], b[CVY_NDIM_MAX + 1];
} cvy_gpu_axes;

/* Puts the axes into the order of memory of a or b, so that neighbouring threads access neighbouring elements. Axes
 * with equal steps keep their order. */
void cvy_gpu_axes_sort(cvy_gpu_axes *axes, int by_b);
/* Leaves out axes of length 1, and merges those that are one in both tensors. */
struct walk cvy_gpu_walk_make(const cvy_gpu_axes *axes);

/* The steps of the axes of a tensor whose layout has no blocks. */
void cvy_gpu_steps(const cvy_shape *shape, const cvy_layout *layout, int64_t step[CVY_NDIM_MAX]);
/* For elementwise kernels of an activation [N, C, positions...] whose tensors may be slices: element i of a tensor is
 * at i / row * step + i % row. Returns `row`; 0: no tensor is a slice, and element i is at i. */
int64_t cvy_gpu_slices(const cvy_kernel_ask *ask, int64_t src_step[CVY_NODE_SRC_MAX],
                       int64_t dst_step[CVY_NODE_DST_MAX]);
/* How many elements an elementwise kernel may read and write at once, as words of 64 bits: 1, or as many as a word has
 * if all n elements are in whole words. Tensors must not be slices. */
int cvy_gpu_lanes(cvy_dtype act, int64_t n, const void *const *pointer, int npointer);

#endif

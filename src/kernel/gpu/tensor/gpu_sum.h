/*
 * gpu_sum.h: sums over some axes of a tensor, for operators that reduce and for gradients of what is broadcast.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_SUM_H
#define CVY_GPU_SUM_H

#include "kernel/gpu/gpu_walk.h"

typedef enum {
    CVY_GPU_SUM_OF,          /* x */
    CVY_GPU_SUM_OF_PRODUCTS, /* x * y */
    CVY_GPU_SUM_OF_BELOW,    /* x * y where y <= 0 */
} cvy_gpu_summand;

typedef struct cvy_gpu_sum_def {
    cvy_gpu_summand summand;
    const cvy_shape *shape; /* of x and y */
    const cvy_layout *layout;
    unsigned axes;              /* a bit for each axis that is summed */
    int64_t step[CVY_NDIM_MAX]; /* in the result, of the other axes */
    double scale;               /* of the result */
    cvy_dtype act;              /* of x and y */
    int to_f32;                 /* the result is f32; else of the dtype act */
} cvy_gpu_sum_def;

typedef struct cvy_gpu_sum cvy_gpu_sum;

/* The scratch memory of a sum. CVY_NOT_APPLICABLE with the reason if its kernels do not compile. */
cvy_status cvy_gpu_sum_offer(const cvy_kernel_ask *ask, const cvy_gpu_sum_def *def, size_t *scratch_out);
cvy_status cvy_gpu_sum_create(const cvy_kernel_ask *ask, const cvy_gpu_sum_def *def, cvy_gpu_sum **out);
void cvy_gpu_sum_destroy(cvy_gpu_sum **sum);
/* y: NULL if the summand has none. */
cvy_status cvy_gpu_sum_run(const cvy_gpu_sum *sum, const void *x, const void *y, void *dst, void *scratch);

#endif

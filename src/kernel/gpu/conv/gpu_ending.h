/*
 * gpu_ending.h: what follows a product that another library has computed: a bias for each channel, and a relu.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_ENDING_H
#define CVY_GPU_ENDING_H

#include "kernel/gpu/gpu_common.h"

typedef struct cvy_gpu_finish {
    cvy_gpu_kernel kernel;
    int64_t rows;
    int channels, bias, relu;
    cvy_dtype act;
} cvy_gpu_finish;

/* For elems elements with the channels last in memory. CVY_NOT_APPLICABLE: its kernel does not compile. */
cvy_status cvy_gpu_finish_make(const cvy_kernel_ask *ask, int64_t elems, int64_t channels, int bias, int relu,
                               cvy_gpu_finish *out);
/* Changes `to` in place. bias: f32, NULL if there is none. */
cvy_status cvy_gpu_finish_run(const cvy_gpu_finish *f, void *to, const void *bias);

#endif

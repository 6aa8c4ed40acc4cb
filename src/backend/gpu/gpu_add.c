/*
 * gpu_add.c: adds the parts of micro-batches on a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

#ifdef CVY_DEVICE

KERNEL(add_floats)(GLOBAL float *sum, GLOBAL const float *part, i64 n)
{
    FOR_EACH (i, n)
        sum[i] += part[i];
}

KERNEL(add_doubles)(GLOBAL double *sum, GLOBAL const double *part, i64 n)
{
    FOR_EACH (i, n)
        sum[i] += part[i];
}

#else
#include "backend/gpu/gpu.h"

CVY_GPU_SOURCE_DECLARE(gpu_add);

cvy_status cvy_gpu_add(void *state, cvy_lane lane, cvy_dtype dtype, int64_t n, void *sum, const void *part)
{
    cvy_gpu *gpu = state;
    const cvy_space space = {gpu->backend, gpu};
    const cvy_gpu_arg args[] = {CVY_GPU_POINTER(sum), CVY_GPU_POINTER(part), CVY_GPU_VALUE(n)};
    cvy_gpu_kernel kernel;
    CVY_CHECK(dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_F64, CVY_E_INTERNAL, "parts of %s are not added",
              cvy_dtype_text(dtype));
    CVY_TRY(cvy_gpu_kernel_get(&space, CVY_GPU_SOURCE(gpu_add), dtype == CVY_DTYPE_F32 ? "add_floats" : "add_doubles",
                               CVY_DTYPE_F32, &kernel));
    return cvy_gpu_launch_in(&kernel, lane, n ? cvy_gpu_blocks(n) : 0, 1, 1, CVY_GPU_THREADS, args, CVY_COUNT(args));
}
#endif

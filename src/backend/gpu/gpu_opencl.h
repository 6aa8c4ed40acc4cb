/*
 * gpu_opencl.h: the state of a space of the backend opencl, which gpu_opencl.c (memory, lanes, marks) and
 * gpu_opencl_kernel.c (kernels) share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_OPENCL_H
#define CVY_GPU_OPENCL_H

#include "backend/gpu/gpu.h"
#include "backend/gpu/gpu_opencl_api.h"

typedef struct cvy_opencl_space {
    cvy_gpu gpu;
    const cvy_opencl_api *cl;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue[CVY_LANES];
    int fine_grain;          /* the device has SVM that the host may use at any time */
    int exact_division;      /* it can divide floats with correct rounding */
    size_t bytes_max, bytes; /* of one block; of all blocks now */
    void **block;            /* all memory of the space */
    int nblock, block_room;
    int64_t changes; /* how often the list of blocks has changed */
    int64_t launches;
} cvy_opencl_space;

/* Records that a call of OpenCL has failed. */
cvy_status cvy_opencl_fault(const cvy_opencl_space *s, const char *call, cl_int error);

/* Calls a function of OpenCL, and returns its fault from the function that calls it. */
#define CVY_CL(s, name, ...)                                                                                           \
    do {                                                                                                               \
        const cl_int error_ = (s)->cl->name(__VA_ARGS__);                                                              \
        if (error_ != CL_SUCCESS)                                                                                      \
            return cvy_opencl_fault((s), #name, error_);                                                               \
    } while (0)

extern const cvy_gpu_driver cvy_opencl_driver;

#endif

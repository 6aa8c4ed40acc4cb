/*
 * gpu_cuda.h: the state of a space of the backend cuda, which gpu_cuda.c (memory, lanes, marks), gpu_cuda_kernel.c
 * (kernels) and gpu_cuda_record.c (recordings) share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_CUDA_H
#define CVY_GPU_CUDA_H

#include <stdatomic.h>

#include "backend/gpu/gpu.h"
#include "backend/gpu/gpu_cuda_api.h"

/* What a library of the vendor keeps for a space. It is closed before the lanes are. */
typedef struct cvy_cuda_guest {
    void *state;
    void (*close)(void *state);
} cvy_cuda_guest;

enum { CVY_CUDA_GUEST_CUDNN, CVY_CUDA_GUESTS };

typedef struct cvy_cuda_space {
    cvy_gpu gpu;
    const cvy_cuda_api *cu;
    cvy_cu_device device;
    cvy_cu_context context; /* the device's primary one, so that libraries of the vendor share it */
    cvy_cu_stream stream[CVY_LANES];
    cvy_cuda_guest guest[CVY_CUDA_GUESTS];
    const char *launched; /* the latest kernel or recording, for messages */
    atomic_int broken;    /* whether exchanges with other ranks were broken off, by another thread */
} cvy_cuda_space;

enum { CVY_CUDA_BREAKING = 1, CVY_CUDA_BROKEN = 2 };

/* CVY_E_COMM if exchanges were broken off: then what the device holds is wrong. While the thread that does it reports
 * it, this waits. */
cvy_status cvy_cuda_check_whole(const cvy_cuda_space *s);

/* Records that a call has failed. */
cvy_status cvy_cuda_fault(const cvy_cuda_space *s, const char *call, cvy_cu_result result);

/* Calls a function of the driver, and returns its fault from the function that calls it. */
#define CVY_CU(s, name, ...)                                                                                           \
    do {                                                                                                               \
        const cvy_cu_result result_ = (s)->cu->name(__VA_ARGS__);                                                      \
        if (result_ != 0)                                                                                              \
            return cvy_cuda_fault((s), #name, result_);                                                                \
    } while (0)

/* A kernel has done something illegal. Each later call returns the same code. */
static inline int cvy_cuda_is_of_kernel(cvy_cu_result result)
{
    return result == CVY_CU_ILLEGAL_ADDRESS || result == CVY_CU_ASSERT ||
           (result >= CVY_CU_HARDWARE_STACK_ERROR && result <= CVY_CU_LAUNCH_FAILED);
}

extern const cvy_gpu_driver cvy_cuda_driver;

/* ---- slots of the backend: gpu_cuda_record.c ---- */
cvy_status cvy_cuda_record_begin(void *state);
cvy_status cvy_cuda_record_end(void *state, const char *what, cvy_recording **out, int *parts_out);
cvy_status cvy_cuda_replay(void *state, cvy_recording *recording);
void cvy_cuda_recording_destroy(void *state, cvy_recording *recording);

#endif

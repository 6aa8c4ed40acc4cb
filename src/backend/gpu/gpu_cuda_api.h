/*
 * gpu_cuda_api.h: what convoy uses of libcuda (the driver's library) and NVRTC (the compiler), declared here, so that
 * neither is needed to build convoy or to start it. tests/backend/test_backend_cuda_api.c compares these declarations
 * with cuda.h and nvrtc.h where those are installed.
 *
 * The names are those that the libraries export: a suffix _v2 is the version that cuda.h gives to programs today.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_CUDA_API_H
#define CVY_GPU_CUDA_API_H

#include "base/base_mem.h"

typedef int cvy_cu_result; /* 0: success */
typedef int cvy_cu_device;
typedef int cvy_cu_attribute;
typedef struct cvy_cu_uuid {
    char bytes[16];
} cvy_cu_uuid;
typedef unsigned long long cvy_cu_address;
typedef struct CUctx_st *cvy_cu_context;
typedef struct CUstream_st *cvy_cu_stream;
typedef struct CUevent_st *cvy_cu_event;
typedef struct CUmod_st *cvy_cu_module;
typedef struct CUfunc_st *cvy_cu_function;
typedef struct CUgraph_st *cvy_cu_graph;
typedef struct CUgraphNode_st *cvy_cu_node;
typedef struct CUgraphExec_st *cvy_cu_executable;
typedef int cvy_cu_capture;
typedef struct _nvrtcProgram *cvy_nvrtc_program;

enum {
    CVY_CU_INVALID_VALUE = 1,
    CVY_CU_OUT_OF_MEMORY = 2,
    CVY_CU_STUB_LIBRARY = 34,
    CVY_CU_NO_DEVICE = 100,
    CVY_CU_NOT_READY = 600,
    CVY_CU_MULTIPROCESSORS = 16, /* attributes of a device */
    CVY_CU_MAJOR = 75,
    CVY_CU_MINOR = 76,
    CVY_CU_STREAM_NON_BLOCKING = 1,
    CVY_CU_HOST_PORTABLE = 1,
    CVY_CU_CAPTURE_THREAD_LOCAL = 1,
    CVY_CU_ILLEGAL_ADDRESS = 700, /* faults of a kernel, after which the context cannot be used */
    CVY_CU_ASSERT = 710,
    CVY_CU_HARDWARE_STACK_ERROR = 714,
    CVY_CU_LAUNCH_FAILED = 719,
    CVY_CU_NOT_SUPPORTED = 801,
    CVY_CU_CAPTURE_UNSUPPORTED = 900, /* from here to the next: faults of captures and graphs */
    CVY_CU_GRAPH_UPDATE_FAILURE = 910,
    CVY_NVRTC_REFUSED = 6, /* of NVRTC: the source has an error */
};

#define CVY_CUDA_FUNCTIONS(X)                                                                                          \
    X(cuInit, (unsigned))                                                                                              \
    X(cuDriverGetVersion, (int *))                                                                                     \
    X(cuGetErrorName, (cvy_cu_result, const char **))                                                                  \
    X(cuGetErrorString, (cvy_cu_result, const char **))                                                                \
    X(cuDeviceGetCount, (int *))                                                                                       \
    X(cuDeviceGet, (cvy_cu_device *, int))                                                                             \
    X(cuDeviceGetName, (char *, int, cvy_cu_device))                                                                   \
    X(cuDeviceGetAttribute, (int *, cvy_cu_attribute, cvy_cu_device))                                                  \
    X(cuDeviceGetUuid_v2, (cvy_cu_uuid *, cvy_cu_device))                                                              \
    X(cuDeviceTotalMem_v2, (size_t *, cvy_cu_device))                                                                  \
    X(cuDevicePrimaryCtxRetain, (cvy_cu_context *, cvy_cu_device))                                                     \
    X(cuDevicePrimaryCtxRelease_v2, (cvy_cu_device))                                                                   \
    X(cuCtxSetCurrent, (cvy_cu_context))                                                                               \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                                           \
    X(cuMemAlloc_v2, (cvy_cu_address *, size_t))                                                                       \
    X(cuMemFree_v2, (cvy_cu_address))                                                                                  \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                                                                     \
    X(cuMemFreeHost, (void *))                                                                                         \
    X(cuMemcpyAsync, (cvy_cu_address, cvy_cu_address, size_t, cvy_cu_stream))                                          \
    X(cuMemsetD8Async, (cvy_cu_address, unsigned char, size_t, cvy_cu_stream))                                         \
    X(cuStreamCreate, (cvy_cu_stream *, unsigned))                                                                     \
    X(cuStreamDestroy_v2, (cvy_cu_stream))                                                                             \
    X(cuStreamSynchronize, (cvy_cu_stream))                                                                            \
    X(cuStreamWaitEvent, (cvy_cu_stream, cvy_cu_event, unsigned))                                                      \
    X(cuEventCreate, (cvy_cu_event *, unsigned))                                                                       \
    X(cuEventDestroy_v2, (cvy_cu_event))                                                                               \
    X(cuEventRecord, (cvy_cu_event, cvy_cu_stream))                                                                    \
    X(cuEventQuery, (cvy_cu_event))                                                                                    \
    X(cuEventSynchronize, (cvy_cu_event))                                                                              \
    X(cuEventElapsedTime, (float *, cvy_cu_event, cvy_cu_event))                                                       \
    X(cuModuleLoadData, (cvy_cu_module *, const void *))                                                               \
    X(cuModuleUnload, (cvy_cu_module))                                                                                 \
    X(cuModuleGetFunction, (cvy_cu_function *, cvy_cu_module, const char *))                                           \
    X(cuLaunchKernel, (cvy_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,          \
                       cvy_cu_stream, void **, void **))                                                               \
    X(cuStreamBeginCapture_v2, (cvy_cu_stream, cvy_cu_capture))                                                        \
    X(cuStreamEndCapture, (cvy_cu_stream, cvy_cu_graph *))                                                             \
    X(cuGraphGetNodes, (cvy_cu_graph, cvy_cu_node *, size_t *))                                                        \
    X(cuGraphInstantiateWithFlags, (cvy_cu_executable *, cvy_cu_graph, unsigned long long))                            \
    X(cuGraphLaunch, (cvy_cu_executable, cvy_cu_stream))                                                               \
    X(cuGraphDestroy, (cvy_cu_graph))                                                                                  \
    X(cuGraphExecDestroy, (cvy_cu_executable))

#define CVY_NVRTC_FUNCTIONS(X)                                                                                         \
    X(nvrtcVersion, (int *, int *))                                                                                    \
    X(nvrtcGetNumSupportedArchs, (int *))                                                                              \
    X(nvrtcGetSupportedArchs, (int *))                                                                                 \
    X(nvrtcCreateProgram,                                                                                              \
      (cvy_nvrtc_program *, const char *, const char *, int, const char *const *, const char *const *))                \
    X(nvrtcDestroyProgram, (cvy_nvrtc_program *))                                                                      \
    X(nvrtcCompileProgram, (cvy_nvrtc_program, int, const char *const *))                                              \
    X(nvrtcGetProgramLogSize, (cvy_nvrtc_program, size_t *))                                                           \
    X(nvrtcGetProgramLog, (cvy_nvrtc_program, char *))                                                                 \
    X(nvrtcGetCUBINSize, (cvy_nvrtc_program, size_t *))                                                                \
    X(nvrtcGetCUBIN, (cvy_nvrtc_program, char *))

typedef struct cvy_cuda_api {
#define CVY_CUDA_MEMBER(name, parameters) cvy_cu_result(*name) parameters;
    CVY_CUDA_FUNCTIONS(CVY_CUDA_MEMBER)
    CVY_NVRTC_FUNCTIONS(CVY_CUDA_MEMBER)
#undef CVY_CUDA_MEMBER
} cvy_cuda_api;

/* The functions of both libraries, which the first call loads; it also starts the driver (cuInit). NULL: they cannot be
 * used; *why_out says in a sentence why. A test may replace functions of the table, to make them fail. */
cvy_cuda_api *cvy_cuda(const char **why_out);

/* Whether this NVRTC compiles for devices of an architecture, 90 for sm_90. */
int cvy_cuda_compiles_for(const cvy_cuda_api *cu, int architecture);

#endif

/*
 * gpu_opencl_api.h: the functions of libOpenCL.so.1 that convoy calls, declared here, so that a build needs no headers
 * of OpenCL. The library is loaded when a device is first asked for.
 *
 * tests/backend/test_backend_opencl_api.c compares the declarations with CL/cl.h where that is installed. Source: The
 * OpenCL Specification, version 3.0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_OPENCL_API_H
#define CVY_GPU_OPENCL_API_H

#include "base/base_status.h"

#ifndef CL_VERSION_1_0 /* CL/cl.h is included before by the test that compares it */
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_ulong;
typedef cl_ulong cl_bitfield;
typedef cl_bitfield cl_device_type, cl_svm_mem_flags, cl_queue_properties;
typedef intptr_t cl_context_properties;
typedef cl_uint cl_device_info, cl_program_build_info, cl_kernel_work_group_info;
typedef cl_uint cl_kernel_exec_info, cl_event_info, cl_profiling_info;
#define CL_CALLBACK
#endif

/* X(name, value) for each number. */
#define CVY_OPENCL_NUMBERS(X)                                                                                          \
    X(CL_SUCCESS, 0)                                                                                                   \
    X(CL_DEVICE_NOT_FOUND, -1)                                                                                         \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4)                                                                            \
    X(CL_OUT_OF_RESOURCES, -5)                                                                                         \
    X(CL_OUT_OF_HOST_MEMORY, -6)                                                                                       \
    X(CL_COMPLETE, 0)                                                                                                  \
    X(CL_DEVICE_TYPE_CPU, 1 << 1)                                                                                      \
    X(CL_DEVICE_TYPE_GPU, 1 << 2)                                                                                      \
    X(CL_DEVICE_TYPE_ALL, 0xFFFFFFFF)                                                                                  \
    X(CL_DEVICE_TYPE, 0x1000)                                                                                          \
    X(CL_DEVICE_MAX_COMPUTE_UNITS, 0x1002)                                                                             \
    X(CL_DEVICE_MAX_WORK_GROUP_SIZE, 0x1004)                                                                           \
    X(CL_DEVICE_ADDRESS_BITS, 0x100D)                                                                                  \
    X(CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0x1010)                                                                            \
    X(CL_DEVICE_SINGLE_FP_CONFIG, 0x101B)                                                                              \
    X(CL_DEVICE_GLOBAL_MEM_SIZE, 0x101F)                                                                               \
    X(CL_DEVICE_LOCAL_MEM_SIZE, 0x1023)                                                                                \
    X(CL_DEVICE_AVAILABLE, 0x1027)                                                                                     \
    X(CL_DEVICE_COMPILER_AVAILABLE, 0x1028)                                                                            \
    X(CL_DEVICE_NAME, 0x102B)                                                                                          \
    X(CL_DRIVER_VERSION, 0x102D)                                                                                       \
    X(CL_DEVICE_VERSION, 0x102F)                                                                                       \
    X(CL_DEVICE_EXTENSIONS, 0x1030)                                                                                    \
    X(CL_DEVICE_DOUBLE_FP_CONFIG, 0x1032)                                                                              \
    X(CL_DEVICE_SVM_CAPABILITIES, 0x1053)                                                                              \
    X(CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, 1 << 7)                                                                     \
    X(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, 1 << 0)                                                                       \
    X(CL_DEVICE_SVM_FINE_GRAIN_BUFFER, 1 << 1)                                                                         \
    X(CL_CONTEXT_PLATFORM, 0x1084)                                                                                     \
    X(CL_QUEUE_PROPERTIES, 0x1093)                                                                                     \
    X(CL_QUEUE_PROFILING_ENABLE, 1 << 1)                                                                               \
    X(CL_MEM_READ_WRITE, 1 << 0)                                                                                       \
    X(CL_MEM_SVM_FINE_GRAIN_BUFFER, 1 << 10)                                                                           \
    X(CL_PROGRAM_BUILD_LOG, 0x1183)                                                                                    \
    X(CL_KERNEL_WORK_GROUP_SIZE, 0x11B0)                                                                               \
    X(CL_KERNEL_LOCAL_MEM_SIZE, 0x11B2)                                                                                \
    X(CL_KERNEL_EXEC_INFO_SVM_PTRS, 0x11B6)                                                                            \
    X(CL_EVENT_COMMAND_EXECUTION_STATUS, 0x11D3)                                                                       \
    X(CL_PROFILING_COMMAND_END, 0x1283)

#ifndef CL_VERSION_1_0
enum {
#define CVY_OPENCL_NUMBER(name, value) name = (int)(value),
    CVY_OPENCL_NUMBERS(CVY_OPENCL_NUMBER)
#undef CVY_OPENCL_NUMBER
};
#endif
/* Of extensions: the installable client driver; what AMD and NVIDIA say of their devices beside the standard. */
enum {
    CVY_CL_PLATFORM_NOT_FOUND_KHR = -1001,
    CVY_CL_DEVICE_UUID_KHR = 0x106A,
    CVY_CL_UUID_BYTES = 16,
    CVY_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,
    CVY_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,
    CVY_CL_DEVICE_BOARD_NAME_AMD = 0x4038
};

/* X(result, name, parameters) for each function. */
#define CVY_OPENCL_FUNCTIONS(X)                                                                                        \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                                \
    X(cl_int, clGetDeviceIDs, (cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *))                    \
    X(cl_int, clGetDeviceInfo, (cl_device_id, cl_device_info, size_t, void *, size_t *))                               \
    X(cl_context, clCreateContext,                                                                                     \
      (const cl_context_properties *, cl_uint, const cl_device_id *,                                                   \
       void(CL_CALLBACK *)(const char *, const void *, size_t, void *), void *, cl_int *))                             \
    X(cl_int, clReleaseContext, (cl_context))                                                                          \
    X(cl_command_queue, clCreateCommandQueueWithProperties,                                                            \
      (cl_context, cl_device_id, const cl_queue_properties *, cl_int *))                                               \
    X(cl_int, clReleaseCommandQueue, (cl_command_queue))                                                               \
    X(void *, clSVMAlloc, (cl_context, cl_svm_mem_flags, size_t, cl_uint))                                             \
    X(void, clSVMFree, (cl_context, void *))                                                                           \
    X(cl_int, clEnqueueSVMMemcpy,                                                                                      \
      (cl_command_queue, cl_bool, void *, const void *, size_t, cl_uint, const cl_event *, cl_event *))                \
    X(cl_int, clEnqueueSVMMemFill,                                                                                     \
      (cl_command_queue, void *, const void *, size_t, size_t, cl_uint, const cl_event *, cl_event *))                 \
    X(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))           \
    X(cl_int, clBuildProgram,                                                                                          \
      (cl_program, cl_uint, const cl_device_id *, const char *, void(CL_CALLBACK *)(cl_program, void *), void *))      \
    X(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_program_build_info, size_t, void *, size_t *))      \
    X(cl_int, clReleaseProgram, (cl_program))                                                                          \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                                 \
    X(cl_int, clReleaseKernel, (cl_kernel))                                                                            \
    X(cl_int, clGetKernelWorkGroupInfo,                                                                                \
      (cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void *, size_t *))                                  \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                              \
    X(cl_int, clSetKernelArgSVMPointer, (cl_kernel, cl_uint, const void *))                                            \
    X(cl_int, clSetKernelExecInfo, (cl_kernel, cl_kernel_exec_info, size_t, const void *))                             \
    X(cl_int, clEnqueueNDRangeKernel,                                                                                  \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,                  \
       const cl_event *, cl_event *))                                                                                  \
    X(cl_int, clEnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                  \
    X(cl_int, clEnqueueBarrierWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                 \
    X(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                                            \
    X(cl_int, clGetEventInfo, (cl_event, cl_event_info, size_t, void *, size_t *))                                     \
    X(cl_int, clGetEventProfilingInfo, (cl_event, cl_profiling_info, size_t, void *, size_t *))                        \
    X(cl_int, clReleaseEvent, (cl_event))                                                                              \
    X(cl_int, clFlush, (cl_command_queue))                                                                             \
    X(cl_int, clFinish, (cl_command_queue))

typedef struct cvy_opencl_api {
#define CVY_OPENCL_MEMBER(result, name, parameters) result(*name) parameters;
    CVY_OPENCL_FUNCTIONS(CVY_OPENCL_MEMBER)
#undef CVY_OPENCL_MEMBER
} cvy_opencl_api;

/* The functions of the library, which is loaded by the first call. NULL: it cannot be used; *why_out is a sentence that
 * says why. A test may replace functions of the table, to make them fail. */
cvy_opencl_api *cvy_opencl(const char **why_out);

/* The name of an error, such as "CL_OUT_OF_RESOURCES". */
const char *cvy_opencl_error(cl_int error);

/* A device that convoy can use. */
typedef struct cvy_opencl_device {
    cl_platform_id platform;
    cl_device_id device;
    int is_cpu;
} cvy_opencl_device;

enum { CVY_OPENCL_DEVICES_MAX = 64 };

/* Lists the devices that convoy can use, of all platforms: first those that are no CPU. Returns their number; `why`
 * says in a sentence why there are none. */
int cvy_opencl_devices(cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX], char *why, size_t room);

/* Properties of a device; 0 and "" if it does not know them. */
uint64_t cvy_opencl_number(cl_device_id device, cl_device_info what);
void cvy_opencl_string(cl_device_id device, cl_device_info what, char *text, size_t room);
int cvy_opencl_has(cl_device_id device, const char *extension);
/* A value of so many bytes, at most 32, as hexadecimal digits; "": the device does not say it. */
void cvy_opencl_bytes(cl_device_id device, cl_device_info what, size_t bytes, char *text, size_t room);

#endif

/* rows: clang */
/*
 * test_backend_cuda_api.c: the declarations of gpu_cuda_api.h are those of cuda.h and nvrtc.h, where these are
 * installed: the types of all functions and the values of all numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)
#include <cuda.h>
#include <nvrtc.h>
#endif
#endif

#include "backend/gpu/gpu_cuda_api.h"
#include "test_util.h"

#ifdef CUDA_VERSION
/* Numbers of CUDA are enumerations, and int here. */
#define cvy_cu_attribute CUdevice_attribute
#define cvy_cu_address CUdeviceptr
#define cvy_cu_device CUdevice
#define cvy_cu_uuid CUuuid
#define cvy_cu_capture CUstreamCaptureMode

static void driver(void)
{
#define cvy_cu_result CUresult
#define SAME(name, parameters)                                                                                         \
    test_checks++;                                                                                                     \
    if (!__builtin_types_compatible_p(__typeof__(&name), CUresult(*) parameters))                                      \
        TEST_FAIL("%s has another type in cuda.h", #name);
    CVY_CUDA_FUNCTIONS(SAME)
#undef SAME
#undef cvy_cu_result
}

static void compiler(void)
{
#define SAME(name, parameters)                                                                                         \
    test_checks++;                                                                                                     \
    if (!__builtin_types_compatible_p(__typeof__(&name), nvrtcResult(*) parameters))                                   \
        TEST_FAIL("%s has another type in nvrtc.h", #name);
    CVY_NVRTC_FUNCTIONS(SAME)
#undef SAME
}

static void numbers(void)
{
    EXPECT_INT(CVY_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
    EXPECT_INT(CVY_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_INT(CVY_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
    EXPECT_INT(CVY_CU_NOT_READY, CUDA_ERROR_NOT_READY);
    EXPECT_INT(CVY_CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    EXPECT_INT(CVY_CU_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    EXPECT_INT(CVY_CU_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    EXPECT_INT(CVY_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    EXPECT_INT(CVY_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
    EXPECT_INT(CVY_CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EXPECT_INT(CVY_CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_INT(CVY_CU_ASSERT, CUDA_ERROR_ASSERT);
    EXPECT_INT(CVY_CU_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR);
    EXPECT_INT(CVY_CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_INT(CVY_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_INT(CVY_CU_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_INT(CVY_CU_GRAPH_UPDATE_FAILURE, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_INT(sizeof(CUstreamCaptureMode), sizeof(int));
    EXPECT_INT(sizeof(CUresult), sizeof(int));
    EXPECT_INT(sizeof(CUuuid), 16);
    EXPECT_INT(sizeof(nvrtcResult), sizeof(int));
    EXPECT_INT(sizeof(CUdevice_attribute), sizeof(int));
}

int main(void)
{
    TEST(driver);
    TEST(compiler);
    TEST(numbers);
    return test_end();
}
#else
int main(void)
{
    printf("skipped: there are no cuda.h and nvrtc.h with which to compare\n");
    return 77;
}
#endif

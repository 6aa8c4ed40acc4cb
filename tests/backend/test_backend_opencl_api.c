/* rows: clang */
/*
 * test_backend_opencl_api.c: the declarations of gpu_opencl_api.h are those of CL/cl.h, where that is installed
 * (package opencl-c-headers of Debian): the types of all functions and the values of all numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#endif
#endif

#include "backend/gpu/gpu_opencl_api.h"
#include "test_util.h"

#ifdef CL_VERSION_3_0
static void test_functions(void)
{
#define SAME(result, name, parameters)                                                                                 \
    test_checks++;                                                                                                     \
    if (!__builtin_types_compatible_p(__typeof__(&name), __typeof__(((cvy_opencl_api *)0)->name)))                     \
        TEST_FAIL("%s has another type in CL/cl.h", #name);
    CVY_OPENCL_FUNCTIONS(SAME)
#undef SAME
}

static void test_numbers(void)
{
#define SAME(name, value) EXPECT_INT((uint32_t)(name), (uint32_t)(value));
    CVY_OPENCL_NUMBERS(SAME)
#undef SAME
    EXPECT_INT(CVY_CL_PLATFORM_NOT_FOUND_KHR, CL_PLATFORM_NOT_FOUND_KHR);
    EXPECT_INT(CVY_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV);
    EXPECT_INT(CVY_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV);
    EXPECT_INT(CVY_CL_DEVICE_BOARD_NAME_AMD, CL_DEVICE_BOARD_NAME_AMD);
#ifdef CL_DEVICE_UUID_KHR
    EXPECT_INT(CVY_CL_DEVICE_UUID_KHR, CL_DEVICE_UUID_KHR);
    EXPECT_INT(CVY_CL_UUID_BYTES, CL_UUID_SIZE_KHR);
#endif
}

/* The types that gpu_opencl_api.h has where CL/cl.h is not included. */
static void test_types(void)
{
    EXPECT_INT(sizeof(cl_int), 4);
    EXPECT_INT(sizeof(cl_uint), 4);
    EXPECT_INT(sizeof(cl_bool), 4);
    EXPECT_INT(sizeof(cl_ulong), 8);
    EXPECT_INT(sizeof(cl_device_type), 8);
    EXPECT_INT(sizeof(cl_svm_mem_flags), 8);
    EXPECT_INT(sizeof(cl_queue_properties), 8);
    EXPECT_INT(sizeof(cl_context_properties), sizeof(void *));
    EXPECT_INT(sizeof(cl_device_info), 4);
    EXPECT_INT(sizeof(cl_kernel_exec_info), 4);
}

static void test_errors(void)
{
    EXPECT_TEXT(cvy_opencl_error(CL_OUT_OF_RESOURCES), "CL_OUT_OF_RESOURCES");
    EXPECT_TEXT(cvy_opencl_error(CL_MEM_OBJECT_ALLOCATION_FAILURE), "CL_MEM_OBJECT_ALLOCATION_FAILURE");
    EXPECT_TEXT(cvy_opencl_error(CL_BUILD_PROGRAM_FAILURE), "CL_BUILD_PROGRAM_FAILURE");
    EXPECT_TEXT(cvy_opencl_error(CL_INVALID_KERNEL_NAME), "CL_INVALID_KERNEL_NAME");
    EXPECT_TEXT(cvy_opencl_error(CL_INVALID_WORK_GROUP_SIZE), "CL_INVALID_WORK_GROUP_SIZE");
    EXPECT_TEXT(cvy_opencl_error(CL_INVALID_KERNEL_ARGS), "CL_INVALID_KERNEL_ARGS");
    EXPECT_TEXT(cvy_opencl_error(-999), "an error of the driver");
}

int main(void)
{
    TEST(test_functions);
    TEST(test_numbers);
    TEST(test_types);
    TEST(test_errors);
    return test_end();
}
#else
int main(void)
{
    printf("skipped: there is no CL/cl.h of OpenCL 3.0 with which to compare\n");
    return 77;
}
#endif

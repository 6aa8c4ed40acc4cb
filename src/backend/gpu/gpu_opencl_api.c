/*
 * gpu_opencl_api.c: loads libOpenCL.so.1, and lists the devices that convoy can use.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/gpu_opencl_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/text/base_text.h"

static cvy_opencl_api api;
static char api_why[400];

static void load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *error = dlerror();
        snprintf(api_why, sizeof api_why, "the OpenCL library cannot be loaded (%s)", error ? error : "libOpenCL.so.1");
        return;
    }
#define FIND(result, name, parameters)                                                                                 \
    do {                                                                                                               \
        void *at = dlsym(library, #name);                                                                              \
        if (!at && !api_why[0])                                                                                        \
            snprintf(api_why, sizeof api_why,                                                                          \
                     "libOpenCL.so.1 has no function %s, so it is older than OpenCL 2.0, which convoy needs", #name);  \
        memcpy(&api.name, &at, sizeof at);                                                                             \
    } while (0);
    CVY_OPENCL_FUNCTIONS(FIND)
#undef FIND
}

cvy_opencl_api *cvy_opencl(const char **why_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (why_out)
        *why_out = api_why;
    return api_why[0] ? NULL : &api;
}

const char *cvy_opencl_error(cl_int error)
{
    static const struct {
        cl_int error;
        const char *name;
    } names[] = {
        {-1, "CL_DEVICE_NOT_FOUND"},
        {-2, "CL_DEVICE_NOT_AVAILABLE"},
        {-3, "CL_COMPILER_NOT_AVAILABLE"},
        {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {-5, "CL_OUT_OF_RESOURCES"},
        {-6, "CL_OUT_OF_HOST_MEMORY"},
        {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
        {-8, "CL_MEM_COPY_OVERLAP"},
        {-11, "CL_BUILD_PROGRAM_FAILURE"},
        {-12, "CL_MAP_FAILURE"},
        {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
        {-30, "CL_INVALID_VALUE"},
        {-33, "CL_INVALID_DEVICE"},
        {-34, "CL_INVALID_CONTEXT"},
        {-36, "CL_INVALID_COMMAND_QUEUE"},
        {-43, "CL_INVALID_BUILD_OPTIONS"},
        {-44, "CL_INVALID_PROGRAM"},
        {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
        {-46, "CL_INVALID_KERNEL_NAME"},
        {-47, "CL_INVALID_KERNEL_DEFINITION"},
        {-48, "CL_INVALID_KERNEL"},
        {-49, "CL_INVALID_ARG_INDEX"},
        {-50, "CL_INVALID_ARG_VALUE"},
        {-51, "CL_INVALID_ARG_SIZE"},
        {-52, "CL_INVALID_KERNEL_ARGS"},
        {-54, "CL_INVALID_WORK_GROUP_SIZE"},
        {-55, "CL_INVALID_WORK_ITEM_SIZE"},
        {-57, "CL_INVALID_EVENT_WAIT_LIST"},
        {-58, "CL_INVALID_EVENT"},
        {-59, "CL_INVALID_OPERATION"},
        {-61, "CL_INVALID_BUFFER_SIZE"},
        {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
        {CVY_CL_PLATFORM_NOT_FOUND_KHR, "CL_PLATFORM_NOT_FOUND_KHR"},
    };
    for (int i = 0; i < CVY_COUNT(names); i++)
        if (names[i].error == error)
            return names[i].name;
    return "an error of the driver";
}

/* ---- devices ---- */

uint64_t cvy_opencl_number(cl_device_id device, cl_device_info what)
{
    uint64_t value = 0; /* a number has 4 or 8 bytes */
    size_t bytes = 0;
    return api.clGetDeviceInfo(device, what, sizeof value, &value, &bytes) == CL_SUCCESS && bytes <= sizeof value
               ? value
               : 0;
}

/* A driver gives a string as a whole or not at all. That of the extensions has thousands of characters on some. */
static char *whole_string(cl_device_id device, cl_device_info what)
{
    size_t bytes = 0;
    char *whole = NULL;
    if (api.clGetDeviceInfo(device, what, 0, NULL, &bytes) != CL_SUCCESS || cvy_mem_alloc(bytes + 1, &whole) != CVY_OK)
        return NULL;
    if (api.clGetDeviceInfo(device, what, bytes, whole, NULL) != CL_SUCCESS)
        cvy_mem_free(&whole);
    return whole;
}

void cvy_opencl_string(cl_device_id device, cl_device_info what, char *text, size_t room)
{
    char *whole = whole_string(device, what);
    text[0] = 0;
    if (!whole)
        return;
    snprintf(text, room, "%s", whole + strspn(whole, " "));
    for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
        text[n - 1] = 0;
    cvy_mem_free(&whole);
}

int cvy_opencl_has(cl_device_id device, const char *extension)
{
    char *whole = whole_string(device, CL_DEVICE_EXTENSIONS);
    const int has = whole && cvy_text_lists(whole, " ", extension);
    cvy_mem_free(&whole);
    return has;
}

void cvy_opencl_bytes(cl_device_id device, cl_device_info what, size_t bytes, char *text, size_t room)
{
    unsigned char value[32] = {0};
    text[0] = 0;
    if (bytes > sizeof value || api.clGetDeviceInfo(device, what, bytes, value, NULL) != CL_SUCCESS)
        return;
    for (size_t i = 0; i < bytes && 2 * i + 2 < room; i++)
        snprintf(text + 2 * i, room - 2 * i, "%02x", value[i]);
}

/* Returns what a device lacks; NULL: convoy can use it. */
static const char *lacks(cl_device_id device)
{
    if (!cvy_opencl_number(device, CL_DEVICE_AVAILABLE))
        return "is not available";
    if (!cvy_opencl_number(device, CL_DEVICE_COMPILER_AVAILABLE))
        return "has no compiler";
    if (!(cvy_opencl_number(device, CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        return "has no shared virtual memory (SVM), which convoy needs";
    if (!cvy_opencl_number(device, CL_DEVICE_DOUBLE_FP_CONFIG))
        return "has no numbers of double precision (fp64), in which convoy adds losses and statistics";
    if (cvy_opencl_number(device, CL_DEVICE_ADDRESS_BITS) != 64)
        return "has no addresses of 64 bits";
    return cvy_opencl_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE) < 256 ? "has work-groups of fewer than 256 items"
                                                                          : NULL;
}

/* The devices of one platform; `refused` gets a sentence on the first one that cannot be used. */
static int list_platform(cl_platform_id platform, cvy_opencl_device *list, int room, char *refused, size_t refused_room)
{
    cl_device_id ids[CVY_OPENCL_DEVICES_MAX];
    cl_uint count = 0;
    int n = 0;
    if (api.clGetDeviceIDs(platform, (cl_device_type)(cl_uint)CL_DEVICE_TYPE_ALL, CVY_OPENCL_DEVICES_MAX, ids,
                           &count) != CL_SUCCESS)
        return 0;
    for (cl_uint i = 0; i < CVY_MIN(count, CVY_OPENCL_DEVICES_MAX) && n < room; i++) {
        const char *why = lacks(ids[i]);
        const int is_cpu = (cvy_opencl_number(ids[i], CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
        if (!why) {
            list[n++] = (cvy_opencl_device){platform, ids[i], is_cpu};
        } else if (!refused[0]) {
            char name[128];
            cvy_opencl_string(ids[i], CL_DEVICE_NAME, name, sizeof name);
            snprintf(refused, refused_room, "the device %s %s", name, why);
        }
    }
    return n;
}

/* Puts the devices that are no CPU first, and keeps the order else. */
static void sort(cvy_opencl_device *list, int n)
{
    cvy_opencl_device sorted[CVY_OPENCL_DEVICES_MAX];
    int k = 0;
    for (int is_cpu = 0; is_cpu < 2; is_cpu++)
        for (int i = 0; i < n; i++)
            if (list[i].is_cpu == is_cpu)
                sorted[k++] = list[i];
    memcpy(list, sorted, (size_t)n * sizeof *list);
}

int cvy_opencl_devices(cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX], char *why, size_t room)
{
    enum { PLATFORMS_MAX = 32 };
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint nplatforms = 0;
    const char *no_library = NULL;
    char refused[300] = "";
    int n = 0;
    if (room)
        why[0] = 0;
    if (!cvy_opencl(&no_library)) {
        snprintf(why, room, "%s", no_library);
        return 0;
    }
    const cl_int error = api.clGetPlatformIDs(PLATFORMS_MAX, platforms, &nplatforms);
    if (error != CL_SUCCESS && error != CVY_CL_PLATFORM_NOT_FOUND_KHR)
        snprintf(why, room, "clGetPlatformIDs fails with %s (%d)", cvy_opencl_error(error), error);
    else if (error != CL_SUCCESS || nplatforms == 0)
        snprintf(why, room,
                 "OpenCL knows no platform: no driver of a device has put its file into /etc/OpenCL/vendors");
    else {
        for (cl_uint i = 0; i < CVY_MIN(nplatforms, PLATFORMS_MAX); i++)
            n += list_platform(platforms[i], list + n, CVY_OPENCL_DEVICES_MAX - n, refused, sizeof refused);
        if (n == 0)
            snprintf(why, room, "%s", refused[0] ? refused : "the platforms of OpenCL have no device");
    }
    sort(list, n);
    return n;
}

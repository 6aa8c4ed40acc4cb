/*
 * gpu_opencl_kernel.c: kernels of the backend opencl: compiled by the driver, and put into a queue.
 *
 * Drivers keep on disk what they have compiled (PoCL, NVIDIA and Intel do), so convoy does not. Measured with PoCL 3.1
 * on one core: a source takes 220 ms and 45 ms again, and a kernel 100 to 400 ms when it first runs and 3 to 30 ms
 * again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "backend/gpu/gpu_opencl.h"

/* After so many launches a queue is flushed: a driver may keep commands until then, and the device would wait while the
 * host puts in a whole step. */
enum { LAUNCHES = 16 };

struct kernel {
    cl_kernel handle;
    char *name;
    int64_t knows; /* the list of blocks that the driver knows for it, by its number of changes; -1: it needs none */
    struct kernel *next;
};

struct module {
    cl_program program;
    int is_bf16;       /* its activations */
    int has_addresses; /* its kernels follow addresses that they read from memory */
    struct kernel *kernels;
};

static cvy_status say_log(const cvy_opencl_space *s, cl_program program, cl_int error)
{
    char text[400] = "", *log = NULL;
    size_t bytes = 0;
    s->cl->clGetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    if (bytes > 1 && cvy_mem_alloc(bytes + 1, &log) == CVY_OK &&
        s->cl->clGetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL) == CL_SUCCESS)
        cvy_gpu_shorten_log(log, text, sizeof text);
    cvy_mem_free(&log);
    return cvy_error_set(CVY_NOT_APPLICABLE, "%s (%d)%s%s", cvy_opencl_error(error), error, text[0] ? ": " : "", text);
}

/* Whether a text uses AT_ADDRESS, beside the lines that define it. */
static int uses_addresses(const char *text)
{
    static const char name[] = "AT_ADDRESS(", define[] = "#define ";
    const size_t before = sizeof define - 1;
    for (const char *at = text; (at = strstr(at, name)) != NULL; at += sizeof name - 1)
        if ((size_t)(at - text) < before || strncmp(at - before, define, before) != 0)
            return 1;
    return 0;
}

static void opencl_unbuild(void *state, void *handle)
{
    const cvy_opencl_space *s = state;
    struct module *module = handle;
    while (module->kernels) {
        struct kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        s->cl->clReleaseKernel(kernel->handle);
        cvy_mem_free(&kernel->name);
        cvy_mem_free(&kernel);
    }
    s->cl->clReleaseProgram(module->program);
    cvy_mem_free(&module);
}

static cvy_status opencl_build(void *state, const cvy_gpu_source *source, cvy_dtype act, void **module_out)
{
    const cvy_opencl_space *s = state;
    struct module *module = NULL;
    char options[128];
    cl_int error = CL_SUCCESS;
    const char *text = source->text;
    snprintf(options, sizeof options, "-cl-std=CL1.2 -DBF16=%d%s", act == CVY_DTYPE_BF16,
             s->exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    cl_program program = s->cl->clCreateProgramWithSource(s->context, 1, &text, NULL, &error);
    if (error != CL_SUCCESS)
        return cvy_opencl_fault(s, "clCreateProgramWithSource", error);
    error = s->cl->clBuildProgram(program, 1, &s->device, options, NULL, NULL);
    cvy_status status = error == CL_SUCCESS ? cvy_mem_alloc(sizeof *module, &module) : say_log(s, program, error);
    if (status != CVY_OK) {
        s->cl->clReleaseProgram(program);
        return status;
    }
    *module = (struct module){
        .program = program, .is_bf16 = act == CVY_DTYPE_BF16, .has_addresses = uses_addresses(source->text)};
    *module_out = module;
    return CVY_OK;
}

/* A kernel that needs more than the device has in a block is left to others. */
static cvy_status check_limits(const cvy_opencl_space *s, cl_kernel kernel, const char *name)
{
    size_t threads = 0;
    cl_ulong shared = 0;
    const cl_ulong has = cvy_opencl_number(s->device, CL_DEVICE_LOCAL_MEM_SIZE);
    CVY_CL(s, clGetKernelWorkGroupInfo, kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof threads, &threads, NULL);
    CVY_CL(s, clGetKernelWorkGroupInfo, kernel, s->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof shared, &shared, NULL);
    CVY_CHECK(threads >= CVY_GPU_THREADS, CVY_NOT_APPLICABLE, "%s runs %s in blocks of at most %zu threads, not %d",
              s->gpu.device.name, name, threads, CVY_GPU_THREADS);
    CVY_CHECK(shared <= has, CVY_NOT_APPLICABLE, "%s needs %llu bytes of local memory, and %s has %llu", name,
              (unsigned long long)shared, s->gpu.device.name, (unsigned long long)has);
    return CVY_OK;
}

static cvy_status make_kernel(const cvy_opencl_space *s, struct module *module, const char *name, struct kernel *kernel)
{
    cl_int error = CL_SUCCESS;
    CVY_TRY(cvy_mem_strdup(name, &kernel->name));
    kernel->knows = module->has_addresses ? 0 : -1;
    kernel->handle = s->cl->clCreateKernel(module->program, name, &error);
    if (error != CL_SUCCESS)
        return cvy_opencl_fault(s, "clCreateKernel", error);
    return check_limits(s, kernel->handle, name);
}

static cvy_status opencl_find(void *state, void *handle, const char *name, void **kernel_out)
{
    const cvy_opencl_space *s = state;
    struct module *module = handle;
    char full[128];
    snprintf(full, sizeof full, "%s_%s", name, module->is_bf16 ? "bf16" : "f32");
    struct kernel *kernel = module->kernels;
    while (kernel && strcmp(kernel->name, full) != 0)
        kernel = kernel->next;
    if (!kernel) {
        CVY_TRY(cvy_mem_alloc(sizeof *kernel, &kernel));
        const cvy_status status = make_kernel(s, module, full, kernel);
        if (status != CVY_OK) {
            if (kernel->handle)
                s->cl->clReleaseKernel(kernel->handle);
            cvy_mem_free(&kernel->name);
            cvy_mem_free(&kernel);
            return status;
        }
        kernel->next = module->kernels;
        module->kernels = kernel;
    }
    *kernel_out = kernel;
    return CVY_OK;
}

/* A kernel that follows addresses of a table may reach any block. The driver is told which those are, because it may
 * move others away, and looks only at the kernel's arguments otherwise. */
static cvy_status tell_blocks(const cvy_opencl_space *s, struct kernel *kernel)
{
    if (kernel->knows < 0 || kernel->knows == s->changes)
        return CVY_OK;
    CVY_CL(s, clSetKernelExecInfo, kernel->handle, CL_KERNEL_EXEC_INFO_SVM_PTRS, (size_t)s->nblock * sizeof *s->block,
           s->block);
    kernel->knows = s->changes;
    return CVY_OK;
}

/* One thread of the host puts work into the lanes of a space, so the arguments of a kernel are set by one alone. */
static cvy_status opencl_launch(void *state, cvy_lane lane, void *handle, const int grid[3], int threads,
                                const cvy_gpu_arg *args, int nargs)
{
    cvy_opencl_space *s = state;
    struct kernel *kernel = handle;
    const size_t local[3] = {(size_t)threads, 1, 1};
    const size_t global[3] = {(size_t)grid[0] * (size_t)threads, (size_t)grid[1], (size_t)grid[2]};
    for (int i = 0; i < nargs; i++) {
        const void *pointer = NULL;
        if (args[i].bytes == 0)
            memcpy(&pointer, args[i].at, sizeof pointer);
        if (args[i].bytes > 0)
            CVY_CL(s, clSetKernelArg, kernel->handle, (cl_uint)i, args[i].bytes, args[i].at);
        else if (pointer)
            CVY_CL(s, clSetKernelArgSVMPointer, kernel->handle, (cl_uint)i, pointer);
        else /* the size is that of a buffer object, which this one is not */
            CVY_CL(s, clSetKernelArg, kernel->handle, (cl_uint)i, sizeof(void *), NULL);
    }
    CVY_TRY(tell_blocks(s, kernel));
    CVY_CL(s, clEnqueueNDRangeKernel, s->queue[lane], kernel->handle, 3, NULL, global, local, 0, NULL, NULL);
    if (++s->launches % LAUNCHES == 0)
        CVY_CL(s, clFlush, s->queue[lane]);
    return CVY_OK;
}

const cvy_gpu_driver cvy_opencl_driver = {
    .build = opencl_build,
    .unbuild = opencl_unbuild,
    .find = opencl_find,
    .launch = opencl_launch,
};

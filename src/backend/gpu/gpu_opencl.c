/*
 * gpu_opencl.c: the backend opencl: any device with OpenCL 2.0 or later that has shared virtual memory (SVM) and fp64.
 *
 * Memory of a space is SVM of the coarse-grain kind, which lies on the device: it has addresses, so that a plan
 * computes them as for all backends, and kernels get addresses within a block. The host never uses such an address.
 * Each copy is clEnqueueSVMMemcpy, which also takes memory that is not SVM. Memory of the host for copies is fine-grain
 * SVM where a device has it (a driver keeps it page-locked), and plain pages where not.
 *
 * A lane is an in-order queue, and a mark is the event of a marker command. A queue is flushed after each marker,
 * because another queue may wait only for commands that are with the device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "backend/gpu/gpu_opencl.h"

struct cvy_mark {
    cl_event event; /* of the latest marker; NULL: it has not been put into a lane */
};

cvy_status cvy_opencl_fault(const cvy_opencl_space *s, const char *call, cl_int error)
{
    const int memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY;
    return cvy_error_set(memory ? CVY_E_MEMORY : CVY_E_UNSUPPORTED, "OpenCL device %s: %s fails with %s (%d)",
                         s->gpu.device.name, call, cvy_opencl_error(error), error);
}

/* ---- the device ---- */

static int opencl_count(char *why, size_t room)
{
    cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX];
    const int n = cvy_opencl_devices(list, why, room);
    int gpus = 0;
    while (gpus < n && !list[gpus].is_cpu)
        gpus++;
    return gpus ? gpus : n;
}

/* The architecture is what the driver compiles for, as far as it says. */
static void name_device(cvy_opencl_space *s, const cvy_opencl_device *at)
{
    cvy_device *d = &s->gpu.device;
    char version[64], driver[64], number[16] = "";
    cvy_opencl_string(at->device, CL_DEVICE_NAME, d->name, sizeof d->name);
    cvy_opencl_string(at->device, CL_DEVICE_VERSION, version, sizeof version);
    cvy_opencl_string(at->device, CL_DRIVER_VERSION, driver, sizeof driver);
    sscanf(version, "OpenCL %15s", number); /* before words of the vendor */
    snprintf(d->driver, sizeof d->driver, "OpenCL %s, driver %.60s", number, driver);
    snprintf(d->architecture, sizeof d->architecture, "%s", at->is_cpu ? "CPU" : "GPU");
    if (cvy_opencl_has(at->device, "cl_amd_device_attribute_query")) {
        snprintf(d->architecture, sizeof d->architecture, "%.31s", d->name);
        cvy_opencl_string(at->device, CVY_CL_DEVICE_BOARD_NAME_AMD, d->name, sizeof d->name);
    } else if (cvy_opencl_has(at->device, "cl_nv_device_attribute_query")) {
        snprintf(d->architecture, sizeof d->architecture, "sm_%d%d",
                 (int)cvy_opencl_number(at->device, CVY_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV),
                 (int)cvy_opencl_number(at->device, CVY_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV));
    }
    if (cvy_opencl_has(at->device, "cl_khr_device_uuid"))
        cvy_opencl_bytes(at->device, CVY_CL_DEVICE_UUID_KHR, CVY_CL_UUID_BYTES, d->id, sizeof d->id);
    d->is_processor = at->is_cpu;
    d->units = (int)cvy_opencl_number(at->device, CL_DEVICE_MAX_COMPUTE_UNITS);
    d->bytes = (int64_t)cvy_opencl_number(at->device, CL_DEVICE_GLOBAL_MEM_SIZE);
    s->bytes_max = (size_t)cvy_opencl_number(at->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    s->fine_grain = (cvy_opencl_number(at->device, CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
    s->exact_division =
        (cvy_opencl_number(at->device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
}

static void opencl_about(void *state, cvy_device *out)
{
    const cvy_opencl_space *s = state;
    *out = s->gpu.device;
    out->bytes_left = out->bytes - (int64_t)s->bytes; /* OpenCL does not tell what other processes use */
}

static void opencl_close(void *state)
{
    cvy_opencl_space *s = state;
    for (int lane = 0; lane < CVY_LANES; lane++)
        if (s->queue[lane])
            s->cl->clFinish(s->queue[lane]);
    cvy_gpu_end(&s->gpu);
    for (int lane = 0; lane < CVY_LANES; lane++)
        if (s->queue[lane])
            s->cl->clReleaseCommandQueue(s->queue[lane]);
    for (int i = 0; i < s->nblock; i++)
        s->cl->clSVMFree(s->context, s->block[i]);
    if (s->context)
        s->cl->clReleaseContext(s->context);
    cvy_mem_free(&s->block);
    cvy_mem_free(&s);
}

static cvy_status start(cvy_opencl_space *s, const cvy_opencl_device *at)
{
    const cl_context_properties context[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)at->platform, 0};
    const cl_queue_properties queue[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}; /* times of marks */
    cl_int error = CL_SUCCESS;
    s->device = at->device;
    s->context = s->cl->clCreateContext(context, 1, &at->device, NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return cvy_opencl_fault(s, "clCreateContext", error);
    for (int lane = 0; lane < CVY_LANES; lane++) {
        s->queue[lane] = s->cl->clCreateCommandQueueWithProperties(s->context, at->device, queue, &error);
        if (error != CL_SUCCESS)
            return cvy_opencl_fault(s, "clCreateCommandQueueWithProperties", error);
    }
    return CVY_OK;
}

/* A CPU counts as a device if there is no other one; its number may be given in any case. */
static cvy_status opencl_open(const cvy_backend_def *self, const cvy_place *place, void **state_out)
{
    cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX];
    char why[400];
    const int n = cvy_opencl_devices(list, why, sizeof why);
    int number = place->device;
    cvy_opencl_space *s = NULL;
    if (number < 0 || number >= n)
        CVY_TRY(cvy_gpu_number(self, place, &number));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->cl = cvy_opencl(NULL);
    name_device(s, &list[number]);
    s->gpu.device.number = number;
    s->gpu.device.count = CVY_MAX(opencl_count(why, sizeof why), number + 1);
    const cvy_status status = start(s, &list[number]);
    if (status != CVY_OK) {
        opencl_close(s);
        return status;
    }
    cvy_gpu_begin(&s->gpu, self);
    *state_out = s;
    return CVY_OK;
}

/* ---- memory ---- */

static cvy_status fill_with_zeros(cvy_opencl_space *s, cvy_lane lane, void *data, size_t bytes)
{
    static const cl_ulong zero[2] = {0};
    const size_t places = (size_t)(uintptr_t)data | bytes;
    const size_t pattern = places % 16 == 0 ? 16 : places % 4 == 0 ? 4 : 1;
    CVY_CL(s, clEnqueueSVMMemFill, s->queue[lane], data, zero, pattern, bytes, 0, NULL, NULL);
    return CVY_OK;
}

static cvy_status get_block(cvy_opencl_space *s, size_t bytes, cl_svm_mem_flags flags, void **out)
{
    const double gib = 1 << 30;
    CVY_CHECK(bytes <= s->bytes_max, CVY_E_MEMORY,
              "OpenCL device %s gives blocks of at most %zu bytes (%.2f GiB), and one of %zu bytes (%.2f GiB) is "
              "needed: take a smaller batch, or more micro-batches",
              s->gpu.device.name, s->bytes_max, (double)s->bytes_max / gib, bytes, (double)bytes / gib);
    CVY_TRY(cvy_mem_reserve(&s->block, &s->block_room, s->nblock, sizeof *s->block));
    void *block = s->cl->clSVMAlloc(s->context, CL_MEM_READ_WRITE | flags, bytes, 64);
    CVY_CHECK(block, CVY_E_MEMORY,
              "OpenCL device %s cannot give %zu bytes of memory (%.2f GiB): of its %.2f GiB this process has %.2f GiB; "
              "take a smaller batch, or more micro-batches",
              s->gpu.device.name, bytes, (double)bytes / gib, (double)s->gpu.device.bytes / gib,
              (double)s->bytes / gib);
    s->block[s->nblock++] = block;
    s->changes++;
    *out = block;
    return CVY_OK;
}

/* Commands that use the block may be in any lane. */
static void free_block(cvy_opencl_space *s, void *data)
{
    for (int lane = 0; lane < CVY_LANES; lane++)
        s->cl->clFinish(s->queue[lane]);
    for (int i = 0; i < s->nblock; i++)
        if (s->block[i] == data) {
            s->block[i] = s->block[--s->nblock];
            s->changes++;
        }
    s->cl->clSVMFree(s->context, data);
}

static size_t whole(size_t bytes)
{
    return bytes ? (bytes + 63) / 64 * 64 : 64;
}

static cvy_status opencl_alloc(void *state, size_t bytes, int lazily, void **out)
{
    cvy_opencl_space *s = state;
    void *data = NULL;
    (void)lazily;
    CVY_TRY(get_block(s, whole(bytes), 0, &data));
    cvy_status status = fill_with_zeros(s, CVY_LANE_COMPUTE, data, whole(bytes));
    if (status == CVY_OK && s->cl->clFinish(s->queue[CVY_LANE_COMPUTE]) != CL_SUCCESS)
        status = cvy_error_set(CVY_E_MEMORY, "OpenCL device %s cannot clear %zu bytes of its memory",
                               s->gpu.device.name, whole(bytes));
    if (status != CVY_OK) {
        free_block(s, data);
        return status;
    }
    s->bytes += whole(bytes);
    *out = data;
    return CVY_OK;
}

static void opencl_free(void *state, void *data, size_t bytes)
{
    cvy_opencl_space *s = state;
    s->bytes -= whole(bytes);
    free_block(s, data);
}

static cvy_status opencl_alloc_host(void *state, size_t bytes, void **out)
{
    cvy_opencl_space *s = state;
    return s->fine_grain ? get_block(s, whole(bytes), CL_MEM_SVM_FINE_GRAIN_BUFFER, out)
                         : cvy_mem_alloc_pages(whole(bytes), out);
}

static void opencl_free_host(void *state, void *data, size_t bytes)
{
    cvy_opencl_space *s = state;
    if (s->fine_grain) {
        free_block(s, data);
        return;
    }
    for (int lane = 0; lane < CVY_LANES; lane++)
        s->cl->clFinish(s->queue[lane]);
    cvy_mem_free_pages(&data, whole(bytes));
}

/* ---- lanes ---- */

static cvy_status opencl_copy(void *state, cvy_lane lane, void *to, const void *from, size_t bytes)
{
    cvy_opencl_space *s = state;
    if (bytes && to != from)
        CVY_CL(s, clEnqueueSVMMemcpy, s->queue[lane], 0, to, from, bytes, 0, NULL, NULL);
    return CVY_OK;
}

static cvy_status opencl_zero(void *state, cvy_lane lane, void *data, size_t bytes)
{
    return bytes ? fill_with_zeros(state, lane, data, bytes) : CVY_OK;
}

static cvy_status opencl_finish(void *state, cvy_lane lane)
{
    cvy_opencl_space *s = state;
    CVY_CL(s, clFinish, s->queue[lane]);
    return CVY_OK;
}

/* ---- marks ---- */

static cvy_status opencl_mark_create(void *state, cvy_mark **out)
{
    (void)state;
    return cvy_mem_alloc(sizeof **out, out);
}

static void opencl_mark_destroy(void *state, cvy_mark *mark)
{
    const cvy_opencl_space *s = state;
    if (mark->event)
        s->cl->clReleaseEvent(mark->event);
    cvy_mem_free(&mark);
}

static cvy_status opencl_mark(void *state, cvy_lane lane, cvy_mark *mark)
{
    const cvy_opencl_space *s = state;
    if (mark->event)
        s->cl->clReleaseEvent(mark->event);
    mark->event = NULL;
    CVY_CL(s, clEnqueueMarkerWithWaitList, s->queue[lane], 0, NULL, &mark->event);
    CVY_CL(s, clFlush, s->queue[lane]);
    return CVY_OK;
}

static cvy_status opencl_await(void *state, cvy_lane lane, cvy_mark *mark)
{
    const cvy_opencl_space *s = state;
    if (mark->event)
        CVY_CL(s, clEnqueueBarrierWithWaitList, s->queue[lane], 1, &mark->event, NULL);
    return CVY_OK;
}

static cvy_status opencl_reached(void *state, cvy_mark *mark, int wait, int *reached_out)
{
    const cvy_opencl_space *s = state;
    cl_int now = CL_COMPLETE;
    *reached_out = 1;
    if (!mark->event)
        return CVY_OK;
    if (wait)
        CVY_CL(s, clWaitForEvents, 1, &mark->event);
    CVY_CL(s, clGetEventInfo, mark->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof now, &now, NULL);
    if (now < 0)
        return cvy_opencl_fault(s, "work that was put into a queue before", now);
    *reached_out = now == CL_COMPLETE;
    return CVY_OK;
}

static cvy_status opencl_elapsed(void *state, cvy_mark *from, cvy_mark *to, double *s_out)
{
    const cvy_opencl_space *s = state;
    cl_ulong ns[2] = {0};
    *s_out = 0;
    if (!from->event || !to->event)
        return CVY_OK;
    CVY_CL(s, clGetEventProfilingInfo, from->event, CL_PROFILING_COMMAND_END, sizeof ns[0], &ns[0], NULL);
    CVY_CL(s, clGetEventProfilingInfo, to->event, CL_PROFILING_COMMAND_END, sizeof ns[1], &ns[1], NULL);
    *s_out = ns[1] > ns[0] ? 1e-9 * (double)(ns[1] - ns[0]) : 0;
    return CVY_OK;
}

CVY_BACKEND_DEFINE(opencl) = {
    .name = "opencl",
    .help = "a GPU, or another device with OpenCL 2.0 or later that has shared virtual memory",
    .gpu = &cvy_opencl_driver,
    .count = opencl_count,
    .open = opencl_open,
    .close = opencl_close,
    .about = opencl_about,
    .alloc = opencl_alloc,
    .free = opencl_free,
    .alloc_host = opencl_alloc_host,
    .free_host = opencl_free_host,
    .copy = opencl_copy,
    .zero = opencl_zero,
    .add = cvy_gpu_add,
    .mark_create = opencl_mark_create,
    .mark_destroy = opencl_mark_destroy,
    .mark = opencl_mark,
    .await = opencl_await,
    .reached = opencl_reached,
    .elapsed = opencl_elapsed,
    .finish = opencl_finish,
};

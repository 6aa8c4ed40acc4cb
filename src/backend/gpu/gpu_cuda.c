/*
 * gpu_cuda.c: the backend cuda: NVIDIA's GPUs by the driver API.
 *
 * A lane is a stream, and a mark is an event. Addresses of the device and of page-locked memory are of one space, so a
 * copy finds out by itself where it goes. Each thread of the host has a current context of its own, and a program may
 * go on in another thread than the one that made it: so every function sets it, which costs little if it is set
 * already.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/gpu_cuda.h"

#include <stdio.h>
#include <string.h>

#include "base/machine/base_clock.h"

struct cvy_mark {
    cvy_cu_event event;
};

cvy_status cvy_cuda_fault(const cvy_cuda_space *s, const char *call, cvy_cu_result result)
{
    const char *name = NULL, *text = NULL;
    (void)s->cu->cuGetErrorName(result, &name);
    (void)s->cu->cuGetErrorString(result, &text);
    return cvy_error_set(result == CVY_CU_OUT_OF_MEMORY ? CVY_E_MEMORY : CVY_E_UNSUPPORTED,
                         "CUDA device %d, %s: %s fails with %s (%d): %s%s%s%s", s->gpu.device.number,
                         s->gpu.device.name, call, name ? name : "an error", result, text ? text : "it says no more",
                         s->launched ? "; the latest kernel was " : "", s->launched ? s->launched : "",
                         cvy_cuda_is_of_kernel(result) && !s->gpu.is_sync
                             ? "; CONVOY_SYNC=1 in the environment waits for each kernel "
                               "and names the one that fails"
                             : "");
}

static cvy_cu_address address_of(const void *data)
{
    return (cvy_cu_address)(uintptr_t)data;
}

/* ---- the device ---- */

static int cuda_count(char *why, size_t room)
{
    const char *reason = NULL;
    const cvy_cuda_api *cu = cvy_cuda(&reason);
    int n = 0;
    if (room)
        why[0] = 0;
    if (!cu)
        snprintf(why, room, "%s", reason);
    else if (cu->cuDeviceGetCount(&n) != 0 || n == 0)
        snprintf(why, room, "the CUDA driver sees no device (CUDA_VISIBLE_DEVICES may hide them)");
    return cu ? n : 0;
}

static cvy_status name_device(cvy_cuda_space *s)
{
    cvy_device *d = &s->gpu.device;
    int major = 0, minor = 0, version = 0, rtc[2] = {0};
    size_t bytes = 0;
    cvy_cu_uuid uuid;
    CVY_CU(s, cuDeviceGet, &s->device, d->number);
    CVY_CU(s, cuDeviceGetName, d->name, (int)sizeof d->name, s->device);
    CVY_CU(s, cuDeviceGetAttribute, &major, CVY_CU_MAJOR, s->device);
    CVY_CU(s, cuDeviceGetAttribute, &minor, CVY_CU_MINOR, s->device);
    CVY_CU(s, cuDeviceGetAttribute, &d->units, CVY_CU_MULTIPROCESSORS, s->device);
    CVY_CU(s, cuDeviceTotalMem_v2, &bytes, s->device);
    CVY_CU(s, cuDriverGetVersion, &version);
    (void)s->cu->nvrtcVersion(&rtc[0], &rtc[1]);
    if (s->cu->cuDeviceGetUuid_v2(&uuid, s->device) == 0)
        for (size_t i = 0; i < sizeof uuid.bytes; i++)
            snprintf(d->id + 2 * i, 3, "%02x", (unsigned)(unsigned char)uuid.bytes[i]);
    d->bytes = (int64_t)bytes;
    snprintf(d->architecture, sizeof d->architecture, "sm_%d%d", major, minor);
    CVY_CHECK(cvy_cuda_compiles_for(s->cu, 10 * major + minor), CVY_E_UNSUPPORTED,
              "NVRTC %d.%d does not compile for CUDA device %d, %s (%s): install another NVRTC, which knows this "
              "device, or name its file in CONVOY_NVRTC",
              rtc[0], rtc[1], d->number, d->name, d->architecture);
    snprintf(d->driver, sizeof d->driver, "CUDA %d.%d, NVRTC %d.%d", version / 1000, version % 1000 / 10, rtc[0],
             rtc[1]);
    return CVY_OK;
}

static void cuda_about(void *state, cvy_device *out)
{
    const cvy_cuda_space *s = state;
    size_t left = 0, all = 0;
    *out = s->gpu.device;
    out->bytes_left = -1;
    if (s->cu->cuCtxSetCurrent(s->context) == 0 && s->cu->cuMemGetInfo_v2(&left, &all) == 0)
        out->bytes_left = (int64_t)left;
}

static void cuda_close(void *state)
{
    cvy_cuda_space *s = state;
    if (s->context) {
        (void)s->cu->cuCtxSetCurrent(s->context);
        for (int lane = 0; lane < CVY_LANES; lane++)
            if (s->stream[lane])
                (void)s->cu->cuStreamSynchronize(s->stream[lane]);
        for (int i = 0; i < CVY_CUDA_GUESTS; i++)
            if (s->guest[i].close)
                s->guest[i].close(s->guest[i].state);
        cvy_gpu_end(&s->gpu);
        for (int lane = 0; lane < CVY_LANES; lane++)
            if (s->stream[lane])
                (void)s->cu->cuStreamDestroy_v2(s->stream[lane]);
        (void)s->cu->cuDevicePrimaryCtxRelease_v2(s->device);
    }
    cvy_mem_free(&s);
}

static cvy_status start(cvy_cuda_space *s)
{
    CVY_TRY(name_device(s));
    CVY_CU(s, cuDevicePrimaryCtxRetain, &s->context, s->device);
    CVY_CU(s, cuCtxSetCurrent, s->context);
    for (int lane = 0; lane < CVY_LANES; lane++)
        CVY_CU(s, cuStreamCreate, &s->stream[lane], CVY_CU_STREAM_NON_BLOCKING);
    return CVY_OK;
}

static cvy_status cuda_open(const cvy_backend_def *self, const cvy_place *place, void **state_out)
{
    int number = 0;
    cvy_cuda_space *s = NULL;
    CVY_TRY(cvy_gpu_number(self, place, &number));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->cu = cvy_cuda(NULL);
    s->gpu.device.number = number;
    (void)s->cu->cuDeviceGetCount(&s->gpu.device.count);
    cvy_gpu_begin(&s->gpu, self);
    const cvy_status status = start(s);
    if (status != CVY_OK) {
        cuda_close(s);
        return status;
    }
    *state_out = s;
    return CVY_OK;
}

/* ---- memory ---- */

static cvy_status out_of_memory(cvy_cuda_space *s, const char *what, size_t bytes)
{
    const double gib = 1 << 30;
    cvy_device d;
    cuda_about(s, &d);
    return cvy_error_set(
        CVY_E_MEMORY,
        "CUDA device %d, %s, cannot give %zu bytes (%.2f GiB) of %s: %.2f of its %.2f GiB are free; take "
        "a smaller batch, or more micro-batches",
        d.number, d.name, bytes, (double)bytes / gib, what, (double)CVY_MAX(d.bytes_left, 0) / gib,
        (double)d.bytes / gib);
}

static cvy_status clear(const cvy_cuda_space *s, cvy_cu_address data, size_t bytes)
{
    CVY_CU(s, cuMemsetD8Async, data, 0, bytes, s->stream[CVY_LANE_COMPUTE]);
    CVY_CU(s, cuStreamSynchronize, s->stream[CVY_LANE_COMPUTE]);
    return CVY_OK;
}

static cvy_status cuda_alloc(void *state, size_t bytes, int lazily, void **out)
{
    cvy_cuda_space *s = state;
    cvy_cu_address data = 0;
    (void)lazily;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    const cvy_cu_result result = s->cu->cuMemAlloc_v2(&data, CVY_MAX(bytes, 1));
    if (result == CVY_CU_OUT_OF_MEMORY)
        return out_of_memory(s, "its memory", bytes);
    if (result != 0)
        return cvy_cuda_fault(s, "cuMemAlloc", result);
    const cvy_status status = clear(s, data, CVY_MAX(bytes, 1));
    if (status != CVY_OK)
        (void)s->cu->cuMemFree_v2(data);
    *out = (void *)(uintptr_t)data;
    return status;
}

/* cuMemFree waits for the whole device, so nothing in a lane still uses the memory. */
static void cuda_free(void *state, void *data, size_t bytes)
{
    const cvy_cuda_space *s = state;
    (void)bytes;
    (void)s->cu->cuCtxSetCurrent(s->context);
    (void)s->cu->cuMemFree_v2(address_of(data));
}

static cvy_status cuda_alloc_host(void *state, size_t bytes, void **out)
{
    cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    const cvy_cu_result result = s->cu->cuMemHostAlloc(out, CVY_MAX(bytes, 1), CVY_CU_HOST_PORTABLE);
    if (result == CVY_CU_OUT_OF_MEMORY)
        return cvy_error_set(
            CVY_E_MEMORY,
            "cannot lock %zu bytes of the host's memory for copies to CUDA device %d: other programs or "
            "ranks of this node use too much of it",
            bytes, s->gpu.device.number);
    if (result != 0)
        return cvy_cuda_fault(s, "cuMemHostAlloc", result);
    memset(*out, 0, CVY_MAX(bytes, 1));
    return CVY_OK;
}

static void cuda_free_host(void *state, void *data, size_t bytes)
{
    const cvy_cuda_space *s = state;
    (void)bytes;
    (void)s->cu->cuCtxSetCurrent(s->context);
    for (int lane = 0; lane < CVY_LANES; lane++)
        (void)s->cu->cuStreamSynchronize(s->stream[lane]);
    (void)s->cu->cuMemFreeHost(data);
}

/* ---- lanes ---- */

static cvy_status cuda_copy(void *state, cvy_lane lane, void *to, const void *from, size_t bytes)
{
    cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuMemcpyAsync, address_of(to), address_of(from), bytes, s->stream[lane]);
    return CVY_OK;
}

static cvy_status cuda_zero(void *state, cvy_lane lane, void *data, size_t bytes)
{
    cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuMemsetD8Async, address_of(data), 0, bytes, s->stream[lane]);
    return CVY_OK;
}

cvy_status cvy_cuda_check_whole(const cvy_cuda_space *s)
{
    while (atomic_load(&s->broken) == CVY_CUDA_BREAKING)
        cvy_clock_sleep(0.01);
    CVY_CHECK(!atomic_load(&s->broken), CVY_E_COMM,
              "the watchdog has broken off what devices exchange by NCCL, because a rank does not answer");
    return CVY_OK;
}

static cvy_status cuda_finish(void *state, cvy_lane lane)
{
    cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuStreamSynchronize, s->stream[lane]);
    return cvy_cuda_check_whole(s);
}

/* ---- marks: an event that was never recorded is complete ---- */

static cvy_status cuda_mark_create(void *state, cvy_mark **out)
{
    const cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_TRY(cvy_mem_alloc(sizeof **out, out));
    const cvy_cu_result result = s->cu->cuEventCreate(&(*out)->event, 0);
    if (result != 0)
        cvy_mem_free(out);
    return result == 0 ? CVY_OK : cvy_cuda_fault(s, "cuEventCreate", result);
}

static void cuda_mark_destroy(void *state, cvy_mark *mark)
{
    const cvy_cuda_space *s = state;
    (void)s->cu->cuCtxSetCurrent(s->context);
    (void)s->cu->cuEventDestroy_v2(mark->event);
    cvy_mem_free(&mark);
}

static cvy_status cuda_mark(void *state, cvy_lane lane, cvy_mark *mark)
{
    const cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuEventRecord, mark->event, s->stream[lane]);
    return CVY_OK;
}

static cvy_status cuda_await(void *state, cvy_lane lane, cvy_mark *mark)
{
    const cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuStreamWaitEvent, s->stream[lane], mark->event, 0);
    return CVY_OK;
}

static cvy_status cuda_reached(void *state, cvy_mark *mark, int wait, int *reached_out)
{
    const cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    if (wait)
        CVY_CU(s, cuEventSynchronize, mark->event);
    const cvy_cu_result result = wait ? 0 : s->cu->cuEventQuery(mark->event);
    *reached_out = result == 0;
    return result == 0 || result == CVY_CU_NOT_READY ? cvy_cuda_check_whole(s)
                                                     : cvy_cuda_fault(s, "cuEventQuery", result);
}

static cvy_status cuda_elapsed(void *state, cvy_mark *from, cvy_mark *to, double *s_out)
{
    const cvy_cuda_space *s = state;
    float ms = 0;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuEventElapsedTime, &ms, from->event, to->event);
    *s_out = 1e-3 * (double)ms;
    return CVY_OK;
}

CVY_BACKEND_DEFINE(cuda) = {
    .name = "cuda",
    .help = "an NVIDIA GPU",
    .gpu = &cvy_cuda_driver,
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .about = cuda_about,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .copy = cuda_copy,
    .zero = cuda_zero,
    .add = cvy_gpu_add,
    .mark_create = cuda_mark_create,
    .mark_destroy = cuda_mark_destroy,
    .mark = cuda_mark,
    .await = cuda_await,
    .reached = cuda_reached,
    .elapsed = cuda_elapsed,
    .finish = cuda_finish,
    .record_begin = cvy_cuda_record_begin,
    .record_end = cvy_cuda_record_end,
    .replay = cvy_cuda_replay,
    .recording_destroy = cvy_cuda_recording_destroy,
};

/*
 * gpu.c: what all drivers share: the modules that are built, copies of any host memory, and which device a rank uses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_text.h"

enum { PIECE = 16 << 20, HOLD_BYTES = 64 }; /* PIECE: bytes that are copied at a time through page-locked memory */

struct cvy_gpu_module {
    const cvy_gpu_source *source;
    cvy_dtype act;
    void *handle; /* of the driver; NULL: it does not compile */
    char why[600];
    cvy_gpu_module *next;
};

void cvy_gpu_begin(cvy_gpu *gpu, const cvy_backend_def *backend)
{
    const char *sync = getenv("CONVOY_SYNC");
    gpu->backend = backend;
    gpu->is_sync = sync && *sync && strcmp(sync, "0") != 0 && strcmp(sync, "off") != 0;
}

int cvy_gpu_is_sync(const cvy_space *space)
{
    return space && space->backend->gpu && ((const cvy_gpu *)space->state)->is_sync;
}

void cvy_gpu_end(cvy_gpu *gpu)
{
    while (gpu->modules) {
        cvy_gpu_module *module = gpu->modules;
        gpu->modules = module->next;
        if (module->handle)
            gpu->backend->gpu->unbuild(gpu, module->handle);
        cvy_mem_free(&module);
    }
    for (int i = 0; i < CVY_COUNT(gpu->pinned); i++)
        if (gpu->pinned[i])
            gpu->backend->free_host(gpu, gpu->pinned[i], gpu->pinned_bytes);
    if (gpu->before)
        gpu->backend->mark_destroy(gpu, gpu->before);
    if (gpu->hold)
        gpu->backend->free(gpu, gpu->hold, HOLD_BYTES);
    gpu->pinned[0] = gpu->pinned[1] = NULL;
    gpu->before = NULL;
    gpu->hold = NULL;
}

cvy_status cvy_gpu_number(const cvy_backend_def *backend, const cvy_place *place, int *number_out)
{
    char why[400] = "";
    const int count = backend->count ? backend->count(why, sizeof why) : 1;
    CVY_CHECK(count > 0, CVY_E_UNSUPPORTED, "there is no device for %s: %s", backend->name,
              why[0] ? why : "the driver reports none");
    CVY_CHECK(place->device < count, CVY_E_CONFIG, "there is no device %s:%d: this process sees %d, from 0 to %d",
              backend->name, place->device, count, count - 1);
    *number_out = place->device >= 0 ? place->device : place->node_rank % count;
    return CVY_OK;
}

cvy_status cvy_gpu_hold(const cvy_space *space, int **out)
{
    cvy_gpu *gpu = space->state;
    if (!gpu->hold) {
        CVY_TRY(cvy_space_alloc(space, HOLD_BYTES, 0, &gpu->hold));
        CVY_TRY(cvy_space_zero(space, CVY_LANE_COMPUTE, gpu->hold, HOLD_BYTES)); /* tests fill new memory with NaN */
    }
    *out = gpu->hold;
    return CVY_OK;
}

/* ---- copies of any host memory ---- */

static cvy_status make_pinned(const cvy_space *space, cvy_gpu *gpu)
{
    gpu->pinned_bytes = PIECE;
    for (int i = 0; i < CVY_COUNT(gpu->pinned); i++)
        if (!gpu->pinned[i])
            CVY_TRY(space->backend->alloc_host(gpu, PIECE, &gpu->pinned[i]));
    return gpu->before ? CVY_OK : space->backend->mark_create(gpu, &gpu->before);
}

/* The lane COPY goes on after all that is in the lane COMPUTE. */
static cvy_status follow_compute(const cvy_space *space, cvy_gpu *gpu)
{
    CVY_TRY(make_pinned(space, gpu));
    CVY_TRY(space->backend->mark(gpu, CVY_LANE_COMPUTE, gpu->before));
    return space->backend->await(gpu, CVY_LANE_COPY, gpu->before);
}

cvy_status cvy_gpu_read(const cvy_space *space, void *host, const void *from, size_t bytes)
{
    cvy_gpu *gpu = space->state;
    CVY_TRY(follow_compute(space, gpu));
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = CVY_MIN(bytes - at, PIECE);
        CVY_TRY(space->backend->copy(gpu, CVY_LANE_COPY, gpu->pinned[0], (const char *)from + at, n));
        CVY_TRY(space->backend->finish(gpu, CVY_LANE_COPY));
        memcpy((char *)host + at, gpu->pinned[0], n);
    }
    return CVY_OK;
}

cvy_status cvy_gpu_write(const cvy_space *space, void *to, const void *host, size_t bytes)
{
    cvy_gpu *gpu = space->state;
    CVY_TRY(follow_compute(space, gpu));
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = CVY_MIN(bytes - at, PIECE);
        memcpy(gpu->pinned[1], (const char *)host + at, n);
        CVY_TRY(space->backend->copy(gpu, CVY_LANE_COPY, (char *)to + at, gpu->pinned[1], n));
        CVY_TRY(space->backend->finish(gpu, CVY_LANE_COPY));
    }
    return CVY_OK;
}

/* ---- kernels ---- */

void cvy_gpu_shorten_log(const char *log, char *text, size_t room)
{
    const int any = strstr(log, "error") != NULL;
    size_t length = 0;
    text[0] = 0;
    for (const char *line = log; *line && length + 2 < room;) {
        const size_t n = strcspn(line, "\n");
        char one[200];
        snprintf(one, sizeof one, "%.*s", (int)CVY_MIN(n, sizeof one - 1), line);
        if (one[0] && (!any || strstr(one, "error")))
            length += (size_t)snprintf(text + length, room - length, "%s%s", length ? "; " : "", one);
        line += n + (line[n] == '\n');
    }
}

static cvy_status build(cvy_gpu *gpu, const cvy_gpu_source *source, cvy_dtype act, cvy_gpu_module **out)
{
    cvy_gpu_module *module = gpu->modules;
    while (module && (module->source != source || module->act != act))
        module = module->next;
    if (!module) {
        CVY_TRY(cvy_mem_alloc(sizeof *module, &module));
        *module = (cvy_gpu_module){.source = source, .act = act, .next = gpu->modules};
        const cvy_status status = gpu->backend->gpu->build(gpu, source, act, &module->handle);
        if (status < 0) {
            cvy_mem_free(&module);
            return status;
        }
        if (status != CVY_OK)
            snprintf(module->why, sizeof module->why, "%s", cvy_error_text());
        gpu->modules = module;
    }
    *out = module;
    return CVY_OK;
}

cvy_status cvy_gpu_kernel_get(const cvy_space *space, const cvy_gpu_source *source, const char *name, cvy_dtype act,
                              cvy_gpu_kernel *out)
{
    cvy_gpu *gpu = space->state;
    cvy_gpu_module *module = NULL;
    CVY_CHECK(act == CVY_DTYPE_F32 || act == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE, "it has f32 and bf16, not %s",
              cvy_dtype_text(act));
    CVY_TRY(build(gpu, source, act, &module));
    CVY_CHECK(module->handle, CVY_NOT_APPLICABLE, "%s (%s) does not compile for %s: %s", source->name,
              cvy_dtype_text(act), gpu->device.name, module->why);
    *out = (cvy_gpu_kernel){.gpu = gpu, .name = name};
    const cvy_status status = gpu->backend->gpu->find(gpu, module->handle, name, &out->handle);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", source->name);
}

void cvy_gpu_name_faults(const cvy_space *space, cvy_text *out)
{
    const cvy_gpu *gpu = space && space->backend->gpu ? space->state : NULL;
    if (gpu && gpu->note[0])
        cvy_text_add(out, "%s\n", gpu->note);
    for (const cvy_gpu_module *m = gpu ? gpu->modules : NULL; m; m = m->next)
        if (!m->handle)
            cvy_text_add(
                out,
                "%s (%s), a source of kernels, does not compile for %s: %.*s; other kernels do its work, or the "
                "host, on copies of tensors\n",
                m->source->name, cvy_dtype_text(m->act), gpu->device.name, (int)strcspn(m->why, "\n"), m->why);
}

cvy_status cvy_gpu_launch_in(const cvy_gpu_kernel *kernel, cvy_lane lane, int64_t x, int64_t y, int64_t z, int threads,
                             const cvy_gpu_arg *args, int nargs)
{
    if (x == 0 || y == 0 || z == 0)
        return CVY_OK;
    CVY_CHECK(x > 0 && x <= INT32_MAX && y > 0 && y <= 65535 && z > 0 && z <= 65535, CVY_E_INTERNAL,
              "%s: a grid of %lld x %lld x %lld blocks", kernel->name, (long long)x, (long long)y, (long long)z);
    const int grid[3] = {(int)x, (int)y, (int)z};
    cvy_gpu *gpu = kernel->gpu;
    CVY_TRY(gpu->backend->gpu->launch(gpu, lane, kernel->handle, grid, threads, args, nargs));
    if (!gpu->is_sync || lane != CVY_LANE_COMPUTE)
        return CVY_OK;
    const cvy_status status = gpu->backend->finish(gpu, lane);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "kernel %s", kernel->name);
}

cvy_status cvy_gpu_launch(const cvy_gpu_kernel *kernel, int64_t x, int64_t y, int64_t z, int threads,
                          const cvy_gpu_arg *args, int nargs)
{
    return cvy_gpu_launch_in(kernel, CVY_LANE_COMPUTE, x, y, z, threads, args, nargs);
}

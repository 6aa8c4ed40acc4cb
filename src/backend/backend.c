/*
 * backend.c: memory of a space, and how the host accesses it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/backend.h"

#include <string.h>

#include "backend/gpu/gpu.h"
#include "base/machine/base_machine.h"
#include "base/text/base_text.h"

cvy_status cvy_space_open_def(const cvy_backend_def *backend, const cvy_place *place, cvy_space *out)
{
    static const cvy_place alone = {.device = -1};
    void *state = NULL;
    if (backend->open)
        CVY_TRY(backend->open(backend, place ? place : &alone, &state));
    *out = (cvy_space){backend, state};
    return CVY_OK;
}

cvy_status cvy_space_open(const char *name, const cvy_place *place, cvy_space *out)
{
    const cvy_backend_def *backend = cvy_backend_find(name ? name : "host");
    if (backend)
        return cvy_space_open_def(backend, place, out);
    int count = 0;
    cvy_text known = {0};
    const cvy_backend_def *const *table = cvy_backend_table(&count);
    for (int i = 0; i < count; i++)
        cvy_text_add(&known, "%s%s", i ? ", " : "", table[i]->name);
    const cvy_status status = cvy_error_set(CVY_E_CONFIG, "there is no backend \"%s\"; this build of convoy has: %s",
                                            name ? name : "host", known.data ? known.data : "");
    cvy_text_free(&known);
    return status;
}

void cvy_space_close(cvy_space *space)
{
    if (space->backend && space->backend->close)
        space->backend->close(space->state);
    *space = (cvy_space){0};
}

void cvy_space_about(const cvy_space *space, cvy_device *out)
{
    *out = (cvy_device){.bytes = -1, .bytes_left = -1};
    if (space && space->backend->about)
        space->backend->about(space->state, out);
}

int64_t cvy_space_left(const cvy_space *space)
{
    cvy_device device;
    if (cvy_space_is_host(space))
        return cvy_mem_left();
    cvy_space_about(space, &device);
    return device.bytes_left;
}

/* ---- memory ---- */

cvy_status cvy_space_alloc(const cvy_space *space, size_t bytes, int lazily, void *out)
{
    void *data = NULL;
    if (space)
        CVY_TRY(space->backend->alloc(space->state, bytes, lazily, &data));
    else
        CVY_TRY(lazily ? cvy_mem_map_pages(bytes, &data) : cvy_mem_alloc_pages(bytes, &data));
    memcpy(out, &data, sizeof data);
    return CVY_OK;
}

void cvy_space_free(const cvy_space *space, void *block, size_t bytes)
{
    void *data = NULL;
    memcpy(&data, block, sizeof data);
    if (data && space)
        space->backend->free(space->state, data, bytes);
    else
        cvy_mem_free_pages(&data, bytes);
    data = NULL;
    memcpy(block, &data, sizeof data);
}

cvy_status cvy_space_alloc_host(const cvy_space *space, size_t bytes, void *out)
{
    void *data = NULL;
    if (cvy_space_is_host(space))
        return cvy_mem_alloc_pages(bytes, out);
    CVY_TRY(space->backend->alloc_host(space->state, bytes, &data));
    memcpy(out, &data, sizeof data);
    return CVY_OK;
}

void cvy_space_free_host(const cvy_space *space, void *block, size_t bytes)
{
    void *data = NULL;
    memcpy(&data, block, sizeof data);
    if (data && !cvy_space_is_host(space))
        space->backend->free_host(space->state, data, bytes);
    else
        cvy_mem_free_pages(&data, bytes);
    data = NULL;
    memcpy(block, &data, sizeof data);
}

/* ---- access by the host ---- */

cvy_status cvy_space_read(const cvy_space *space, void *host, const void *from, size_t bytes)
{
    if (!cvy_space_is_host(space))
        return cvy_gpu_read(space, host, from, bytes);
    memcpy(host, from, bytes);
    return CVY_OK;
}

cvy_status cvy_space_write(const cvy_space *space, void *to, const void *host, size_t bytes)
{
    if (!cvy_space_is_host(space))
        return cvy_gpu_write(space, to, host, bytes);
    memcpy(to, host, bytes);
    return CVY_OK;
}

cvy_status cvy_space_map(const cvy_space *space, void *data, size_t bytes, void *out)
{
    void *copy = data;
    if (!cvy_space_is_host(space)) {
        CVY_TRY(cvy_mem_alloc(bytes, &copy));
        const cvy_status status = cvy_space_read(space, copy, data, bytes);
        if (status != CVY_OK) {
            cvy_mem_free(&copy);
            return status;
        }
    }
    memcpy(out, &copy, sizeof copy);
    return CVY_OK;
}

cvy_status cvy_space_unmap(const cvy_space *space, void *data, size_t bytes, int written, void *mapped)
{
    void *copy = mapped;
    if (cvy_space_is_host(space))
        return CVY_OK;
    const cvy_status status = written ? cvy_space_write(space, data, copy, bytes) : CVY_OK;
    cvy_mem_free(&copy);
    return status;
}

/* ---- work in lanes ---- */

cvy_status cvy_space_copy(const cvy_space *space, cvy_lane lane, void *to, const void *from, size_t bytes)
{
    if (!cvy_space_is_host(space))
        return bytes ? space->backend->copy(space->state, lane, to, from, bytes) : CVY_OK;
    memcpy(to, from, bytes);
    return CVY_OK;
}

cvy_status cvy_space_zero(const cvy_space *space, cvy_lane lane, void *data, size_t bytes)
{
    if (!cvy_space_is_host(space))
        return bytes ? space->backend->zero(space->state, lane, data, bytes) : CVY_OK;
    memset(data, 0, bytes);
    return CVY_OK;
}

cvy_status cvy_mark_create(const cvy_space *space, cvy_mark **out)
{
    *out = NULL;
    return cvy_space_is_host(space) ? CVY_OK : space->backend->mark_create(space->state, out);
}

void cvy_mark_destroy(const cvy_space *space, cvy_mark **mark)
{
    if (*mark)
        space->backend->mark_destroy(space->state, *mark);
    *mark = NULL;
}

cvy_status cvy_mark_put(const cvy_space *space, cvy_lane lane, cvy_mark *mark)
{
    return cvy_space_is_host(space) ? CVY_OK : space->backend->mark(space->state, lane, mark);
}

cvy_status cvy_mark_await(const cvy_space *space, cvy_lane lane, cvy_mark *mark)
{
    return cvy_space_is_host(space) ? CVY_OK : space->backend->await(space->state, lane, mark);
}

cvy_status cvy_mark_reached(const cvy_space *space, cvy_mark *mark, int wait, int *reached_out)
{
    *reached_out = 1;
    return cvy_space_is_host(space) ? CVY_OK : space->backend->reached(space->state, mark, wait, reached_out);
}

cvy_status cvy_mark_elapsed(const cvy_space *space, cvy_mark *from, cvy_mark *to, double *s_out)
{
    *s_out = 0;
    return cvy_space_is_host(space) ? CVY_OK : space->backend->elapsed(space->state, from, to, s_out);
}

cvy_status cvy_space_sync(const cvy_space *space)
{
    return cvy_space_is_host(space) ? CVY_OK : space->backend->finish(space->state, CVY_LANE_COMPUTE);
}

cvy_status cvy_space_sync_all(const cvy_space *space)
{
    for (int lane = 0; lane < CVY_LANES && !cvy_space_is_host(space); lane++)
        CVY_TRY(space->backend->finish(space->state, (cvy_lane)lane));
    return CVY_OK;
}

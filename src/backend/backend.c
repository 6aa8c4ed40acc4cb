/*
 * backend.c: memory of a space, and how the host accesses it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/backend.h"

#include <string.h>

#include "base/text/base_text.h"

cvy_status cvy_space_open_def(const cvy_backend_def *backend, cvy_space *out)
{
    void *state = NULL;
    if (backend->open)
        CVY_TRY(backend->open(&state));
    *out = (cvy_space){backend, state};
    return CVY_OK;
}

cvy_status cvy_space_open(const char *name, cvy_space *out)
{
    const cvy_backend_def *backend = cvy_backend_find(name ? name : "host");
    if (backend)
        return cvy_space_open_def(backend, out);
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

cvy_status cvy_space_read(const cvy_space *space, void *host, const void *from, size_t bytes)
{
    if (!cvy_space_is_host(space))
        return space->backend->copy_out(space->state, host, from, bytes);
    memcpy(host, from, bytes);
    return CVY_OK;
}

cvy_status cvy_space_write(const cvy_space *space, void *to, const void *host, size_t bytes)
{
    if (!cvy_space_is_host(space))
        return space->backend->copy_in(space->state, to, host, bytes);
    memcpy(to, host, bytes);
    return CVY_OK;
}

cvy_status cvy_space_map(const cvy_space *space, void *data, size_t bytes, void *out)
{
    void *copy = data;
    if (!cvy_space_is_host(space)) {
        CVY_TRY(cvy_mem_alloc(bytes, &copy));
        const cvy_status status = space->backend->copy_out(space->state, copy, data, bytes);
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
    const cvy_status status = written ? space->backend->copy_in(space->state, data, copy, bytes) : CVY_OK;
    cvy_mem_free(&copy);
    return status;
}

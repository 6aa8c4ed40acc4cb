/*
 * backend_host.c: the host as a backend: tensors lie in pages of the process, and the calling thread runs the kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/backend.h"

static cvy_status host_alloc(void *state, size_t bytes, int lazily, void **out)
{
    (void)state;
    return lazily ? cvy_mem_map_pages(bytes, out) : cvy_mem_alloc_pages(bytes, out);
}

static void host_free(void *state, void *data, size_t bytes)
{
    (void)state;
    cvy_mem_free_pages(&data, bytes);
}

CVY_BACKEND_DEFINE(host) = {
    .name = "host",
    .help = "the processor's own memory and cores",
    .host_access = 1,
    .alloc = host_alloc,
    .free = host_free,
};

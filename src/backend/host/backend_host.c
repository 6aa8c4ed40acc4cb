/*
 * backend_host.c: the host as a backend: tensors lie in pages of the process, and the calling thread runs the kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/backend.h"

enum { PIECE = 2 << 20, TEAM_PIECES = 16 }; /* bytes of a huge page; pieces that are worth a team of threads */

/* The system clears pages when they are first touched, which takes 0.3 to 0.6 s for a gigabyte, and longer on a virtual
 * machine. So the calling team of threads shares it. */
static cvy_status host_alloc(void *state, size_t bytes, int lazily, void **out)
{
    (void)state;
    CVY_TRY(cvy_mem_map_pages(bytes, out));
    char *const data = *out;
    const int64_t pieces = lazily ? 0 : (int64_t)((bytes + PIECE - 1) / PIECE);
#pragma omp parallel for schedule(static) if (pieces >= TEAM_PIECES)
    for (int64_t i = 0; i < pieces; i++)
        cvy_mem_touch(data + i * PIECE, CVY_MIN(PIECE, bytes - (size_t)(i * PIECE)));
    return CVY_OK;
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

/*
 * base_pool.c: a pool allocates small objects from a few chunks and frees them all at once.
 *
 * A graph or a parsed file has thousands of small objects that are freed together. With a pool, nobody needs to know
 * who frees which object.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base_mem.h"

enum { ALIGN_BYTES = 16, FIRST_CHUNK_BYTES = 4096, LAST_CHUNK_BYTES = 1 << 20 };

typedef struct chunk {
    struct chunk *next;
    size_t used, room;
    _Alignas(ALIGN_BYTES) char data[];
} chunk;

struct cvy_pool {
    chunk *latest;
};

cvy_status cvy_pool_create(cvy_pool **out)
{
    return cvy_mem_alloc(sizeof(cvy_pool), out);
}

void cvy_pool_destroy(cvy_pool **pool)
{
    if (!*pool)
        return;
    for (chunk *c = (*pool)->latest; c;) {
        chunk *next = c->next;
        cvy_mem_free(&c);
        c = next;
    }
    cvy_mem_free(pool);
}

/* Chunks double in size up to a limit; a larger object gets a chunk of its own size. */
static cvy_status add_chunk(cvy_pool *pool, size_t bytes)
{
    const size_t doubled = pool->latest ? CVY_MIN(pool->latest->room * 2, (size_t)LAST_CHUNK_BYTES) : FIRST_CHUNK_BYTES;
    const size_t room = CVY_MAX(doubled, bytes);
    CVY_CHECK(room <= SIZE_MAX - sizeof(chunk), CVY_E_MEMORY, "cannot allocate %zu bytes", bytes);
    chunk *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof(chunk) + room, &c));
    c->room = room;
    c->next = pool->latest;
    pool->latest = c;
    return CVY_OK;
}

cvy_status cvy_pool_alloc(cvy_pool *pool, size_t bytes, void *out)
{
    CVY_CHECK(bytes <= SIZE_MAX - ALIGN_BYTES, CVY_E_MEMORY, "cannot allocate %zu bytes", bytes);
    const size_t room = (CVY_MAX(bytes, 1) + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    if (!pool->latest || pool->latest->room - pool->latest->used < room)
        CVY_TRY(add_chunk(pool, room));
    void *p = pool->latest->data + pool->latest->used;
    pool->latest->used += room;
    memcpy(out, &p, sizeof p);
    return CVY_OK;
}

cvy_status cvy_pool_printf(cvy_pool *pool, char **out, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = NULL;
    const cvy_status status = length < 0 ? cvy_error_set(CVY_E_INTERNAL, "cannot format \"%s\"", fmt)
                                         : cvy_pool_alloc(pool, (size_t)length + 1, &text);
    if (status == CVY_OK) {
        vsnprintf(text, (size_t)length + 1, fmt, again);
        *out = text;
    }
    va_end(again);
    return status;
}

cvy_status cvy_pool_strdup(cvy_pool *pool, const char *text, char **out)
{
    return cvy_pool_printf(pool, out, "%s", text);
}

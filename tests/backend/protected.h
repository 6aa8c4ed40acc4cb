/*
 * protected.h: a backend whose memory the host cannot read. Its pages have no access rights except during its kernels
 * and copies, so an access by any other code ends the process with SIGSEGV.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_PROTECTED_H
#define CVY_TEST_PROTECTED_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/backend.h"

enum { RANGES = 4096 };
static struct {
    struct {
        void *data;
        size_t bytes;
    } range[RANGES];
    int n;
    int64_t nopened, ncopied; /* number of times that kernels and copies had access */
} protected_memory;

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (CVY_MAX(bytes, 1) + page - 1) / page * page;
}

static cvy_status set_access(int access)
{
    for (int i = 0; i < protected_memory.n; i++)
        CVY_CHECK(mprotect(protected_memory.range[i].data, protected_memory.range[i].bytes, access) == 0,
                  CVY_E_INTERNAL, "mprotect fails");
    return CVY_OK;
}

static cvy_status protected_alloc(void *state, size_t bytes, int lazily, void **out)
{
    (void)state, (void)lazily;
    CVY_CHECK(protected_memory.n < RANGES, CVY_E_MEMORY, "more than %d ranges of protected memory", RANGES);
    void *data = mmap(NULL, whole_pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CVY_CHECK(data != MAP_FAILED, CVY_E_MEMORY, "cannot map %zu bytes", bytes);
    protected_memory.range[protected_memory.n].data = data;
    protected_memory.range[protected_memory.n++].bytes = whole_pages(bytes);
    *out = data;
    return CVY_OK;
}

static void protected_free(void *state, void *data, size_t bytes)
{
    (void)state;
    for (int i = 0; i < protected_memory.n; i++)
        if (protected_memory.range[i].data == data) {
            munmap(data, whole_pages(bytes));
            protected_memory.range[i] = protected_memory.range[--protected_memory.n];
            return;
        }
    abort(); /* memory of another backend */
}

static cvy_status protected_begin(void *state)
{
    (void)state;
    protected_memory.nopened++;
    return set_access(PROT_READ | PROT_WRITE);
}

static cvy_status protected_end(void *state)
{
    (void)state;
    return set_access(PROT_NONE);
}

static cvy_status protected_sync(void *state)
{
    (void)state;
    return CVY_OK;
}

/* Either side may be the protected one. */
static cvy_status copy(void *to, const void *from, size_t bytes)
{
    protected_memory.ncopied++;
    CVY_TRY(set_access(PROT_READ | PROT_WRITE));
    memcpy(to, from, bytes);
    return set_access(PROT_NONE);
}

static cvy_status protected_in(void *state, void *to, const void *host, size_t bytes)
{
    (void)state;
    return copy(to, host, bytes);
}

static cvy_status protected_out(void *state, void *host, const void *from, size_t bytes)
{
    (void)state;
    return copy(host, from, bytes);
}

static const cvy_backend_def protected_backend = {
    .name = "protected",
    .help = "for tests: memory that the host cannot read",
    .alloc = protected_alloc,
    .free = protected_free,
    .copy_in = protected_in,
    .copy_out = protected_out,
    .stream_begin = protected_begin,
    .stream_end = protected_end,
    .stream_sync = protected_sync,
};

#endif

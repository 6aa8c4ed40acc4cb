/*
 * emulated_memory.c: the memory of the emulated devices, and the page-locked memory of the host.
 *
 * One file in memory is mapped twice. Addresses of the device are in the first mapping, which never has access rights.
 * The second one is at a constant distance; there a live allocation can be read and written. An allocation ends at the
 * end of a page, and the page after it belongs to nobody. Addresses are used again as late as possible.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/emulated/emulated_parts.h"

enum { GUARD = 0xa5, ALIGN = 64 };
static const size_t SPAN = (size_t)32 << 30; /* bytes of the mappings: addresses, not memory */

struct range {
    char *data;
    size_t bytes;       /* as asked for */
    char *first, *last; /* of its pages */
    int device;
    struct range *next; /* in ascending order */
};

static struct {
    char *device, *kernel; /* the two mappings */
    char *next;            /* where the search for a free place begins */
    size_t page;
    int file;
    struct range *ranges, *pinned;
    struct sigaction before;
} memory;

void emulated_fail(const char *fmt, ...)
{
    char where[200];
    va_list list;
    va_start(list, fmt);
    fflush(stdout);
    fprintf(stderr, "emulated device: ");
    vfprintf(stderr, fmt, list);
    fprintf(stderr, "%s%s\n", emulated_run_where(where, sizeof where) ? ", in " : "", where);
    va_end(list);
    abort();
}

/* ---- faults ---- */

static const struct range *range_near(const char *at, const struct range *list)
{
    const struct range *best = NULL;
    for (const struct range *r = list; r && r->first <= at; r = r->next)
        best = r;
    return best;
}

/* Tells what has touched the memory. The process is lost anyway, so it calls what a handler should not call. */
static void handle_fault(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    char where[200] = "";
    void *stack[40];
    const int by_host = at >= memory.device && at < memory.device + SPAN;
    if (!by_host && !(at >= memory.kernel && at < memory.kernel + SPAN)) {
        sigaction(number, &memory.before, NULL);
        (void)context;
        return; /* it faults again */
    }
    fflush(stdout);
    const char *device = by_host ? at : memory.device + (at - memory.kernel);
    const struct range *r = range_near(device, memory.ranges);
    emulated_run_where(where, sizeof where);
    fprintf(stderr, "emulated device: %s memory of the device at %p%s%s",
            by_host ? "host code has looked at" : "access to", (const void *)device, where[0] ? ", in " : "", where);
    if (r)
        fprintf(stderr, ": byte %lld of an allocation of %zu bytes", (long long)(device - r->data), r->bytes);
    fprintf(stderr, "\n");
    backtrace_symbols_fd(stack, backtrace(stack, 40), STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    abort();
}

cvy_status emulated_memory_open(void)
{
    if (memory.device)
        return CVY_OK;
    memory.page = (size_t)sysconf(_SC_PAGESIZE);
    memory.file = memfd_create("emulated", MFD_CLOEXEC);
    CVY_CHECK(memory.file >= 0 && ftruncate(memory.file, (off_t)SPAN) == 0, CVY_E_MEMORY,
              "the emulated device gets no file in memory");
    char *device = mmap(NULL, SPAN, PROT_NONE, MAP_SHARED | MAP_NORESERVE, memory.file, 0);
    char *kernel = mmap(NULL, SPAN, PROT_NONE, MAP_SHARED | MAP_NORESERVE, memory.file, 0);
    CVY_CHECK(device != MAP_FAILED && kernel != MAP_FAILED, CVY_E_MEMORY, "the emulated device gets no addresses");
    const struct sigaction action = {.sa_sigaction = handle_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, &memory.before);
    memory.device = memory.next = device;
    memory.kernel = kernel;
    return CVY_OK;
}

void *emulated_memory_at(const void *data)
{
    return data ? memory.kernel + ((const char *)data - memory.device) : NULL;
}

/* ---- allocations ---- */

/* The place of `bytes` in whole pages that are free, at or after `from`; NULL: there is none. */
static char *find_place(char *from, size_t bytes, struct range ***link_out)
{
    struct range **link = &memory.ranges;
    for (; *link; link = &(*link)->next) {
        if ((*link)->first >= from + bytes + memory.page)
            break;
        if ((*link)->last > from)
            from = (*link)->last;
    }
    *link_out = link;
    return from + bytes + memory.page <= memory.device + SPAN ? from : NULL;
}

cvy_status emulated_memory_alloc(int device, size_t bytes, void **out)
{
    struct range **link = NULL, *r = NULL;
    const size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN, whole = (room + memory.page) / memory.page * memory.page;
    char *first = find_place(memory.next, whole + memory.page, &link);
    if (!first)
        first = find_place(memory.device, whole + memory.page, &link);
    CVY_CHECK(first, CVY_E_MEMORY, "the emulated device has no place for %zu bytes", bytes);
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    *r = (struct range){.bytes = bytes, .first = first, .last = first + whole, .device = device, .next = *link};
    r->data = r->last - room;
    char *to = emulated_memory_at(r->first);
    if (mprotect(to, whole, PROT_READ | PROT_WRITE) != 0) {
        cvy_mem_free(&r);
        return cvy_error_set(CVY_E_MEMORY, "the emulated device cannot map %zu bytes", bytes);
    }
    memset(to, GUARD, whole - room);
    memset(to + (whole - room) + bytes, GUARD, room - bytes);
    if (cvy_emulated_setup_now.poison)
        memset(to + (whole - room), 0xff, bytes);
    *link = r;
    memory.next = r->last + memory.page;
    cvy_emulated_done_now.allocations++;
    cvy_emulated_done_now.bytes += (int64_t)bytes;
    cvy_emulated_done_now.peak_bytes = CVY_MAX(cvy_emulated_done_now.peak_bytes, cvy_emulated_done_now.bytes);
    *out = r->data;
    return CVY_OK;
}

static void check_guard(const struct range *r, const char *begin, const char *end, const char *where)
{
    const unsigned char *at = emulated_memory_at(begin);
    for (const char *p = begin; p < end; p++, at++)
        if (*at != GUARD)
            emulated_fail("a kernel has written byte %lld of an allocation of %zu bytes, %s it",
                          (long long)(p - r->data), r->bytes, where);
}

void emulated_memory_free(void *data, size_t bytes)
{
    struct range **link = &memory.ranges;
    while (*link && (*link)->data != (char *)data)
        link = &(*link)->next;
    struct range *r = *link;
    if (!r)
        emulated_fail("%p is freed, which is no allocation of the device", data);
    if (r->bytes != bytes)
        emulated_fail("an allocation of %zu bytes is freed as one of %zu", r->bytes, bytes);
    check_guard(r, r->first, r->data, "before");
    check_guard(r, r->data + bytes, r->last, "after");
    *link = r->next;
    /* The pages are given back, so they are zero when they are used again. */
    const size_t whole = (size_t)(r->last - r->first);
    mprotect(emulated_memory_at(r->first), whole, PROT_NONE);
    if (fallocate(memory.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, r->first - memory.device, (off_t)whole) != 0)
        emulated_fail("the system does not take back memory");
    cvy_emulated_done_now.allocations--;
    cvy_emulated_done_now.bytes -= (int64_t)bytes;
    cvy_mem_free(&r);
}

int emulated_memory_has(int device, const void *data, size_t bytes)
{
    const struct range *r = range_near(data, memory.ranges);
    return r && (device < 0 || r->device == device) && (const char *)data >= r->data &&
           (const char *)data + bytes <= r->data + r->bytes;
}

int64_t emulated_memory_bytes(int device)
{
    int64_t bytes = 0;
    for (const struct range *r = memory.ranges; r; r = r->next)
        bytes += r->device == device ? (int64_t)r->bytes : 0;
    return bytes;
}

/* ---- page-locked memory ---- */

cvy_status emulated_host_alloc(size_t bytes, void **out)
{
    struct range *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    const cvy_status status = cvy_mem_alloc(bytes, &r->data);
    if (status != CVY_OK) {
        cvy_mem_free(&r);
        return status;
    }
    memset(r->data, 0xff, bytes);
    r->bytes = bytes;
    r->next = memory.pinned;
    memory.pinned = r;
    *out = r->data;
    return CVY_OK;
}

void emulated_host_free(void *data, size_t bytes)
{
    struct range **link = &memory.pinned;
    while (*link && (*link)->data != (char *)data)
        link = &(*link)->next;
    struct range *r = *link;
    if (!r || r->bytes != bytes)
        emulated_fail("%zu bytes of page-locked memory are freed that were not allocated so", bytes);
    *link = r->next;
    cvy_mem_free(&r->data);
    cvy_mem_free(&r);
}

int emulated_host_has(const void *data, size_t bytes)
{
    const char *at = data;
    for (const struct range *r = memory.pinned; r; r = r->next)
        if (at >= r->data && at + bytes <= r->data + r->bytes)
            return 1;
    return 0;
}

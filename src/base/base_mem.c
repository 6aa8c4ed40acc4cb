/*
 * base_mem.c: the allocator that everything goes through, and page memory for tensors.
 *
 * It also injects failures for tests: a test runs a function repeatedly, with the first, second, third, ... allocation
 * failing, and checks that the function reports CVY_E_MEMORY and leaks nothing (as SQLite does). The counters below
 * belong to the process and not to a context; they change nothing unless a test asks for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <malloc/malloc.h>
#define malloc_usable_size malloc_size
#else
#include <malloc.h>
#endif

#include "base/base_mem.h"

enum { ALIGN_BYTES = 64, HUGE_BYTES = 2 << 20 };

static _Atomic int64_t allocations; /* number of allocations so far */
static _Atomic int64_t fail_number; /* the allocation that fails; 0: none */
static _Atomic int fail_later_too;
static _Atomic int64_t held_bytes;

void cvy_mem_fail_at(int64_t k, int for_good)
{
    atomic_store(&fail_later_too, for_good);
    atomic_store(&fail_number, k > 0 ? atomic_load(&allocations) + k : 0);
}

int64_t cvy_mem_count(void)
{
    return atomic_load(&allocations);
}

void cvy_mem_account(int64_t bytes)
{
    atomic_fetch_add_explicit(&held_bytes, bytes, memory_order_relaxed);
}

int64_t cvy_memory_bytes(void)
{
    return atomic_load(&held_bytes);
}

static int must_fail(void)
{
    const int64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    const int64_t fail = atomic_load_explicit(&fail_number, memory_order_relaxed);
    return fail != 0 && (number == fail || (number > fail && atomic_load(&fail_later_too)));
}

/* Uses memcpy, because `out` is the address of a pointer of any type. */
static void put_pointer(void *out, void *p)
{
    memcpy(out, &p, sizeof p);
}

static void *get_pointer(const void *block)
{
    void *p;
    memcpy(&p, block, sizeof p);
    return p;
}

cvy_status cvy_mem_alloc(size_t bytes, void *out)
{
    const size_t room = (CVY_MAX(bytes, 1) + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    void *p = must_fail() || room < bytes ? NULL : aligned_alloc(ALIGN_BYTES, room);
    CVY_CHECK(p, CVY_E_MEMORY, "cannot allocate %zu bytes", bytes);
    memset(p, 0, room);
    cvy_mem_account((int64_t)malloc_usable_size(p));
    put_pointer(out, p);
    return CVY_OK;
}

cvy_status cvy_mem_grow(void *block, size_t old_bytes, size_t new_bytes)
{
    void *fresh = NULL;
    CVY_TRY(cvy_mem_alloc(new_bytes, &fresh));
    void *old = get_pointer(block);
    if (old) {
        memcpy(fresh, old, CVY_MIN(old_bytes, new_bytes));
        cvy_mem_free(&old);
    }
    put_pointer(block, fresh);
    return CVY_OK;
}

cvy_status cvy_mem_reserve(void *array, int *room, int count, size_t elem_bytes)
{
    if (count < *room)
        return CVY_OK;
    const int more = *room ? 2 * *room : 32;
    CVY_TRY(cvy_mem_grow(array, elem_bytes * (size_t)*room, elem_bytes * (size_t)more));
    *room = more;
    return CVY_OK;
}

cvy_status cvy_mem_trim(void *array, int *room, int count, size_t elem_bytes)
{
    if (count == *room)
        return CVY_OK;
    CVY_TRY(cvy_mem_grow(array, elem_bytes * (size_t)*room, elem_bytes * (size_t)count));
    *room = count;
    return CVY_OK;
}

void cvy_mem_free(void *block)
{
    void *p = get_pointer(block);
    cvy_mem_account(-(int64_t)malloc_usable_size(p)); /* 0 for NULL */
    free(p);
    put_pointer(block, NULL);
}

cvy_status cvy_mem_strdup(const char *text, char **out)
{
    return cvy_mem_printf(out, "%s", text);
}

cvy_status cvy_mem_printf(char **out, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = NULL;
    const cvy_status status = length < 0 ? cvy_error_set(CVY_E_INTERNAL, "cannot format \"%s\"", fmt)
                                         : cvy_mem_alloc((size_t)length + 1, &text);
    if (status == CVY_OK) {
        vsnprintf(text, (size_t)length + 1, fmt, again);
        *out = text;
    }
    va_end(again);
    return status;
}

static size_t round_to_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (CVY_MAX(bytes, 1) + page - 1) / page * page;
}

/* Maps room + HUGE_BYTES and unmaps what is before the aligned start and after the end. */
static void *map_aligned(size_t room)
{
    char *wide = mmap(NULL, room + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wide == MAP_FAILED)
        return NULL;
    const size_t before = (HUGE_BYTES - (uintptr_t)wide % HUGE_BYTES) % HUGE_BYTES;
    if (before > 0)
        munmap(wide, before);
    munmap(wide + before + room, HUGE_BYTES - before);
    return wide + before;
}

cvy_status cvy_mem_map_pages(size_t bytes, void *out)
{
    const size_t room = round_to_pages(bytes);
    char *p = must_fail() || room < bytes || room > SIZE_MAX - HUGE_BYTES ? NULL : map_aligned(room);
    CVY_CHECK(p, CVY_E_MEMORY, "cannot map %zu bytes of tensor memory", bytes);
    cvy_mem_account((int64_t)room);
#ifdef MADV_HUGEPAGE
    if (room >= HUGE_BYTES)
        madvise(p, room, MADV_HUGEPAGE); /* only a hint; without it the memory is slower */
#endif
    put_pointer(out, p);
    return CVY_OK;
}

cvy_status cvy_mem_alloc_pages(size_t bytes, void *out)
{
    CVY_TRY(cvy_mem_map_pages(bytes, out));
    cvy_mem_touch(get_pointer(out), bytes);
    return CVY_OK;
}

void cvy_mem_touch(void *data, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < bytes; at += page)
        *((volatile char *)data + at) = 0;
}

void cvy_mem_drop_pages(void *data, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)data + page - 1) / page * page,
                    end = ((uintptr_t)data + bytes) / page * page;
    if (end > first)
        madvise((char *)data + (first - (uintptr_t)data), end - first, MADV_DONTNEED);
}

void cvy_mem_free_pages(void *block, size_t bytes)
{
    void *p = get_pointer(block);
    if (p) {
        munmap(p, round_to_pages(bytes));
        cvy_mem_account(-(int64_t)round_to_pages(bytes));
    }
    put_pointer(block, NULL);
}

cvy_status cvy_size_mul(size_t a, size_t b, size_t *out)
{
    CVY_CHECK(b == 0 || a <= SIZE_MAX / b, CVY_E_SHAPE, "%zu times %zu bytes is more than this machine can address", a,
              b);
    *out = a * b;
    return CVY_OK;
}

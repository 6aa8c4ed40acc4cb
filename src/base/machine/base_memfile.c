/*
 * base_memfile.c: see base_memfile.h. Source: Linux, memfd_create(2) and proc(5).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "base/machine/base_memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#if defined(__linux__)

int cvy_memfile_create(void)
{
    return memfd_create("convoy", MFD_CLOEXEC);
}

int cvy_memfile_open(int64_t pid, int64_t fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)pid, (long long)fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

#else

#define MAP_POPULATE 0

int cvy_memfile_create(void)
{
    errno = ENOSYS;
    return -1;
}

int cvy_memfile_open(int64_t pid, int64_t fd)
{
    (void)pid;
    (void)fd;
    errno = ENOSYS;
    return -1;
}

#endif

void *cvy_memfile_map(void *at, size_t bytes, int fd, size_t offset)
{
    const int flags = MAP_SHARED | MAP_POPULATE | (at ? MAP_FIXED : 0);
    void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
    return p == MAP_FAILED ? NULL : p;
}

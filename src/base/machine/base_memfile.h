/*
 * base_memfile.h: anonymous files in memory that other processes of the node can open.
 *
 * Such a file has no name and is not on a disk: nothing is left over, however its process ends, and no limit of
 * /dev/shm applies. Linux alone has them. On other systems the first two functions return -1 with
 * ENOSYS, and the caller goes on without shared memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_MEMFILE_H
#define CVY_BASE_MEMFILE_H

#include <stddef.h>
#include <stdint.h>

/* Makes an empty file and returns its descriptor; -1: errno says why. */
int cvy_memfile_create(void);
/* Opens the file that process `pid` has as descriptor `fd`, through /proc; -1: errno says why. */
int cvy_memfile_open(int64_t pid, int64_t fd);
/* Maps such a file, to `at` if that is not NULL, with all its pages present. NULL: it failed. */
void *cvy_memfile_map(void *at, size_t bytes, int fd, size_t offset);

#endif

/*
 * base_system.h: calls that Linux and macOS have under other names or with other arguments.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_SYSTEM_H
#define CVY_BASE_SYSTEM_H

#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

/* Sorts n elements of `bytes` bytes each; compare is given `user` as well. Equal elements may change their order. */
void cvy_sort(void *data, size_t n, size_t bytes, int (*compare)(const void *a, const void *b, void *user), void *user);
/* The time of the last change of a file's data. */
struct timespec cvy_file_changed(const struct stat *st);
/* Writes all changed files of the file system of fd to the disk. 0, or -1: errno says why. */
int cvy_file_sync_system(int fd);
/* Asks the system to drop what it keeps of this file in memory. It is only a hint. */
void cvy_file_forget(int fd);
/* Makes a condition whose waits end by the monotonic clock. */
void cvy_cond_init(pthread_cond_t *cond);
/* Waits for such a condition: until a signal, or for so many seconds. */
void cvy_cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds);

#endif

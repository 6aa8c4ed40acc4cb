/*
 * base_system.c: see base_system.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* qsort_r, syncfs */
#endif
#include "base/machine/base_system.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static struct timespec split_seconds(double seconds)
{
    const double whole = floor(seconds);
    return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)(1e9 * (seconds - whole))};
}

#if defined(__APPLE__)

struct order {
    int (*compare)(const void *a, const void *b, void *user);
    void *user;
};

/* This qsort_r passes the user's pointer first. */
static int compare_swapped(void *user, const void *a, const void *b)
{
    const struct order *o = user;
    return o->compare(a, b, o->user);
}

void cvy_sort(void *data, size_t n, size_t bytes, int (*compare)(const void *a, const void *b, void *user), void *user)
{
    struct order o = {compare, user};
    qsort_r(data, n, bytes, &o, compare_swapped);
}

struct timespec cvy_file_changed(const struct stat *st)
{
    return st->st_mtimespec;
}

int cvy_file_sync_system(int fd)
{
    (void)fd;
    sync();
    return 0;
}

void cvy_file_forget(int fd)
{
    (void)!fcntl(fd, F_NOCACHE, 1);
}

void cvy_cond_init(pthread_cond_t *cond)
{
    pthread_cond_init(cond, NULL);
}

void cvy_cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds)
{
    const struct timespec wait = split_seconds(seconds);
    pthread_cond_timedwait_relative_np(cond, lock, &wait);
}

#else

void cvy_sort(void *data, size_t n, size_t bytes, int (*compare)(const void *a, const void *b, void *user), void *user)
{
    qsort_r(data, n, bytes, compare, user);
}

struct timespec cvy_file_changed(const struct stat *st)
{
    return st->st_mtim;
}

int cvy_file_sync_system(int fd)
{
    return syncfs(fd);
}

void cvy_file_forget(int fd)
{
    (void)!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

void cvy_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void cvy_cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds)
{
    struct timespec until, wait = split_seconds(seconds);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait.tv_nsec;
    until.tv_sec += wait.tv_sec + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(cond, lock, &until);
}

#endif

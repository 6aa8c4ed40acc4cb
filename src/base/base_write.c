/*
 * base_write.c: complete writes, and why one failed.
 *
 * Batch systems limit the size of files (RLIMIT_FSIZE). The kernel says so by EFBIG and by SIGXFSZ, which ends a
 * process that does not expect it. Here both are an error of the write, whose message has the limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"

/* 0: there is no limit. */
static long long largest_file(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (long long)limit.rlim_cur : 0;
}

static long long bytes_of(int fd)
{
    struct stat s;
    return fd >= 0 && fstat(fd, &s) == 0 ? (long long)s.st_size : 0;
}

int cvy_write_is_at_limit(int fd)
{
    const long long limit = largest_file();
    return limit && bytes_of(fd) >= limit;
}

const char *cvy_write_why(int fd, int error, char text[CVY_WRITE_WHY])
{
    const long long limit = largest_file(), bytes = bytes_of(fd);
    if (limit && (error == EFBIG || (error == 0 && bytes >= limit)))
        snprintf(text, CVY_WRITE_WHY,
                 "%s: it has %lld bytes, and the limit of this process for a file is %lld (ulimit -f; SGE sets it by "
                 "h_fsize, Slurm takes it from the shell of sbatch)",
                 strerror(EFBIG), bytes, limit);
    else
        snprintf(text, CVY_WRITE_WHY, "%s", error ? strerror(error) : "an earlier write to it failed");
    return text;
}

cvy_status cvy_file_cut(int fd, int64_t bytes, const char *path)
{
    char why[CVY_WRITE_WHY];
    sigset_t before;
    int failed;
    cvy_signals_hold(&before);
    do
        failed = ftruncate(fd, (off_t)bytes);
    while (failed != 0 && errno == EINTR);
    cvy_signals_release(&before);
    CVY_CHECK(failed == 0, CVY_E_IO, "%s: cannot truncate to %lld bytes: %s", path, (long long)bytes,
              cvy_write_why(fd, errno, why));
    return CVY_OK;
}

static int allocate(int fd, size_t bytes)
{
#if defined(__APPLE__) /* it has no posix_fallocate() */
    return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
#else
    return posix_fallocate(fd, 0, (off_t)bytes);
#endif
}

int cvy_file_allocate(int fd, size_t bytes)
{
    sigset_t before;
    int code = EINTR;
    cvy_signals_hold(&before);
    while (code == EINTR)
        code = allocate(fd, bytes);
    cvy_signals_release(&before);
    return code;
}

/* At the file's position if offset < 0. */
static ssize_t write_some(int fd, const char *data, size_t bytes, int64_t offset)
{
    sigset_t before;
    ssize_t n;
    cvy_signals_hold(&before);
    do
        n = offset < 0 ? write(fd, data, bytes) : pwrite(fd, data, bytes, (off_t)offset);
    while (n < 0 && errno == EINTR);
    cvy_signals_release(&before);
    return n;
}

cvy_status cvy_write_all(int fd, const void *data, size_t bytes, const char *path)
{
    char why[CVY_WRITE_WHY];
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write_some(fd, (const char *)data + done, bytes - done, -1);
        CVY_CHECK(n > 0, CVY_E_IO, "%s: cannot write at byte %zu of %zu: %s", path, done, bytes,
                  n < 0 ? cvy_write_why(fd, errno, why) : "nothing was written");
        done += (size_t)n;
    }
    return CVY_OK;
}

cvy_status cvy_pwrite_all(int fd, const void *data, size_t bytes, int64_t offset, const char *path)
{
    char why[CVY_WRITE_WHY];
    for (size_t done = 0; done < bytes;) {
        const int64_t at = offset + (int64_t)done;
        const ssize_t n = write_some(fd, (const char *)data + done, bytes - done, at);
        CVY_CHECK(n > 0, CVY_E_IO, "%s: cannot write at byte %lld: %s", path, (long long)at,
                  n < 0 ? cvy_write_why(fd, errno, why) : "nothing was written");
        done += (size_t)n;
    }
    return CVY_OK;
}

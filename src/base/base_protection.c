/*
 * base_protection.c: see base_protection.h.
 *
 * flock() fails on Lustre without -o flock, on some NFS, autofs and FUSE (ENOLCK, ENOTSUP, ENOSYS, EINVAL, EIO);
 * fsync() on some FUSE and special files (EINVAL, ENOSYS, ENOTSUP). Kernels also return 524, an error of NFS within
 * them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_protection.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

enum { KERNEL_ENOTSUPP = 524 };

static const struct {
    const char *name, *call, *follows;
} guard[CVY_PROTECTIONS] = {
    [CVY_PROTECTION_RUN_LOCK] =
        {"the lock of a run's folder", "flock()",
         "a second run in this folder is refused only if it is on the same host; start none elsewhere, "
         "or use a file system with locks (Lustre: mount -o flock)"},
    [CVY_PROTECTION_WISDOM_LOCK] = {"the lock of the wisdom file", "flock()",
                                    "times that two processes save at once may be lost, and are then measured again; "
                                    "CONVOY_WISDOM names another file"},
    [CVY_PROTECTION_SYNC] =
        {"making files durable", "fsync()",
         "what was written last may be lost if the node fails; checksums tell, and a resume takes an "
         "older checkpoint"},
    [CVY_PROTECTION_SYNC_FOLDER] = {"making folders durable", "fsync()",
                                    "a file that was made last may be lost if the node fails"},
    [CVY_PROTECTION_FREE_SPACE] = {"the check for free space", "statvfs()", "a copy is begun that may not fit"},
    [CVY_PROTECTION_READER_MEMORY] = {"the limit on the memory of the process that reads HDF5 files",
                                      "setrlimit(RLIMIT_AS)", "a damaged file may take all memory of the node"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct note {
    int error, is_taken;
    char path[512];
} note[CVY_PROTECTIONS]; /* under the lock; error 0: there is none */

void cvy_protection_note(cvy_protection which, const char *path, int error)
{
    pthread_mutex_lock(&lock);
    if (!note[which].error) {
        note[which].error = error ? error : EIO;
        snprintf(note[which].path, sizeof note[which].path, "%s", path);
    }
    pthread_mutex_unlock(&lock);
}

int cvy_protection_take(char text[CVY_PROTECTION_TEXT])
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CVY_PROTECTIONS && !found; i++) {
        struct note *n = &note[i];
        found = n->error && !n->is_taken;
        n->is_taken |= found;
        if (found)
            snprintf(text, CVY_PROTECTION_TEXT, "%s: %s cannot work here: %s: %s; %s", n->path, guard[i].name,
                     guard[i].call, strerror(n->error), guard[i].follows);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int cvy_protection_is_unsupported(int error)
{
    return error == EINVAL || error == ENOSYS || error == ENOTSUP || error == EOPNOTSUPP || error == KERNEL_ENOTSUPP;
}

static cvy_lock try_lock(int fd, int how)
{
    int failed;
    do
        failed = flock(fd, how | LOCK_NB);
    while (failed != 0 && errno == EINTR);
    return failed == 0 ? CVY_LOCK_HELD : errno == EWOULDBLOCK ? CVY_LOCK_BUSY : CVY_LOCK_CANNOT;
}

cvy_lock cvy_file_lock(int fd)
{
    return try_lock(fd, LOCK_EX);
}

cvy_lock cvy_file_lock_shared(int fd)
{
    return try_lock(fd, LOCK_SH);
}

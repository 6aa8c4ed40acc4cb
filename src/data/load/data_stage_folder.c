/*
 * data_stage_folder.c: the folder of one staged copy: manifest, lock and data/NAME.
 *
 * Another user could put a folder, a link or files of the copy's name there first. So the copy's folder is this user's
 * alone (0700), which is checked on its descriptor; all below is opened from that descriptor, without following links,
 * and files are created new (O_EXCL) and for this user alone (0600). Readers come by path afterwards, so nobody else
 * may rename the folder: the folder around it is this user's or a group's, or has the sticky bit and belongs to root.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/load/data_stage_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"

static cvy_status check_around(const char *path, int fd)
{
    struct stat s;
    CVY_CHECK(fstat(fd, &s) == 0, CVY_E_IO, "data.stage: %s: %s", path, strerror(errno));
    CVY_CHECK(
        !(s.st_mode & S_IWOTH) || ((s.st_mode & S_ISVTX) && (s.st_uid == 0 || s.st_uid == geteuid())), CVY_E_CONFIG,
        "data.stage: %s: all users may write in it (mode %04o, owner %u), so another user could replace the copy: "
        "name a folder of your own, or one with the sticky bit that belongs to root, such as /dev/shm",
        path, (unsigned)s.st_mode & 07777, (unsigned)s.st_uid);
    return CVY_OK;
}

cvy_status cvy_stage_folder_open(const char *path, int *fd_out)
{
    const char *why = "";
    CVY_TRY(cvy_file_make_folder(path));
    const int fd = cvy_file_open(path, O_RDONLY | O_DIRECTORY, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "data.stage: %s: cannot open: %s", path, why);
    const cvy_status status = check_around(path, fd);
    if (status != CVY_OK)
        close(fd);
    else
        *fd_out = fd;
    return status;
}

static cvy_status check_own(const cvy_stage_copy *c, int fd)
{
    struct stat s;
    CVY_CHECK(fstat(fd, &s) == 0, CVY_E_IO, "%s: %s", c->path, strerror(errno));
    CVY_CHECK(
        s.st_uid == geteuid() && !(s.st_mode & 077), CVY_E_IO,
        "%s: it belongs to user %u with mode %04o, expected user %u and mode 0700: somebody else made it, and its "
        "data are not trusted; remove it, or name another data.stage",
        c->path, (unsigned)s.st_uid, (unsigned)s.st_mode & 07777, (unsigned)geteuid());
    return CVY_OK;
}

cvy_status cvy_stage_copy_open(cvy_stage_copy *c)
{
    const char *why = "";
    const int fd = cvy_file_open_below(c->folder, c->name, O_RDONLY | O_DIRECTORY, 0, &why);
    if (fd < 0 && errno == ENOENT)
        return CVY_END;
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: it is no folder that can be used for a copy: %s", c->path, why);
    const cvy_status status = check_own(c, fd);
    if (status != CVY_OK)
        close(fd);
    else
        c->root = fd;
    return status;
}

static void close_root(cvy_stage_copy *c)
{
    if (c->root >= 0)
        close(c->root);
    c->root = -1;
}

/* Whether the lock is on the file that has the name now: the last user may have removed the folder with the lock file
 * that was just opened. */
static int is_current(const cvy_stage_copy *c, int fd)
{
    struct stat mine, there;
    char name[300];
    snprintf(name, sizeof name, "%s/lock", c->name);
    return fstat(fd, &mine) == 0 && fstatat(c->folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

cvy_status cvy_stage_copy_try_lock(cvy_stage_copy *c, int *alone_out)
{
    const char *why = "";
    CVY_CHECK(mkdirat(c->folder, c->name, 0700) == 0 || errno == EEXIST, CVY_E_IO, "%s: cannot make the folder: %s",
              c->path, strerror(errno));
    const cvy_status opened = cvy_stage_copy_open(c);
    if (opened != CVY_OK)
        return opened == CVY_END ? CVY_OK : opened;
    const int fd = cvy_file_open_below(c->root, "lock", O_RDWR | O_CREAT, 0600, &why);
    CVY_CHECK(fd >= 0 || errno == ENOENT, CVY_E_IO, "%s/lock: cannot be created: %s", c->path, why);
    cvy_lock lock = fd >= 0 ? cvy_file_lock(fd) : CVY_LOCK_BUSY;
    *alone_out = lock == CVY_LOCK_HELD;
    if (lock == CVY_LOCK_BUSY && fd >= 0)
        lock = cvy_file_lock_shared(fd);
    if (lock == CVY_LOCK_CANNOT) {
        const cvy_status status = cvy_error_set(
            CVY_E_CONFIG,
            "%s/lock: flock() fails: %s; without locks a run could remove the copy that another one reads: name a "
            "data.stage that is local to each node, such as /dev/shm or /tmp, or leave it out",
            c->path, strerror(errno));
        close(fd);
        close_root(c);
        return status;
    }
    if (lock == CVY_LOCK_HELD && is_current(c, fd)) {
        c->lock = fd;
        return CVY_OK;
    }
    if (fd >= 0)
        close(fd);
    close_root(c);
    return CVY_OK;
}

void cvy_stage_copy_share(const cvy_stage_copy *c)
{
    flock(c->lock, LOCK_SH);
}

int cvy_stage_copy_is(const cvy_stage_copy *c, const char *manifest)
{
    const size_t bytes = strlen(manifest);
    struct stat s;
    char *text = NULL;
    const int fd = cvy_file_open_below(c->root, "manifest", O_RDONLY, 0, NULL);
    const int same = fd >= 0 && fstat(fd, &s) == 0 && s.st_size == (off_t)bytes &&
                     cvy_mem_alloc(bytes + 1, &text) == CVY_OK &&
                     cvy_pread_all(fd, text, bytes, 0, c->path) == CVY_OK && memcmp(text, manifest, bytes) == 0;
    cvy_mem_free(&text);
    if (fd >= 0)
        close(fd);
    return same;
}

cvy_status cvy_stage_copy_clear(const cvy_stage_copy *c)
{
    CVY_CHECK(unlinkat(c->root, "manifest", 0) == 0 || errno == ENOENT, CVY_E_IO, "%s/manifest: cannot be removed: %s",
              c->path, strerror(errno));
    return cvy_file_remove_below(c->root, "data", c->path);
}

static cvy_status open_data(const cvy_stage_copy *c, const char *name, int flags, int *fd_out)
{
    const char *why = "";
    char *path = NULL;
    CVY_TRY(cvy_mem_printf(&path, "data/%s", name));
    const int fd = cvy_file_open_below(c->root, path, flags, 0600, &why);
    cvy_mem_free(&path);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s/data/%s: cannot be %s: %s", c->path, name, flags & O_CREAT ? "created" : "opened",
              why);
    *fd_out = fd;
    return CVY_OK;
}

cvy_status cvy_stage_copy_create(const cvy_stage_copy *c, const char *name)
{
    int fd = -1;
    CVY_TRY(open_data(c, name, O_WRONLY | O_CREAT | O_EXCL, &fd));
    close(fd);
    return CVY_OK;
}

cvy_status cvy_stage_copy_file(const cvy_stage_copy *c, const char *name, int *fd_out)
{
    return open_data(c, name, O_RDWR, fd_out);
}

/* The manifest appears under its name when it is complete. */
cvy_status cvy_stage_copy_finish(const cvy_stage_copy *c, const char *manifest)
{
    const char *why = "";
    (void)unlinkat(c->root, "manifest.partial", 0);
    const int fd = cvy_file_open_below(c->root, "manifest.partial", O_WRONLY | O_CREAT | O_EXCL, 0600, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s/manifest: cannot be created: %s", c->path, why);
    cvy_status status = cvy_write_all(fd, manifest, strlen(manifest), c->path);
    if (status == CVY_OK && (cvy_file_flush(fd, c->path, CVY_PROTECTION_SYNC) != 0 ||
                             renameat(c->root, "manifest.partial", c->root, "manifest") != 0))
        status = cvy_error_set(CVY_E_IO, "%s/manifest: cannot be written: %s", c->path, strerror(errno));
    close(fd);
    return status;
}

void cvy_stage_copy_close(cvy_stage_copy *c)
{
    if (c->lock >= 0 && cvy_file_lock(c->lock) == CVY_LOCK_HELD)
        (void)!cvy_file_remove_below(c->folder, c->name, c->path);
    if (c->lock >= 0)
        close(c->lock);
    c->lock = -1;
    close_root(c);
}

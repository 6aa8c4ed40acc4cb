/*
 * base_file.c: file operations. A file is replaced as a whole or not at all; errors name the path and the cause.
 *
 * To replace a file, we write a temporary file, sync it, rename it over the old one and sync the folder. A crash at any
 * point leaves the old or the new content, never a mixture. Only this file and base_write.c handle short reads and
 * writes, and EINTR.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- calls that a signal may interrupt: on some network file systems this happens with any kind of file ---- */

static int open_at(int folder_fd, const char *name, int flags, mode_t mode)
{
    for (;;) {
        const int fd = openat(folder_fd, name, flags, mode);
        if (fd >= 0 || errno != EINTR)
            return fd;
    }
}

/* What a name leads to that is no regular file; NULL: it is one. */
static const char *refusal(mode_t mode)
{
    return S_ISREG(mode)    ? NULL
           : S_ISFIFO(mode) ? "it is a FIFO, expected a regular file"
           : S_ISSOCK(mode) ? "it is a socket, expected a regular file"
           : S_ISDIR(mode)  ? "it is a folder, expected a regular file"
                            : "it is a device, expected a regular file";
}

/* open() for writing says of a FIFO without a reader, and of a socket, that there is no such device. */
static const char *why_not_open(int folder_fd, const char *name, int error)
{
    struct stat s;
    const char *other = error == ENXIO && fstatat(folder_fd, name, &s, 0) == 0 ? refusal(s.st_mode) : NULL;
    return other ? other : strerror(error);
}

/* O_NONBLOCK changes nothing for a regular file. */
static int open_regular(int folder_fd, const char *name, int flags, unsigned mode, const char **why_out)
{
    struct stat s;
    const char *why = NULL;
    int fd = open_at(folder_fd, name, flags | O_CLOEXEC | O_NONBLOCK, mode), error = errno;
    if (fd < 0) {
        why = why_not_open(folder_fd, name, error);
    } else if (!(flags & O_DIRECTORY) && (fstat(fd, &s) != 0 || (why = refusal(s.st_mode)))) {
        why = why ? why : strerror(errno);
        error = EINVAL;
        close(fd);
        fd = -1;
    }
    if (why_out)
        *why_out = why ? why : "";
    errno = error;
    return fd;
}

int cvy_file_open(const char *path, int flags, unsigned mode, const char **why_out)
{
    return open_regular(AT_FDCWD, path, flags, mode, why_out);
}

int cvy_file_create(const char *path, unsigned mode, const char **why_out)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const int fd = cvy_file_open(path, flags, mode, why_out);
    if (fd >= 0 || errno != EEXIST || unlink(path) != 0)
        return fd;
    return cvy_file_open(path, flags, mode, why_out);
}

static int is_link(int folder_fd, const char *name)
{
    struct stat s;
    return fstatat(folder_fd, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(s.st_mode);
}

/* Opens one name of a path, of `bytes` bytes; is_last: the file itself. */
static int open_name(int folder_fd, const char *name, size_t bytes, int is_last, int flags, unsigned mode,
                     const char **why_out)
{
    char copy[NAME_MAX + 1];
    *why_out = bytes == 0 || bytes > NAME_MAX ? "a name in its path is empty or too long" : "its path leads upwards";
    errno = EINVAL;
    if (bytes == 0 || bytes > NAME_MAX || (bytes == 2 && name[0] == '.' && name[1] == '.'))
        return -1;
    memcpy(copy, name, bytes);
    copy[bytes] = 0;
    if (!is_last && flags & O_CREAT)
        (void)mkdirat(folder_fd, copy, 0700); /* if that fails, so does the open */
    const int fd = is_last ? open_regular(folder_fd, copy, flags | O_NOFOLLOW, mode, why_out)
                           : open_regular(folder_fd, copy, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, why_out);
    const int error = errno;
    if (fd < 0 && is_link(folder_fd, copy))
        *why_out = "its path has a symbolic link, which may lead elsewhere";
    errno = error;
    return fd;
}

int cvy_file_open_below(int folder_fd, const char *path, int flags, unsigned mode, const char **why_out)
{
    const char *why = "";
    int at = folder_fd, is_last = 0;
    while (at >= 0 && !is_last) {
        const size_t bytes = strcspn(path, "/"), step = bytes + strspn(path + bytes, "/");
        is_last = path[step] == 0;
        const int next = open_name(at, path, bytes, is_last, flags, mode, &why), error = errno;
        if (at != folder_fd)
            close(at);
        errno = error;
        at = next;
        path += step;
    }
    if (why_out)
        *why_out = why;
    return at;
}

FILE *cvy_file_stream(const char *path, const char **why_out)
{
    const int fd = cvy_file_open(path, O_RDONLY, 0, why_out);
    FILE *stream = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (fd >= 0 && !stream) {
        *why_out = strerror(errno);
        close(fd);
    }
    return stream;
}

int cvy_file_flush(int fd, const char *path, cvy_protection which)
{
    int failed;
    do
        failed = fsync(fd);
    while (failed != 0 && errno == EINTR);
    if (failed == 0 || !cvy_protection_is_unsupported(errno))
        return failed;
    cvy_protection_note(which, path, errno);
    return 0;
}

/* On Linux an interrupted close has closed the file; a second close could hit a file of another thread. */
static int close_file(int fd)
{
    return close(fd) == 0 || errno == EINTR ? 0 : -1;
}

/* ---- complete reads ---- */

cvy_status cvy_pread_all(int fd, void *data, size_t bytes, int64_t offset, const char *path)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pread(fd, (char *)data + done, bytes - done, offset + (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        CVY_CHECK(n >= 0, CVY_E_IO, "%s: cannot read %zu bytes at offset %lld: %s", path, bytes, (long long)offset,
                  strerror(errno));
        CVY_CHECK(n > 0, CVY_E_FORMAT, "%s: the file ends at byte %lld, expected %zu bytes at offset %lld", path,
                  (long long)offset + (long long)done, bytes, (long long)offset);
        done += (size_t)n;
    }
    return CVY_OK;
}

/* Reads until the end of the file, not as many bytes as the inode says, because pipes and /proc files have no size. */
static cvy_status read_to_end(int fd, const char *path, size_t limit_bytes, char **data, size_t *bytes)
{
    size_t room = 0, used = 0;
    for (;;) {
        if (room - used < 2) {
            const size_t wider = CVY_MAX(room * 2, (size_t)65536);
            CVY_TRY(cvy_mem_grow(data, used, wider));
            room = wider;
        }
        const ssize_t n = read(fd, *data + used, room - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        CVY_CHECK(n >= 0, CVY_E_IO, "%s: cannot read: %s", path, strerror(errno));
        if (n == 0)
            break;
        used += (size_t)n;
        CVY_CHECK(used <= limit_bytes, CVY_E_FORMAT,
                  "%s: more than %zu bytes, which is too long for a file of this kind", path, limit_bytes);
    }
    (*data)[used] = 0;
    *bytes = used;
    return CVY_OK;
}

static int is_own_descriptor(const char *path)
{
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static int open_own_descriptor(const char *path, const char **why_out)
{
    const int fd = open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    *why_out = strerror(errno);
    return fd;
}

cvy_status cvy_file_read(const char *path, size_t limit_bytes, char **data_out, size_t *bytes_out)
{
    char *data = NULL;
    size_t bytes = 0;
    const char *why = "";
    const int fd = is_own_descriptor(path) ? open_own_descriptor(path, &why) : cvy_file_open(path, O_RDONLY, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot open: %s", path, why);
    const cvy_status status = read_to_end(fd, path, limit_bytes, &data, &bytes);
    close(fd);
    if (status != CVY_OK) {
        cvy_mem_free(&data);
        return status;
    }
    *data_out = data;
    *bytes_out = bytes;
    return CVY_OK;
}

/* ---- replace ---- */

static void drop_temporary(int fd, char **temporary)
{
    if (fd >= 0)
        close(fd);
    if (*temporary)
        unlink(*temporary);
    cvy_mem_free(temporary);
}

/* The process id is in the name, so that two processes that write the same file do not use the same temporary file. */
static cvy_status open_temporary(const char *path, char **temporary_out, int *fd_out)
{
    char *temporary = NULL;
    CVY_TRY(cvy_mem_printf(&temporary, "%s.aside-%ld", path, (long)getpid()));
    const char *why = "";
    const int fd = cvy_file_create(temporary, 0666, &why);
    if (fd < 0) {
        const cvy_status status = cvy_error_set(CVY_E_IO, "%s: cannot create: %s", temporary, why);
        cvy_mem_free(&temporary);
        return status;
    }
    *temporary_out = temporary;
    *fd_out = fd;
    return CVY_OK;
}

/* Syncs the folder of path, so that the renamed entry itself survives a crash. */
static cvy_status sync_folder_of(const char *path)
{
    char *folder = NULL;
    CVY_TRY(cvy_mem_strdup(path, &folder));
    char *slash = strrchr(folder, '/');
    if (slash == folder)
        slash[1] = 0;
    else if (slash)
        *slash = 0;
    const cvy_status status = cvy_file_sync_folder(slash ? folder : ".");
    cvy_mem_free(&folder);
    return status;
}

cvy_status cvy_file_sync(int *fd, const char *temporary, const char *path)
{
    CVY_CHECK(cvy_file_flush(*fd, path, CVY_PROTECTION_SYNC) == 0, CVY_E_IO, "%s: cannot sync: %s", path,
              strerror(errno));
    const int closed = close_file(*fd);
    *fd = -1;
    CVY_CHECK(closed == 0, CVY_E_IO, "%s: cannot close: %s", path, strerror(errno));
    CVY_CHECK(rename(temporary, path) == 0, CVY_E_IO, "%s: cannot rename %s to it: %s", path, temporary,
              strerror(errno));
    return sync_folder_of(path);
}

cvy_status cvy_file_replace(const char *path, const void *data, size_t bytes)
{
    char *temporary = NULL;
    int fd = -1;
    CVY_TRY(open_temporary(path, &temporary, &fd));
    cvy_status status = cvy_write_all(fd, data, bytes, path);
    if (status == CVY_OK)
        status = cvy_file_sync(&fd, temporary, path);
    drop_temporary(fd, &temporary); /* after the rename there is no file of that name to remove */
    return status;
}

cvy_status cvy_file_temporary_open(const char *path, cvy_file_temporary *out)
{
    cvy_file_temporary file = {0};
    int fd = -1;
    CVY_TRY(cvy_mem_strdup(path, &file.path));
    cvy_status status = open_temporary(path, &file.temporary, &fd);
    if (status == CVY_OK && !(file.stream = fdopen(fd, "wb")))
        status = cvy_error_set(CVY_E_MEMORY, "%s: cannot open a stream: %s", path, strerror(errno));
    if (status != CVY_OK) {
        drop_temporary(fd, &file.temporary);
        cvy_mem_free(&file.path);
        return status;
    }
    cvy_signals_hold(&file.held);
    *out = file;
    return CVY_OK;
}

static cvy_status commit_stream(cvy_file_temporary *file)
{
    char why[CVY_WRITE_WHY];
    errno = 0;
    const int failed = fflush(file->stream) != 0 || ferror(file->stream);
    CVY_CHECK(!failed, CVY_E_IO, "%s: cannot write: %s", file->path, cvy_write_why(fileno(file->stream), errno, why));
    CVY_CHECK(cvy_file_flush(fileno(file->stream), file->path, CVY_PROTECTION_SYNC) == 0, CVY_E_IO,
              "%s: cannot sync: %s", file->path, strerror(errno));
    FILE *stream = file->stream;
    file->stream = NULL;
    CVY_CHECK(fclose(stream) == 0, CVY_E_IO, "%s: cannot close: %s", file->path, strerror(errno));
    CVY_CHECK(rename(file->temporary, file->path) == 0, CVY_E_IO, "%s: cannot rename %s to it: %s", file->path,
              file->temporary, strerror(errno));
    return sync_folder_of(file->path);
}

cvy_status cvy_file_temporary_commit(cvy_file_temporary *file)
{
    const cvy_status status = commit_stream(file);
    cvy_file_temporary_drop(file);
    return status;
}

void cvy_file_temporary_drop(cvy_file_temporary *file)
{
    if (file->stream)
        fclose(file->stream);
    file->stream = NULL;
    if (file->path)
        cvy_signals_release(&file->held);
    drop_temporary(-1, &file->temporary);
    cvy_mem_free(&file->path);
}

/* ---- folders ---- */

int cvy_file_exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

cvy_status cvy_file_check_new(const char *path, int replace)
{
    struct stat s;
    const int exists = stat(path, &s) == 0;
    CVY_CHECK(!exists || replace, CVY_E_IO, "%s exists already: choose another name, or replace it", path);
    CVY_CHECK(!exists || S_ISREG(s.st_mode), CVY_E_IO, "%s is not a file that can be replaced", path);
    return CVY_OK;
}

int cvy_file_is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

const char *cvy_file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static cvy_status make_one_folder(const char *path)
{
    const int made = mkdir(path, 0777) == 0;
    CVY_CHECK(made || (errno == EEXIST && cvy_file_is_folder(path)), CVY_E_IO, "%s: cannot make the folder: %s", path,
              errno == EEXIST ? "a file of that name exists" : strerror(errno));
    return made ? sync_folder_of(path) : CVY_OK; /* files in it are lost if its own entry is lost */
}

cvy_status cvy_file_make_folder(const char *path)
{
    char *part = NULL;
    cvy_status status = cvy_mem_strdup(path, &part);
    for (char *slash = part ? strchr(part + (*part != 0), '/') : NULL; slash && status == CVY_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (!cvy_file_is_folder(part)) /* checked first: mkdir would fail in a read-only parent */
            status = make_one_folder(part);
        *slash = '/';
    }
    if (status == CVY_OK && !cvy_file_is_folder(path))
        status = make_one_folder(path);
    cvy_mem_free(&part);
    return status;
}

cvy_status cvy_file_nearest(const char *path, char *nearest_out, size_t room)
{
    struct stat s;
    CVY_CHECK((size_t)snprintf(nearest_out, room, "%s", path) < room, CVY_E_ARGUMENT,
              "%s: the folder's name is longer than %zu characters", path, room - 1);
    while (lstat(nearest_out, &s) != 0 && strcmp(nearest_out, "/") != 0 && strcmp(nearest_out, ".") != 0) {
        char *slash = strrchr(nearest_out, '/');
        if (slash && slash != nearest_out)
            *slash = 0;
        else
            snprintf(nearest_out, room, slash ? "/" : ".");
    }
    return CVY_OK;
}

cvy_status cvy_file_make_trial_folder(const char *parent, const char *word, char *folder_out, size_t room)
{
    const int is_short = (size_t)snprintf(folder_out, room, "%s/convoy-%s-XXXXXX", parent, word) < room;
    if (is_short && mkdtemp(folder_out))
        return CVY_OK;
    const int error = errno;
    folder_out[0] = '\0';
    CVY_CHECK(is_short, CVY_E_ARGUMENT, "%s: the folder's name is too long", parent);
    CVY_FAIL(CVY_E_IO, "%s: cannot make a folder in it: %s", parent, strerror(error));
}

cvy_status cvy_file_sync_folder(const char *path)
{
    const int fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot open the folder: %s", path, strerror(errno));
    const int failed = cvy_file_flush(fd, path, CVY_PROTECTION_SYNC_FOLDER) != 0, reason = errno;
    close(fd);
    CVY_CHECK(!failed, CVY_E_IO, "%s: cannot sync the folder: %s", path, strerror(reason));
    return CVY_OK;
}

static cvy_status remove_entry(int folder_fd, const char *name, const char *path);

static cvy_status remove_entries(DIR *folder, const char *path)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        CVY_CHECK(entry || errno == 0, CVY_E_IO, "%s: cannot list the folder: %s", path, strerror(errno));
        if (!entry)
            return CVY_OK;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            CVY_TRY(remove_entry(dirfd(folder), entry->d_name, path));
    }
}

/* Uses folder descriptors, so that a link which someone puts in place meanwhile cannot lead outside. path is the root
 * of the tree, for messages. */
static cvy_status remove_entry(int folder_fd, const char *name, const char *path)
{
    if (unlinkat(folder_fd, name, 0) == 0 || errno == ENOENT)
        return CVY_OK;
    CVY_CHECK(errno == EISDIR || errno == EPERM, CVY_E_IO, "%s: cannot remove \"%s\": %s", path, name, strerror(errno));
    const int fd = open_at(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot open \"%s\": %s", path, name, strerror(errno));
    DIR *inner = fdopendir(fd);
    if (!inner)
        close(fd);
    CVY_CHECK(inner, CVY_E_MEMORY, "%s: cannot list \"%s\": %s", path, name, strerror(errno));
    const cvy_status status = remove_entries(inner, path);
    closedir(inner);
    CVY_TRY(status);
    CVY_CHECK(unlinkat(folder_fd, name, AT_REMOVEDIR) == 0, CVY_E_IO, "%s: cannot remove \"%s\": %s", path, name,
              strerror(errno));
    return CVY_OK;
}

cvy_status cvy_file_remove_below(int folder_fd, const char *name, const char *path)
{
    return remove_entry(folder_fd, name, path);
}

cvy_status cvy_file_remove_tree(const char *path)
{
    return remove_entry(AT_FDCWD, path, path);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Puts the names into a growing array; the names themselves are in the pool. */
static cvy_status collect_names(DIR *folder, cvy_pool *pool, const char *path, char ***names, int64_t *count)
{
    int64_t room = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        CVY_CHECK(entry || errno == 0, CVY_E_IO, "%s: cannot list the folder: %s", path, strerror(errno));
        if (!entry)
            return CVY_OK;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (*count == room) {
            const int64_t wider = CVY_MAX(room * 2, 64);
            CVY_TRY(cvy_mem_grow(names, (size_t)room * sizeof **names, (size_t)wider * sizeof **names));
            room = wider;
        }
        CVY_TRY(cvy_pool_strdup(pool, entry->d_name, &(*names)[*count]));
        ++*count;
    }
}

cvy_status cvy_file_list(cvy_pool *pool, const char *path, char ***names_out, int64_t *count_out)
{
    char **names = NULL, **kept = NULL;
    int64_t count = 0;
    DIR *folder = opendir(path);
    CVY_CHECK(folder, CVY_E_IO, "%s: cannot open the folder: %s", path, strerror(errno));
    cvy_status status = collect_names(folder, pool, path, &names, &count);
    closedir(folder);
    if (status == CVY_OK)
        status = cvy_pool_alloc(pool, (size_t)count * sizeof *kept, &kept);
    if (status == CVY_OK && count > 0) {
        qsort(names, (size_t)count, sizeof *names, compare_names);
        memcpy(kept, names, (size_t)count * sizeof *kept);
    }
    cvy_mem_free(&names);
    if (status == CVY_OK) {
        *names_out = kept;
        *count_out = count;
    }
    return status;
}

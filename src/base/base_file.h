/*
 * base_file.h: file operations. A file is replaced as a whole or not at all; errors name the path and the cause.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_FILE_H
#define CVY_BASE_FILE_H

#include <stdio.h>

#include "base/base_mem.h"
#include "base/base_protection.h"
#include "base/base_signals.h"

/* Reads the whole file and adds a NUL. The caller frees the data with cvy_mem_free. A pipe is read only if the shell
 * has given it to the process, as /dev/stdin or /dev/fd/N. */
cvy_status cvy_file_read(const char *path, size_t limit_bytes, char **data_out, size_t *bytes_out);
/* Opens a regular file: open() with O_CLOEXEC, repeated if a signal interrupts it. Whatever else has the name (a FIFO,
 * a socket, a device, a folder) is refused without waiting for it, because files come from elsewhere. -1: *why_out says
 * why, for a message that names the path; it may be NULL. errno is that of open(), or EINVAL. With O_DIRECTORY it is a
 * folder that is opened. tools/check_layers holds that files are opened only here. */
int cvy_file_open(const char *path, int flags, unsigned mode, const char **why_out);
/* Creates a file for writing that is new: what had the name before, which may be a link or another user's file, loses
 * it. */
int cvy_file_create(const char *path, unsigned mode, const char **why_out);
/* The same as cvy_file_open() for a path below a folder that is open, such as "data/x.bin". A path that leads
 * elsewhere, by "..", a slash at its begin or a symbolic link anywhere in it, is refused. With O_CREAT the folders in
 * between are made, for this user alone. */
int cvy_file_open_below(int folder_fd, const char *path, int flags, unsigned mode, const char **why_out);
/* The same as a stream for reading; NULL: *why_out says why. */
FILE *cvy_file_stream(const char *path, const char **why_out);
/* Returns an error if a result may not be written there: the path exists and replace is 0, or it is no plain file. */
cvy_status cvy_file_check_new(const char *path, int replace);
/* Writes path as a whole or not at all: a temporary file, fsync, rename, fsync of the folder. It handles short writes
 * and EINTR. Errors name the path and errno. */
cvy_status cvy_file_replace(const char *path, const void *data, size_t bytes);
/* The same for a stream: open, write to `stream`, then commit or drop, all in one thread. */
typedef struct cvy_file_temporary {
    FILE *stream;
    char *path, *temporary;
    sigset_t held; /* from open to commit or drop */
} cvy_file_temporary;
cvy_status cvy_file_temporary_open(const char *path, cvy_file_temporary *out);
cvy_status cvy_file_temporary_commit(cvy_file_temporary *file);
void cvy_file_temporary_drop(cvy_file_temporary *file);
/* fsync(), repeated if a signal interrupts it. A file system that cannot do it is noted as that protection, and is no
 * fault. Returns 0, or -1: errno says why. */
int cvy_file_flush(int fd, const char *path, cvy_protection which);
/* Makes the file `temporary` durable and gives it its final name: fsync, close (*fd becomes -1), rename, fsync of the
 * folder. */
cvy_status cvy_file_sync(int *fd, const char *temporary, const char *path);
/* Makes a folder and its parents, and syncs the parent of each new folder. An existing folder is fine. */
cvy_status cvy_file_make_folder(const char *path);
/* Writes the path, or the nearest one above it that exists: what cvy_file_make_folder(path) would begin with. */
cvy_status cvy_file_nearest(const char *path, char *nearest_out, size_t room);
/* Makes a new folder "convoy-<word>-<random>" in `parent`, to try what a run does there. folder_out is "" after a
 * fault. */
cvy_status cvy_file_make_trial_folder(const char *parent, const char *word, char *folder_out, size_t room);
cvy_status cvy_file_sync_folder(const char *path);
cvy_status cvy_file_remove_tree(const char *path); /* does not follow links */
/* The same for a name in a folder that is open; path: for messages. */
cvy_status cvy_file_remove_below(int folder_fd, const char *name, const char *path);
int cvy_file_exists(const char *path);
int cvy_file_is_folder(const char *path);
/* The part of path behind its last slash; it points into path. */
const char *cvy_file_base_name(const char *path);
/* Lists the names in a folder, sorted by bytes, without . and ..; everything is allocated in pool. */
cvy_status cvy_file_list(cvy_pool *pool, const char *path, char ***names_out, int64_t *count_out);
/* ---- base_write.c: SIGPIPE and SIGXFSZ do not come of these, whatever the program does with them ---- */
enum { CVY_WRITE_WHY = 320 };
/* Why a write to fd failed (errno; 0: not known), and at the limit on the size of files the size and the limit. Returns
 * the text. */
const char *cvy_write_why(int fd, int error, char text[CVY_WRITE_WHY]);
/* Whether the file has the largest size that it may have: other libraries report an error of their own for that. */
int cvy_write_is_at_limit(int fd);
/* posix_fallocate() from the begin of the file, repeated if a signal interrupts it. Returns 0 or an errno. */
int cvy_file_allocate(int fd, size_t bytes);
/* Truncates the file to so many bytes; repeats if a signal interrupts it. */
cvy_status cvy_file_cut(int fd, int64_t bytes, const char *path);
cvy_status cvy_write_all(int fd, const void *data, size_t bytes, const char *path);
cvy_status cvy_pwrite_all(int fd, const void *data, size_t bytes, int64_t offset, const char *path);
/* ---- reading ---- */
/* If the file is too short: CVY_E_FORMAT, and the message has the offset and the size. */
cvy_status cvy_pread_all(int fd, void *data, size_t bytes, int64_t offset, const char *path);

#endif

/*
 * monitor_append.c: appends records to a file, each with one write; see monitor_append.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"

cvy_status cvy_append_find_end(const char *path, int (*keeps)(void *user, const char *line), void *user, off_t *end_out)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    off_t end = 0;
    const char *why = "";
    FILE *f = cvy_file_stream(path, &why);
    if (!f && errno == ENOENT) {
        *end_out = 0;
        return CVY_OK;
    }
    CVY_CHECK(f, CVY_E_IO, "%s: cannot open: %s", path, why);
    while ((n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n' && keeps(user, line))
        end += n;
    const int failed = ferror(f), reason = errno;
    free(line);
    fclose(f);
    CVY_CHECK(!failed, CVY_E_IO, "%s: cannot read: %s", path, strerror(reason));
    *end_out = end;
    return CVY_OK;
}

cvy_status cvy_append_open(cvy_append *file, const char *path, off_t end)
{
    *file = (cvy_append){.fd = -1, .end = end};
    CVY_TRY(cvy_mem_strdup(path, &file->path));
    const char *why = "";
    file->fd = cvy_file_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666, &why);
    CVY_CHECK(file->fd >= 0, CVY_E_IO, "%s: cannot open: %s", path, why);
    return cvy_file_cut(file->fd, end, path);
}

cvy_status cvy_append_add(cvy_append *file, const void *data, size_t bytes)
{
    cvy_status status = cvy_write_all(file->fd, data, bytes, file->path);
    if (status == CVY_OK) {
        file->end += (off_t)bytes;
        file->failing = 0;
        return CVY_OK;
    }
    file->lost++;
    (void)!ftruncate(
        file->fd, file->end); /* removes what a failed write left; if that fails, readers skip the incomplete record */
    status = file->failing ? CVY_OK : status;
    file->failing = 1;
    return status;
}

int cvy_append_close(cvy_append *file)
{
    int reason = 0;
    if (!file->path)
        return 0;
    if (file->fd >= 0 && close(file->fd) != 0)
        reason = errno;
    cvy_mem_free(&file->path);
    return reason;
}

/*
 * monitor_append.h: a file to which a run appends: each record as a whole, or nothing of it.
 *
 * Records are lost while a disk is full; the run continues. Used for metrics.jsonl and for event files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_APPEND_H
#define CVY_MONITOR_APPEND_H

#include <sys/types.h>

#include "base/base_mem.h"

typedef struct cvy_append { /* zero-initialise it; cvy_append_close() releases it */
    char *path;
    int fd;    /* valid if path is not NULL; -1: the file is not open */
    off_t end; /* bytes up to the end of the last whole record */
    int failing;
    int64_t lost;
} cvy_append;

/* Finds where the records of an earlier process end that stay: before the first line that `keeps` refuses, or that is
 * incomplete. *end_out: in bytes; 0 if there is no such file. `keeps` gets each line with its newline. */
cvy_status cvy_append_find_end(const char *path, int (*keeps)(void *user, const char *line), void *user,
                               off_t *end_out);
/* Opens path, makes it if it does not exist, and cuts it to `end` bytes. Errors: CVY_E_IO, CVY_E_MEMORY; close it in
 * any case. */
cvy_status cvy_append_open(cvy_append *file, const char *path, off_t end);
/* Appends all bytes or none. CVY_E_IO is only a reason for a warning: in a row of failures only the first is returned,
 * and the next call tries to write again. */
cvy_status cvy_append_add(cvy_append *file, const void *data, size_t bytes);
/* Closes the file. Returns 0, or the errno of a close that failed. It leaves the error record as it is. */
int cvy_append_close(cvy_append *file);

#endif

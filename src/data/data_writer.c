/*
 * data_writer.c: finds writers by name, and writes files that get their name when they are complete.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_table.h"

cvy_status cvy_writer_by_name(const char *name, const cvy_writer_def **out)
{
    static const cvy_table_query query = {.what = "data format to write"};
    int count = 0;
    const cvy_writer_def *const *table = cvy_writer_table(&count);
    return cvy_table_find(table, count, &query, name, out);
}

cvy_status cvy_new_file_begin(cvy_pool *pool, const char *path, cvy_new_file *out)
{
    char *copy = NULL, *partial = NULL;
    out->fd = -1;
    CVY_TRY(cvy_pool_strdup(pool, path, &copy));
    CVY_TRY(cvy_pool_printf(pool, &partial, "%s.partial", path));
    out->path = copy;
    out->partial = partial;
    out->bytes = 0;
    const char *why = "";
    out->fd = cvy_file_create(partial, 0666, &why);
    CVY_CHECK(out->fd >= 0, CVY_E_IO, "%s: cannot be created: %s", partial, why);
    return CVY_OK;
}

cvy_status cvy_new_file_write(cvy_new_file *f, const void *data, size_t bytes)
{
    CVY_TRY(cvy_write_all(f->fd, data, bytes, f->partial));
    f->bytes += (int64_t)bytes;
    return CVY_OK;
}

cvy_status cvy_new_file_end(cvy_new_file *f)
{
    return cvy_file_sync(&f->fd, f->partial, f->path);
}

void cvy_new_file_drop(cvy_new_file *f)
{
    if (f->fd < 0 || !f->partial)
        return;
    close(f->fd);
    f->fd = -1;
    unlink(f->partial);
}

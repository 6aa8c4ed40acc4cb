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
#include "base/text/base_text.h"

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

cvy_status cvy_labels_file_write(const cvy_writer_args *args, int64_t *bytes)
{
    const char *path = NULL;
    cvy_text text = {0};
    if (!args->info->has_label)
        return CVY_OK;
    CVY_TRY(cvy_data_path_join(args->pool, args->path, "labels.txt", &path));
    for (int64_t i = 0; i < args->info->nclasses; i++) {
        if (args->class_name)
            cvy_text_add(&text, "%lld:%s\n", (long long)i, args->class_name[i]);
        else
            cvy_text_add(&text, "%lld:%lld\n", (long long)i, (long long)i);
    }
    const cvy_status status = text.status == CVY_OK ? cvy_file_replace(path, text.data, text.bytes) : text.status;
    *bytes += (int64_t)text.bytes;
    cvy_text_free(&text);
    return status;
}

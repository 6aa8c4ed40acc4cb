/*
 * data_reader_files.c: small services that readers share: files read at given offsets, buffers that grow, path joining,
 * the number of classes.
 *
 * It names no reader, so that a program with a single reader can be linked without the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "data/data_index.h"

cvy_status cvy_bytes_need(cvy_bytes *b, size_t bytes)
{
    if (bytes > b->room) {
        void *fresh = NULL;
        const size_t room = bytes + bytes / 4;
        CVY_TRY(cvy_mem_alloc(room, &fresh));
        cvy_mem_free(&b->data);
        b->data = fresh;
        b->room = room;
    }
    b->bytes = bytes;
    return CVY_OK;
}

void cvy_raw_free(cvy_raw *raw)
{
    cvy_mem_free(&raw->x.data);
    cvy_mem_free(&raw->y.data);
    cvy_mem_free(&raw->mask.data);
    cvy_mem_free(&raw->part.data);
    *raw = (cvy_raw){0};
}

int cvy_bytes_are_picture(const cvy_reader_info *info)
{
    int naxis = 0;
    for (int i = 0; i < info->shape.ndim; i++)
        naxis += info->shape.dim[i] > 1;
    return info->dtype == CVY_DTYPE_U8 && (info->varying || naxis >= 2);
}

cvy_status cvy_reader_note(cvy_reader_info *info, const char *fmt, ...)
{
    char text[2048], *note = NULL;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    CVY_TRY(cvy_pool_printf(info->pool, &note, "%s%s%s", info->note ? info->note : "", info->note ? "\n" : "", text));
    info->note = note;
    return CVY_OK;
}

cvy_status cvy_data_file_open(cvy_pool *pool, const char *path, cvy_data_file *out)
{
    cvy_data_file file = {.fd = -1};
    char *copy = NULL;
    if (pool)
        CVY_TRY(cvy_pool_strdup(pool, path, &copy));
    file.path = pool ? copy : path;
    const char *why = "";
    file.fd = cvy_file_open(path, O_RDONLY, 0, &why);
    CVY_CHECK(file.fd >= 0, CVY_E_IO, "%s%scannot be opened: %s", pool ? path : "", pool ? ": " : "", why);
    file.bytes = lseek(file.fd, 0, SEEK_END);
    *out = file;
    return CVY_OK;
}

void cvy_data_file_close(cvy_data_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

cvy_status cvy_data_path_join(cvy_pool *pool, const char *folder, const char *name, const char **out)
{
    char *path = NULL;
    const size_t n = strlen(folder);
    CVY_TRY(cvy_pool_printf(pool, &path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name));
    *out = path;
    return CVY_OK;
}

cvy_status cvy_data_folder_of(cvy_pool *pool, const char *path, const char **out)
{
    const char *slash = strrchr(path, '/');
    char *folder = NULL;
    CVY_TRY(cvy_pool_printf(pool, &folder, "%.*s", slash ? (int)CVY_MAX(slash - path, 1) : 1, slash ? path : "."));
    *out = folder;
    return CVY_OK;
}

int cvy_data_goes_up(const char *path, size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes; i++)
        if (path[i] == '.' && path[i + 1] == '.' && (i == 0 || path[i - 1] == '/') &&
            (i + 2 == bytes || path[i + 2] == '/'))
            return 1;
    return 0;
}

int cvy_data_has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcasecmp(name + n - m, suffix) == 0;
}

size_t cvy_data_peek(const char *path, void *bytes, size_t count)
{
    const int fd = cvy_file_open(path, O_RDONLY, 0, NULL);
    if (fd < 0)
        return 0;
    const ssize_t got = read(fd, bytes, count);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

static int search(cvy_pool *pool, const char *folder, int (*is_accepted)(const char *name), int *is_empty_out)
{
    char **name = NULL, **inner = NULL;
    int64_t n = 0, m = 0;
    const char *sub = NULL;
    if (cvy_file_list(pool, folder, &name, &n) != CVY_OK)
        return 0;
    *is_empty_out = n == 0;
    for (int64_t i = 0; i < n; i++)
        if (is_accepted(name[i]))
            return 1;
    for (int64_t i = 0; i < n; i++) {
        if (name[i][0] == '.' || cvy_data_path_join(pool, folder, name[i], &sub) != CVY_OK ||
            !cvy_file_is_folder(sub) || cvy_file_list(pool, sub, &inner, &m) != CVY_OK)
            continue;
        for (int64_t k = 0; k < m; k++)
            if (is_accepted(inner[k]))
                return 1;
    }
    return 0;
}

int cvy_data_has_such_files(const char *folder, int (*is_accepted)(const char *name), int *is_empty_out)
{
    cvy_pool *pool = NULL;
    *is_empty_out = 0;
    if (cvy_pool_create(&pool) != CVY_OK)
        return 0;
    const int has = search(pool, folder, is_accepted, is_empty_out);
    cvy_pool_destroy(&pool);
    return has;
}

int cvy_data_has_file(const char *folder, const char *name)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && cvy_file_exists(path);
}

cvy_status cvy_label_of(double value, int32_t *label_out)
{
    CVY_CHECK(value == floor(value), CVY_E_FORMAT,
              "the label %g is not a whole number: a class is a number from 0 on; a target of reals is `y`", value);
    CVY_CHECK(value > INT32_MIN && value <= INT32_MAX, CVY_E_FORMAT, "label %.0f is out of range", value);
    *label_out = (int32_t)value;
    return CVY_OK;
}

cvy_status cvy_classes_count(int64_t asked, int64_t largest, const char *path, int64_t *count_out)
{
    CVY_CHECK(asked > 0 || largest < CVY_CLASSES_MAX, CVY_E_FORMAT,
              "%s: holds a label %lld, expected less than %d: set `classes:` if it is right", path, (long long)largest,
              CVY_CLASSES_MAX);
    *count_out = asked > 0 ? asked : largest + 1;
    return CVY_OK;
}

/*
 * data_numbers.c: see data_numbers.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_numbers.h"

#include <string.h>

#include "base/base_file.h"
#include "data/array/data_lines.h"
#include "data/array/data_mat.h"

enum { NUMBERS_MAX = 1 << 28 };

/* Divides FILE:NAME, unless a file has all of it as its name. */
static cvy_status divide(cvy_pool *pool, const char *spec, const char **path, const char **name)
{
    const char *colon = strrchr(spec, ':');
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(pool, spec, &copy));
    *path = copy;
    *name = NULL;
    if (!colon || cvy_file_exists(spec))
        return CVY_OK;
    copy[colon - spec] = 0;
    *name = copy + (colon - spec) + 1;
    return CVY_OK;
}

static cvy_status read_mat(cvy_pool *pool, const char *name, const char *usual, cvy_number_list *out)
{
    cvy_mat_array array;
    CVY_TRY(cvy_mat_read(pool, out->path, name, usual, &array));
    out->name = array.name;
    out->n = array.n;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)CVY_MAX(out->n, 1) * sizeof *out->value, &out->value));
    for (int64_t i = 0; i < out->n; i++) {
        const cvy_status status = cvy_label_of(array.value[i], &out->value[i]);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s, number %lld of array %s", out->path, (long long)i + 1, out->name);
    }
    return CVY_OK;
}

static cvy_status count_lines(cvy_lines *lines, int64_t *n)
{
    cvy_line_part line;
    int64_t offset = 0;
    cvy_status status = CVY_OK;
    for (*n = 0; (status = cvy_lines_next(lines, &line, &offset)) == CVY_OK; (*n)++)
        CVY_CHECK(*n < NUMBERS_MAX, CVY_E_UNSUPPORTED, "%s: more than %d lines", lines->file->path, NUMBERS_MAX);
    return status == CVY_END ? CVY_OK : status;
}

static cvy_status take_lines(cvy_lines *lines, cvy_number_list *out)
{
    cvy_line_part line;
    int64_t offset = 0, value = 0;
    for (int64_t i = 0; i < out->n; i++) {
        CVY_TRY(cvy_lines_next(lines, &line, &offset));
        CVY_CHECK(cvy_line_part_int(cvy_line_part_trim(line), &value) && value >= INT32_MIN && value <= INT32_MAX,
                  CVY_E_FORMAT, "%s, line %lld: \"%.*s\" is no whole number; expected one on each line", out->path,
                  (long long)lines->line, (int)CVY_MIN(line.bytes, 40), line.at);
        out->value[i] = (int32_t)value;
    }
    return CVY_OK;
}

static cvy_status read_text(cvy_pool *pool, cvy_number_list *out)
{
    cvy_data_file file;
    CVY_TRY(cvy_data_file_open(pool, out->path, &file));
    cvy_lines first = {.file = &file}, second = {.file = &file};
    cvy_status status = count_lines(&first, &out->n);
    if (status == CVY_OK)
        status = cvy_pool_alloc(pool, (size_t)CVY_MAX(out->n, 1) * sizeof *out->value, &out->value);
    if (status == CVY_OK)
        status = take_lines(&second, out);
    cvy_lines_end(&first);
    cvy_lines_end(&second);
    cvy_data_file_close(&file);
    return status;
}

cvy_status cvy_number_list_read(cvy_pool *pool, const char *spec, const char *usual, cvy_number_list *out)
{
    const char *name = NULL;
    char head[10];
    *out = (cvy_number_list){0};
    CVY_TRY(divide(pool, spec, &out->path, &name));
    const int is_mat = cvy_data_has_suffix(out->path, ".mat") ||
                       (cvy_data_peek(out->path, head, sizeof head) == sizeof head && memcmp(head, "MATLAB", 6) == 0);
    CVY_CHECK(is_mat || !name, CVY_E_CONFIG,
              "%s: no such file, or %s is no MAT-file, which alone has arrays with names", spec, out->path);
    return is_mat ? read_mat(pool, name, usual, out) : read_text(pool, out);
}

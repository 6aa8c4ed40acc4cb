/*
 * data_index.c: code that readers of records and lines share; see data_index.h. Nothing here is format specific.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_index.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"

/* ---- entries ---- */

cvy_status cvy_entries_add(cvy_entries *e, const cvy_entry *entry)
{
    const int64_t block = e->count / CVY_ENTRY_BLOCK;
    if (block == e->nblock) {
        CVY_TRY(cvy_mem_reserve(&e->block, &e->room, e->nblock, sizeof *e->block));
        CVY_TRY(cvy_mem_alloc(CVY_ENTRY_BLOCK * sizeof(cvy_entry), &e->block[e->nblock]));
        e->nblock++;
    }
    e->block[block][e->count++ % CVY_ENTRY_BLOCK] = *entry;
    return CVY_OK;
}

void cvy_entries_hash(const cvy_entries *e, cvy_hasher *h)
{
    for (int64_t i = 0; i < e->count; i += CVY_ENTRY_BLOCK)
        cvy_hash_add(h, cvy_entries_at(e, i), (size_t)CVY_MIN(e->count - i, CVY_ENTRY_BLOCK) * sizeof(cvy_entry));
}

void cvy_entries_free(cvy_entries *e)
{
    for (int i = 0; i < e->nblock; i++)
        cvy_mem_free(&e->block[i]);
    cvy_mem_free(&e->block);
    *e = (cvy_entries){0};
}

/* ---- files ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int cvy_data_is_glob(const char *path)
{
    return strpbrk(path, "*?[") && !cvy_file_exists(path);
}

static cvy_status glob_files(cvy_pool *pool, const char *path, const char ***out, int64_t *count_out)
{
    glob_t found = {0};
    const char **list = NULL;
    char *copy = NULL;
    cvy_status status = CVY_OK;
    const int code = glob(path, GLOB_NOSORT, NULL, &found);
    if (code == GLOB_NOSPACE)
        CVY_FAIL_OUT(CVY_E_MEMORY, "%s: no memory for the names that match", path);
    if (code != 0 || found.gl_pathc == 0)
        CVY_FAIL_OUT(CVY_E_IO, "%s: no file matches", path);
    CVY_TRY_OUT(cvy_pool_alloc(pool, found.gl_pathc * sizeof *list, &list));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        CVY_TRY_OUT(cvy_pool_strdup(pool, found.gl_pathv[i], &copy));
        list[i] = copy;
    }
    qsort(list, found.gl_pathc, sizeof *list, compare_texts); /* bytewise, since glob() would sort by the locale */
    *out = list;
    *count_out = (int64_t)found.gl_pathc;
out:
    globfree(&found);
    return status;
}

static cvy_status folder_files(cvy_pool *pool, const char *path, int (*ours)(const char *), const char *kind,
                               const char ***out, int64_t *count_out, cvy_passed *passed)
{
    char **name = NULL;
    const char **list = NULL;
    int64_t n = 0, count = 0;
    CVY_TRY(cvy_file_list(pool, path, &name, &n));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *list, &list));
    for (int64_t i = 0; i < n; i++)
        if (name[i][0] != '.' && ours(name[i]))
            CVY_TRY(cvy_data_path_join(pool, path, name[i], &list[count++]));
        else if (passed)
            cvy_passed_add(passed, NULL, name[i]);
    CVY_CHECK(count > 0, CVY_E_IO, "%s: holds no %s among its %lld files", path, kind, (long long)n);
    *out = list;
    *count_out = count;
    return CVY_OK;
}

cvy_status cvy_data_files(cvy_pool *pool, const char *path, int (*ours)(const char *name), const char *kind,
                          const char ***out, int64_t *count_out, cvy_passed *passed)
{
    const char **list = NULL;
    char *copy = NULL;
    if (cvy_file_is_folder(path))
        return folder_files(pool, path, ours, kind, out, count_out, passed);
    if (cvy_data_is_glob(path))
        return glob_files(pool, path, out, count_out);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *list, &list));
    CVY_TRY(cvy_pool_strdup(pool, path, &copy));
    list[0] = copy;
    *out = list;
    *count_out = 1;
    return CVY_OK;
}

/* ---- large requests ---- */

void cvy_scan_begin(cvy_scan *s, const cvy_data_file *file, size_t window)
{
    s->file = file;
    s->window = window;
    s->room.bytes = 0;
    s->from = 0;
}

cvy_status cvy_scan_at(cvy_scan *s, int64_t offset, size_t bytes, const uint8_t **out)
{
    const int64_t end = s->from + (int64_t)s->room.bytes;
    if (offset < s->from || offset + (int64_t)bytes > end) {
        const int64_t left = s->file->bytes - offset;
        CVY_EXPECT(offset >= 0 && left >= (int64_t)bytes);
        s->room.bytes = 0; /* if the read fails the buffer is empty */
        const size_t ask = (size_t)CVY_MIN((int64_t)CVY_MAX(bytes, s->window), left);
        CVY_TRY(cvy_bytes_need(&s->room, ask));
        s->room.bytes = 0;
        CVY_TRY(cvy_pread_all(s->file->fd, s->room.data, ask, offset, s->file->path));
        s->room.bytes = ask;
        s->from = offset;
    }
    *out = (const uint8_t *)s->room.data + (offset - s->from);
    return CVY_OK;
}

void cvy_scan_end(cvy_scan *s)
{
    cvy_mem_free(&s->room.data);
    s->room = (cvy_bytes){0};
}

/* ---- classes ---- */

static cvy_status room_for_names(cvy_classes *c, int count)
{
    if (count <= c->room)
        return CVY_OK;
    const int room = CVY_MAX(2 * c->room, CVY_MAX(count, 64));
    CVY_TRY(cvy_mem_grow(&c->name, (size_t)c->room * sizeof *c->name, (size_t)room * sizeof *c->name));
    c->room = room;
    return CVY_OK;
}

static cvy_status set_name(cvy_classes *c, int label, const char *text, size_t bytes)
{
    char *copy = NULL;
    CVY_TRY(room_for_names(c, label + 1));
    CVY_TRY(cvy_pool_printf(c->pool, &copy, "%.*s", (int)bytes, text));
    c->name[label] = copy;
    c->count = CVY_MAX(c->count, label + 1);
    return CVY_OK;
}

void cvy_classes_note_label(cvy_classes *c, int32_t label)
{
    if (label < CVY_CLASSES_MAX)
        c->largest = CVY_MAX(c->largest, label);
}

cvy_status cvy_classes_set_name(cvy_classes *c, int64_t label, const char *text, size_t bytes)
{
    if (label < 0 || label >= CVY_CLASSES_MAX || bytes == 0 || bytes > CVY_CLASS_NAME_MAX ||
        (label < c->count && c->name[label]))
        return CVY_OK;
    return set_name(c, (int)label, text, bytes);
}

cvy_status cvy_classes_read_names(cvy_classes *c, const char *folder, int64_t first_label)
{
    const char *path = NULL;
    char *text = NULL;
    size_t bytes = 0;
    cvy_status status = CVY_OK;
    if (!cvy_data_has_file(folder, "labels.txt"))
        return CVY_OK;
    CVY_TRY(cvy_data_path_join(c->pool, folder, "labels.txt", &path));
    CVY_TRY(cvy_file_read(path, (size_t)1 << 26, &text, &bytes));
    for (const char *at = text; *at; at += strspn(at, "\r\n")) {
        const size_t length = strcspn(at, "\r\n"), digits = strspn(at, "0123456789");
        if (digits > 0 && digits < 10 && at[digits] == ':')
            CVY_TRY_OUT(
                cvy_classes_set_name(c, strtoll(at, NULL, 10) - first_label, at + digits + 1, length - digits - 1));
        at += length;
    }
out:
    cvy_mem_free(&text);
    return status;
}

cvy_status cvy_classes_number(cvy_classes *c, const char *text, size_t bytes, int32_t *label_out)
{
    char name[CVY_CLASS_NAME_MAX + 1];
    CVY_CHECK(bytes > 0 && bytes <= CVY_CLASS_NAME_MAX && !memchr(text, 0, bytes), CVY_E_FORMAT,
              "a class name of %zu bytes, expected a text of 1 to %d", bytes, CVY_CLASS_NAME_MAX);
    memcpy(name, text, bytes);
    name[bytes] = 0;
    int number = cvy_index_find(&c->numbers, name);
    if (number < 0) {
        number = c->count;
        CVY_CHECK(number < CVY_CLASSES_MAX, CVY_E_FORMAT, "more than %d class names", CVY_CLASSES_MAX);
        CVY_TRY(set_name(c, number, text, bytes));
        CVY_TRY(cvy_index_add(&c->numbers, c->name[number], number));
    }
    *label_out = number;
    return CVY_OK;
}

/* Sorts names bytewise, so that class numbers do not depend on the order of samples. */
static cvy_status sort_names(cvy_classes *c, cvy_entries *e)
{
    int32_t *sorted = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)c->count * sizeof *sorted, &sorted));
    qsort(c->name, (size_t)c->count, sizeof *c->name, compare_texts);
    for (int i = 0; i < c->count; i++)
        sorted[cvy_index_find(&c->numbers, c->name[i])] = i;
    for (int64_t i = 0; i < e->count; i++) {
        int32_t *label = &cvy_entries_at(e, i)->label;
        if (*label != CVY_LABEL_UNKNOWN)
            *label = sorted[*label];
    }
    cvy_mem_free(&sorted);
    return CVY_OK;
}

cvy_status cvy_classes_resolve(cvy_classes *c, int64_t asked, cvy_entries *e, cvy_reader_info *info)
{
    const char **names = NULL;
    const int64_t n = asked > 0 ? asked : CVY_MAX(CVY_MAX(c->count, c->by_name ? 0 : c->largest + 1), 1);
    if (c->by_name && c->count > 0) {
        CVY_CHECK(c->count <= n, CVY_E_FORMAT, "%d different class names (\"%s\", .. \"%s\"), expected at most %lld",
                  c->count, c->name[0], c->name[c->count - 1], (long long)n);
        CVY_TRY(sort_names(c, e));
    }
    info->has_label = 1;
    info->nclasses = n;
    if (c->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(c->pool, (size_t)n * sizeof *names, &names));
    for (int64_t i = 0; i < n; i++) {
        char *number = NULL;
        if (i < c->count && c->name[i]) {
            names[i] = c->name[i];
            continue;
        }
        CVY_TRY(cvy_pool_printf(c->pool, &number, "%lld", (long long)i));
        names[i] = number;
    }
    info->class_name = names;
    return CVY_OK;
}

void cvy_classes_free(cvy_classes *c)
{
    cvy_mem_free(&c->name);
    cvy_index_free(&c->numbers);
    c->count = c->room = 0;
}

/* ---- samples ---- */

cvy_status cvy_data_read_picture(const char *path, cvy_raw *raw)
{
    cvy_data_file file;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_data_file_open(NULL, path, &file));
    if (file.bytes > (int64_t)1 << 30)
        CVY_FAIL_OUT(CVY_E_FORMAT, "a picture file of %lld bytes, expected at most 1 GiB", (long long)file.bytes);
    CVY_TRY_OUT(cvy_bytes_need(&raw->x, (size_t)file.bytes));
    CVY_TRY_OUT(cvy_pread_all(file.fd, raw->x.data, (size_t)file.bytes, 0, "the file"));
    raw->coding = cvy_picture_coding(raw->x.data, raw->x.bytes);
    if (raw->coding == CVY_CODING_PLAIN)
        CVY_FAIL_OUT(CVY_E_FORMAT, "is neither a JPEG nor a PNG (%lld bytes)", (long long)file.bytes);
out:
    cvy_data_file_close(&file);
    return status;
}

/* Sets dtype, shape and varying from a sample that was read. */
static cvy_status set_format(const cvy_raw *raw, int channels, cvy_reader_info *info)
{
    int64_t C = 0, H = 0, W = 0;
    info->varying = raw->coding != CVY_CODING_PLAIN;
    info->dtype = info->varying ? CVY_DTYPE_U8 : raw->dtype;
    info->shape = raw->shape;
    if (!info->varying)
        return CVY_OK;
    CVY_TRY(cvy_picture_read_header(raw->coding, raw->x.data, raw->x.bytes, &C, &H, &W));
    info->shape = (cvy_shape){3, {channels == 1 ? 1 : channels == 2 ? 3 : C, H, W}};
    return CVY_OK;
}

cvy_status cvy_data_read_first(const cvy_pictures *p, int channels, cvy_reader_info *info)
{
    enum { TRIES = 32 };
    cvy_raw raw = {0};
    cvy_status status = CVY_OK;
    int64_t at = 0;
    for (; at < CVY_MIN(p->count, TRIES); at++) {
        status = p->read(p->state, at, &raw);
        if (status == CVY_OK)
            status = set_format(&raw, channels, info);
        if (status == CVY_OK || status == CVY_E_MEMORY)
            break;
    }
    cvy_raw_free(&raw);
    if (status == CVY_OK && info->varying)
        return cvy_pictures_look(p, info->shape.dim[0], channels == 0, info);
    if (status == CVY_OK || status == CVY_E_MEMORY)
        return status;
    char text[4096];
    p->where(p->state, at - 1, text, sizeof text);
    return cvy_error_prefix(status, "%s", text);
}

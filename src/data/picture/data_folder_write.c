/*
 * data_folder_write.c: writes a folder of pictures with one sub-folder per class, which every tool can show.
 *
 * JPEG and PNG are written unchanged. Bytes are written as PNG, which is lossless. A file's name is its number in the
 * source, which keeps the order within a class. A piece is done when its marker file is in the folder; marker files are
 * removed at the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "data/data_writer.h"
#include "data/picture/data_picture_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct folder_writer {
    cvy_pool *pool;
    const char *root;
    const cvy_reader_info *info;
    const char *const *class_name;
    int64_t npieces, piece;
    cvy_picture_files files; /* count, bytes: of the current piece */
    cvy_bytes path;
};

static cvy_status mark_path(struct folder_writer *w, int64_t piece, const char **out)
{
    char name[40];
    snprintf(name, sizeof name, ".piece-%05lld", (long long)piece);
    return cvy_data_path_join(w->pool, w->root, name, out);
}

static cvy_status folder_writer_open(const cvy_writer_args *args, void **state_out)
{
    struct folder_writer *w = NULL;
    const cvy_reader_info *info = args->info;
    CVY_TRY(cvy_picture_files_check(info, "a folder"));
    for (int64_t i = 0; info->has_label && i < info->nclasses; i++)
        CVY_CHECK(args->class_name[i][0] && args->class_name[i][0] != '.' && !strchr(args->class_name[i], '/'),
                  CVY_E_UNSUPPORTED, "class %lld is named \"%s\", which cannot be the name of a folder", (long long)i,
                  args->class_name[i]);
    CVY_TRY(cvy_pool_alloc(args->pool, sizeof *w, &w));
    w->pool = args->pool;
    w->root = args->path;
    w->info = info;
    w->class_name = args->class_name;
    w->npieces = args->npieces;
    *state_out = w;
    return CVY_OK;
}

static int folder_has_piece(void *state, int64_t piece)
{
    const char *path = NULL;
    return mark_path(state, piece, &path) == CVY_OK && cvy_file_exists(path);
}

static cvy_status folder_begin_piece(void *state, int64_t piece, int64_t count)
{
    struct folder_writer *w = state;
    (void)count;
    w->piece = piece;
    w->files.count = w->files.bytes = 0;
    for (int64_t i = 0; w->info->has_label && i < w->info->nclasses; i++) {
        const char *path = NULL;
        CVY_TRY(cvy_data_path_join(w->pool, w->root, w->class_name[i], &path));
        CVY_TRY(cvy_file_make_folder(path));
    }
    return CVY_OK;
}

static cvy_status folder_write(void *state, int64_t number, const cvy_raw *raw)
{
    struct folder_writer *w = state;
    CVY_CHECK(!w->info->has_label || (raw->label >= 0 && raw->label < w->info->nclasses), CVY_E_FORMAT,
              "label %d of %lld classes", raw->label, (long long)w->info->nclasses);
    const char *class = w->info->has_label ? w->class_name[raw->label] : ".";
    CVY_TRY(cvy_bytes_need(&w->path, strlen(w->root) + strlen(class) + 2));
    snprintf(w->path.data, w->path.bytes, "%s/%s", w->root, class);
    return cvy_picture_files_write(&w->files, w->path.data, number, raw);
}

static cvy_status folder_end_piece(void *state)
{
    struct folder_writer *w = state;
    const char *path = NULL;
    char text[64];
    CVY_TRY(cvy_picture_files_sync(w->root));
    snprintf(text, sizeof text, "%lld %lld\n", (long long)w->files.count, (long long)w->files.bytes);
    CVY_TRY(mark_path(w, w->piece, &path));
    return cvy_file_replace(path, text, strlen(text));
}

static cvy_status folder_finish(void *state, int64_t *nsamples_out, int64_t *bytes_out)
{
    struct folder_writer *w = state;
    *nsamples_out = *bytes_out = 0;
    for (int64_t p = 0; p < w->npieces; p++) {
        const char *path = NULL;
        char *text = NULL;
        size_t bytes = 0;
        long long count = 0, size = 0;
        CVY_TRY(mark_path(w, p, &path));
        CVY_TRY(cvy_file_read(path, 64, &text, &bytes));
        const int read = sscanf(text, "%lld %lld", &count, &size);
        cvy_mem_free(&text);
        CVY_CHECK(read == 2, CVY_E_FORMAT, "%s: is not what was written", path);
        *nsamples_out += count;
        *bytes_out += size;
    }
    for (int64_t p = 0; p < w->npieces; p++) {
        const char *path = NULL;
        CVY_TRY(mark_path(w, p, &path));
        unlink(path);
    }
    return CVY_OK;
}

static void folder_writer_close(void *state)
{
    struct folder_writer *w = state;
    cvy_mem_free(&w->path.data);
    cvy_picture_files_free(&w->files);
}

CVY_WRITER_DEFINE(folder) = {
    .name = "folder",
    .summary = "pictures, one sub-folder per class",
    .open = folder_writer_open,
    .has_piece = folder_has_piece,
    .begin_piece = folder_begin_piece,
    .write = folder_write,
    .end_piece = folder_end_piece,
    .finish = folder_finish,
    .close = folder_writer_close,
};

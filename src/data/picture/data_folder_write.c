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
#include "base/machine/base_system.h"
#include "data/data_writer.h"
#include "data/picture/data_encode.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct folder_writer {
    cvy_pool *pool;
    const char *root;
    const cvy_reader_info *info;
    const char *const *class_name;
    int64_t npieces, piece, count, bytes; /* count, bytes: of the current piece */
    cvy_bytes path, rows, png;
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
    CVY_CHECK(info->varying || (info->dtype == CVY_DTYPE_U8 && info->shape.ndim == 3 &&
                                (info->shape.dim[0] == 1 || info->shape.dim[0] == 3)),
              CVY_E_UNSUPPORTED,
              "a folder holds pictures of one or three channels of bytes, these samples are %s of %s",
              cvy_dtype_text(info->dtype), cvy_shape_text(&info->shape));
    CVY_CHECK(!info->has_y && !info->has_weight, CVY_E_UNSUPPORTED, "a folder of pictures holds no %s",
              info->has_y ? "targets (y)" : "weights");
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
    w->count = w->bytes = 0;
    for (int64_t i = 0; w->info->has_label && i < w->info->nclasses; i++) {
        const char *path = NULL;
        CVY_TRY(cvy_data_path_join(w->pool, w->root, w->class_name[i], &path));
        CVY_TRY(cvy_file_make_folder(path));
    }
    return CVY_OK;
}

static cvy_status put_file(struct folder_writer *w, int64_t number, const cvy_raw *raw, const char *suffix,
                           const void *data, size_t bytes)
{
    const char *class = w->info->has_label ? w->class_name[raw->label] : ".";
    CVY_TRY(cvy_bytes_need(&w->path, strlen(w->root) + strlen(class) + 48));
    snprintf(w->path.data, w->path.bytes, "%s/%s/%08lld.%s", w->root, class, (long long)number, suffix);
    const char *why = "";
    const int fd = cvy_file_create(w->path.data, 0666, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot be created: %s", (const char *)w->path.data, why);
    const cvy_status status = cvy_write_all(fd, data, bytes, w->path.data);
    close(fd);
    w->count++;
    w->bytes += (int64_t)bytes;
    return status;
}

static cvy_status folder_write(void *state, int64_t number, const cvy_raw *raw)
{
    struct folder_writer *w = state;
    CVY_CHECK(!w->info->has_label || (raw->label >= 0 && raw->label < w->info->nclasses), CVY_E_FORMAT,
              "label %d of %lld classes", raw->label, (long long)w->info->nclasses);
    if (raw->coding != CVY_CODING_PLAIN)
        return put_file(w, number, raw, raw->coding == CVY_CODING_JPEG ? "jpg" : "png", raw->x.data, raw->x.bytes);
    const cvy_picture p = cvy_raw_planes(raw);
    CVY_TRY(cvy_picture_encode_png(&p, &w->rows, &w->png));
    return put_file(w, number, raw, "png", w->png.data, w->png.bytes);
}

/* Syncs all files of the piece to the disk at once, which is much faster than one by one. */
static cvy_status folder_end_piece(void *state)
{
    struct folder_writer *w = state;
    const char *path = NULL;
    char text[64];
    const int fd = cvy_file_open(w->root, O_RDONLY | O_DIRECTORY, 0, NULL),
              failed = fd < 0 || cvy_file_sync_system(fd) != 0, cause = errno;
    const int bad = failed && (fd < 0 || !cvy_protection_is_unsupported(cause));
    if (failed && !bad)
        cvy_protection_note(CVY_PROTECTION_SYNC, w->root, cause);
    if (fd >= 0)
        close(fd);
    CVY_CHECK(!bad, CVY_E_IO, "%s: cannot be written to the disk: %s", w->root, strerror(cause));
    snprintf(text, sizeof text, "%lld %lld\n", (long long)w->count, (long long)w->bytes);
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
    cvy_mem_free(&w->rows.data);
    cvy_mem_free(&w->png.data);
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

/*
 * data_picture_file.c: see data_picture_file.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/picture/data_picture_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/machine/base_system.h"
#include "data/picture/data_encode.h"

cvy_status cvy_picture_files_check(const cvy_reader_info *info, const char *what)
{
    CVY_CHECK(info->varying || (info->dtype == CVY_DTYPE_U8 && info->shape.ndim == 3 &&
                                (info->shape.dim[0] == 1 || info->shape.dim[0] == 3)),
              CVY_E_UNSUPPORTED, "%s holds pictures of one or three channels of bytes, these samples are %s of %s",
              what, cvy_dtype_text(info->dtype), cvy_shape_text(&info->shape));
    CVY_CHECK(!info->has_y && !info->has_weight, CVY_E_UNSUPPORTED, "%s of pictures holds no %s", what,
              info->has_y ? "targets (y)" : "weights");
    return CVY_OK;
}

static cvy_status put_file(cvy_picture_files *w, const char *folder, int64_t number, const char *suffix,
                           const void *data, size_t bytes)
{
    CVY_TRY(cvy_bytes_need(&w->path, strlen(folder) + 48));
    snprintf(w->path.data, w->path.bytes, "%s/%08lld.%s", folder, (long long)number, suffix);
    const char *why = "";
    const int fd = cvy_file_create(w->path.data, 0666, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot be created: %s", (const char *)w->path.data, why);
    const cvy_status status = cvy_write_all(fd, data, bytes, w->path.data);
    close(fd);
    w->count++;
    w->bytes += (int64_t)bytes;
    return status;
}

cvy_status cvy_picture_files_write(cvy_picture_files *w, const char *folder, int64_t number, const cvy_raw *raw)
{
    if (raw->coding != CVY_CODING_PLAIN)
        return put_file(w, folder, number, raw->coding == CVY_CODING_JPEG ? "jpg" : "png", raw->x.data, raw->x.bytes);
    const cvy_picture p = cvy_raw_planes(raw);
    CVY_TRY(cvy_picture_encode_png(&p, &w->rows, &w->png));
    return put_file(w, folder, number, "png", w->png.data, w->png.bytes);
}

cvy_status cvy_picture_files_sync(const char *folder)
{
    const int fd = cvy_file_open(folder, O_RDONLY | O_DIRECTORY, 0, NULL),
              failed = fd < 0 || cvy_file_sync_system(fd) != 0, cause = errno;
    const int bad = failed && (fd < 0 || !cvy_protection_is_unsupported(cause));
    if (failed && !bad)
        cvy_protection_note(CVY_PROTECTION_SYNC, folder, cause);
    if (fd >= 0)
        close(fd);
    CVY_CHECK(!bad, CVY_E_IO, "%s: cannot be written to the disk: %s", folder, strerror(cause));
    return CVY_OK;
}

void cvy_picture_files_free(cvy_picture_files *w)
{
    cvy_mem_free(&w->path.data);
    cvy_mem_free(&w->rows.data);
    cvy_mem_free(&w->png.data);
    *w = (cvy_picture_files){0};
}

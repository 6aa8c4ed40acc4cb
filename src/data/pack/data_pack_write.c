/*
 * data_pack_write.c: writes a packed data set: one part for each piece, then the index and the description.
 *
 * Until the set is finished, each part has its entries of the index in a file of its own. pack.json comes last and
 * appears only when it is complete. A folder without it is not a packed set, so a killed conversion leaves nothing that
 * could be mistaken for one. data_pack.h describes the layout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/text/base_json.h"
#include "data/data_columns.h"
#include "data/data_described_file.h"
#include "data/data_writer.h"
#include "data/pack/data_pack.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pack_writer {
    cvy_pool *pool;
    const char *folder;
    const cvy_reader_info *info;
    const char *const *class_name;
    int64_t npieces;
    cvy_bytes record;
    /* of the current piece */
    int64_t piece, count;
    cvy_new_file part;
    uint8_t *entries;
};

static cvy_status part_path(struct pack_writer *w, int64_t piece, const char *suffix, const char **out)
{
    char name[40];
    snprintf(name, sizeof name, "part-%05lld.%s", (long long)piece, suffix);
    return cvy_data_path_join(w->pool, w->folder, name, out);
}

static cvy_status pack_writer_open(const cvy_writer_args *args, void **state_out)
{
    struct pack_writer *w = NULL;
    CVY_CHECK(!args->info->has_y || args->info->y_shape.ndim <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED,
              "targets of the shape %s", cvy_shape_text(&args->info->y_shape));
    CVY_TRY(cvy_pool_alloc(args->pool, sizeof *w, &w));
    w->pool = args->pool;
    w->folder = args->path;
    w->info = args->info;
    w->class_name = args->class_name;
    w->npieces = args->npieces;
    w->part.fd = -1;
    *state_out = w;
    return CVY_OK;
}

/* The part's index file gets its name after the part, so both exist if it does. */
static int pack_has_piece(void *state, int64_t piece)
{
    const char *path = NULL;
    return part_path(state, piece, "index", &path) == CVY_OK && cvy_file_exists(path);
}

static cvy_status pack_begin_piece(void *state, int64_t piece, int64_t count)
{
    struct pack_writer *w = state;
    const char *path = NULL;
    w->piece = piece;
    w->count = 0;
    CVY_TRY(cvy_mem_alloc((size_t)count * PACK_ENTRY_BYTES, &w->entries));
    CVY_TRY(part_path(w, piece, "cvy", &path));
    return cvy_new_file_begin(w->pool, path, &w->part);
}

static cvy_status fill_record(struct pack_writer *w, int64_t number, const cvy_raw *raw)
{
    const size_t y_bytes = w->info->has_y ? raw->y.bytes : 0, bytes = PACK_HEAD_BYTES + y_bytes + raw->x.bytes;
    CVY_CHECK(bytes < UINT32_MAX, CVY_E_UNSUPPORTED, "sample %lld has %zu bytes, a packed record holds less than 4 GiB",
              (long long)number, bytes);
    CVY_TRY(cvy_bytes_need(&w->record, bytes));
    uint8_t *at = w->record.data;
    uint32_t weight = 0;
    memset(at, 0, PACK_HEAD_BYTES);
    memcpy(&weight, &raw->weight, sizeof weight);
    put_u32(at, PACK_MAGIC);
    at[4] = (uint8_t)raw->coding;
    if (raw->coding == CVY_CODING_PLAIN) {
        at[5] = (uint8_t)raw->dtype;
        at[6] = (uint8_t)raw->shape.ndim;
        for (int i = 0; i < raw->shape.ndim; i++)
            put_u32(at + 32 + 4 * i, (uint32_t)raw->shape.dim[i]);
    }
    put_u64(at + 8, (uint64_t)number);
    put_u32(at + 16, (uint32_t)raw->label);
    put_u32(at + 20, weight);
    put_u32(at + 24, (uint32_t)raw->x.bytes);
    put_u32(at + 28, (uint32_t)y_bytes);
    if (y_bytes)
        memcpy(at + PACK_HEAD_BYTES, raw->y.data, y_bytes);
    memcpy(at + PACK_HEAD_BYTES + y_bytes, raw->x.data, raw->x.bytes);
    return CVY_OK;
}

static cvy_status pack_write(void *state, int64_t number, const cvy_raw *raw)
{
    struct pack_writer *w = state;
    CVY_TRY(fill_record(w, number, raw));
    const struct pack_entry e = {.offset = (uint64_t)w->part.bytes,
                                 .bytes = (uint32_t)w->record.bytes,
                                 .part = (uint32_t)w->piece,
                                 .crc = cvy_crc32c(0, w->record.data, w->record.bytes),
                                 .label = raw->label,
                                 .number = (uint64_t)number};
    CVY_TRY(cvy_new_file_write(&w->part, w->record.data, w->record.bytes));
    pack_entry_put(w->entries + w->count++ * PACK_ENTRY_BYTES, &e);
    return CVY_OK;
}

static cvy_status pack_end_piece(void *state)
{
    struct pack_writer *w = state;
    const char *path = NULL;
    CVY_TRY(cvy_new_file_end(&w->part));
    CVY_TRY(part_path(w, w->piece, "index", &path));
    CVY_TRY(cvy_file_replace(path, w->entries, (size_t)w->count * PACK_ENTRY_BYTES));
    cvy_mem_free(&w->entries);
    return CVY_OK;
}

/* ---- the set's index and description ---- */

struct whole {
    cvy_bytes index;
    int64_t *part_bytes, nsamples, bytes;
};

static cvy_status gather_piece(struct pack_writer *w, int64_t piece, struct whole *all)
{
    const char *path = NULL;
    char *entries = NULL;
    size_t bytes = 0;
    struct stat st;
    CVY_TRY(part_path(w, piece, "cvy", &path));
    CVY_CHECK(stat(path, &st) == 0, CVY_E_IO, "%s: is missing, though it had been written", path);
    all->part_bytes[piece] = (int64_t)st.st_size;
    all->bytes += (int64_t)st.st_size;
    CVY_TRY(part_path(w, piece, "index", &path));
    CVY_TRY(cvy_file_read(path, SIZE_MAX / 2, &entries, &bytes));
    const size_t before = all->index.bytes, need = before + bytes, room = CVY_MAX(need, 2 * all->index.room);
    cvy_status status = CVY_OK;
    if (need > all->index.room) {
        status = cvy_mem_grow(&all->index.data, all->index.room, room);
        all->index.room = status == CVY_OK ? room : all->index.room;
    }
    if (status == CVY_OK) {
        memcpy((char *)all->index.data + before, entries, bytes);
        all->index.bytes = need;
        all->nsamples += (int64_t)(bytes / PACK_ENTRY_BYTES);
    }
    cvy_mem_free(&entries);
    return status;
}

static void describe(const struct pack_writer *w, const struct whole *all, cvy_json *j)
{
    const cvy_reader_info *info = w->info;
    cvy_json_open(j, NULL, '{');
    cvy_json_string(j, "format", "convoy-pack");
    cvy_json_int(j, "version", PACK_VERSION);
    cvy_json_int(j, "samples", all->nsamples);
    cvy_json_string(j, "x_dtype", cvy_dtype_text(info->dtype));
    cvy_json_string(j, "x_shape", cvy_shape_text(&info->shape));
    cvy_json_bool(j, "varying", info->varying);
    cvy_json_bool(j, "weight", info->has_weight);
    if (info->has_y)
        cvy_json_string(j, "y_shape", cvy_shape_text(&info->y_shape));
    if (info->has_label) {
        cvy_json_open(j, "classes", '[');
        for (int64_t i = 0; i < info->nclasses; i++)
            cvy_json_string(j, NULL, w->class_name[i]);
        cvy_json_close(j, ']');
    }
    cvy_columns_write(info, j);
    cvy_descriptions_write(&info->described, j);
    cvy_json_int(j, "index_crc32c", cvy_crc32c(0, all->index.data, all->index.bytes));
    cvy_json_open(j, "part_bytes", '[');
    for (int64_t i = 0; i < w->npieces; i++)
        cvy_json_int(j, NULL, all->part_bytes[i]);
    cvy_json_close(j, ']');
    cvy_json_close(j, '}');
    cvy_text_add(&j->text, "\n");
}

static cvy_status write_ends(struct pack_writer *w, struct whole *all)
{
    const char *path = NULL;
    cvy_json j = {0};
    for (int64_t p = 0; p < w->npieces; p++)
        CVY_TRY(gather_piece(w, p, all));
    CVY_TRY(cvy_data_path_join(w->pool, w->folder, PACK_INDEX, &path));
    CVY_TRY(cvy_file_replace(path, all->index.data, all->index.bytes));
    CVY_TRY(cvy_data_path_join(w->pool, w->folder, PACK_META, &path));
    describe(w, all, &j);
    const cvy_status status = j.text.status == CVY_OK && all->nsamples > 0
                                  ? cvy_file_replace(path, j.text.data, j.text.bytes)
                                  : j.text.status;
    all->bytes += (int64_t)(all->index.bytes + j.text.bytes);
    cvy_text_free(&j.text);
    CVY_TRY(status);
    for (int64_t p = 0; p < w->npieces; p++) {
        CVY_TRY(part_path(w, p, "index", &path));
        unlink(path);
    }
    return CVY_OK;
}

static cvy_status pack_finish(void *state, int64_t *nsamples_out, int64_t *bytes_out)
{
    struct pack_writer *w = state;
    struct whole all = {0};
    CVY_TRY(cvy_mem_alloc((size_t)w->npieces * sizeof *all.part_bytes, &all.part_bytes));
    const cvy_status status = write_ends(w, &all);
    *nsamples_out = all.nsamples;
    *bytes_out = all.bytes;
    cvy_mem_free(&all.part_bytes);
    cvy_mem_free(&all.index.data);
    return status;
}

static void pack_writer_close(void *state)
{
    struct pack_writer *w = state;
    cvy_new_file_drop(&w->part);
    cvy_mem_free(&w->entries);
    cvy_mem_free(&w->record.data);
}

CVY_WRITER_DEFINE(pack) = {
    .name = "pack",
    .summary = "packed set: few large files with checksums and an index",
    .open = pack_writer_open,
    .has_piece = pack_has_piece,
    .begin_piece = pack_begin_piece,
    .write = pack_write,
    .end_piece = pack_end_piece,
    .finish = pack_finish,
    .close = pack_writer_close,
};

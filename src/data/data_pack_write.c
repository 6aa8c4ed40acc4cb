/*
 * data_pack_write.c: writes a packed set from any data set. `convoy pack` calls it, once, on one rank.
 *
 * pack.json comes last, whole or not at all: a folder without it is no packed set, so a run that was killed leaves
 * nothing that could be mistaken for one. The layout stands in data_pack.h.
 */
#include "data/data_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { DECODED, ROWS, TURN, TURN2, REAL, RECORD };

struct writer {
    cvy_dataset *from;
    const cvy_reader_info *info;
    cvy_pack_opts o;
    const char *folder;
    cvy_pool *pool;
    cvy_augment *resize; /* NULL: none */
    cvy_raw raw;
    cvy_bytes room[6]; /* by the names below */
    int fd;            /* of the part under way, -1 for none */
    const char *part_path;
    int64_t part_bytes[65536];
    uint8_t *index;
    cvy_pack_report done;
};

/* ---- parts ---- */

static cvy_status part_name(struct writer *w, int part, const char **out)
{
    char name[32];
    snprintf(name, sizeof name, "part-%05d.cvy", part);
    return cvy_data_path_join(w->pool, w->folder, name, out);
}

static cvy_status part_end(struct writer *w)
{
    if (w->fd < 0)
        return CVY_OK;
    const int bad = fsync(w->fd) != 0, worse = close(w->fd) != 0;
    w->fd = -1;
    CVY_CHECK(!bad && !worse, CVY_E_IO, "%s: cannot be written to the disk: %s", w->part_path, strerror(errno));
    return CVY_OK;
}

static cvy_status part_begin(struct writer *w)
{
    CVY_TRY(part_end(w));
    CVY_CHECK(w->done.nparts < CVY_COUNT(w->part_bytes), CVY_E_CONFIG, "more than %d parts: make them larger",
              CVY_COUNT(w->part_bytes));
    CVY_TRY(part_name(w, w->done.nparts, &w->part_path));
    w->fd = open(w->part_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    CVY_CHECK(w->fd >= 0, CVY_E_IO, "%s: cannot be made: %s", w->part_path, strerror(errno));
    w->done.nparts++;
    return CVY_OK;
}

/* ---- samples ---- */

/* Decoded where that is asked for; resized x replaces the encoded one. */
static cvy_status convert(struct writer *w)
{
    cvy_picture p;
    cvy_raw *raw = &w->raw;
    if (raw->coding == CVY_CODING_PLAIN && !w->resize)
        return CVY_OK;
    if (raw->coding == CVY_CODING_PLAIN)
        p = (cvy_picture){.dtype = raw->dtype,
                          .C = raw->shape.dim[0],
                          .H = raw->shape.dim[1],
                          .W = raw->shape.dim[2],
                          .data = raw->x.data};
    else if (w->o.check || w->resize)
        CVY_TRY(cvy_picture_decode(raw->coding, raw->x.data, raw->x.bytes, w->info->shape.dim[0], &w->room[DECODED],
                                   &w->room[ROWS], &p));
    if (!w->resize)
        return CVY_OK;
    const cvy_shape *shape = cvy_augment_shape(w->resize);
    const int64_t n = cvy_shape_elems(shape);
    CVY_TRY(cvy_bytes_need(&w->room[REAL], (size_t)n * sizeof(float)));
    CVY_TRY(cvy_augment_apply(w->resize, p, 0, 0, &w->room[TURN], w->room[REAL].data));
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)n));
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)raw->x.data)[i] = (uint8_t)lrintf(CVY_MIN(CVY_MAX(((float *)w->room[REAL].data)[i], 0), 255));
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_U8;
    raw->shape = *shape;
    return CVY_OK;
}

static cvy_status fill_record(struct writer *w, uint64_t number)
{
    const cvy_raw *raw = &w->raw;
    const size_t y_bytes = w->info->has_y ? raw->y.bytes : 0, bytes = PACK_HEAD_BYTES + y_bytes + raw->x.bytes;
    CVY_CHECK(bytes < UINT32_MAX, CVY_E_UNSUPPORTED, "sample %llu has %zu bytes, a packed record holds less than 4 GiB",
              (unsigned long long)number, bytes);
    CVY_TRY(cvy_bytes_need(&w->room[RECORD], bytes));
    uint8_t *at = w->room[RECORD].data;
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
    put_u64(at + 8, number);
    put_u32(at + 16, (uint32_t)raw->label);
    put_u32(at + 20, weight);
    put_u32(at + 24, (uint32_t)raw->x.bytes);
    put_u32(at + 28, (uint32_t)y_bytes);
    if (y_bytes)
        memcpy(at + PACK_HEAD_BYTES, raw->y.data, y_bytes);
    memcpy(at + PACK_HEAD_BYTES + y_bytes, raw->x.data, raw->x.bytes);
    return CVY_OK;
}

static cvy_status write_record(struct writer *w)
{
    const int64_t limit = w->o.part_bytes > 0 ? w->o.part_bytes : (int64_t)1 << 30;
    if (w->fd < 0 || w->part_bytes[w->done.nparts - 1] + (int64_t)w->room[RECORD].bytes > limit)
        CVY_TRY(part_begin(w));
    int64_t *end = &w->part_bytes[w->done.nparts - 1];
    const struct pack_entry e = {.offset = (uint64_t)*end,
                                 .bytes = (uint32_t)w->room[RECORD].bytes,
                                 .part = (uint32_t)w->done.nparts - 1,
                                 .crc = cvy_crc32c(0, w->room[RECORD].data, w->room[RECORD].bytes),
                                 .label = w->raw.label};
    CVY_TRY(cvy_write_all(w->fd, w->room[RECORD].data, w->room[RECORD].bytes, w->part_path));
    pack_entry_put(w->index + w->done.nsamples * PACK_ENTRY_BYTES, &e);
    *end += (int64_t)w->room[RECORD].bytes;
    w->done.bytes += (int64_t)w->room[RECORD].bytes;
    w->done.nsamples++;
    return CVY_OK;
}

static cvy_status write_samples(struct writer *w)
{
    const int64_t n = cvy_dataset_describe(w->from)->nsamples;
    for (int64_t i = 0; i < n; i++) {
        cvy_status status = cvy_dataset_read_raw(w->from, i, &w->raw);
        if (status == CVY_OK) {
            status = convert(w);
            if (status != CVY_OK)
                cvy_dataset_name_sample(w->from, i, status);
        }
        if (status < CVY_OK && w->o.skip_bad && status != CVY_E_MEMORY && status != CVY_E_INTERNAL) {
            w->done.nbad++;
            continue;
        }
        CVY_TRY(status);
        CVY_TRY(fill_record(w, (uint64_t)w->done.nsamples));
        CVY_TRY(write_record(w));
    }
    CVY_CHECK(w->done.nsamples > 0, CVY_E_FORMAT, "%s: no good sample among %lld", w->folder, (long long)n);
    return part_end(w);
}

/* ---- the set's description ---- */

static void describe(const struct writer *w, cvy_json *j)
{
    const cvy_reader_info *info = w->info;
    cvy_json_open(j, NULL, '{');
    cvy_json_string(j, "format", "convoy-pack");
    cvy_json_int(j, "version", PACK_VERSION);
    cvy_json_string(j, "source", cvy_dataset_describe(w->from)->format);
    cvy_json_int(j, "samples", w->done.nsamples);
    cvy_json_string(j, "x_dtype", cvy_dtype_text(info->dtype));
    cvy_json_string(j, "x_shape", cvy_shape_text(w->resize ? cvy_augment_shape(w->resize) : &info->shape));
    cvy_json_bool(j, "varying", info->varying && !w->resize);
    cvy_json_bool(j, "weight", info->has_weight);
    if (info->has_y)
        cvy_json_string(j, "y_shape", cvy_shape_text(&info->y_shape));
    if (info->has_label) {
        cvy_json_open(j, "classes", '[');
        for (int64_t i = 0; i < info->nclasses; i++)
            cvy_json_string(j, NULL, cvy_dataset_describe(w->from)->class_name[i]);
        cvy_json_close(j, ']');
    }
    cvy_json_int(j, "index_crc32c", cvy_crc32c(0, w->index, (size_t)(w->done.nsamples * PACK_ENTRY_BYTES)));
    cvy_json_open(j, "part_bytes", '[');
    for (int i = 0; i < w->done.nparts; i++)
        cvy_json_int(j, NULL, w->part_bytes[i]);
    cvy_json_close(j, ']');
    cvy_json_close(j, '}');
}

static cvy_status write_ends(struct writer *w)
{
    const char *index = NULL, *meta = NULL;
    cvy_json j = {0};
    CVY_TRY(cvy_data_path_join(w->pool, w->folder, PACK_INDEX, &index));
    CVY_TRY(cvy_data_path_join(w->pool, w->folder, PACK_META, &meta));
    CVY_TRY(cvy_file_replace(index, w->index, (size_t)(w->done.nsamples * PACK_ENTRY_BYTES)));
    describe(w, &j);
    cvy_text_add(&j.text, "\n");
    const cvy_status status =
        j.text.status == CVY_OK ? cvy_file_replace(meta, j.text.data, j.text.bytes) : j.text.status;
    w->done.bytes += w->done.nsamples * PACK_ENTRY_BYTES + (int64_t)j.text.bytes;
    cvy_text_free(&j.text);
    return status;
}

/* ---- the whole ---- */

static cvy_status begin(struct writer *w)
{
    char **name = NULL;
    int64_t n = 0;
    w->fd = -1;
    w->info = cvy_dataset_reader_info(w->from);
    CVY_TRY(cvy_pool_create(&w->pool));
    CVY_TRY(cvy_file_make_folder(w->folder));
    CVY_TRY(cvy_file_list(w->pool, w->folder, &name, &n));
    CVY_CHECK(n == 0, CVY_E_CONFIG, "%s: is not empty (%s, ..): pack into a new folder", w->folder, name[0]);
    CVY_TRY(cvy_mem_alloc((size_t)cvy_dataset_describe(w->from)->nsamples * PACK_ENTRY_BYTES, &w->index));
    if (w->o.resize_h <= 0 && w->o.resize_w <= 0)
        return CVY_OK;
    char text[128];
    cvy_tree *steps = NULL;
    CVY_CHECK(w->info->dtype == CVY_DTYPE_U8 && w->info->shape.ndim == 3, CVY_E_CONFIG,
              "only pictures of bytes can be resized, these samples are %s of %s", cvy_dtype_text(w->info->dtype),
              cvy_shape_text(&w->info->shape));
    snprintf(text, sizeof text, "[{scale: 1}, {resize: [%lld, %lld]}]", (long long)w->o.resize_h,
             (long long)w->o.resize_w);
    CVY_TRY(cvy_tree_parse_text(w->pool, "resize", text, strlen(text), &steps));
    return cvy_augment_create(steps, 0, 0, w->info, &w->resize);
}

/* After a fault: our own files go, the folder stays. */
static void remove_parts(struct writer *w)
{
    const char *path = NULL;
    for (int i = 0; i < w->done.nparts; i++)
        if (part_name(w, i, &path) == CVY_OK)
            unlink(path);
    if (w->pool && cvy_data_path_join(w->pool, w->folder, PACK_INDEX, &path) == CVY_OK && w->done.nparts > 0)
        unlink(path);
}

cvy_status cvy_pack_write(cvy_dataset *d, const char *folder, const cvy_pack_opts *opts, cvy_pack_report *report_out)
{
    struct writer *w = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *w, &w));
    w->from = d;
    w->folder = folder;
    w->o = *opts;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(begin(w));
    CVY_TRY_OUT(write_samples(w));
    CVY_TRY_OUT(write_ends(w));
    *report_out = w->done;
out:
    if (w->fd >= 0)
        close(w->fd);
    if (status != CVY_OK)
        remove_parts(w);
    cvy_raw_free(&w->raw);
    for (int i = 0; i < CVY_COUNT(w->room); i++)
        cvy_mem_free(&w->room[i].data);
    cvy_mem_free(&w->index);
    cvy_augment_destroy(&w->resize);
    cvy_pool_destroy(&w->pool);
    cvy_mem_free(&w);
    return status;
}

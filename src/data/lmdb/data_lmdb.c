/*
 * data_lmdb.c: reads Caffe's data sets: an LMDB database whose values are Datum messages.
 *
 * A path is the folder with data.mdb in it, or that file under any name. A Datum holds plain bytes or f32 of [C, H, W],
 * or a whole JPEG or PNG. Samples are in the order of keys. If only the label is needed, only the head of each field is
 * read, so counting classes does not read the pictures. Caffe's convert_imageset stores plain pictures as planes blue,
 * green, red, and its keys look like "00000017_folder/file.jpg". Such keys tell the reader to exchange the planes.
 * data_lmdb_file.c finds the values. Source: caffe.proto, io.cpp and convert_imageset.cpp of Caffe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/lmdb/data_lmdb.h"

#include <ctype.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "data/data_index.h"
#include "format/format_protobuf.h"

enum { AUTO, YES, NO };
enum {
    FIELD_HEAD = 20,       /* at most so many bytes for key and length */
    CLASSES_MAX = 1 << 20, /* more classes than this must be given by the option */
    LOOKS = 64,            /* samples whose shape is checked if the number of classes is known */
    VALUE_MAX = 1 << 30,
};

struct lmdb_opts {
    int channels, encoded, bgr;
    int64_t classes;
};

static const cvy_option lmdb_opts[] = {
    {"channels", CVY_TYPE_CHOICE, CVY_FIELD(lmdb_opts, channels), "auto", "auto|grey|rgb", "",
     "channels of decoded pictures; auto: those of the first picture"},
    {"encoded", CVY_TYPE_CHOICE, CVY_FIELD(lmdb_opts, encoded), "auto", "auto|true|false", "",
     "whether data are encoded pictures; auto: as each Datum says, or its first bytes if it has no shape"},
    {"bgr", CVY_TYPE_CHOICE, CVY_FIELD(lmdb_opts, bgr), "auto", "auto|true|false", "",
     "whether plain data of three channels are blue, green, red; auto: if keys are NUMBER_NAME, as convert_imageset "
     "writes them"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(lmdb_opts, classes), "0", "0..", "",
     "number of classes; 0: the number of lines of labels.txt, or the largest label plus one, for which all records "
     "are read once"},
    {0},
};

struct datum {
    int64_t dim[3]; /* C, H, W; 0: not given */
    int64_t label, data_at, data_bytes, float_at, nfloat;
    int has_label, has_data, encoded, packed;
};

struct reader {
    cvy_lmdb *db;
    struct lmdb_opts o;
    int swap_planes; /* exchange planes 0 and 2 */
};

static int lmdb_probe(const char *path)
{
    uint8_t head[20];
    if (cvy_file_is_folder(path))
        return cvy_data_has_file(path, CVY_LMDB_FILE) ? 95 : 0;
    if (cvy_data_peek(path, head, sizeof head) == sizeof head && cvy_wire_little(head + 16, 4) == 0xBEEFC0DE)
        return 95;
    return cvy_data_has_suffix(path, ".mdb") ? 60 : 0;
}

/* ---- a Datum's fields ---- */

struct window { /* a part of a value */
    int64_t from, bytes;
    uint8_t data[1024];
};

/* Returns the bytes from `at` on, at least enough for the head of a field. */
static cvy_status look_from(const cvy_lmdb *db, const cvy_lmdb_value *v, int64_t at, struct window *w, cvy_wire *out)
{
    if (at < w->from || at + CVY_MIN(v->bytes - at, FIELD_HEAD) > w->from + w->bytes) {
        w->from = at;
        w->bytes = CVY_MIN(v->bytes - at, (int64_t)sizeof w->data);
        CVY_TRY(cvy_lmdb_fetch(db, v, at, w->bytes, w->data));
    }
    *out = (cvy_wire){w->data + (at - w->from), w->data + w->bytes};
    return CVY_OK;
}

/* Reads a field's key, and its value or length. Returns 1, or 0 if it is damaged. */
static int take_head(cvy_wire *wire, int64_t left, cvy_wire_field *out)
{
    uint64_t key = 0;
    const uint8_t *start = wire->at;
    if (!cvy_wire_varint(wire, &key) || key >> 3 == 0 || key >> 32)
        return 0;
    *out = (cvy_wire_field){.number = (uint32_t)(key >> 3), .kind = (cvy_wire_kind)(key & 7)};
    switch (out->kind) {
    case CVY_WIRE_VARINT: return cvy_wire_varint(wire, &out->value);
    case CVY_WIRE_BYTES:
        return cvy_wire_varint(wire, &out->value) && out->value <= (uint64_t)(left - (wire->at - start));
    case CVY_WIRE_64:
    case CVY_WIRE_32: {
        const int bytes = out->kind == CVY_WIRE_64 ? 8 : 4;
        if (wire->end - wire->at < bytes)
            return 0;
        out->value = cvy_wire_little(wire->at, bytes);
        wire->at += bytes;
        return 1;
    }
    default: return 0;
    }
}

/* Stores a field. at: where its bytes begin, or the position after its number. Returns 0 if a Datum cannot have such a
 * field. */
static int put_field(struct datum *d, const cvy_wire_field *f, int64_t at)
{
    const int is_number = f->kind == CVY_WIRE_VARINT, is_bytes = f->kind == CVY_WIRE_BYTES;
    switch (f->number) {
    case DATUM_CHANNELS:
    case DATUM_HEIGHT:
    case DATUM_WIDTH:
        d->dim[f->number - DATUM_CHANNELS] = (int64_t)CVY_MIN(f->value, (uint64_t)1 << 31);
        return is_number;
    case DATUM_DATA:
        d->has_data = 1;
        d->data_at = at;
        d->data_bytes = (int64_t)f->value;
        return is_bytes;
    case DATUM_LABEL:
        d->has_label = 1;
        d->label = (int32_t)(uint32_t)f->value;
        return is_number;
    case DATUM_ENCODED: d->encoded = f->value != 0; return is_number;
    case DATUM_FLOATS:
        if (is_bytes) {
            d->packed = 1;
            d->float_at = at;
            d->nfloat = (int64_t)f->value / 4;
            return f->value % 4 == 0;
        }
        if (d->nfloat++ == 0)
            d->float_at = at - 4;
        return f->kind == CVY_WIRE_32 && !d->packed && at - 4 == d->float_at + 5 * (d->nfloat - 1);
    default: return 1;
    }
}

static cvy_status parse_datum(const cvy_lmdb *db, const cvy_lmdb_value *v, struct datum *out)
{
    static const char *const name[] = {"",        " (channels)", " (height)",     " (width)",
                                       " (data)", " (label)",    " (float_data)", " (encoded)"};
    struct window w = {0};
    struct datum d = {0};
    CVY_CHECK(v->bytes > 0 && v->bytes <= VALUE_MAX, CVY_E_FORMAT, "is not a Datum: %lld bytes, expected 1 to %d",
              (long long)v->bytes, VALUE_MAX);
    for (int64_t at = 0; at < v->bytes;) {
        cvy_wire wire;
        cvy_wire_field f;
        CVY_TRY(look_from(db, v, at, &w, &wire));
        const uint8_t *start = wire.at;
        CVY_CHECK(take_head(&wire, v->bytes - at, &f), CVY_E_FORMAT,
                  "is not a Datum, or a truncated one: no field begins at byte %lld of %lld", (long long)at,
                  (long long)v->bytes);
        const int64_t payload_at = at + (wire.at - start);
        CVY_CHECK(put_field(&d, &f, payload_at), CVY_E_FORMAT,
                  "is not a Datum: field %u%s at byte %lld of %lld is of kind %d", f.number,
                  f.number < CVY_COUNT(name) ? name[f.number] : "", (long long)at, (long long)v->bytes, (int)f.kind);
        at = payload_at + (f.kind == CVY_WIRE_BYTES ? (int64_t)f.value : 0);
    }
    *out = d;
    return CVY_OK;
}

static cvy_status find_datum(const struct reader *r, int64_t number, cvy_lmdb_page *page, cvy_lmdb_value *value,
                             struct datum *out)
{
    CVY_TRY(cvy_lmdb_find(r->db, number, page, value));
    return parse_datum(r->db, value, out);
}

/* If somebody has written to the database meanwhile, that explains any other error, so it is reported first. */
static cvy_status check_writer(const struct reader *r, cvy_status status)
{
    const cvy_status still = cvy_lmdb_check_still(r->db);
    return still != CVY_OK ? still : status;
}

/* ---- samples ---- */

static cvy_status check_plain(const struct datum *d)
{
    const int64_t count = d->has_data ? d->data_bytes : d->nfloat;
    CVY_CHECK(d->has_data || d->nfloat > 0, CVY_E_FORMAT, "a Datum with neither data nor float_data");
    CVY_CHECK(!d->has_data || d->nfloat == 0, CVY_E_FORMAT, "a Datum with both data (%lld bytes) and float_data (%lld)",
              (long long)d->data_bytes, (long long)d->nfloat);
    for (int i = 0; i < 3; i++)
        CVY_CHECK(d->dim[i] >= 1 && d->dim[i] <= VALUE_MAX, CVY_E_FORMAT,
                  "a Datum of %lld channels, height %lld, width %lld", (long long)d->dim[0], (long long)d->dim[1],
                  (long long)d->dim[2]);
    /* The check divides, because in a damaged file the product of three numbers may overflow. */
    CVY_CHECK(count % d->dim[0] == 0 && count / d->dim[0] % d->dim[1] == 0 &&
                  count / d->dim[0] / d->dim[1] == d->dim[2],
              CVY_E_FORMAT, "a Datum of %lldx%lldx%lld has %lld %s", (long long)d->dim[0], (long long)d->dim[1],
              (long long)d->dim[2], (long long)count, d->has_data ? "bytes of data" : "values of float_data");
    return CVY_OK;
}

static cvy_status fetch_encoded(const struct reader *r, const cvy_lmdb_value *v, const struct datum *d, cvy_raw *raw)
{
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)d->data_bytes));
    CVY_TRY(cvy_lmdb_fetch(r->db, v, d->data_at, d->data_bytes, raw->x.data));
    raw->coding = cvy_picture_coding(raw->x.data, raw->x.bytes);
    CVY_CHECK(raw->coding != CVY_CODING_PLAIN, CVY_E_FORMAT,
              "an encoded Datum whose %lld bytes of data are neither a JPEG nor a PNG", (long long)d->data_bytes);
    return CVY_OK;
}

static void swap_planes(uint8_t *x, size_t plane)
{
    uint8_t *other = x + 2 * plane;
    for (size_t i = 0; i < plane; i++) {
        const uint8_t keep = x[i];
        x[i] = other[i];
        other[i] = keep;
    }
}

static cvy_status fetch_plain(const struct reader *r, const cvy_lmdb_value *v, const struct datum *d, cvy_raw *raw)
{
    CVY_TRY(check_plain(d));
    raw->coding = CVY_CODING_PLAIN;
    raw->shape = cvy_shape_make(3, d->dim);
    raw->dtype = d->has_data ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    const int64_t item = d->has_data ? 1 : d->packed ? 4 : 5, count = d->has_data ? d->data_bytes : d->nfloat;
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)(count * item)));
    CVY_TRY(cvy_lmdb_fetch(r->db, v, d->has_data ? d->data_at : d->float_at, count * item - (item == 5), raw->x.data));
    uint8_t *x = raw->x.data;
    for (int64_t i = 1; item == 5 && i < count; i++) /* each value but the first is preceded by a key */
        memmove(x + 4 * i, x + 5 * i, 4);
    raw->x.bytes = (size_t)count * (d->has_data ? 1 : 4);
    if (r->swap_planes && d->dim[0] == 3)
        swap_planes(x, raw->x.bytes / 3);
    return CVY_OK;
}

static int is_encoded(const struct reader *r, const struct datum *d)
{
    const int shapeless = d->dim[0] == 0 && d->dim[1] == 0 && d->dim[2] == 0;
    return d->has_data && (r->o.encoded == AUTO ? d->encoded || shapeless : r->o.encoded == YES);
}

static cvy_status lmdb_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct reader *r = state;
    cvy_lmdb_page page;
    cvy_lmdb_value value = {0};
    struct datum d = {0};
    page.number = 0;
    cvy_status status = find_datum(r, number, &page, &value, &d);
    if (status == CVY_OK)
        status = is_encoded(r, &d) ? fetch_encoded(r, &value, &d, raw) : fetch_plain(r, &value, &d, raw);
    CVY_TRY(check_writer(r, status));
    raw->label = (int32_t)d.label;
    return CVY_OK;
}

static cvy_status lmdb_label(void *state, int64_t number, int32_t *label_out)
{
    const struct reader *r = state;
    cvy_lmdb_page page;
    cvy_lmdb_value value = {0};
    struct datum d = {0};
    page.number = 0;
    CVY_TRY(check_writer(r, find_datum(r, number, &page, &value, &d)));
    *label_out = (int32_t)d.label;
    return CVY_OK;
}

static void lmdb_name(void *state, int64_t number, char *text, size_t room)
{
    const struct reader *r = state;
    cvy_lmdb_key_text(r->db, number, text, room);
}

static void lmdb_where(void *state, int64_t number, char *text, size_t room)
{
    const struct reader *r = state;
    char key[128];
    cvy_lmdb_key_text(r->db, number, key, sizeof key);
    snprintf(text, room, "%s, record %lld (key \"%s\")", cvy_lmdb_path(r->db), (long long)number, key);
}

/* ---- opening ---- */

static int has_names(const struct reader *r, cvy_pool *pool, const char **path_out)
{
    const char *folder = NULL;
    return strcmp(cvy_file_base_name(cvy_lmdb_path(r->db)), CVY_LMDB_FILE) == 0 &&
           cvy_data_folder_of(pool, cvy_lmdb_path(r->db), &folder) == CVY_OK &&
           cvy_data_path_join(pool, folder, CVY_LMDB_NAMES, path_out) == CVY_OK && cvy_file_exists(*path_out);
}

/* The file has one name per line. */
static cvy_status read_names(cvy_pool *pool, const char *path, cvy_reader_info *info)
{
    char *text = NULL, *copy = NULL;
    size_t bytes = 0;
    const char **name = NULL;
    int64_t count = 0;
    CVY_TRY(cvy_file_read(path, 64 << 20, &text, &bytes));
    const cvy_status status = cvy_pool_strdup(pool, text, &copy);
    cvy_mem_free(&text);
    CVY_TRY(status);
    for (const char *p = copy; *p; p++)
        count += *p == '\n' || !p[1];
    CVY_CHECK(count > 0, CVY_E_FORMAT, "%s: is empty, expected the name of a class in each line", path);
    CVY_TRY(cvy_pool_alloc(pool, (size_t)count * sizeof *name, &name));
    for (int64_t i = 0; i < count; i++) {
        char *line = copy;
        copy += strcspn(copy, "\n");
        if (*copy)
            *copy++ = 0;
        line[strcspn(line, "\r")] = 0;
        name[i] = line;
    }
    info->nclasses = count;
    info->class_name = name;
    return CVY_OK;
}

/* Finds whether plain samples differ in shape, and the largest label. It reads every record, or, if the number of
 * classes is known, evenly spaced ones. */
static cvy_status visit(struct reader *r, cvy_reader_info *info, int *labels_out, int64_t *largest_out)
{
    const int known = info->nclasses > 0;
    const int64_t count = cvy_lmdb_count(r->db), step = known ? (count + LOOKS - 1) / LOOKS : 1;
    cvy_lmdb_page *page = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *page, &page));
    for (int64_t i = 0; i < count && status == CVY_OK; i += step) {
        cvy_lmdb_value value;
        struct datum d;
        if (find_datum(r, i, page, &value, &d) != CVY_OK)
            continue; /* the loader reports or skips it, with its place */
        if (!is_encoded(r, &d) && info->shape.ndim == 3 && memcmp(d.dim, info->shape.dim, sizeof d.dim) != 0 &&
            check_plain(&d) == CVY_OK)
            info->varying = 1;
        *labels_out |= d.has_label;
        *largest_out = CVY_MAX(*largest_out, d.label);
        if (d.label >= CLASSES_MAX && !known) {
            char where[4096];
            lmdb_where(r, i, where, sizeof where);
            status = cvy_error_set(CVY_E_FORMAT, "%s: label %lld, expected less than %d: set `classes:` if it is right",
                                   where, (long long)d.label, CLASSES_MAX);
        }
    }
    cvy_mem_free(&page);
    return check_writer(r, status);
}

static cvy_status find_classes(struct reader *r, cvy_reader_info *info)
{
    const char *path = NULL;
    int labels = 0;
    int64_t largest = 0;
    if (has_names(r, info->pool, &path)) {
        CVY_TRY(read_names(info->pool, path, info));
        CVY_CHECK(r->o.classes == 0 || r->o.classes == info->nclasses, CVY_E_CONFIG, "%s: names %lld classes, not %lld",
                  path, (long long)info->nclasses, (long long)r->o.classes);
    } else {
        info->nclasses = r->o.classes;
    }
    const int known = info->nclasses > 0;
    CVY_TRY(visit(r, info, &labels, &largest));
    info->has_label = known || labels;
    if (!known && labels)
        info->nclasses = largest + 1;
    return CVY_OK;
}

/* "00000017_cat.jpg": convert_imageset writes such keys. */
static int is_imageset_key(const struct reader *r)
{
    char key[32];
    size_t digits = 0;
    cvy_lmdb_key_text(r->db, 0, key, sizeof key);
    while (isdigit((unsigned char)key[digits]))
        digits++;
    return digits >= 8 && key[digits] == '_';
}

static cvy_status find_file(cvy_pool *pool, const char *path, const char **out)
{
    if (!cvy_file_is_folder(path)) {
        *out = path;
        return CVY_OK;
    }
    CVY_CHECK(!cvy_data_has_file(path, CVY_LMDB_PARTIAL), CVY_E_FORMAT,
              "%s: holds %s: a conversion into this folder was not finished; run `convoy convert` again", path,
              CVY_LMDB_PARTIAL);
    return cvy_data_path_join(pool, path, CVY_LMDB_FILE, out);
}

static void lmdb_close(void *state)
{
    cvy_lmdb_close(((struct reader *)state)->db);
}

static cvy_status lmdb_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct reader *r = NULL;
    const char *path = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(args->path, CVY_E_CONFIG, "format lmdb needs a path: the folder of data.mdb, or that file");
    CVY_TRY(find_file(info->pool, args->path, &path));
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *r, &r));
    r->o = *(const struct lmdb_opts *)args->options;
    CVY_TRY(cvy_lmdb_open(info->pool, path, &r->db));
    info->nsamples = cvy_lmdb_count(r->db);
    CVY_TRY_OUT(cvy_data_read_first(
        &(cvy_pictures){.read = lmdb_read, .where = lmdb_where, .state = r, .count = info->nsamples}, r->o.channels,
        info));
    r->swap_planes = r->o.bgr == YES || (r->o.bgr == AUTO && info->dtype == CVY_DTYPE_U8 && is_imageset_key(r));
    if (r->swap_planes && r->o.bgr == AUTO)
        CVY_TRY_OUT(cvy_reader_note(info,
                                    "%s: its keys are those of convert_imageset, so its planes are read as blue, green "
                                    "and red (`bgr: false` of the source says otherwise)",
                                    args->path));
    CVY_TRY_OUT(find_classes(r, info));
    *state_out = r;
    return CVY_OK;
out:
    lmdb_close(r);
    return status;
}

static void lmdb_hash(void *state, cvy_hasher *h)
{
    const struct reader *r = state;
    const int64_t count = cvy_lmdb_count(r->db), number[] = {0, count / 2, count - 1};
    for (int i = 0; i < CVY_COUNT(number); i++) {
        char key[512];
        cvy_lmdb_key_text(r->db, number[i], key, sizeof key);
        cvy_hash_add(h, key, strlen(key) + 1);
    }
    cvy_hash_add(h, &r->swap_planes, sizeof r->swap_planes);
}

CVY_READER_DEFINE(lmdb) = {
    .name = "lmdb",
    .summary = "LMDB database of Caffe's Datum messages",
    .options = lmdb_opts,
    .options_size = sizeof(struct lmdb_opts),
    .probe = lmdb_probe,
    .open = lmdb_open,
    .read = lmdb_read,
    .label = lmdb_label,
    .where = lmdb_where,
    .name_sample = lmdb_name,
    .hash = lmdb_hash,
    .close = lmdb_close,
};

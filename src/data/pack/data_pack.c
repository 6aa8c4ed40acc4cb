/*
 * data_pack.c: reads a packed data set: a few large files with checksums and an index. It is the recommended input
 * format.
 *
 * It runs in the loader's threads. Any number of ranks may open the set, because files are only read, at given offsets.
 * The whole index is checked when the set is opened, and each record when it is read. data_pack.h describes the layout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/pack/data_pack.h"

#include <string.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/base_index.h"
#include "data/data_columns.h"
#include "data/data_described_file.h"
#include "data/data_names.h"

struct pack {
    cvy_pool *pool;
    const char *folder;
    int nparts, version;
    cvy_data_file *part;
    int64_t count;
    uint8_t *index;
    uint32_t index_crc;
    size_t y_bytes;
    struct places {     /* of the numbers of x or y, in the order of the training data */
        int64_t *of, n; /* of[i]: the column that is number i; NULL: they are as they are stored */
        int64_t nstored;
    } x, y;
    cvy_shape x_shape; /* of the numbers of x.of */
};

static int pack_probe(const char *path)
{
    return cvy_file_is_folder(path) && cvy_data_has_file(path, PACK_META) ? 100 : 0;
}

/* ---- opening ---- */

static cvy_status need_key(const cvy_tree *meta, const char *path, const char *key, cvy_tree **out)
{
    *out = cvy_tree_get(meta, key);
    CVY_CHECK(*out, CVY_E_FORMAT, "%s: has no \"%s\": not a description of a packed set", path, key);
    return CVY_OK;
}

static cvy_status need_text(const cvy_tree *meta, const char *path, const char *key, const char **out)
{
    cvy_tree *node = NULL;
    CVY_TRY(need_key(meta, path, key, &node));
    CVY_CHECK(node->kind == CVY_TREE_SCALAR && node->text, CVY_E_FORMAT, "%s: \"%s\" is not a text", path, key);
    *out = node->text;
    return CVY_OK;
}

static cvy_status need_int(const cvy_tree *meta, const char *path, const char *key, int64_t *out)
{
    cvy_tree *node = NULL;
    CVY_TRY(need_key(meta, path, key, &node));
    CVY_CHECK(cvy_tree_int(node, out) == CVY_OK && *out >= 0, CVY_E_FORMAT, "%s: \"%s\" is not a number", path, key);
    return CVY_OK;
}

/* Parses a shape and checks that a sample's bytes fit into the 32 bits that a record has for their number. */
static cvy_status read_shape(const char *text, cvy_dtype dtype, const char *path, cvy_shape *out)
{
    CVY_TRY(cvy_shape_parse(text, out));
    CVY_CHECK(cvy_shape_elems(out) <= UINT32_MAX / (int64_t)cvy_dtype_bytes(dtype), CVY_E_FORMAT,
              "%s: %s of the shape %s, expected less than 4 GiB per sample", path, cvy_dtype_text(dtype), text);
    return CVY_OK;
}

static cvy_status read_shapes(struct pack *p, const cvy_tree *meta, const char *path, cvy_reader_info *info)
{
    const char *text = NULL;
    cvy_tree *node = NULL;
    CVY_TRY(need_text(meta, path, "x_dtype", &text));
    CVY_CHECK(cvy_dtype_parse(text, &info->dtype) == CVY_OK &&
                  (info->dtype == CVY_DTYPE_U8 || info->dtype == CVY_DTYPE_F32),
              CVY_E_FORMAT, "%s: x_dtype is %s, expected u8 or f32", path, text);
    CVY_TRY(need_text(meta, path, "x_shape", &text));
    CVY_TRY(read_shape(text, info->dtype, path, &info->shape));
    CVY_TRY(need_key(meta, path, "varying", &node));
    CVY_TRY(cvy_tree_bool(node, &info->varying));
    CVY_CHECK(!info->varying || info->shape.ndim == 3, CVY_E_FORMAT, "%s: pictures of the shape %s", path, text);
    CVY_TRY(need_key(meta, path, "weight", &node));
    CVY_TRY(cvy_tree_bool(node, &info->has_weight));
    info->has_y = cvy_tree_get(meta, "y_shape") != NULL;
    if (info->has_y) {
        CVY_TRY(need_text(meta, path, "y_shape", &text));
        CVY_TRY(read_shape(text, CVY_DTYPE_F32, path, &info->y_shape));
        p->y_bytes = (size_t)cvy_shape_elems(&info->y_shape) * sizeof(float);
    }
    return CVY_OK;
}

static cvy_status read_classes(const cvy_tree *meta, const char *path, cvy_reader_info *info)
{
    const cvy_tree *list = cvy_tree_get(meta, "classes");
    const char **names = NULL;
    if (!list)
        return CVY_OK;
    CVY_CHECK(list->kind == CVY_TREE_LIST && list->count > 0, CVY_E_FORMAT, "%s: \"classes\" is not a list", path);
    CVY_TRY(cvy_pool_alloc(info->pool, (size_t)list->count * sizeof *names, &names));
    for (int i = 0; i < list->count; i++) {
        CVY_CHECK(list->child[i]->text, CVY_E_FORMAT, "%s: class %d is not a text", path, i);
        names[i] = list->child[i]->text;
    }
    info->has_label = 1;
    info->nclasses = list->count;
    info->class_name = names;
    return CVY_OK;
}

/* What the files that were packed have said of their variables. A single target also has its name, its attributes and
 * those of its axes, for predictions. */
static cvy_status read_described(const struct pack *p, const cvy_tree *meta, cvy_reader_info *info)
{
    CVY_TRY(cvy_descriptions_read(p->pool, meta, &info->described));
    const cvy_described *y = info->described.ny == 1 && info->has_y ? info->described.y : NULL;
    if (!y)
        return CVY_OK;
    info->y_name = y->name;
    memcpy(info->y_cf, y->cf, sizeof info->y_cf);
    for (int i = 0; i < y->ndim && y->ndim == info->y_shape.ndim; i++)
        info->y_axis[i] = y->axis[i].name;
    return CVY_OK;
}

/* Finds the places of the columns of the training data. A set that lacks one is a fault. */
static cvy_status find_places(struct pack *p, const char *what, const char *const *known, int64_t nknown,
                              const char *const **own, int64_t *nown, struct places *out)
{
    const char **name = NULL;
    char text[2][CVY_DATA_NAMES_TEXT];
    cvy_data_names relation = CVY_DATA_NAMES_SAME;
    cvy_index index = {0};
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_data_names_relate(*own, *nown, known, nknown, &relation));
    if (relation == CVY_DATA_NAMES_SAME || nknown == 0 || *nown == 0)
        return CVY_OK;
    CVY_CHECK(relation != CVY_DATA_NAMES_OTHER, CVY_E_CONFIG,
              "%s: the columns of %s are %s, and those of the training data are %s: give the set all of these names, "
              "each once",
              p->folder, what, cvy_data_names_text(*own, *nown, text[0]), cvy_data_names_text(known, nknown, text[1]));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *out->of * (size_t)nknown, &out->of));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *name * (size_t)nknown, &name));
    for (int64_t i = 0; i < *nown && status == CVY_OK; i++)
        status = cvy_index_add(&index, (*own)[i], (int)i);
    for (int64_t i = 0; i < nknown && status == CVY_OK; i++) {
        out->of[i] = cvy_index_find(&index, known[i]);
        name[i] = (*own)[out->of[i]];
    }
    cvy_index_free(&index);
    out->n = nknown;
    out->nstored = *nown;
    *own = name;
    *nown = nknown;
    return status;
}

/* Brings the columns into the order of the training data, by their names. */
static cvy_status follow_columns(struct pack *p, const cvy_columns *like, cvy_reader_info *info)
{
    cvy_columns *own = &info->columns;
    const int64_t stored = own->nx;
    char text[CVY_DATA_NAMES_TEXT];
    if (!like || !own->x || own->nx != cvy_shape_elems(&info->shape) || info->dtype != CVY_DTYPE_F32)
        return CVY_OK;
    CVY_TRY(find_places(p, "x", like->x, like->nx, &own->x, &own->nx, &p->x));
    if (info->has_y && own->ny == cvy_shape_elems(&info->y_shape))
        CVY_TRY(find_places(p, "y", like->y, like->ny, &own->y, &own->ny, &p->y));
    if (p->y.of && own->ny != p->y.nstored)
        info->y_shape = (cvy_shape){1, {own->ny}};
    if (own->nx != stored)
        info->shape = (cvy_shape){1, {own->nx}};
    p->x_shape = info->shape;
    if (own->nx == stored)
        return CVY_OK;
    return cvy_reader_note(info, "%s: of %lld columns those of the training data are read: %s", p->folder,
                           (long long)stored, cvy_data_names_text(own->x, own->nx, text));
}

static cvy_status open_parts(struct pack *p, const cvy_tree *meta, const char *path)
{
    cvy_tree *list = NULL;
    CVY_TRY(need_key(meta, path, "part_bytes", &list));
    CVY_CHECK(list->kind == CVY_TREE_LIST && list->count > 0, CVY_E_FORMAT, "%s: \"part_bytes\" is not a list", path);
    CVY_TRY(cvy_pool_alloc(p->pool, (size_t)list->count * sizeof *p->part, &p->part));
    for (int i = 0; i < list->count; i++) {
        char name[32];
        const char *part = NULL;
        int64_t bytes = 0;
        snprintf(name, sizeof name, "part-%05d.cvy", i);
        CVY_TRY(cvy_data_path_join(p->pool, p->folder, name, &part));
        CVY_TRY(cvy_tree_int(list->child[i], &bytes));
        CVY_TRY(cvy_data_file_open(p->pool, part, &p->part[i]));
        p->nparts++;
        CVY_CHECK(p->part[i].bytes == bytes, CVY_E_FORMAT, "%s: %lld bytes, expected %lld: %s", part,
                  (long long)p->part[i].bytes, (long long)bytes,
                  p->part[i].bytes < bytes ? "truncated; copy or pack it again" : "of another set");
    }
    return CVY_OK;
}

/* Reads the whole index, and checks its checksum and that every entry is inside its part. */
static cvy_status read_index(struct pack *p, int64_t crc)
{
    const char *path = NULL;
    size_t bytes = 0, want = 0;
    CVY_TRY(cvy_data_path_join(p->pool, p->folder, PACK_INDEX, &path));
    CVY_TRY(cvy_size_mul((size_t)p->count, PACK_ENTRY_BYTES, &want));
    CVY_TRY(cvy_file_read(path, want + 1, (char **)&p->index, &bytes));
    CVY_CHECK(bytes == want, CVY_E_FORMAT, "%s: %zu bytes, expected %zu for %lld samples: truncated or of another set",
              path, bytes, want, (long long)p->count);
    p->index_crc = cvy_crc32c(0, p->index, bytes);
    CVY_CHECK(p->index_crc == crc, CVY_E_FORMAT,
              "%s: checksum %08x, expected %08x: damaged; copy or pack the set again", path, p->index_crc,
              (unsigned)crc);
    for (int64_t i = 0; i < p->count; i++) {
        const struct pack_entry e = pack_entry_get(p->index + i * PACK_ENTRY_BYTES);
        CVY_CHECK((int64_t)e.part < p->nparts && e.bytes >= PACK_HEAD_BYTES + p->y_bytes &&
                      e.offset <= (uint64_t)p->part[e.part].bytes &&
                      e.bytes <= (uint64_t)p->part[e.part].bytes - e.offset,
                  CVY_E_FORMAT, "%s: entry %lld points outside its part", path, (long long)i);
    }
    return CVY_OK;
}

static cvy_status pack_load(struct pack *p, const cvy_columns *like, cvy_reader_info *info)
{
    const char *path = NULL, *format = NULL;
    cvy_tree *meta = NULL;
    int64_t version = 0, crc = 0;
    CVY_TRY(cvy_data_path_join(p->pool, p->folder, PACK_META, &path));
    CVY_TRY(cvy_tree_parse_file(p->pool, path, &meta));
    CVY_CHECK(meta->kind == CVY_TREE_MAP, CVY_E_FORMAT, "%s: is not a description of a packed set", path);
    CVY_TRY(need_text(meta, path, "format", &format));
    CVY_CHECK(strcmp(format, "convoy-pack") == 0, CVY_E_FORMAT, "%s: format is %s, expected convoy-pack", path, format);
    CVY_TRY(need_int(meta, path, "version", &version));
    CVY_CHECK(version >= 1 && version <= PACK_VERSION, CVY_E_UNSUPPORTED,
              "%s: version %lld, this build reads versions 1 to %d", path, (long long)version, PACK_VERSION);
    p->version = (int)version;
    CVY_TRY(need_int(meta, path, "samples", &p->count));
    CVY_TRY(read_shapes(p, meta, path, info));
    CVY_TRY(read_classes(meta, path, info));
    cvy_status status = cvy_columns_read(p->pool, meta, info);
    if (status == CVY_OK)
        status = read_described(p, meta, info);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", path);
    CVY_TRY(follow_columns(p, like, info));
    CVY_TRY(open_parts(p, meta, path));
    CVY_TRY(need_int(meta, path, "index_crc32c", &crc));
    info->nsamples = p->count;
    return read_index(p, crc);
}

static void pack_close(void *state)
{
    struct pack *p = state;
    for (int i = 0; i < p->nparts; i++)
        cvy_data_file_close(&p->part[i]);
    cvy_mem_free(&p->index);
}

static cvy_status pack_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct pack *p = NULL;
    CVY_CHECK(args->path && pack_probe(args->path), CVY_E_IO,
              "%s: is not a packed set (no %s in it; was packing interrupted?)",
              args->path ? args->path : "format pack", PACK_META);
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *p, &p));
    p->pool = info->pool;
    p->folder = args->path;
    const cvy_status status = pack_load(p, args->like, info);
    if (status != CVY_OK)
        pack_close(p);
    else
        *state_out = p;
    return status;
}

/* ---- reading ---- */

static void pack_where(void *state, int64_t number, char *text, size_t room)
{
    const struct pack *p = state;
    const struct pack_entry e = pack_entry_get(p->index + number * PACK_ENTRY_BYTES);
    snprintf(text, room, "%s, record %lld at byte %llu", p->part[e.part].path, (long long)number,
             (unsigned long long)e.offset);
}

/* Reads the header of a record. The checksum was right, so an error here is the writer's. */
static cvy_status read_head(const struct pack *p, const uint8_t *at, const struct pack_entry *e, int64_t number,
                            struct pack_head *out)
{
    struct pack_head h = {.coding = at[4],
                          .dtype = at[5],
                          .number = get_u64(at + 8),
                          .label = (int32_t)get_u32(at + 16),
                          .x_bytes = get_u32(at + 24),
                          .y_bytes = get_u32(at + 28)};
    const uint32_t weight = get_u32(at + 20);
    memcpy(&h.weight, &weight, sizeof h.weight);
    h.shape.ndim = at[6];
    CVY_CHECK(get_u32(at) == PACK_MAGIC && h.number == (p->version == 1 ? (uint64_t)number : e->number) &&
                  h.coding <= CVY_CODING_PNG && h.dtype < CVY_DTYPE_COUNT && h.shape.ndim <= CVY_NDIM_MAX &&
                  h.y_bytes == p->y_bytes && (uint64_t)PACK_HEAD_BYTES + h.x_bytes + h.y_bytes == e->bytes,
              CVY_E_FORMAT, "not the record that the index means: of another set?");
    size_t bytes = h.coding == CVY_CODING_PLAIN ? cvy_dtype_bytes(h.dtype) : h.x_bytes;
    for (int i = 0; i < h.shape.ndim; i++) {
        h.shape.dim[i] = get_u32(at + 32 + 4 * i);
        CVY_TRY(cvy_size_mul(bytes, (size_t)h.shape.dim[i], &bytes));
    }
    CVY_CHECK(h.coding != CVY_CODING_PLAIN || bytes == h.x_bytes, CVY_E_FORMAT, "%u bytes for a sample of %s %s",
              h.x_bytes, cvy_dtype_text(h.dtype), cvy_shape_text(&h.shape));
    *out = h;
    return CVY_OK;
}

/* Copies the numbers of x or y to `to`, in the order of the training data. Returns how many bytes they are. */
static size_t put_in_order(const struct places *p, const uint8_t *from, uint8_t *to)
{
    for (int64_t i = 0; i < p->n; i++)
        memcpy(to + (size_t)i * sizeof(float), from + (size_t)p->of[i] * sizeof(float), sizeof(float));
    return (size_t)p->n * sizeof(float);
}

/* Makes x and y of a record that is in raw->x, with room after it. */
static cvy_status unpack(const struct pack *p, const struct pack_entry *e, struct pack_head *h, cvy_raw *raw)
{
    uint8_t *record = raw->x.data, *y = record + PACK_HEAD_BYTES, *x = y + h->y_bytes;
    CVY_TRY(cvy_bytes_need(&raw->y, h->y_bytes));
    if (p->y.of)
        raw->y.bytes = put_in_order(&p->y, y, raw->y.data);
    else if (h->y_bytes)
        memcpy(raw->y.data, y, h->y_bytes);
    if (p->x.of) {
        CVY_CHECK(h->coding == CVY_CODING_PLAIN && h->dtype == CVY_DTYPE_F32 &&
                      cvy_shape_elems(&h->shape) == p->x.nstored,
                  CVY_E_FORMAT, "not the %lld columns that " PACK_META " names", (long long)p->x.nstored);
        h->x_bytes = (uint32_t)put_in_order(&p->x, x, record + e->bytes);
        h->shape = p->x_shape;
        x = record + e->bytes;
    }
    memmove(record, x, h->x_bytes);
    raw->x.bytes = h->x_bytes;
    return CVY_OK;
}

static cvy_status pack_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct pack *p = state;
    const struct pack_entry e = pack_entry_get(p->index + number * PACK_ENTRY_BYTES);
    const cvy_data_file *part = &p->part[e.part];
    struct pack_head h = {0};
    CVY_TRY(cvy_bytes_need(&raw->x, e.bytes + (size_t)p->x.n * sizeof(float)));
    uint8_t *record = raw->x.data;
    CVY_TRY(cvy_pread_all(part->fd, record, e.bytes, (int64_t)e.offset, part->path));
    const uint32_t crc = cvy_crc32c(0, record, e.bytes);
    CVY_CHECK(crc == e.crc, CVY_E_FORMAT, "checksum %08x, expected %08x: damaged; copy or pack the set again", crc,
              e.crc);
    CVY_TRY(read_head(p, record, &e, number, &h));
    CVY_TRY(unpack(p, &e, &h, raw));
    raw->coding = h.coding;
    raw->dtype = h.dtype;
    raw->shape = h.shape;
    raw->label = h.label;
    raw->weight = h.weight;
    return CVY_OK;
}

static cvy_status pack_label(void *state, int64_t number, int32_t *label_out)
{
    const struct pack *p = state;
    *label_out = pack_entry_get(p->index + number * PACK_ENTRY_BYTES).label;
    return CVY_OK;
}

static void pack_hash(void *state, cvy_hasher *h)
{
    const struct pack *p = state;
    cvy_hash_add(h, &p->index_crc, sizeof p->index_crc);
}

CVY_READER_DEFINE(pack) = {
    .name = "pack",
    .summary = "packed set: few large files with checksums and an index",
    .probe = pack_probe,
    .open = pack_open,
    .read = pack_read,
    .label = pack_label,
    .where = pack_where,
    .hash = pack_hash,
    .close = pack_close,
};

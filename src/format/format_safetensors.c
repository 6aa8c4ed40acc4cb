/*
 * format_safetensors.c: reads and writes safetensors files: weights and optimiser state of a checkpoint, and initial
 * weights of other programs.
 *
 * It is called at a save, at a resume and for `train.init`, not in a step. A file has 8 bytes with the length of the
 * header (little-endian), a JSON header {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, and
 * the data, row-major and without holes. The reader checks everything, because a file may come from anywhere. Source:
 * the format's description at github.com/huggingface/safetensors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/machine/base_system.h"
#include "base/text/base_json.h"
#include "format/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "safetensors data is little-endian; a big-endian machine needs byte swaps here");

#define LENGTH_BYTES 8
#define HEADER_BYTES_MAX ((size_t)16 << 20) /* the limit of base_tree; 100,000 tensors fit */
#define CONVERT_ELEMS 4096

static const struct dtype_row {
    const char *name;
    size_t bytes;
    cvy_dtype dtype;
} dtype_rows[] = {
    {"F32", 4, CVY_DTYPE_F32},       {"F64", 8, CVY_DTYPE_F64},    {"I64", 8, CVY_DTYPE_I64},
    {"I32", 4, CVY_DTYPE_I32},       {"U8", 1, CVY_DTYPE_U8},      {"F16", 2, CVY_DTYPE_COUNT},
    {"BF16", 2, CVY_DTYPE_COUNT},    {"BOOL", 1, CVY_DTYPE_COUNT}, {"I8", 1, CVY_DTYPE_COUNT},
    {"I16", 2, CVY_DTYPE_COUNT},     {"U16", 2, CVY_DTYPE_COUNT},  {"U32", 4, CVY_DTYPE_COUNT},
    {"U64", 8, CVY_DTYPE_COUNT},     {"C64", 8, CVY_DTYPE_COUNT},  {"F8_E5M2", 1, CVY_DTYPE_COUNT},
    {"F8_E4M3", 1, CVY_DTYPE_COUNT},
};

static const struct dtype_row *dtype_by_name(const char *name)
{
    for (int i = 0; i < CVY_COUNT(dtype_rows); i++)
        if (strcmp(dtype_rows[i].name, name) == 0)
            return &dtype_rows[i];
    return NULL;
}

static const char *dtype_name(cvy_dtype dtype)
{
    for (int i = 0; i < CVY_COUNT(dtype_rows); i++)
        if (dtype_rows[i].dtype == dtype)
            return dtype_rows[i].name;
    return NULL;
}

/* ---- writing ---- */

static cvy_status entry_bytes(const cvy_tensor_entry *e, size_t *bytes_out)
{
    size_t bytes = cvy_dtype_bytes(e->dtype);
    for (int i = 0; i < e->shape.ndim; i++) {
        CVY_CHECK(e->shape.dim[i] >= 0, CVY_E_SHAPE, "tensor %s: dimension %d is %lld, expected 0 or more", e->name, i,
                  (long long)e->shape.dim[i]);
        CVY_TRY(cvy_size_mul(bytes, (size_t)e->shape.dim[i], &bytes));
    }
    *bytes_out = bytes;
    return CVY_OK;
}

/* Writes the header's text, padded with spaces so that the data begin at a multiple of 8. */
static cvy_status header_text(const cvy_tensor_entry *entry, int count, const char *const *meta, cvy_json *json)
{
    size_t offset = 0;
    cvy_json_open(json, NULL, '{');
    if (meta && meta[0]) {
        cvy_json_open(json, "__metadata__", '{');
        for (int i = 0; meta[i] && meta[i + 1]; i += 2)
            cvy_json_string(json, meta[i], meta[i + 1]);
        cvy_json_close(json, '}');
    }
    for (int i = 0; i < count; i++) {
        const cvy_tensor_entry *e = &entry[i];
        size_t bytes;
        CVY_CHECK(dtype_name(e->dtype), CVY_E_UNSUPPORTED, "tensor %s: dtype %d has no safetensors name", e->name,
                  (int)e->dtype);
        CVY_TRY(entry_bytes(e, &bytes));
        cvy_json_open(json, e->name, '{');
        cvy_json_string(json, "dtype", dtype_name(e->dtype));
        cvy_json_open(json, "shape", '[');
        for (int d = 0; d < e->shape.ndim; d++)
            cvy_json_int(json, NULL, e->shape.dim[d]);
        cvy_json_close(json, ']');
        cvy_json_open(json, "data_offsets", '[');
        cvy_json_int(json, NULL, (int64_t)offset);
        offset += bytes;
        cvy_json_int(json, NULL, (int64_t)offset);
        cvy_json_close(json, ']');
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, '}');
    while (json->text.status == CVY_OK && json->text.bytes % LENGTH_BYTES)
        cvy_text_add_bytes(&json->text, " ", 1);
    CVY_TRY(json->text.status);
    CVY_CHECK(json->text.bytes <= HEADER_BYTES_MAX, CVY_E_UNSUPPORTED,
              "a safetensors header of %zu bytes (%d tensors) is above the limit of %zu", json->text.bytes, count,
              HEADER_BYTES_MAX);
    return CVY_OK;
}

struct sink {
    cvy_file_temporary *file;
    cvy_hasher hash;
    size_t bytes;
};

static cvy_status sink_put(struct sink *sink, const void *data, size_t bytes)
{
    CVY_TRY(cvy_write_all(fileno(sink->file->stream), data, bytes,
                          sink->file->path)); /* not through the stream: stdio gives up when a signal interrupts it */
    cvy_hash_add(&sink->hash, data, bytes);
    sink->bytes += bytes;
    return CVY_OK;
}

cvy_status cvy_safetensors_write_fetched(const char *path, const cvy_tensor_entry *entry, int count,
                                         const char *const *meta, cvy_tensor_fetch_fn fetch, void *user,
                                         uint64_t *hash_out, size_t *bytes_out)
{
    cvy_status status = CVY_OK;
    cvy_json header = {0};
    cvy_file_temporary file = {0};
    struct sink sink = {.file = &file};
    uint8_t length[LENGTH_BYTES];

    cvy_hash_begin(&sink.hash);
    CVY_TRY_OUT(header_text(entry, count, meta, &header));
    CVY_TRY_OUT(cvy_file_temporary_open(path, &file));
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (uint8_t)((uint64_t)header.text.bytes >> (8 * i));
    CVY_TRY_OUT(sink_put(&sink, length, sizeof length));
    CVY_TRY_OUT(sink_put(&sink, header.text.data, header.text.bytes));
    for (int i = 0; i < count; i++) {
        const void *data = NULL;
        size_t bytes;
        CVY_TRY_OUT(entry_bytes(&entry[i], &bytes));
        CVY_TRY_OUT(fetch(user, i, &data));
        CVY_TRY_OUT(sink_put(&sink, data, bytes));
    }
    CVY_TRY_OUT(cvy_file_temporary_commit(&file));
    if (hash_out)
        *hash_out = cvy_hash_end(&sink.hash);
    if (bytes_out)
        *bytes_out = sink.bytes;
out:
    if (status != CVY_OK)
        cvy_file_temporary_drop(&file);
    cvy_text_free(&header.text);
    return status;
}

static cvy_status fetch_entry(void *user, int i, const void **data_out)
{
    *data_out = ((const cvy_tensor_entry *)user)[i].data;
    return CVY_OK;
}

cvy_status cvy_safetensors_write(const char *path, const cvy_tensor_entry *entry, int count, const char *const *meta,
                                 uint64_t *hash_out, size_t *bytes_out)
{
    return cvy_safetensors_write_fetched(path, entry, count, meta, fetch_entry, (void *)entry, hash_out, bytes_out);
}

/* ---- reading ---- */

struct tensor {
    cvy_tensor_entry entry;
    const char *dtype;
    size_t elem_bytes;   /* 0: the dtype is unknown to this reader */
    size_t first, bytes; /* from the start of the data part */
};

struct cvy_safetensors {
    cvy_pool *pool;
    char *path;
    int fd;
    uint8_t *map;
    size_t map_bytes, data_at;
    struct tensor *tensor;
    int count;
    int *by_name; /* indices of the tensors, sorted by name */
    const cvy_tree *meta;
};

/* Reads a non-negative decimal number; anything else is an error. */
static cvy_status parse_count(const cvy_tree *node, int64_t *out)
{
    int64_t value = 0;
    CVY_CHECK(node->kind == CVY_TREE_SCALAR && node->text && node->text[0] && !node->quoted, CVY_E_FORMAT,
              "%s: expected a non-negative integer", cvy_tree_where(node));
    for (const char *c = node->text; *c; c++) {
        CVY_CHECK(*c >= '0' && *c <= '9' && value <= (INT64_MAX - (*c - '0')) / 10, CVY_E_FORMAT,
                  "%s: expected a non-negative integer below 2^63, got '%.40s'", cvy_tree_where(node), node->text);
        value = value * 10 + (*c - '0');
    }
    *out = value;
    return CVY_OK;
}

static cvy_status parse_shape(struct tensor *t, const cvy_tree *shape, size_t *elems_out)
{
    size_t elems = 1;
    CVY_CHECK(shape->kind == CVY_TREE_LIST, CVY_E_FORMAT, "tensor '%.200s': its shape is not a list", t->entry.name);
    CVY_CHECK(shape->count <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED,
              "tensor '%.200s' has %d dimensions, at most %d are supported", t->entry.name, shape->count, CVY_NDIM_MAX);
    t->entry.shape.ndim = shape->count;
    for (int i = 0; i < shape->count; i++) {
        CVY_TRY(parse_count(shape->child[i], &t->entry.shape.dim[i]));
        CVY_CHECK(!__builtin_mul_overflow(elems, (size_t)t->entry.shape.dim[i], &elems), CVY_E_FORMAT,
                  "tensor '%.200s': its number of elements overflows", t->entry.name);
    }
    *elems_out = elems;
    return CVY_OK;
}

static cvy_status parse_tensor(const cvy_safetensors *f, const char *name, const cvy_tree *node, struct tensor *t)
{
    const size_t data_bytes = f->map_bytes - f->data_at;
    const cvy_tree *dtype = NULL, *shape = NULL, *offsets = NULL;
    int64_t first, end;
    size_t elems = 0, bytes = 0;

    t->entry.name = name;
    if (node->kind == CVY_TREE_MAP) {
        dtype = cvy_tree_get(node, "dtype");
        shape = cvy_tree_get(node, "shape");
        offsets = cvy_tree_get(node, "data_offsets");
    }
    CVY_CHECK(dtype && shape && offsets && dtype->text && offsets->kind == CVY_TREE_LIST && offsets->count == 2,
              CVY_E_FORMAT,
              "tensor '%.200s': expected {\"dtype\": ..., \"shape\": [...], \"data_offsets\": [first, end]}", name);
    CVY_TRY(parse_shape(t, shape, &elems));
    CVY_TRY(parse_count(offsets->child[0], &first));
    CVY_TRY(parse_count(offsets->child[1], &end));
    CVY_CHECK(first <= end && (uint64_t)end <= data_bytes, CVY_E_FORMAT,
              "tensor '%.200s' lies at bytes %lld to %lld, the file has %zu bytes of data", name, (long long)first,
              (long long)end, data_bytes);

    const struct dtype_row *row = dtype_by_name(dtype->text);
    t->dtype = dtype->text;
    t->entry.dtype = row ? row->dtype : CVY_DTYPE_COUNT;
    t->elem_bytes = row ? row->bytes : 0;
    t->first = (size_t)first;
    t->bytes = (size_t)(end - first);
    t->entry.data = f->map + f->data_at + t->first;
    if (row)
        CVY_CHECK(!__builtin_mul_overflow(elems, row->bytes, &bytes) && bytes == t->bytes, CVY_E_FORMAT,
                  "tensor '%.200s': %s of shape %s does not take the %zu bytes that the header gives it", name,
                  row->name, cvy_shape_text(&t->entry.shape), t->bytes);
    return CVY_OK;
}

static int order_by_name(const void *a, const void *b, void *user)
{
    const struct tensor *t = user;
    return strcmp(t[*(const int *)a].entry.name, t[*(const int *)b].entry.name);
}

static int order_by_place(const void *a, const void *b, void *user)
{
    const struct tensor *x = (const struct tensor *)user + *(const int *)a,
                        *y = (const struct tensor *)user + *(const int *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Checks that no name occurs twice, and that the tensors cover the data part exactly once. */
static cvy_status check_together(cvy_safetensors *f)
{
    const struct tensor *t = f->tensor;
    int *order = NULL;
    size_t end = 0;
    CVY_TRY(cvy_pool_alloc(f->pool, sizeof(int) * (size_t)(f->count + 1), &f->by_name));
    CVY_TRY(cvy_pool_alloc(f->pool, sizeof(int) * (size_t)(f->count + 1), &order));
    for (int i = 0; i < f->count; i++)
        f->by_name[i] = order[i] = i;
    cvy_sort(f->by_name, (size_t)f->count, sizeof(int), order_by_name, f->tensor);
    for (int i = 1; i < f->count; i++)
        CVY_CHECK(strcmp(t[f->by_name[i - 1]].entry.name, t[f->by_name[i]].entry.name) != 0, CVY_E_FORMAT,
                  "tensor '%.200s' occurs twice", t[f->by_name[i]].entry.name);
    cvy_sort(order, (size_t)f->count, sizeof(int), order_by_place, f->tensor);
    for (int i = 0; i < f->count; i++) {
        const struct tensor *at = &t[order[i]];
        CVY_CHECK(at->first == end, CVY_E_FORMAT,
                  "tensor '%.200s' begins at byte %zu of the data, expected %zu (tensors overlap or leave a gap)",
                  at->entry.name, at->first, end);
        end = at->first + at->bytes;
    }
    CVY_CHECK(end == f->map_bytes - f->data_at, CVY_E_FORMAT, "%zu bytes of data, of which the header names %zu",
              f->map_bytes - f->data_at, end);
    return CVY_OK;
}

static cvy_status parse_header(cvy_safetensors *f, const char *text, size_t bytes)
{
    cvy_tree *root = NULL;
    CVY_CHECK(bytes > 0 && text[0] == '{', CVY_E_FORMAT, "the header does not begin with '{': not a safetensors file");
    CVY_TRY(cvy_tree_parse_text(f->pool, "header", text, bytes, &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_FORMAT, "the header is not a JSON object");
    CVY_TRY(cvy_pool_alloc(f->pool, sizeof(struct tensor) * (size_t)(root->count + 1), &f->tensor));
    for (int i = 0; i < root->count; i++) {
        if (strcmp(root->key[i], "__metadata__") == 0) {
            CVY_CHECK(root->child[i]->kind == CVY_TREE_MAP && !f->meta, CVY_E_FORMAT,
                      "__metadata__ is not one JSON object");
            f->meta = root->child[i];
        } else {
            CVY_TRY(parse_tensor(f, root->key[i], root->child[i], &f->tensor[f->count]));
            f->count++;
        }
    }
    return check_together(f);
}

static cvy_status open_inner(cvy_safetensors *f)
{
    uint8_t length[LENGTH_BYTES];
    uint64_t header_bytes = 0;
    struct stat stat;
    char *text = NULL;
    const char *why = "";

    f->fd = cvy_file_open(f->path, O_RDONLY, 0, &why);
    CVY_CHECK(f->fd >= 0, CVY_E_IO, "cannot open: %s", why);
    CVY_CHECK(fstat(f->fd, &stat) == 0, CVY_E_IO, "cannot be examined: %s", strerror(errno));
    CVY_CHECK(stat.st_size >= LENGTH_BYTES, CVY_E_FORMAT, "%lld bytes are too few for a safetensors file",
              (long long)stat.st_size);
    f->map_bytes = (size_t)stat.st_size;
    CVY_TRY(cvy_pread_all(f->fd, length, sizeof length, 0, f->path));
    CVY_CHECK(memcmp(length, "PK\3\4", 4) != 0, CVY_E_FORMAT,
              "a zip archive, as torch.save() writes, and not safetensors: write the weights in PyTorch by "
              "safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\") (docs/guide/coming-from.md)");
    for (int i = 0; i < LENGTH_BYTES; i++)
        header_bytes |= (uint64_t)length[i] << (8 * i);
    CVY_CHECK(header_bytes <= f->map_bytes - LENGTH_BYTES, CVY_E_FORMAT,
              "a header of %llu bytes in a file of %zu: truncated, or not safetensors",
              (unsigned long long)header_bytes, f->map_bytes);
    CVY_CHECK(header_bytes <= HEADER_BYTES_MAX, CVY_E_FORMAT, "a header of %llu bytes is above the limit of %zu",
              (unsigned long long)header_bytes, HEADER_BYTES_MAX);
    CVY_TRY(cvy_pool_alloc(f->pool, (size_t)header_bytes + 1, &text));
    CVY_TRY(cvy_pread_all(f->fd, text, (size_t)header_bytes, LENGTH_BYTES, f->path));
    f->data_at = LENGTH_BYTES + (size_t)header_bytes;
    f->map = mmap(NULL, f->map_bytes, PROT_READ, MAP_PRIVATE, f->fd, 0);
    if (f->map == MAP_FAILED) {
        f->map = NULL;
        CVY_FAIL(CVY_E_IO, "cannot map %zu bytes: %s", f->map_bytes, strerror(errno));
    }
    return parse_header(f, text, (size_t)header_bytes);
}

cvy_status cvy_safetensors_open(const char *path, cvy_safetensors **out)
{
    cvy_pool *pool = NULL;
    cvy_safetensors *f = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_pool_create(&pool));
    status = cvy_pool_alloc(pool, sizeof *f, &f);
    if (status != CVY_OK) {
        cvy_pool_destroy(&pool);
        return status;
    }
    f->pool = pool;
    f->fd = -1;
    CVY_TRY_OUT(cvy_pool_strdup(pool, path, &f->path));
    status = open_inner(f);
    if (status != CVY_OK)
        status = cvy_error_prefix(status, "%s", path);
out:
    if (status != CVY_OK)
        cvy_safetensors_close(&f);
    else
        *out = f;
    return status;
}

void cvy_safetensors_close(cvy_safetensors **f)
{
    if (!f || !*f)
        return;
    cvy_pool *pool = (*f)->pool;
    if ((*f)->map)
        munmap((*f)->map, (*f)->map_bytes);
    if ((*f)->fd >= 0)
        close((*f)->fd);
    *f = NULL;
    cvy_pool_destroy(&pool);
}

int cvy_safetensors_count(const cvy_safetensors *f)
{
    return f->count;
}

const cvy_tensor_entry *cvy_safetensors_at(const cvy_safetensors *f, int i)
{
    return i >= 0 && i < f->count ? &f->tensor[i].entry : NULL;
}

const char *cvy_safetensors_dtype(const cvy_safetensors *f, int i)
{
    return i >= 0 && i < f->count ? f->tensor[i].dtype : NULL;
}

int cvy_safetensors_index(const cvy_safetensors *f, const char *name)
{
    int low = 0, high = f->count - 1;
    while (low <= high) {
        const int middle = low + (high - low) / 2, i = f->by_name[middle];
        const int order = strcmp(name, f->tensor[i].entry.name);
        if (order == 0)
            return i;
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return -1;
}

const cvy_tensor_entry *cvy_safetensors_find(const cvy_safetensors *f, const char *name)
{
    return cvy_safetensors_at(f, cvy_safetensors_index(f, name));
}

const char *cvy_safetensors_meta(const cvy_safetensors *f, const char *key)
{
    const cvy_tree *value = f->meta ? cvy_tree_get(f->meta, key) : NULL;
    return value ? value->text : NULL;
}

/* ---- conversion ---- */

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float from_bf16(uint16_t h)
{
    return from_bits((uint32_t)h << 16);
}

/* IEEE 754 half: 1 sign, 5 exponent, 10 fraction bits. */
static float from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 1023u;
    if (exponent == 31)
        return from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        const float tiny = (float)fraction * 0x1p-24f;
        return sign ? -tiny : tiny;
    }
    return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

typedef double (*real_fn)(const uint8_t *raw);

static double real_f32(const uint8_t *raw)
{
    float x;
    memcpy(&x, raw, sizeof x);
    return x;
}

static double real_f64(const uint8_t *raw)
{
    double x;
    memcpy(&x, raw, sizeof x);
    return x;
}

static double real_f16(const uint8_t *raw)
{
    return from_f16((uint16_t)(raw[0] | raw[1] << 8));
}

static double real_bf16(const uint8_t *raw)
{
    return from_bf16((uint16_t)(raw[0] | raw[1] << 8));
}

static real_fn real_of(const char *dtype)
{
    static const struct {
        const char *dtype;
        real_fn real;
    } rows[] = {{"F32", real_f32}, {"F64", real_f64}, {"F16", real_f16}, {"BF16", real_bf16}};
    for (int i = 0; i < CVY_COUNT(rows); i++)
        if (strcmp(rows[i].dtype, dtype) == 0)
            return rows[i].real;
    return NULL;
}

cvy_status cvy_safetensors_read(const cvy_safetensors *f, int i, cvy_dtype dtype, void *out)
{
    CVY_CHECK(i >= 0 && i < f->count, CVY_E_ARGUMENT, "%s: tensor %d of %d was asked for", f->path, i, f->count);
    const struct tensor *t = &f->tensor[i];
    const int64_t at = (int64_t)(f->data_at + t->first);
    if (t->entry.dtype == dtype)
        return cvy_pread_all(f->fd, out, t->bytes, at, f->path);

    const real_fn real = real_of(t->dtype);
    CVY_CHECK(real && (dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_F64), CVY_E_UNSUPPORTED,
              "%s: tensor '%.200s' is %s and cannot be read as %s", f->path, t->entry.name, t->dtype,
              cvy_dtype_text(dtype));
    uint8_t raw[CONVERT_ELEMS * 8];
    const size_t elems = t->bytes / t->elem_bytes;
    for (size_t done = 0, n; done < elems; done += n) {
        n = CVY_MIN(elems - done, (size_t)CONVERT_ELEMS);
        CVY_TRY(cvy_pread_all(f->fd, raw, n * t->elem_bytes, at + (int64_t)(done * t->elem_bytes), f->path));
        for (size_t k = 0; k < n; k++) {
            const double x = real(raw + k * t->elem_bytes);
            if (dtype == CVY_DTYPE_F32)
                ((float *)out)[done + k] = (float)x;
            else
                ((double *)out)[done + k] = x;
        }
    }
    return CVY_OK;
}

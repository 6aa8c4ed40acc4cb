/*
 * onnx_file.c: reads an ONNX file; see onnx_file.h.
 *
 * The file may be malicious: sizes are checked against the bytes that are there before memory is taken, and data of
 * other files must be in the file's own folder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/number/base_bf16.h"
#include "data/data_half.h"

#define FILE_BYTES_MAX ((size_t)2 << 30) /* the limit of protocol buffers */

cvy_status cvy_onnx_file_read(const char *path, Cvy__Onnx__ModelProto **out)
{
    char *data = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_file_read(path, FILE_BYTES_MAX, &data, &bytes));
    Cvy__Onnx__ModelProto *file = cvy__onnx__model_proto__unpack(NULL, bytes, (const uint8_t *)data);
    cvy_mem_free(&data);
    CVY_CHECK(file, CVY_E_FORMAT, "%s is damaged or is no ONNX file: it cannot be decoded", path);
    if (!file->graph || file->graph->n_node == 0 || file->n_opset_import == 0) {
        cvy_onnx_file_free(&file);
        return cvy_error_set(CVY_E_FORMAT, "%s is no ONNX file: it has no graph, or names no operator set", path);
    }
    *out = file;
    return CVY_OK;
}

void cvy_onnx_file_free(Cvy__Onnx__ModelProto **file)
{
    if (*file)
        cvy__onnx__model_proto__free_unpacked(*file, NULL);
    *file = NULL;
}

/* ---- tensors ---- */

typedef struct bytes_of {
    const uint8_t *data;
    size_t n;
} bytes_of;

static size_t width_of(int type)
{
    switch (type) {
    case CVY_ONNX_UINT8:
    case CVY_ONNX_INT8:
    case CVY_ONNX_BOOL: return 1;
    case CVY_ONNX_FLOAT16:
    case CVY_ONNX_BFLOAT16: return 2;
    case CVY_ONNX_FLOAT:
    case CVY_ONNX_INT32: return 4;
    case CVY_ONNX_INT64:
    case CVY_ONNX_DOUBLE: return 8;
    default: return 0;
    }
}

static cvy_dtype dtype_of(int type)
{
    return type == CVY_ONNX_FLOAT || type == CVY_ONNX_FLOAT16 || type == CVY_ONNX_BFLOAT16 ? CVY_DTYPE_F32
           : type == CVY_ONNX_DOUBLE                                                       ? CVY_DTYPE_F64
                                                                                           : CVY_DTYPE_I64;
}

/* Element i of raw data; ONNX stores them in the order of bytes of this machine, little-endian. */
static void take_raw(int type, const uint8_t *raw, int64_t i, const cvy_onnx_tensor *t)
{
    const uint8_t *at = raw + (size_t)i * width_of(type);
    float *f = t->data;
    double *d = t->data;
    int64_t *n = t->data;
    uint16_t half = 0;
    int32_t word = 0;
    switch (type) {
    case CVY_ONNX_FLOAT: memcpy(&f[i], at, sizeof *f); break;
    case CVY_ONNX_DOUBLE: memcpy(&d[i], at, sizeof *d); break;
    case CVY_ONNX_INT64: memcpy(&n[i], at, sizeof *n); break;
    case CVY_ONNX_INT32:
        memcpy(&word, at, sizeof word);
        n[i] = word;
        break;
    case CVY_ONNX_INT8: n[i] = (int8_t)*at; break;
    case CVY_ONNX_FLOAT16:
    case CVY_ONNX_BFLOAT16:
        memcpy(&half, at, sizeof half);
        f[i] = type == CVY_ONNX_FLOAT16 ? cvy_half_get(half) : cvy_bf16_get(half);
        break;
    default: n[i] = *at; break;
    }
}

/* Element i of the lists of typed numbers, in which small types are in int32_data. */
static void take_typed(const Cvy__Onnx__TensorProto *from, int64_t i, const cvy_onnx_tensor *t)
{
    float *f = t->data;
    double *d = t->data;
    int64_t *n = t->data;
    switch (from->data_type) {
    case CVY_ONNX_FLOAT: f[i] = from->float_data[i]; break;
    case CVY_ONNX_DOUBLE: d[i] = from->double_data[i]; break;
    case CVY_ONNX_INT64: n[i] = from->int64_data[i]; break;
    case CVY_ONNX_FLOAT16: f[i] = cvy_half_get((uint16_t)from->int32_data[i]); break;
    case CVY_ONNX_BFLOAT16: f[i] = cvy_bf16_get((cvy_bf16)from->int32_data[i]); break;
    default: n[i] = from->int32_data[i]; break;
    }
}

static size_t count_typed(const Cvy__Onnx__TensorProto *from)
{
    switch (from->data_type) {
    case CVY_ONNX_FLOAT: return from->n_float_data;
    case CVY_ONNX_DOUBLE: return from->n_double_data;
    case CVY_ONNX_INT64: return from->n_int64_data;
    default: return from->n_int32_data;
    }
}

/* ---- data in other files ---- */

static const char *external(const Cvy__Onnx__TensorProto *from, const char *key)
{
    for (size_t i = 0; i < from->n_external_data; i++)
        if (strcmp(from->external_data[i]->key, key) == 0)
            return from->external_data[i]->value;
    return NULL;
}

/* A name below the folder: relative, and without "..". */
static int is_inside(const char *location)
{
    for (const char *at = location; *at; at += strcspn(at, "/"), at += *at == '/')
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2]))
            return 0;
    return *location && *location != '/';
}

/* Memory is taken only for bytes that the file has. */
static cvy_status read_range(cvy_pool *pool, const char *path, int fd, int64_t offset, size_t bytes, uint8_t **out)
{
    struct stat about;
    size_t done = 0;
    CVY_CHECK(fstat(fd, &about) == 0 && S_ISREG(about.st_mode), CVY_E_IO, "%s: it is not a file", path);
    CVY_CHECK(offset <= about.st_size && bytes <= (size_t)(about.st_size - offset), CVY_E_FORMAT,
              "%s: it has %lld bytes, %zu are needed at %lld", path, (long long)about.st_size, bytes,
              (long long)offset);
    CVY_TRY(cvy_pool_alloc(pool, CVY_MAX(bytes, 1), out));
    while (done < bytes) {
        const ssize_t n = pread(fd, *out + done, bytes - done, (off_t)(offset + (int64_t)done));
        CVY_CHECK(n > 0, CVY_E_IO, "%s: cannot read: %s", path, n < 0 ? strerror(errno) : "it was truncated");
        done += (size_t)n;
    }
    return CVY_OK;
}

static cvy_status read_external(cvy_pool *pool, const char *folder, const Cvy__Onnx__TensorProto *from, size_t need,
                                bytes_of *out)
{
    const char *location = external(from, "location"), *offset = external(from, "offset");
    char *path = NULL;
    uint8_t *data = NULL;
    CVY_CHECK(location && is_inside(location), CVY_E_FORMAT,
              "tensor %s: its data are in '%s', which is not in the folder of the ONNX file", from->name,
              location ? location : "");
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", folder, location));
    const int64_t at = offset ? strtoll(offset, NULL, 10) : 0;
    CVY_CHECK(at >= 0, CVY_E_FORMAT, "tensor %s: its data begin at %s of %s", from->name, offset, location);
    const char *why = "";
    const int above = cvy_file_open(folder, O_RDONLY | O_DIRECTORY, 0, &why),
              fd = above >= 0 ? cvy_file_open_below(above, location, O_RDONLY, 0, &why) : -1;
    if (above >= 0)
        close(above);
    CVY_CHECK(fd >= 0, CVY_E_IO, "tensor %s: %s: cannot open: %s", from->name, path, why);
    const cvy_status status = read_range(pool, path, fd, at, need, &data);
    close(fd);
    *out = (bytes_of){data, need};
    return status;
}

/* ---- a tensor ---- */

static cvy_status read_shape(const Cvy__Onnx__TensorProto *from, cvy_onnx_tensor *out)
{
    CVY_CHECK(from->n_dims <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED, "tensor %s has %zu dimensions, the limit is %d",
              from->name, from->n_dims, CVY_NDIM_MAX);
    const int64_t most = (int64_t)1 << 31;
    int64_t known = 1; /* with 1 for dimensions that are 0 */
    out->shape.ndim = (int)from->n_dims;
    out->elems = 1;
    for (int i = 0; i < out->shape.ndim; i++) {
        const int64_t dim = from->dims[i];
        CVY_CHECK(dim >= 0 && dim < most && known <= (most << 9) / CVY_MAX(dim, (int64_t)1), CVY_E_FORMAT,
                  "tensor %s: dimension %d is %lld", from->name, i, (long long)dim);
        out->shape.dim[i] = dim;
        out->elems *= dim;
        known *= CVY_MAX(dim, (int64_t)1);
    }
    return CVY_OK;
}

cvy_status cvy_onnx_tensor_read(cvy_pool *pool, const char *folder, const Cvy__Onnx__TensorProto *from,
                                cvy_onnx_tensor *out)
{
    const int type = from->data_type;
    const size_t width = width_of(type);
    bytes_of raw = {from->raw_data.data, from->raw_data.len};
    CVY_CHECK(width > 0, CVY_E_UNSUPPORTED, "tensor %s has the ONNX data type %d, which is not supported", from->name,
              type);
    *out = (cvy_onnx_tensor){.dtype = dtype_of(type)};
    CVY_TRY(cvy_pool_strdup(pool, from->name ? from->name : "", (char **)(uintptr_t)&out->name));
    CVY_TRY(read_shape(from, out));
    const size_t need = (size_t)out->elems * width;
    if (from->data_location == 1)
        CVY_TRY(read_external(pool, folder, from, need, &raw));
    const int is_raw = raw.n > 0 || from->data_location == 1;
    const size_t have = is_raw ? raw.n / width : count_typed(from);
    CVY_CHECK(have == (size_t)out->elems && (!is_raw || raw.n % width == 0), CVY_E_FORMAT,
              "tensor %s of shape %s needs %lld elements, the file has %zu", from->name, cvy_shape_text(&out->shape),
              (long long)out->elems, have);
    CVY_TRY(cvy_pool_alloc(pool, CVY_MAX((size_t)out->elems, 1) * cvy_dtype_bytes(out->dtype), &out->data));
    for (int64_t i = 0; i < out->elems; i++)
        if (is_raw)
            take_raw(type, raw.data, i, out);
        else
            take_typed(from, i, out);
    return CVY_OK;
}

/*
 * data_array.c: see data_array.h. Converts numbers of any usual type and byte order to f32 (or leaves bytes unchanged),
 * one record at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_array.h"

#include <string.h>

#include "base/base_file.h"
#include "data/data_half.h"
#include "data/data_index.h"

size_t array_kind_bytes(array_kind kind)
{
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2, 1};
    return bytes[kind];
}

static uint64_t load(const uint8_t *at, size_t bytes, int big_endian)
{
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++)
        x |= (uint64_t)at[big_endian ? bytes - 1 - i : i] << (8 * i);
    return x;
}

static double to_real(array_kind kind, uint64_t bits)
{
    float f;
    double d;
    const uint32_t low = (uint32_t)bits;
    switch (kind) {
    case ARRAY_I8: return (int8_t)bits;
    case ARRAY_I16: return (int16_t)bits;
    case ARRAY_I32: return (int32_t)low;
    case ARRAY_I64: return (double)(int64_t)bits;
    case ARRAY_F32: memcpy(&f, &low, sizeof f); return f;
    case ARRAY_F64: memcpy(&d, &bits, sizeof d); return d;
    case ARRAY_F16: return (double)cvy_half_get((uint16_t)bits);
    case ARRAY_BOOL: return bits != 0;
    default: return (double)bits;
    }
}

void array_to_f32(array_kind kind, int big_endian, const void *from, int64_t n, float *out)
{
    const size_t each = array_kind_bytes(kind);
    for (int64_t k = 0; k < n; k++)
        out[k] = (float)to_real(kind, load((const uint8_t *)from + (size_t)k * each, each, big_endian));
}

double array_number(array_kind kind, int big_endian, const void *from)
{
    return to_real(kind, load(from, array_kind_bytes(kind), big_endian));
}

cvy_status array_check(struct array *a)
{
    size_t bytes = array_kind_bytes(a->kind);
    for (int i = 0; i < a->shape.ndim; i++)
        CVY_TRY(cvy_size_mul(bytes, (size_t)a->shape.dim[i], &bytes));
    CVY_CHECK(bytes > 0 && bytes < (size_t)1 << 40, CVY_E_FORMAT, "%s: records of shape %s", a->file.path,
              cvy_shape_text(&a->shape));
    a->record_bytes = bytes;
    const int64_t there = (a->file.bytes - a->offset) / (int64_t)bytes;
    CVY_CHECK(a->file.bytes >= a->offset && there >= a->count, CVY_E_FORMAT,
              "%s: truncated in record %lld: %lld bytes after the header, expected %lld records of %zu", a->file.path,
              (long long)CVY_MAX(there, 0), (long long)(a->file.bytes - a->offset), (long long)a->count, bytes);
    return CVY_OK;
}

cvy_status array_read_u8(const struct array *a, int64_t i, uint8_t *out)
{
    return cvy_pread_all(a->file.fd, out, a->record_bytes, a->offset + i * (int64_t)a->record_bytes, a->file.path);
}

cvy_status array_read_f32(const struct array *a, int64_t i, cvy_bytes *work, float *out)
{
    CVY_TRY(cvy_bytes_need(work, a->record_bytes));
    CVY_TRY(array_read_u8(a, i, work->data));
    array_to_f32(a->kind, a->big_endian, work->data, cvy_shape_elems(&a->shape), out);
    return CVY_OK;
}

size_t array_part_work_bytes(const struct array *a, const cvy_field_part *part)
{
    const size_t elem = array_kind_bytes(a->kind);
    return (size_t)cvy_shape_elems(&part->shape) * elem + cvy_part_work_bytes(part, elem);
}

cvy_status array_read_part(const struct array *a, int64_t i, const cvy_field_part *part, void *work, void *out)
{
    const size_t elem = array_kind_bytes(a->kind);
    const int64_t at = a->offset + i * (int64_t)a->record_bytes, n = cvy_shape_elems(&part->shape);
    void *const stored = a->kind == ARRAY_U8 ? out : work;
    CVY_TRY(cvy_part_read(part, elem, a->file.fd, at, a->file.path, (char *)work + (size_t)n * elem, stored));
    if (a->kind != ARRAY_U8)
        array_to_f32(a->kind, a->big_endian, stored, n, out);
    return CVY_OK;
}

cvy_status array_read_labels(const struct array *a, cvy_pool *pool, int32_t **out, int32_t *largest_out)
{
    enum { AT_ONCE = 4096 };
    uint8_t block[AT_ONCE * 8];
    const size_t each = array_kind_bytes(a->kind);
    int32_t *label = NULL, largest = 0;
    cvy_status status = CVY_OK;
    CVY_CHECK(a->record_bytes == each, CVY_E_FORMAT,
              "%s: labels of %s, expected one number for each sample: use the number of the class (numpy.argmax of "
              "one-hot labels), or name the file as `y`, a target of reals",
              a->file.path, cvy_shape_text(&a->shape));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)a->count * sizeof *label, &label));
    for (int64_t from = 0; from < a->count; from += AT_ONCE) {
        const int64_t n = CVY_MIN(a->count - from, AT_ONCE);
        CVY_TRY(cvy_pread_all(a->file.fd, block, (size_t)n * each, a->offset + from * (int64_t)each, a->file.path));
        for (int64_t k = 0; k < n; k++) {
            const double value = to_real(a->kind, load(block + (size_t)k * each, each, a->big_endian));
            status = cvy_label_of(value, &label[from + k]);
            if (status != CVY_OK)
                return cvy_error_prefix(status, "%s, record %lld", a->file.path, (long long)(from + k));
            largest = CVY_MAX(largest, label[from + k]);
        }
    }
    *out = label;
    *largest_out = largest;
    return CVY_OK;
}

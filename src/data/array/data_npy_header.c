/*
 * data_npy_header.c: reads the header of a .npy file, a Python dictionary with three known keys.
 *
 * Only arrays in C order are read. Source: NumPy enhancement proposal 1 (versions 1, 2 and 3 of the format).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "data/array/data_npy.h"

static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? strchr(at + strlen(key), ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* How much of the text is the type, with its quotes. */
static int type_bytes(const char *at)
{
    enum { BYTES_MAX = 24 };
    const size_t quoted = *at == '\'' || *at == '"' ? strcspn(at + 1, *at == '"' ? "\"" : "'") + 2 : BYTES_MAX;
    return (int)CVY_MIN(CVY_MIN(quoted, strlen(at)), BYTES_MAX);
}

/* What a type that is not read holds, and what to do. */
static const char *kind_text(const char *at)
{
    static const char *const kinds[] = {
        "O (Python objects, as of lists of different lengths): make one array of numbers of them",
        "U (text): number the classes by numpy.unique(a, return_inverse=True)[1]",
        "S (text): number the classes by numpy.unique(a, return_inverse=True)[1]",
        "c (complex numbers): write the real and the imaginary parts as two channels",
        "M (times): write numbers, such as (a - a[0]) / numpy.timedelta64(1, 's')",
        "m (times): write numbers, such as a / numpy.timedelta64(1, 's')",
        "V (records of several fields): save each field as an array"};
    for (int i = 0; i < CVY_COUNT(kinds); i++)
        if ((*at == '\'' || *at == '"') && strchr("<>|=", at[1]) && at[2] == kinds[i][0])
            return kinds[i] + 1;
    return *at == '[' ? " (records of several fields): save each field as an array"
                      : ": save it as one of these, by a.astype('f4')";
}

static cvy_status parse_type(struct array *a, const char *at)
{
    static const struct {
        char name[3];
        array_kind kind;
    } kinds[] = {
        {"u1", ARRAY_U8},  {"b1", ARRAY_BOOL}, {"i1", ARRAY_I8},  {"u2", ARRAY_U16},
        {"i2", ARRAY_I16}, {"u4", ARRAY_U32},  {"i4", ARRAY_I32}, {"u8", ARRAY_U64},
        {"i8", ARRAY_I64}, {"f2", ARRAY_F16},  {"f4", ARRAY_F32}, {"f8", ARRAY_F64},
    };
    if (at && (*at == '\'' || *at == '"') && strchr("<>|=", at[1])) {
        a->big_endian = at[1] == '>';
        for (int i = 0; i < CVY_COUNT(kinds); i++) {
            if (strncmp(at + 2, kinds[i].name, 2) == 0 && at[4] == at[0]) {
                a->kind = kinds[i].kind;
                return CVY_OK;
            }
        }
    }
    at = at ? at : "missing";
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: element type %.*s%s; booleans, integers, f2, f4 and f8 are read", a->file.path,
             type_bytes(at), at, kind_text(at));
}

static cvy_status parse_shape(struct array *a, const char *at)
{
    int n = 0;
    int64_t dim[CVY_NDIM_MAX + 1];
    CVY_CHECK(at && *at == '(', CVY_E_FORMAT, "%s: no shape in the header", a->file.path);
    for (at++; *at && *at != ')'; at += strspn(at, ", ")) {
        char *end = NULL;
        const long long d = strtoll(at, &end, 10);
        CVY_CHECK(end != at && d >= 0 && n <= CVY_NDIM_MAX, CVY_E_FORMAT,
                  "%s: the header's shape cannot be read (at most %d axes)", a->file.path, CVY_NDIM_MAX + 1);
        dim[n++] = d;
        at = end;
    }
    CVY_CHECK(n >= 1, CVY_E_FORMAT, "%s: a single number, expected an array whose first axis counts samples",
              a->file.path);
    a->count = dim[0];
    a->shape = cvy_shape_make(n - 1, dim + 1);
    return CVY_OK;
}

/* Reads the text of the header, which the caller frees. Sets a->offset. */
static cvy_status read_header_text(struct array *a, char **out)
{
    uint8_t lead[12] = {0};
    char *header = NULL;
    const int64_t there = a->file.bytes - a->base;
    CVY_CHECK(there >= (int64_t)sizeof lead, CVY_E_FORMAT, "%s: %lld bytes, too short for a .npy file", a->file.path,
              (long long)there);
    CVY_TRY(cvy_pread_all(a->file.fd, lead, sizeof lead, a->base, a->file.path));
    CVY_CHECK(memcmp(lead, "\x93NUMPY", 6) == 0, CVY_E_FORMAT, "%s: is not a .npy file", a->file.path);
    const int wide = lead[6] >= 2;
    const uint32_t bytes =
        (uint32_t)lead[8] | (uint32_t)lead[9] << 8 | (wide ? (uint32_t)lead[10] << 16 | (uint32_t)lead[11] << 24 : 0);
    a->offset = a->base + (wide ? 12 : 10) + (int64_t)bytes;
    CVY_CHECK(lead[6] >= 1 && lead[6] <= 3 && bytes < 1 << 20 && a->offset <= a->file.bytes, CVY_E_FORMAT,
              "%s: the header is damaged or truncated", a->file.path);
    CVY_TRY(cvy_mem_alloc((size_t)bytes + 1, &header));
    const cvy_status status = cvy_pread_all(a->file.fd, header, bytes, a->offset - bytes, a->file.path);
    if (status != CVY_OK)
        cvy_mem_free(&header);
    *out = header;
    return status;
}

cvy_status cvy_npy_read_header(struct array *a)
{
    char *header = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(read_header_text(a, &header));
    const char *order = value_of(header, "'fortran_order'");
    CVY_TRY_OUT(parse_type(a, value_of(header, "'descr'")));
    CVY_TRY_OUT(parse_shape(a, value_of(header, "'shape'")));
    if ((!order || strncmp(order, "False", 5) != 0) && a->shape.ndim > 0)
        CVY_FAIL_OUT(CVY_E_UNSUPPORTED, "%s: is in Fortran order; save it by numpy.ascontiguousarray", a->file.path);
    CVY_TRY_OUT(array_check(a));
out:
    cvy_mem_free(&header);
    return status;
}

cvy_status cvy_npy_read_text_header(struct array *a, int *text_bytes_out)
{
    char *header = NULL, *end = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(read_header_text(a, &header));
    const char *type = value_of(header, "'descr'");
    const int is_text = type && (*type == '\'' || *type == '"') && strchr("<>|=", type[1]) && strchr("SU", type[2]);
    const long length = is_text ? strtol(type + 3, &end, 10) : 0;
    if (!is_text || length <= 0 || length > 1000 || *end != *type) {
        status = is_text ? parse_type(a, type) : CVY_NOT_APPLICABLE;
        goto out;
    }
    a->big_endian = type[1] == '>';
    a->kind = ARRAY_U8;
    *text_bytes_out = type[2] == 'U' ? 4 : 1;
    CVY_TRY_OUT(parse_shape(a, value_of(header, "'shape'")));
    if (cvy_shape_elems(&a->shape) != 1)
        CVY_FAIL_OUT(CVY_E_SHAPE, "%s: %s texts per sample, expected one", a->file.path, cvy_shape_text(&a->shape));
    a->shape = (cvy_shape){1, {length * *text_bytes_out}};
    CVY_TRY_OUT(array_check(a));
out:
    cvy_mem_free(&header);
    return status;
}

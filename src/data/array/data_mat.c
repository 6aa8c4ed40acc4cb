/*
 * data_mat.c: see data_mat.h.
 *
 * The file is a header of 128 bytes and a list of elements: a type, a number of bytes, and the data, filled up to eight
 * bytes. An element of type COMPRESSED is a zlib stream that holds one element. An element of type MATRIX holds others:
 * flags with its class, its axes, its name, and its numbers, whose type may be smaller than the class. Only matrices of
 * real numbers are read; cells, structs, text and sparse matrices are passed over.
 *
 * Source: MAT-File Format, The MathWorks, "Level 5 MAT-File Format".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_mat.h"

#include <string.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "data/data_inflate.h"

enum {
    HEADER = 128,
    FILE_MAX = 1 << 30,
    MATRIX = 14,
    COMPRESSED = 15, /* types of elements */
    CLASS_DOUBLE = 6,
    CLASS_U64 = 15, /* classes: doubles, floats, and integers from i8 on */
    IS_COMPLEX = 8, /* in the second byte of the flags */
};

/* Bytes of a number, by the type of its element; 0: it has no numbers. */
static const uint8_t type_bytes[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};

struct part {
    const uint8_t *at, *end;
    int swapped; /* 1: the file has the other byte order */
};

struct element {
    uint32_t type;
    struct part data;
};

struct matrix {
    uint32_t class, flags;
    char name[64];
    struct part axes;
    struct element real;
};

static uint64_t number_at(const struct part *p, const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[p->swapped ? bytes - 1 - i : i] << 8 * i;
    return value;
}

/* Takes the next element. Short data stand in the head itself: its first half-word is then their number of bytes. */
static cvy_status next(struct part *p, struct element *out)
{
    CVY_CHECK(p->end - p->at >= 8, CVY_E_FORMAT, "ends within an element: truncated or damaged");
    const uint32_t first = (uint32_t)number_at(p, p->at, 4), second = (uint32_t)number_at(p, p->at + 4, 4);
    const int is_short = first >> 16 != 0;
    const size_t bytes = is_short ? first >> 16 : second, left = (size_t)(p->end - p->at) - (is_short ? 4 : 8);
    out->type = is_short ? first & 0xffff : first;
    CVY_CHECK(bytes <= (is_short ? 4 : left), CVY_E_FORMAT,
              "an element of %zu bytes, and %zu are left: truncated or damaged", bytes, is_short ? 4 : left);
    const uint8_t *data = p->at + (is_short ? 4 : 8);
    out->data = (struct part){data, data + bytes, p->swapped};
    const size_t filled = is_short ? 4 : out->type == COMPRESSED ? bytes : (bytes + 7) / 8 * 8;
    p->at = data + CVY_MIN(filled, left);
    return CVY_OK;
}

/* ---- a matrix ---- */

static cvy_status read_matrix(struct part p, struct matrix *out)
{
    struct element flags, name;
    CVY_TRY(next(&p, &flags));
    CVY_CHECK(flags.data.end - flags.data.at == 8, CVY_E_FORMAT, "a matrix without flags: damaged");
    const uint32_t word = (uint32_t)number_at(&p, flags.data.at, 4);
    out->class = word & 0xff;
    out->flags = word >> 8 & 0xff;
    out->name[0] = 0;
    struct element axes;
    CVY_TRY(next(&p, &axes));
    out->axes = axes.data;
    CVY_TRY(next(&p, &name));
    const size_t n = (size_t)(name.data.end - name.data.at);
    CVY_CHECK(n < sizeof out->name, CVY_E_FORMAT, "a name of %zu bytes, expected at most 63", n);
    memcpy(out->name, name.data.at, n);
    out->name[n] = 0;
    if (out->class < CLASS_DOUBLE || out->class > CLASS_U64 || (out->flags & IS_COMPLEX))
        return CVY_NOT_APPLICABLE;
    return next(&p, &out->real);
}

static double real_of(const struct part *p, uint32_t type, const uint8_t *at)
{
    enum { I8 = 1, U8, I16, U16, I32, U32, F32, F64 = 9, I64 = 12, U64 };
    const uint64_t bits = number_at(p, at, type_bytes[type]);
    const uint32_t low = (uint32_t)bits;
    float f32;
    double f64;
    switch (type) {
    case I8: return (int8_t)low;
    case I16: return (int16_t)low;
    case I32: return (int32_t)low;
    case I64: return (double)(int64_t)bits;
    case F32: memcpy(&f32, &low, sizeof f32); return f32;
    case F64: memcpy(&f64, &bits, sizeof f64); return f64;
    default: return (double)bits;
    }
}

static cvy_status take_numbers(cvy_pool *pool, const struct matrix *m, cvy_mat_array *out)
{
    const struct part *p = &m->real.data;
    const uint32_t type = m->real.type;
    char *name = NULL;
    double count = 1;
    CVY_CHECK(type < CVY_COUNT(type_bytes) && type_bytes[type] > 0, CVY_E_FORMAT,
              "array %s: numbers of the unknown type %u", m->name, type);
    const int64_t bytes = p->end - p->at, n = bytes / type_bytes[type];
    for (const uint8_t *at = m->axes.at; m->axes.end - at >= 4; at += 4)
        count *= (double)(int32_t)number_at(&m->axes, at, 4);
    CVY_CHECK(n * type_bytes[type] == bytes && (double)n == count, CVY_E_FORMAT,
              "array %s: %lld bytes of numbers for %.0f numbers: damaged", m->name, (long long)bytes, count);
    CVY_TRY(cvy_pool_strdup(pool, m->name, &name));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)CVY_MAX(n, 1) * sizeof *out->value, &out->value));
    for (int64_t i = 0; i < n; i++)
        out->value[i] = real_of(p, type, p->at + i * type_bytes[type]);
    out->name = name;
    out->n = n;
    return CVY_OK;
}

/* ---- the file ---- */

struct search {
    cvy_pool *pool;
    const char *name, *usual;
    cvy_mat_array *out;
    cvy_text others; /* names of the arrays that it could be */
    int count, is_found;
    cvy_bytes room;
};

/* Of several arrays without a wanted name, that of the usual name counts, else it must be the only one. */
static cvy_status look_at(struct search *s, struct element e)
{
    struct matrix m;
    if (e.type == COMPRESSED) {
        CVY_TRY(cvy_inflate_any(e.data.at, (size_t)(e.data.end - e.data.at), &s->room));
        struct part inner = {s->room.data, (const uint8_t *)s->room.data + s->room.bytes, e.data.swapped};
        CVY_TRY(next(&inner, &e));
    }
    if (e.type != MATRIX)
        return CVY_OK;
    const cvy_status status = read_matrix(e.data, &m);
    if (status != CVY_OK)
        return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
    cvy_text_add(&s->others, "%s%s", s->count++ ? ", " : "", m.name);
    const int is_it = strcmp(m.name, s->name ? s->name : s->usual) == 0;
    if (s->is_found || (s->name && !is_it))
        return CVY_OK;
    s->is_found = is_it;
    return is_it || s->count == 1 ? take_numbers(s->pool, &m, s->out) : CVY_OK;
}

static cvy_status check_header(const char *head, size_t bytes, int *swapped_out)
{
    CVY_CHECK(bytes < 10 || memcmp(head, "MATLAB 7.3", 10) != 0, CVY_E_UNSUPPORTED,
              "is a MAT-file of version 7.3: save it in MATLAB by save(NAME, '-v7')");
    CVY_CHECK(bytes >= HEADER && memcmp(head, "MATLAB 5.0", 10) == 0, CVY_E_FORMAT,
              "is no MAT-file of MATLAB 5 (%zu bytes): save it in MATLAB by save(NAME, '-v7')", bytes);
    const int is_little = head[126] == 'I' && head[127] == 'M', is_big = head[126] == 'M' && head[127] == 'I';
    CVY_CHECK(is_little || is_big, CVY_E_FORMAT, "says no byte order in its header: damaged");
    *swapped_out = is_big;
    return CVY_OK;
}

static cvy_status search_file(struct search *s, const char *data, size_t bytes)
{
    int swapped = 0;
    CVY_TRY(check_header(data, bytes, &swapped));
    struct part p = {(const uint8_t *)data + HEADER, (const uint8_t *)data + bytes, swapped};
    while (p.at < p.end) {
        struct element e;
        CVY_TRY(next(&p, &e));
        CVY_TRY(look_at(s, e));
    }
    CVY_CHECK(s->count > 0, CVY_E_FORMAT, "has no array of real numbers");
    CVY_CHECK(s->is_found || !s->name, CVY_E_CONFIG, "has no array of real numbers %s; it has %s", s->name,
              s->others.data);
    CVY_CHECK(s->is_found || s->count == 1, CVY_E_CONFIG, "has the arrays %s: say which one, as in FILE:%s",
              s->others.data, s->out->name);
    return s->others.status;
}

cvy_status cvy_mat_read(cvy_pool *pool, const char *path, const char *name, const char *usual, cvy_mat_array *out)
{
    struct search s = {.pool = pool, .name = name, .usual = usual, .out = out};
    char *data = NULL;
    size_t bytes = 0;
    *out = (cvy_mat_array){0};
    CVY_TRY(cvy_file_read(path, FILE_MAX, &data, &bytes));
    cvy_status status = search_file(&s, data, bytes);
    if (status != CVY_OK)
        status = cvy_error_prefix(status, "%s", path);
    cvy_text_free(&s.others);
    cvy_mem_free(&s.room.data);
    cvy_mem_free(&data);
    return status;
}

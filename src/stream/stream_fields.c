/*
 * stream_fields.c: the fields of a sample, and new samples that were put field by field; see stream_fields.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "stream/stream_fields.h"

#include <math.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/text/base_text.h"
#include "data/data_finite.h"
#include "program/program_convert.h"

static cvy_sample_field *find(cvy_sample_fields *fields, const char *name)
{
    for (int i = 0; name && i < fields->n; i++)
        if (strcmp(fields->field[i].name, name) == 0)
            return &fields->field[i];
    return NULL;
}

/* Sets f->elems and f->bytes. */
static cvy_status measure(cvy_sample_field *f)
{
    int64_t elems = 1;
    CVY_CHECK(f->shape.ndim >= 0 && f->shape.ndim < CVY_NDIM_MAX, CVY_E_SHAPE,
              "field %s: %d dimensions per sample, at most %d", f->name, f->shape.ndim, CVY_NDIM_MAX - 1);
    for (int d = 0; d < f->shape.ndim; d++) {
        CVY_CHECK(f->shape.dim[d] > 0 && f->shape.dim[d] <= INT64_MAX / 16 / elems, CVY_E_SHAPE,
                  "field %s: dimension %d of a sample is %lld", f->name, d, (long long)f->shape.dim[d]);
        elems *= f->shape.dim[d];
    }
    f->elems = elems;
    f->bytes = (size_t)elems * cvy_dtype_bytes(f->dtype);
    return CVY_OK;
}

cvy_status cvy_sample_fields_add(cvy_sample_fields *fields, const char *owner, const char *name, cvy_dtype dtype,
                                 const cvy_shape *sample_shape)
{
    CVY_CHECK(name && *name && sample_shape, CVY_E_ARGUMENT, "a field of %s got no %s", owner,
              name && *name ? "shape" : "name");
    CVY_CHECK(!find(fields, name), CVY_E_ARGUMENT, "%s has a field %s already", owner, name);
    CVY_CHECK(fields->n < CVY_FIELDS_MAX, CVY_E_ARGUMENT, "%s has at most %d fields", owner, CVY_FIELDS_MAX);
    CVY_CHECK((int)dtype >= 0 && dtype < CVY_DTYPE_COUNT && dtype != CVY_DTYPE_BF16, CVY_E_ARGUMENT,
              "field %s is of dtype number %d, expected f32, f64, i64, i32 or u8", name, (int)dtype);
    cvy_sample_field *f = &fields->field[fields->n];
    *f = (cvy_sample_field){.dtype = dtype, .shape = *sample_shape, .nfresh = -1};
    CVY_TRY(cvy_mem_strdup(name, &f->name));
    const cvy_status status = measure(f);
    if (status != CVY_OK) {
        cvy_mem_free(&f->name);
        return status;
    }
    fields->n++;
    fields->record_bytes += f->bytes;
    return CVY_OK;
}

static void free_field(cvy_sample_field *f)
{
    cvy_mem_free(&f->fresh.data);
    cvy_mem_free(&f->name);
}

void cvy_sample_fields_remove_last(cvy_sample_fields *fields)
{
    cvy_sample_field *last = &fields->field[--fields->n];
    fields->record_bytes -= last->bytes;
    free_field(last);
}

cvy_status cvy_sample_fields_get(const cvy_sample_fields *fields, int i, const char **name_out, cvy_dtype *dtype_out,
                                 cvy_shape *shape_out)
{
    if (i < 0 || i >= fields->n)
        return CVY_END;
    if (name_out)
        *name_out = fields->field[i].name;
    if (dtype_out)
        *dtype_out = fields->field[i].dtype;
    if (shape_out)
        *shape_out = fields->field[i].shape;
    return CVY_OK;
}

static cvy_status check_finite(const cvy_sample_field *f, int64_t n)
{
    const cvy_span span = {.dtype = f->dtype, .data = f->fresh.data};
    if (!cvy_dtype_is_real(f->dtype) || (f->dtype == CVY_DTYPE_F32 && cvy_all_finite(f->fresh.data, n * f->elems)))
        return CVY_OK;
    for (int64_t i = 0; i < n * f->elems; i++)
        CVY_CHECK(isfinite(cvy_get(&span, i)), CVY_E_NUMERIC, "element %lld of field %s of new sample %lld is %g in %s",
                  (long long)(i % f->elems), f->name, (long long)(i / f->elems), cvy_get(&span, i),
                  cvy_dtype_text(f->dtype));
    return CVY_OK;
}

cvy_status cvy_sample_fields_put(cvy_sample_fields *fields, const char *owner, const char *name, cvy_dtype dtype,
                                 const void *data, int64_t elems)
{
    cvy_sample_field *f = find(fields, name);
    CVY_CHECK(f, CVY_E_ARGUMENT, "%s has no field %s", owner, name ? name : "without a name");
    f->nfresh = -1;
    CVY_CHECK(elems >= 0 && elems % f->elems == 0, CVY_E_SHAPE,
              "%lld elements for field %s, expected a multiple of %lld, those of a sample of %s", (long long)elems,
              name, (long long)f->elems, cvy_shape_text(&f->shape));
    const int64_t n = elems / f->elems;
    CVY_TRY(cvy_bytes_need(&f->fresh, (size_t)n * f->bytes));
    CVY_TRY(cvy_convert_elems(name, data, dtype, f->fresh.data, f->dtype, elems));
    CVY_TRY(check_finite(f, n));
    f->nfresh = n;
    return CVY_OK;
}

cvy_status cvy_sample_fields_count(const cvy_sample_fields *fields, const char *owner, int64_t *n_out)
{
    CVY_CHECK(fields->n > 0, CVY_E_ARGUMENT, "%s has no fields: add them first", owner);
    const int64_t n = fields->field[0].nfresh;
    for (int i = 0; i < fields->n; i++) {
        const cvy_sample_field *f = &fields->field[i];
        CVY_CHECK(f->nfresh >= 0, CVY_E_SHAPE, "there are no new samples of field %s", f->name);
        CVY_CHECK(f->nfresh == n, CVY_E_SHAPE, "there are %lld new samples of field %s, but %lld of field %s",
                  (long long)f->nfresh, f->name, (long long)n, fields->field[0].name);
    }
    *n_out = n;
    return CVY_OK;
}

void cvy_sample_fields_clear(cvy_sample_fields *fields)
{
    for (int i = 0; i < fields->n; i++)
        fields->field[i].nfresh = -1;
}

void cvy_sample_fields_to_record(const cvy_sample_fields *fields, int64_t i, char *record)
{
    for (int k = 0; k < fields->n; k++) {
        const cvy_sample_field *f = &fields->field[k];
        memcpy(record, (const char *)f->fresh.data + (size_t)i * f->bytes, f->bytes);
        record += f->bytes;
    }
}

void cvy_sample_fields_free(cvy_sample_fields *fields)
{
    while (fields->n > 0)
        cvy_sample_fields_remove_last(fields);
}

cvy_status cvy_stream_find_word(const char *option, const char *given, const char *const *word, int n, int *out)
{
    cvy_text known = {0};
    *out = 0;
    for (int i = 0; i < n; i++)
        if (!given || strcmp(given, word[i]) == 0) {
            *out = given ? i : 0;
            return CVY_OK;
        }
    cvy_text_add_known(&known, given, word, n);
    const cvy_status status =
        cvy_error_set(CVY_E_ARGUMENT, "opts.%s is '%s'%s", option, given, known.data ? known.data : "");
    cvy_text_free(&known);
    return status;
}

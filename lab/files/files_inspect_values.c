/*
 * files_inspect_values.c: the values of a data set: see files_inspect.h. People copy these numbers into job files, so
 * they have the digits that tell values apart.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "files/files_inspect.h"

#include <math.h>
#include <string.h>

#include "base/number/base_moments.h"
#include "data/data_reader.h"

enum { SHOWN = 64 };

void cvy_inspect_classes(const cvy_dataset_info *info, const int64_t *count, cvy_text *t)
{
    enum { CLASSES = 20, CLASSES_COUNTED = 1000 };
    if (info->nclasses <= 0)
        return;
    cvy_text_add(t, "%lld classes:%s", (long long)info->nclasses, count ? "\n" : "");
    for (int64_t i = 0; i < CVY_MIN(info->nclasses, count ? CLASSES_COUNTED : CLASSES); i++)
        if (count)
            cvy_text_add(t, "  %-24s %lld\n", info->class_name[i], (long long)count[i]);
        else
            cvy_text_add(t, " %s", info->class_name[i]);
    if (info->nclasses > (count ? CLASSES_COUNTED : CLASSES))
        cvy_text_add(t, count ? "  ...\n" : " ...");
    cvy_text_add(t, count ? "" : "\n");
}

/* ---- the values of a field ---- */

struct channel {
    cvy_moments of; /* of finite values */
    double least, most;
    int64_t not_finite, fractions; /* values that are so */
};

struct field {
    const char *name;
    int64_t nchannels;
    struct channel *channel;
    const char *const *column; /* their names; NULL: not known */
    int is_vector;             /* each channel is one number */
};

struct look { /* buffers for one sample */
    cvy_raw raw;
    cvy_bytes decoded, rows, finite;
};

/* Adds n values; `finite` has room for them. */
static void add_values(struct channel *c, const void *values, cvy_dtype dtype, int64_t n, float *finite)
{
    int64_t count = 0;
    for (int64_t k = 0; k < n; k++) {
        const float x = dtype == CVY_DTYPE_U8 ? ((const uint8_t *)values)[k] : ((const float *)values)[k];
        if (!isfinite(x))
            continue;
        finite[count++] = x;
        c->least = CVY_MIN(c->least, x);
        c->most = CVY_MAX(c->most, x);
        c->fractions += x != floorf(x);
    }
    c->not_finite += n - count;
    const cvy_moments m = cvy_moments_of_f32(finite, NULL, count);
    cvy_moments_merge(&c->of, &m);
}

static cvy_status add_field(struct field *f, const void *values, cvy_dtype dtype, int64_t elems, cvy_bytes *finite)
{
    const int64_t plane = elems / f->nchannels;
    const size_t value = cvy_dtype_bytes(dtype);
    CVY_TRY(cvy_bytes_need(finite, (size_t)plane * sizeof(float)));
    for (int64_t c = 0; c < f->nchannels; c++)
        add_values(&f->channel[c], (const char *)values + (size_t)(c * plane) * value, dtype, plane, finite->data);
    return CVY_OK;
}

static cvy_status measure(cvy_dataset *d, struct look *l, struct field *x, struct field *y, int64_t *count)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const cvy_shape *shape = &cvy_dataset_reader_info(d)->shape;
    for (int64_t i = 0; i < info->nsamples; i++) {
        cvy_picture p = {0};
        CVY_TRY(cvy_dataset_read_raw(d, i, &l->raw));
        const cvy_status status =
            cvy_raw_picture(&l->raw, shape->ndim > 1 ? shape->dim[0] : 1, &l->decoded, &l->rows, &p);
        if (status != CVY_OK)
            return cvy_dataset_name_sample(d, i, status);
        if (count && l->raw.label >= 0 && l->raw.label < info->nclasses)
            count[l->raw.label]++;
        CVY_TRY(add_field(x, p.data, p.dtype, p.C * p.H * p.W, &l->finite));
        if (y->nchannels > 0)
            CVY_TRY(add_field(y, l->raw.y.data, CVY_DTYPE_F32, (int64_t)(l->raw.y.bytes / sizeof(float)), &l->finite));
    }
    return CVY_OK;
}

static cvy_status begin(struct field *f, const char *name, int64_t nchannels, const char *const *column,
                        int64_t ncolumns)
{
    *f = (struct field){.name = name, .nchannels = nchannels, .column = ncolumns == nchannels ? column : NULL};
    CVY_TRY(cvy_mem_alloc((size_t)nchannels * sizeof *f->channel, &f->channel));
    for (int64_t c = 0; c < nchannels; c++)
        f->channel[c] = (struct channel){.least = INFINITY, .most = -INFINITY};
    return CVY_OK;
}

/* ---- the table ---- */

static const char *kind_of(const struct field *f)
{
    return f->is_vector ? "number" : "channel";
}

/* The values vary so little that f32, as which they are read, has hardly any steps for it. */
static void add_coarse(const struct field *f, int64_t c, cvy_text *t)
{
    const struct channel *of = &f->channel[c];
    const double size = CVY_MAX(fabs(of->least), fabs(of->most));
    if (of->of.n > 0 && cvy_moments_are_coarse(size, cvy_moments_std(&of->of), of->fractions == 0))
        cvy_text_add(t,
                     "  %s %lld of %s: values are read as f32, in which numbers near %.6g are %.3g apart: smaller "
                     "differences are lost; subtract a constant before they are written\n",
                     kind_of(f), (long long)c, f->name, size, cvy_f32_spacing(size));
}

static void add_table(const struct field *f, cvy_text *t)
{
    char number[4][CVY_NUMBER_ROOM];
    cvy_text_add(t, "values of %s as stored:\n  %-7s         mean           sd          min          max\n", f->name,
                 kind_of(f));
    for (int64_t c = 0; c < CVY_MIN(f->nchannels, SHOWN); c++) {
        const struct channel *of = &f->channel[c];
        const double none = of->of.n > 0 ? 0 : NAN, sd = cvy_moments_std(&of->of) + none;
        if (sd > 0)
            cvy_number_write(of->of.mean, sd / 100, number[0]);
        else
            cvy_number_write_f32(of->of.mean + none, number[0]);
        cvy_number_write(sd, 0, number[1]);
        cvy_number_write_f32(of->least + none, number[2]);
        cvy_number_write_f32(of->most + none, number[3]);
        cvy_text_add(t, "  %-7lld %12s %12s %12s %12s%s%s\n", (long long)c, number[0], number[1], number[2], number[3],
                     f->column ? "  " : "", f->column ? f->column[c] : "");
    }
    if (f->nchannels > SHOWN)
        cvy_text_add(t, "  and %lld more\n", (long long)(f->nchannels - SHOWN));
    for (int64_t c = 0; c < CVY_MIN(f->nchannels, SHOWN); c++) {
        if (f->channel[c].not_finite > 0)
            cvy_text_add(t, "  %s %lld of %s: %lld of %.0f values are NaN or infinite, and do not count above\n",
                         kind_of(f), (long long)c, f->name, (long long)f->channel[c].not_finite,
                         f->channel[c].of.n + (double)f->channel[c].not_finite);
        add_coarse(f, c, t);
    }
}

/* Numbers of a vector are channels of their own, as for data.normalize; a map [H, W] is one. */
static int64_t channels_of_y(const cvy_shape *x, const cvy_shape *y)
{
    const int is_map = y->ndim >= 2 && y->ndim == x->ndim - 1 && memcmp(y->dim, x->dim + 1, sizeof *y->dim) == 0;
    return y->ndim == 0 || is_map ? 1 : y->dim[0];
}

cvy_status cvy_inspect_values(cvy_dataset *d, cvy_text *t)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const cvy_reader_info *stored = cvy_dataset_reader_info(d);
    struct field x = {0}, y = {0};
    struct look l = {0};
    int64_t *count = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(
        begin(&x, "x", stored->shape.ndim > 0 ? stored->shape.dim[0] : 1, stored->columns.x, stored->columns.nx));
    if (stored->has_y)
        CVY_TRY_OUT(
            begin(&y, "y", channels_of_y(&stored->shape, &stored->y_shape), stored->columns.y, stored->columns.ny));
    x.is_vector = stored->shape.ndim <= 1;
    y.is_vector = stored->y_shape.ndim <= 1;
    if (info->nclasses > 0)
        CVY_TRY_OUT(cvy_mem_alloc((size_t)info->nclasses * sizeof *count, &count));
    CVY_TRY_OUT(measure(d, &l, &x, &y, count));
    cvy_inspect_classes(info, count, t);
    add_table(&x, t);
    if (y.nchannels > 0)
        add_table(&y, t);
out:
    cvy_raw_free(&l.raw);
    cvy_mem_free(&l.decoded.data);
    cvy_mem_free(&l.rows.data);
    cvy_mem_free(&l.finite.data);
    cvy_mem_free(&x.channel);
    cvy_mem_free(&y.channel);
    cvy_mem_free(&count);
    return status;
}

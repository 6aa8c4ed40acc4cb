/*
 * data_fits_described.c: what the headers of FITS files say beside the numbers, and whether those of a set agree.
 *
 * It runs when the data set is opened. Images have a unit (BUNIT) and axes (CTYPEn); columns of tables have units
 * (TUNITn). Units that measure the same are converted. Axes in another order or direction are a fault. Images of the
 * sky show different places by nature, so coordinates of an axis count from the middle of the image: their scale and
 * direction are compared. Source: FITS standard 4.0, sections 4.4.2, 7.3.2 and 8.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/fits/data_fits.h"

#if CVY_HAVE_CFITSIO
#include <stdio.h>
#include <string.h>

enum { VALUES_MAX = 1 << 16 };

static cvy_status copy_text(cvy_fits *f, struct cvy_fits_handle *h, const char *keyword, int n, const char **out)
{
    char name[32], text[CVY_FITS_TEXT], *copy = NULL;
    snprintf(name, sizeof name, n > 0 ? "%s%d" : "%s", keyword, n);
    if (!cvy_fits_find_text(h, name, text))
        return CVY_OK;
    CVY_TRY(cvy_pool_strdup(f->pool, text, &copy));
    *out = copy;
    return CVY_OK;
}

/* The size of a pixel along an axis; 0: it is not known, or the axis is turned against the pixels. */
static double pixel_size(struct cvy_fits_handle *h, int n, int naxis)
{
    char name[32];
    double size = 0, other = 0;
    snprintf(name, sizeof name, "CDELT%d", n);
    const int has_delta = cvy_fits_find_number(h, name, &size);
    for (int k = 1; k <= naxis; k++) {
        static const char *const matrix[] = {"CD", "PC"};
        for (int m = 0; m < CVY_COUNT(matrix); m++) {
            snprintf(name, sizeof name, "%s%d_%d", matrix[m], n, k);
            if (!cvy_fits_find_number(h, name, &other))
                continue;
            if (k != n && other != 0)
                return 0;
            if (k == n)
                size = m == 0 ? other : has_delta ? size * other : 0;
        }
    }
    return size;
}

static int is_of_sky(const char *name)
{
    static const char *const known[] = {"RA", "DEC", "GLON", "GLAT", "ELON", "ELAT", "HPLN", "HPLT"};
    for (int i = 0; i < CVY_COUNT(known); i++)
        if (strcmp(name, known[i]) == 0)
            return 1;
    return 0;
}

/* The coordinate of the first pixel. 0: the header does not have it. */
static int find_first(struct cvy_fits_handle *h, int n, double size, double *first_out)
{
    char name[2][32];
    double value = 0, pixel = 0;
    snprintf(name[0], sizeof name[0], "CRVAL%d", n);
    snprintf(name[1], sizeof name[1], "CRPIX%d", n);
    if (!cvy_fits_find_number(h, name[0], &value) || !cvy_fits_find_number(h, name[1], &pixel))
        return 0;
    *first_out = value + size * (1 - pixel);
    return 1;
}

/* Describes axis NAXISn of images, of n pixels. */
static cvy_status describe_axis(cvy_fits *f, struct cvy_fits_handle *h, int n, int naxis, int64_t pixels,
                                cvy_coordinates *out)
{
    double *value = NULL;
    char *name = NULL;
    *out = (cvy_coordinates){.n = pixels};
    CVY_TRY(copy_text(f, h, "CTYPE", n, &out->name));
    if (!out->name)
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(f->pool, &name, "%.*s", (int)strcspn(out->name, "-"), out->name)); /* "RA---TAN" */
    out->name = name;
    CVY_TRY(copy_text(f, h, "CUNIT", n, &out->cf[CVY_CF_UNITS]));
    const double size = pixel_size(h, n, naxis);
    double first = size * (double)(1 - pixels) / 2;
    if (size == 0 || pixels > VALUES_MAX || (!is_of_sky(name) && !find_first(h, n, size, &first)))
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(f->pool, (size_t)pixels * sizeof *value, &value));
    for (int64_t i = 0; i < pixels; i++)
        value[i] = first + size * (double)i;
    out->value = value;
    return CVY_OK;
}

static cvy_status describe_image(cvy_fits *f, struct cvy_fits_handle *h, const char *file, cvy_described *d)
{
    const int has_channel = f->shape.ndim == 3 && f->shape.dim[0] == 1;
    *d = (cvy_described){.name = "the image", .file = file, .ndim = f->shape.ndim};
    CVY_TRY(copy_text(f, h, "BUNIT", 0, &d->cf[CVY_CF_UNITS]));
    for (int i = 0; i < d->ndim; i++) {
        d->axis[i].n = f->shape.dim[i];
        if (i > 0 || !has_channel)
            CVY_TRY(describe_axis(f, h, d->ndim - i, d->ndim, f->shape.dim[i], &d->axis[i]));
    }
    return CVY_OK;
}

static cvy_status describe_column(cvy_fits *f, struct cvy_fits_handle *h, const char *file, int column,
                                  cvy_described *d)
{
    const cvy_fits_column *c = &f->column[column];
    const int number = f->is_table ? cvy_fits_column_number(h, c->name) : 0;
    *d = (cvy_described){.name = c->name, .file = file, .ndim = c->shape.ndim};
    for (int i = 0; i < d->ndim; i++)
        d->axis[i].n = c->shape.dim[i];
    return number > 0 ? copy_text(f, h, "TUNIT", number, &d->cf[CVY_CF_UNITS]) : CVY_OK;
}

static cvy_status describe(cvy_fits *f, struct cvy_fits_handle *h, const char *file, cvy_descriptions *out)
{
    cvy_descriptions d = {.nx = f->is_table ? f->nx : 1, .ny = f->ny};
    CVY_TRY(cvy_pool_alloc(f->pool, (size_t)(d.nx + d.ny) * sizeof *d.x, &d.x));
    d.y = d.x + d.nx;
    for (int i = 0; i < d.nx; i++)
        CVY_TRY(f->is_table ? describe_column(f, h, file, i, &d.x[i]) : describe_image(f, h, file, &d.x[i]));
    for (int i = 0; i < d.ny; i++)
        CVY_TRY(describe_column(f, h, file, f->nx + i, &d.y[i]));
    *out = d;
    return CVY_OK;
}

static cvy_status relate(const cvy_described *like, const char *where, int how, cvy_remarks *remarks,
                         cvy_described *own, cvy_fits_scale *scale)
{
    int differs[CVY_NDIM_MAX] = {0};
    cvy_mend mend = cvy_mend_nothing();
    if (like->ndim != own->ndim)
        return CVY_OK; /* the shapes differ, which is found elsewhere */
    if (!cvy_described_match(like, own, 0, mend.from))
        mend = cvy_mend_nothing();
    CVY_TRY(
        cvy_described_relate(like, where, own, CVY_COMPARE_AXES | CVY_COMPARE_UNITS | how, remarks, &mend, differs));
    *scale = (cvy_fits_scale){mend.factor, mend.offset};
    if (mend.factor != 1 || mend.offset != 0)
        own->cf[CVY_CF_UNITS] = like->cf[CVY_CF_UNITS];
    return CVY_OK;
}

/* Compares all variables. how: CVY_COMPARE_CONVERTS or 0. scale: of each. */
static cvy_status compare(const cvy_descriptions *like, const char *where, int how, cvy_remarks *remarks,
                          cvy_descriptions *own, cvy_fits_scale *scale)
{
    for (int i = 0; i < own->nx + own->ny; i++)
        scale[i] = (cvy_fits_scale){1, 0};
    for (int i = 0; i < own->nx && own->nx == like->nx; i++)
        CVY_TRY(relate(&like->x[i], where, how, remarks, &own->x[i], &scale[i]));
    for (int i = 0; i < own->ny && own->ny == like->ny; i++)
        CVY_TRY(relate(&like->y[i], where, how, remarks, &own->y[i], &scale[own->nx + i]));
    return CVY_OK;
}

/* What a file is compared with; where: a text of the caller. NULL: nothing. */
static const cvy_descriptions *reference(const cvy_fits *f, int64_t file, const char **where, char text[4096])
{
    if (f->o->metadata == CVY_FITS_METADATA_IGNORE || (file == 0 && !f->like))
        return NULL;
    snprintf(text, 4096, "in %s", f->file[0].path);
    *where = f->like ? f->of_like : text;
    return file == 0 ? f->like : &f->described;
}

cvy_status cvy_fits_describe(cvy_fits *f, struct cvy_fits_handle *h, int64_t file)
{
    cvy_descriptions own;
    cvy_fits_scale *scale = NULL;
    const char *where = NULL;
    char text[4096];
    const cvy_descriptions *like = reference(f, file, &where, text);
    if (!like && (file > 0 || f->o->metadata == CVY_FITS_METADATA_IGNORE))
        return CVY_OK;
    CVY_TRY(describe(f, h, f->file[file].path, &own));
    CVY_TRY(cvy_pool_alloc(f->pool, (size_t)(own.nx + own.ny) * sizeof *scale, &scale));
    if (like)
        CVY_TRY(compare(like, where, CVY_COMPARE_CONVERTS, &f->remarks, &own, scale));
    f->file[file].scale = like ? scale : NULL;
    f->file[file].is_compared = 1;
    if (file == 0)
        f->described = own;
    return CVY_OK;
}

cvy_status cvy_fits_check_described(const cvy_fits *f, struct cvy_fits_handle *h, int64_t file)
{
    cvy_fits own = {.o = f->o, .shape = f->shape, .is_table = f->is_table};
    cvy_descriptions described;
    cvy_fits_scale scale[1];
    cvy_remarks remarks = {0};
    const char *where = NULL;
    char text[4096];
    const cvy_descriptions *like = f->file[file].is_compared ? NULL : reference(f, file, &where, text);
    if (!like)
        return CVY_OK;
    CVY_TRY(cvy_pool_create(&own.pool));
    remarks.pool = own.pool;
    cvy_status status = describe(&own, h, NULL, &described);
    if (status == CVY_OK)
        status = compare(like, where, 0, &remarks, &described, scale);
    cvy_pool_destroy(&own.pool);
    return status;
}

#endif

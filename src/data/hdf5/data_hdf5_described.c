/*
 * data_hdf5_described.c: what HDF5 files say of their data sets beside the numbers, and how each data set is read so
 * that it is like the first one that it is joined with.
 *
 * It runs when the files are opened. Each data set is described by its dimension scales and attributes, compared by
 * data_described.c, and laid out anew if its axes have another order or direction, so that nothing but strides and the
 * unpacking of numbers knows of it. The first data set of x is compared with that of the training data, the others of a
 * list with the first, and those of further files with those of the first file. Files without dimension scales have no
 * names of axes: they are read as they are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <math.h>
#include <string.h>

enum { PATH_ROOM = 1024 };
static const int64_t VALUES_MAX = 1 << 18; /* of an axis with more coordinates none are read */

/* A dimension scale of the file at work, which most of its data sets share. */
struct scale {
    char path[PATH_ROOM];
    cvy_coordinates is;
    struct scale *next;
};

struct cvy_h5_said {
    cvy_described *of;            /* [ncolumn]: of the first file, as it is read */
    int (*differs)[CVY_NDIM_MAX]; /* [ncolumn]: axes of which files have other coordinates */
    cvy_remarks remarks;
    cvy_pool *work;      /* for the file at work */
    struct scale *scale; /* in it */
    int64_t file;
};

cvy_status cvy_h5_described_begin(cvy_hdf5 *h)
{
    struct cvy_h5_said *s = NULL;
    CVY_TRY(cvy_pool_alloc(h->pool, sizeof *s, &s));
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)h->ncolumn * sizeof *s->of, &s->of));
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)h->ncolumn * sizeof *s->differs, &s->differs));
    s->remarks.pool = h->pool;
    s->file = -1;
    h->said = s;
    return CVY_OK;
}

/* ---- descriptions ---- */

static cvy_status begin_file(struct cvy_h5_said *s, int64_t file)
{
    if (s->file == file)
        return CVY_OK;
    cvy_pool_destroy(&s->work);
    s->scale = NULL;
    s->file = file;
    return cvy_pool_create(&s->work);
}

/* The name of an axis that has no dimension scale. */
static cvy_status take_label(struct cvy_h5_said *s, hid_t set, int axis, cvy_coordinates *out)
{
    char name[CVY_H5_AXIS_NAME], *copy = NULL;
    cvy_h5_axis_label(set, axis, name);
    if (!*name)
        return CVY_OK;
    CVY_TRY(cvy_pool_strdup(s->work, name, &copy));
    out->name = copy;
    return CVY_OK;
}

/* n: its length; values 0: the name and the attributes only. */
static cvy_status describe_axis(struct cvy_h5_said *s, hid_t set, int axis, int64_t n, int values, cvy_coordinates *out)
{
    char name[CVY_H5_AXIS_NAME], path[PATH_ROOM] = "";
    struct scale *known = s->scale;
    cvy_status status = CVY_OK;
    *out = (cvy_coordinates){.n = n};
    const hid_t scale = cvy_h5_open_scale(set, axis, name);
    if (scale < 0)
        return take_label(s, set, axis, out);
    H5Iget_name(scale, path, sizeof path);
    while (known && (strcmp(known->path, path) != 0 || known->is.n != n))
        known = known->next;
    if (!known || !values) {
        status = cvy_h5_describe_scale(scale, name, values && n <= VALUES_MAX ? n : 0, s->work, out);
        out->n = n;
    }
    H5Oclose(scale);
    H5Eclear2(H5E_DEFAULT);
    if (known && values)
        *out = known->is;
    if (known || !values || status != CVY_OK)
        return status;
    CVY_TRY(cvy_pool_alloc(s->work, sizeof *known, &known));
    *known = (struct scale){.is = *out, .next = s->scale};
    memcpy(known->path, path, sizeof path);
    s->scale = known;
    return CVY_OK;
}

/* ---- auxiliary coordinates ---- */

/* Reads the numbers of a variable along one of its axes, at the middle of the others. */
static cvy_status read_line(hid_t object, const char *name, int ndim, const hsize_t *dim, int axis, cvy_pool *pool,
                            double **out)
{
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK], n = axis < 0 ? 1 : dim[axis];
    double *value = NULL;
    CVY_TRY(cvy_h5_check_parts(object, name));
    CVY_TRY(cvy_h5_check_filters(object, name));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *value, &value));
    for (int i = 0; i < ndim; i++) {
        start[i] = i == axis ? 0 : dim[i] / 2;
        count[i] = i == axis ? dim[i] : 1;
    }
    const hid_t space = H5Dget_space(object), memory = H5Screate_simple(1, &n, NULL);
    const int good = (ndim == 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0) &&
                     H5Dread(object, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, value) >= 0;
    H5Sclose(memory);
    H5Sclose(space);
    *out = good ? value : NULL;
    return CVY_OK;
}

static double extent(const double *value, int64_t n)
{
    return fabs(value[n - 1] - value[0]);
}

/* An axis without coordinates of its own gets those of a variable that changes along it, such as the latitudes of a
 * curvilinear grid: of several ones, of that which changes most. */
static cvy_status take_line(struct cvy_h5_said *s, hid_t object, const char *name, int ndim, const hsize_t *dim,
                            int axis, cvy_coordinates *c)
{
    cvy_coordinates own = {.n = c->n, .name = c->name};
    double *value = NULL;
    char *copy = NULL;
    CVY_TRY(read_line(object, name, ndim, dim, axis, s->work, &value));
    if (!value || (c->value && extent(value, c->n) <= extent(c->value, c->n)))
        return CVY_OK;
    CVY_TRY(cvy_h5_attributes(object, s->work, own.cf));
    CVY_TRY(cvy_pool_strdup(s->work, name, &copy));
    own.value = value;
    own.of = copy;
    *c = own;
    return CVY_OK;
}

/* A coordinate of a single number, such as the height of 2 m. */
static cvy_status take_height(struct cvy_h5_said *s, hid_t object, const char *name, int ndim, const hsize_t *dim,
                              cvy_described *d)
{
    cvy_coordinates c = {.n = 1};
    double *value = NULL;
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(s->work, name, &copy));
    c.name = copy;
    CVY_TRY(cvy_h5_attributes(object, s->work, c.cf));
    if (cvy_axis_kind_of(&c) != CVY_AXIS_KIND_HEIGHT)
        return CVY_OK;
    CVY_TRY(read_line(object, name, ndim, dim, -1, s->work, &value));
    c.value = value;
    if (value)
        d->height = c;
    return CVY_OK;
}

static cvy_status take_auxiliary(struct cvy_h5_said *s, hid_t object, const char *name, const unsigned own_values,
                                 cvy_described *d)
{
    char axis[CVY_H5_AXIS_NAME];
    hsize_t dim[H5S_MAX_RANK] = {0};
    const hid_t type = H5Dget_type(object), space = H5Dget_space(object);
    const H5T_class_t class = H5Tget_class(type);
    const int ndim = H5Sget_simple_extent_dims(space, dim, NULL);
    const int64_t n = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    H5Tclose(type);
    if ((class != H5T_INTEGER && class != H5T_FLOAT) || ndim < 0 || n < 1)
        return CVY_OK;
    if (n == 1)
        return take_height(s, object, name, ndim, dim, d);
    for (int i = 0; i < ndim && ndim <= 2; i++) {
        const hid_t scale = cvy_h5_open_scale(object, i, axis);
        if (scale >= 0)
            H5Oclose(scale);
        for (int k = 0; scale >= 0 && k < d->ndim; k++)
            if (!(own_values & 1u << k) && d->axis[k].name && strcmp(axis, d->axis[k].name) == 0 &&
                d->axis[k].n == (int64_t)dim[i] && d->axis[k].n <= VALUES_MAX)
                CVY_TRY(take_line(s, object, name, ndim, dim, i, &d->axis[k]));
    }
    return CVY_OK;
}

/* Looks at the variables that the attribute `coordinates` lists. They are in the group of the data set. */
static cvy_status describe_auxiliary(struct cvy_h5_said *s, hid_t file, hid_t set, const char *name, cvy_described *d)
{
    char list[512], path[PATH_ROOM];
    const char *slash = strrchr(name, '/');
    unsigned own_values = 0;
    cvy_status status = CVY_OK;
    if (!cvy_h5_text_attribute(set, "coordinates", list, sizeof list))
        return CVY_OK;
    for (int k = 0; k < d->ndim; k++)
        own_values |= d->axis[k].value ? 1u << k : 0;
    for (char *word = list + strspn(list, " "), *next; *word && status == CVY_OK; word = next) {
        const size_t n = strcspn(word, " ");
        next = word + n + strspn(word + n, " ");
        word[n] = 0;
        const int room = snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - name) + 1 : 0, name, word);
        const hid_t object = room < (int)sizeof path ? cvy_h5_open_set(file, path) : -1;
        if (object >= 0) {
            status = take_auxiliary(s, object, word, own_values, d);
            H5Dclose(object);
        }
        H5Eclear2(H5E_DEFAULT);
        status = status == CVY_E_MEMORY ? status : CVY_OK; /* what cannot be read is not known */
    }
    return status;
}

/* Describes a data set. Its axes are in the order of the file, without that of the samples; stored_out: which ones they
 * are. */
static cvy_status describe_set(cvy_hdf5 *h, hid_t set, int64_t file, const cvy_h5_column *c, cvy_described *out,
                               int stored_out[CVY_NDIM_MAX])
{
    struct cvy_h5_said *s = h->said;
    *out = (cvy_described){.name = c->name, .file = h->file[file].path};
    CVY_TRY(cvy_h5_attributes(set, s->work, out->cf));
    for (int i = 0; i < c->ndim; i++) {
        if (i == c->axis) {
            CVY_TRY(describe_axis(s, set, i, c->dim[i], 0, &out->samples));
            continue;
        }
        CVY_TRY(describe_axis(s, set, i, c->dim[i], 1, &out->axis[out->ndim]));
        stored_out[out->ndim++] = i;
    }
    return describe_auxiliary(s, h->file[file].id, set, c->name, out);
}

/* ---- the order of axes ---- */

static int is_axis_of(const cvy_described *d, const cvy_coordinates *axis)
{
    for (int i = 0; i < d->ndim; i++)
        if (d->axis[i].name && axis->name && cvy_axes_are_same(&d->axis[i], axis))
            return 1;
    return 0;
}

/* The axis that counts the samples, in a further file: the one that has the name of that of the first file, or else the
 * only one that is none of the others there. */
static cvy_status find_sample_axis(struct cvy_h5_said *s, hid_t set, const cvy_described *first, cvy_h5_column *c)
{
    int found = -1, left = -1, nfound = 0, nleft = 0;
    for (int i = 0; i < c->ndim && first->samples.name; i++) {
        cvy_coordinates own;
        CVY_TRY(describe_axis(s, set, i, c->dim[i], 0, &own));
        if (own.name && cvy_axes_are_same(&first->samples, &own)) {
            found = i;
            nfound++;
        } else if (!is_axis_of(first, &own)) {
            left = i;
            nleft++;
        }
    }
    if (nfound == 1)
        c->axis = found;
    else if (nfound == 0 && nleft == 1)
        c->axis = left;
    return CVY_OK;
}

/* Finds the axes of `like` in a data set, as they become those of a sample. 0: they are not known by their names. */
static int match(const cvy_described *like, const cvy_described *own, int any_first, const int *stored,
                 cvy_h5_column *c, cvy_mend *mend)
{
    int from[CVY_NDIM_MAX];
    if (like->ndim == 0 || !cvy_described_match(like, own, any_first, from))
        return 0;
    for (int i = 0; i < like->ndim; i++) {
        mend->from[i] = from[i];
        c->from[i] = from[i] < 0 ? -1 : stored[from[i]];
    }
    c->shape.ndim = like->ndim;
    return 1;
}

/* The axes of a sample as they are without names, as places in the description. */
static void match_places(const int *stored, int nstored, const cvy_h5_column *c, cvy_mend *mend)
{
    for (int i = 0; i < c->shape.ndim; i++) {
        mend->from[i] = -1;
        for (int k = 0; k < nstored; k++)
            if (stored[k] == c->from[i])
                mend->from[i] = k;
    }
}

/* ---- one data set ---- */

struct reference { /* what a data set is to be like */
    const cvy_described *is;
    const char *where;
    int how, any_first;
};
enum { REFERENCES_MAX = 2 };

/* Finds the axes that y, or a mask, has in common with x: all of its own, and those of x but the first one, that of
 * channels. 0: y has other axes. */
static int common_axes(const cvy_described *x, const cvy_described *y, cvy_described *out)
{
    int from[CVY_NDIM_MAX];
    *out = *x;
    if (x->ndim == y->ndim + 1) {
        out->ndim--;
        memmove(out->axis, out->axis + 1, (size_t)out->ndim * sizeof *out->axis);
    }
    return out->ndim > 1 && out->ndim == y->ndim && cvy_described_match(out, y, 0, from);
}

static cvy_status name_where(cvy_hdf5 *h, const char *name, const char **out)
{
    char *text = NULL;
    CVY_TRY(cvy_pool_printf(h->pool, &text, "in %s", name));
    *out = text;
    return CVY_OK;
}

static cvy_status find_references(cvy_hdf5 *h, int64_t file, int column, struct reference ref[REFERENCES_MAX], int *n)
{
    const struct cvy_h5_said *s = h->said;
    const int is_x = column < h->nx, is_y = !is_x && column < h->nx + h->ny, first = is_x ? 0 : h->nx;
    const cvy_described *known = !h->like                       ? NULL
                                 : is_x && h->like->nx == h->nx ? &h->like->x[column]
                                 : is_y && h->like->ny == h->ny ? &h->like->y[column - h->nx]
                                                                : NULL;
    *n = 0;
    if (file > 0) {
        struct reference *r = &ref[(*n)++];
        *r = (struct reference){.is = &s->of[column], .where = h->of_like, .how = CVY_COMPARE_AXES | CVY_COMPARE_UNITS};
        return known ? CVY_OK : name_where(h, h->file[0].path, &r->where);
    }
    if (known && column == first)
        ref[(*n)++] = (struct reference){.is = known, .where = h->of_like, .how = CVY_COMPARE_AXES | CVY_COMPARE_UNITS};
    else if (known)
        ref[(*n)++] = (struct reference){.is = known, .where = h->of_like, .how = CVY_COMPARE_UNITS};
    if (column == h->coding || column == h->extent || column == 0 || (column == first && known))
        return CVY_OK;
    /* the others of a list follow the first; a target or a mask with the axes of x follows x */
    const int to = is_x || (is_y && column > h->nx) ? first : is_y || h->ny == 0 ? 0 : h->nx;
    ref[*n] = (struct reference){.is = &s->of[to], .how = CVY_COMPARE_AXES, .any_first = is_x};
    return name_where(h, h->column[to].name, &ref[(*n)++].where);
}

/* Follows one reference. */
static cvy_status follow(cvy_hdf5 *h, const struct reference *r, const cvy_described *own, const int *stored,
                         cvy_h5_column *c, cvy_mend *mend)
{
    int differs[CVY_NDIM_MAX] = {0};
    const int orders = r->how & CVY_COMPARE_AXES;
    if (orders && !match(r->is, own, r->any_first, stored, c, mend) && r->is->ndim != c->shape.ndim)
        return CVY_OK; /* the shapes differ, which is found later */
    if (r->is->ndim == c->shape.ndim)
        CVY_TRY(cvy_described_relate(r->is, r->where, own, r->how | CVY_COMPARE_MENDS | CVY_COMPARE_CONVERTS,
                                     &h->said->remarks, mend, differs));
    return CVY_OK;
}

static void convert(const cvy_mend *mend, cvy_h5_column *c, cvy_h5_packing *p)
{
    if (mend->factor == 1 && mend->offset == 0)
        return;
    p->is_on = p->is_converted = 1;
    p->factor = mend->factor;
    p->shift = mend->offset;
    c->number.is_byte = 0;
}

cvy_status cvy_h5_described_column(cvy_hdf5 *h, hid_t set, int64_t file, int column, cvy_h5_column *c,
                                   cvy_h5_packing *packing)
{
    struct cvy_h5_said *s = h->said;
    struct reference ref[REFERENCES_MAX];
    cvy_described own, common;
    cvy_mend mend = cvy_mend_nothing();
    int stored[CVY_NDIM_MAX] = {0}, n = 0;
    CVY_TRY(begin_file(s, file));
    if (file > 0)
        CVY_TRY(find_sample_axis(s, set, &s->of[column], c));
    CVY_TRY(describe_set(h, set, file, c, &own, stored));
    match_places(stored, own.ndim, c, &mend);
    if (h->o->metadata == CVY_H5_METADATA_CHECK)
        CVY_TRY(find_references(h, file, column, ref, &n));
    for (int i = 0; i < n; i++) {
        if (file == 0 && column >= h->nx && ref[i].how == CVY_COMPARE_AXES) {
            if (!common_axes(ref[i].is, &own, &common))
                continue;
            ref[i].is = &common;
        }
        CVY_TRY(follow(h, &ref[i], &own, stored, c, &mend));
    }
    CVY_TRY(cvy_h5_lay_out(c, c->shape.ndim, mend.turned, mend.roll));
    convert(&mend, c, packing);
    cvy_described like = {.ndim = c->shape.ndim};
    for (int i = 0; i < like.ndim; i++)
        like.axis[i].n = c->shape.dim[i];
    for (int i = 0; i < n; i++)
        if (ref[i].how & CVY_COMPARE_UNITS)
            like.cf[CVY_CF_UNITS] = ref[i].is->cf[CVY_CF_UNITS];
    CVY_TRY(cvy_described_mend(s->work, &like, &mend, &own));
    if (file > 0)
        return cvy_described_compare_axes(&s->of[column], &own, s->differs[column]);
    return cvy_described_copy(h->pool, &own, &s->of[column]);
}

/* ---- the whole data set ---- */

cvy_status cvy_h5_described_end(cvy_hdf5 *h, cvy_reader_info *info)
{
    struct cvy_h5_said *s = h->said;
    cvy_pool_destroy(&s->work);
    h->said = NULL;
    for (int i = 0; i < h->ncolumn; i++)
        cvy_described_drop_axes(&s->of[i], s->differs[i]);
    h->described = (cvy_descriptions){.nx = h->nx, .ny = h->ny, .x = s->of, .y = s->of + h->nx};
    if (h->o->metadata == CVY_H5_METADATA_IGNORE)
        return CVY_OK;
    info->described = h->described;
    return cvy_remarks_note(&s->remarks, info);
}

#endif

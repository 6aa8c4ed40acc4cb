/*
 * data_hdf5_coordinates.c: the coordinates along the axes of samples, as dimension scales hold them, for files of
 * predictions.
 *
 * They are read when a prediction begins, and never in training. Source: HDF5 Dimension Scale Specification; CF
 * conventions 1.10, chapter 4.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>

#include "data/hdf5/data_hdf5_remote.h"

enum { TEXT_ROOM = 256 };

/* ---- by calls of the library ---- */

int cvy_h5_text_attribute(hid_t object, const char *name, char *text, size_t room)
{
    int found = 0;
    const hid_t at = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (at < 0)
        return 0;
    const hid_t type = H5Aget_type(at), space = H5Aget_space(at);
    const int is_text = H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1;
    memset(text, 0, room);
    if (is_text && H5Tis_variable_str(type) > 0) {
        char *own = NULL;
        const hid_t memory = H5Tget_native_type(type, H5T_DIR_ASCEND);
        found = H5Aread(at, memory, &own) >= 0 && own && strlen(own) < room;
        if (found)
            snprintf(text, room, "%s", own);
        H5free_memory(own);
        H5Tclose(memory);
    } else if (is_text && H5Tget_size(type) < room) {
        found = H5Aread(at, type, text) >= 0;
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(at);
    return found;
}

static cvy_status keep_text(hid_t set, const char *name, cvy_pool *pool, const char **out)
{
    char text[TEXT_ROOM], *copy = NULL;
    if (!cvy_h5_text_attribute(set, name, text, sizeof text))
        return CVY_OK;
    CVY_TRY(cvy_pool_strdup(pool, text, &copy));
    *out = copy;
    return CVY_OK;
}

/* Whether the scale has one number for each element of the axis. A NetCDF dimension without coordinates has none that
 * mean anything. */
static int has_numbers(hid_t scale, int64_t n)
{
    char text[TEXT_ROOM] = "";
    hsize_t dim[H5S_MAX_RANK] = {0};
    const hid_t type = H5Dget_type(scale), space = H5Dget_space(scale);
    const H5T_class_t class = H5Tget_class(type);
    const int ndim = H5Sget_simple_extent_dims(space, dim, NULL);
    H5Sclose(space);
    H5Tclose(type);
    cvy_h5_text_attribute(scale, "NAME", text, sizeof text);
    return (class == H5T_INTEGER || class == H5T_FLOAT) && ndim == 1 && dim[0] == (hsize_t)n &&
           strncmp(text, "This is a netCDF dimension but not", 34) != 0;
}

static cvy_status describe(hid_t scale, const char *name, int64_t n, cvy_pool *pool, cvy_coordinates *out)
{
    char *copy = NULL;
    double *value = NULL;
    CVY_TRY(cvy_pool_strdup(pool, name, &copy));
    *out = (cvy_coordinates){.name = copy, .n = n};
    CVY_TRY(keep_text(scale, "units", pool, &out->units));
    CVY_TRY(keep_text(scale, "calendar", pool, &out->calendar));
    CVY_TRY(keep_text(scale, "standard_name", pool, &out->standard_name));
    CVY_TRY(keep_text(scale, "long_name", pool, &out->long_name));
    if (n <= 0 || !has_numbers(scale, n))
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *value, &value));
    if (H5Dread(scale, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0)
        out->value = value; /* otherwise the name is known and nothing else: a prediction needs no coordinates */
    return CVY_OK;
}

cvy_status cvy_h5_library_scale(cvy_hdf5 *h, int64_t file, int column, int axis, cvy_pool *pool, cvy_coordinates *out)
{
    cvy_h5_file *f = &h->file[file];
    const cvy_h5_column *c = &h->column[column];
    char name[CVY_H5_AXIS_NAME];
    cvy_status status = CVY_OK;
    *out = (cvy_coordinates){0};
    CVY_TRY(cvy_h5_pin(h, file));
    cvy_h5_enter();
    const hid_t set = cvy_h5_set_id(h, f, column);
    const hid_t scale = set < 0 ? -1 : cvy_h5_open_scale(set, axis, name);
    if (scale >= 0) {
        status = describe(scale, name, axis == c->axis ? f->rows : c->dim[axis], pool, out);
        H5Oclose(scale);
    }
    H5Eclear2(H5E_DEFAULT);
    cvy_h5_leave();
    cvy_h5_unpin(h, file);
    return status == CVY_OK ? status : cvy_error_prefix(status, "%s", f->path);
}

cvy_status cvy_h5_ask_scale(cvy_hdf5 *h, int64_t file, int column, int axis, cvy_pool *pool, cvy_coordinates *out)
{
    return h->remote ? cvy_h5_remote_scale(h, file, column, axis, pool, out)
                     : cvy_h5_library_scale(h, file, column, axis, pool, out);
}

/* ---- axes of samples ---- */

/* The axis of the data set that became this axis of x, which may be permuted. Negative: there is none, or two of one
 * element cannot be told apart. */
static int stored_axis(const cvy_h5_column *c, int axis)
{
    int64_t stride = 1;
    int found = -1;
    for (int i = c->ndim - 1; i >= 0; i--) {
        if (i == c->axis)
            continue;
        if (stride == c->stride[axis] && c->dim[i] == c->shape.dim[axis]) {
            if (found >= 0)
                return -1;
            found = i;
        }
        stride *= c->dim[i];
    }
    return found;
}

/* The coordinates of the samples, of all files. They are dropped if units differ from file to file, as "hours since"
 * the first hour of each file do. */
static cvy_status find_samples(cvy_hdf5 *h, cvy_pool *pool, cvy_coordinates *out)
{
    const cvy_h5_column *c = &h->column[0];
    cvy_coordinates whole = {0}, own;
    double *row = NULL, *value = NULL;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)h->nrows * sizeof *row, &row));
    for (int64_t i = 0; i < h->nfile; i++) {
        const cvy_h5_file *f = &h->file[i];
        CVY_TRY(cvy_h5_ask_scale(h, i, 0, c->axis, pool, &own));
        if (i == 0)
            whole = own;
        if (!own.value || own.n != f->rows || !cvy_coordinates_fit(&own, &whole)) {
            *out = (cvy_coordinates){.name = whole.name, .n = h->nsamples};
            return CVY_OK;
        }
        memcpy(row + f->first, own.value, (size_t)f->rows * sizeof *row);
    }
    CVY_TRY(cvy_pool_alloc(pool, (size_t)h->nsamples * sizeof *value, &value));
    for (int64_t i = 0; i < h->nsamples; i++)
        value[i] = row[h->selected ? h->selected[i] : i];
    whole.value = value;
    whole.n = h->nsamples;
    *out = whole;
    return CVY_OK;
}

cvy_status cvy_h5_coordinates(void *state, cvy_along along, int axis, cvy_pool *pool, cvy_coordinates *out)
{
    cvy_hdf5 *h = state;
    const int column = along == CVY_ALONG_Y ? h->nx : 0, joined = along == CVY_ALONG_Y ? h->ny > 1 : h->nx > 1;
    const cvy_h5_column *c = &h->column[column];
    *out = (cvy_coordinates){0};
    if (h->column[0].encoded)
        return CVY_OK;
    if (along == CVY_ALONG_SAMPLES)
        return find_samples(h, pool, out);
    if (axis >= c->shape.ndim || (joined && (axis == 0 || along == CVY_ALONG_Y)))
        return CVY_OK;
    const int stored = along == CVY_ALONG_X ? stored_axis(c, axis) : c->ndim == 1 ? -1 : axis + (axis >= c->axis);
    return stored < 0 ? CVY_OK : cvy_h5_ask_scale(h, 0, column, stored, pool, out);
}

#endif

/*
 * data_hdf5_coordinates.c: the coordinates along the axes of samples, as dimension scales hold them, and the attributes
 * of targets, for files of predictions.
 *
 * Those of the samples are read when a prediction begins, and never in training. Source: HDF5 Dimension Scale
 * Specification; CF conventions 1.10, chapter 4.
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

cvy_status cvy_h5_attributes(hid_t object, cvy_pool *pool, const char *cf[CVY_CF_COUNT])
{
    char text[TEXT_ROOM], *copy = NULL;
    for (int i = 0; i < CVY_CF_COUNT; i++) {
        if (!cvy_h5_text_attribute(object, cvy_cf_name[i], text, sizeof text))
            continue;
        CVY_TRY(cvy_pool_strdup(pool, text, &copy));
        cf[i] = copy;
    }
    return CVY_OK;
}

/* Reads the numbers of a scale, which may be packed. */
static cvy_status read_numbers(hid_t scale, const char *name, int64_t n, double *value)
{
    cvy_h5_number number = {0};
    cvy_h5_packing packing = {0};
    void *stored = NULL;
    size_t bytes = 0;
    cvy_status status = CVY_OK;
    const hid_t type = H5Dget_type(scale);
    const int known = cvy_h5_number_of(type, &number);
    H5Tclose(type);
    CVY_CHECK(known, CVY_E_UNSUPPORTED, "the axis %s has numbers of an unusual type", name);
    CVY_TRY(cvy_h5_check_parts(scale, name));
    CVY_TRY(cvy_h5_check_filters(scale, name));
    CVY_TRY(cvy_h5_find_packing(scale, name, &number, &packing));
    CVY_TRY(cvy_size_mul((size_t)n, (size_t)number.bytes, &bytes));
    CVY_TRY(cvy_mem_alloc(bytes, &stored));
    CVY_TRY_OUT(cvy_h5_read_rows(scale, 0, 0, n, stored));
    cvy_h5_swap(&number, stored, n);
    cvy_h5_unpack_f64(&packing, &number, stored, n, value);
out:
    cvy_mem_free(&stored);
    return status;
}

cvy_status cvy_h5_describe_scale(hid_t object, const char *name, int64_t n, cvy_pool *pool, cvy_coordinates *out)
{
    char *copy = NULL;
    double *value = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_pool_strdup(pool, name, &copy));
    *out = (cvy_coordinates){.name = copy, .n = n};
    CVY_TRY(cvy_h5_attributes(object, pool, out->cf));
    if (n <= 0 || !has_numbers(object, n))
        return CVY_OK;
    CVY_TRY(cvy_size_mul((size_t)n, sizeof *value, &bytes));
    CVY_TRY(cvy_pool_alloc(pool, bytes, &value));
    const cvy_status status = read_numbers(object, name, n, value);
    if (status == CVY_OK)
        out->value = value; /* otherwise the name is known and nothing else: a prediction needs no coordinates */
    return status == CVY_E_MEMORY ? status : CVY_OK;
}

cvy_status cvy_h5_library_scale(cvy_hdf5 *h, int64_t file, int column, int axis, cvy_pool *pool, cvy_coordinates *out)
{
    cvy_h5_file *f = &h->file[file];
    const cvy_h5_column *c = cvy_h5_column_in(h, file, column);
    char name[CVY_H5_AXIS_NAME];
    *out = (cvy_coordinates){0};
    cvy_status status = cvy_h5_pin(h, file);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", f->path);
    cvy_h5_enter();
    const hid_t set = cvy_h5_set_id(h, f, column), scale = set < 0 ? -1 : cvy_h5_open_scale(set, axis, name);
    if (scale >= 0) {
        status = cvy_h5_describe_scale(scale, name, axis == c->axis ? f->rows : c->dim[axis], pool, out);
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

/* The coordinates of the samples, of all files, in the units of the first. They are dropped if a file has none, or
 * others that cannot be converted. */
static cvy_status find_samples(cvy_hdf5 *h, cvy_pool *pool, cvy_coordinates *out)
{
    cvy_coordinates whole = {0}, own;
    double *row = NULL, *value = NULL;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)h->nrows * sizeof *row, &row));
    for (int64_t i = 0; i < h->nfile; i++) {
        const cvy_h5_file *f = &h->file[i];
        CVY_TRY(cvy_h5_ask_scale(h, i, 0, cvy_h5_column_in(h, i, 0)->axis, pool, &own));
        if (i == 0)
            whole = own;
        if (!cvy_coordinates_append(&own, &whole, 0, f->rows, row + f->first)) {
            *out = (cvy_coordinates){.name = whole.name, .n = h->nsamples, .is_mixed = i > 0};
            return CVY_OK;
        }
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
    *out = (cvy_coordinates){0};
    if (h->column[0].encoded)
        return CVY_OK;
    if (along == CVY_ALONG_SAMPLES)
        return find_samples(h, pool, out);
    cvy_descriptions_axis(&h->described, along, axis, out);
    return CVY_OK;
}

#endif

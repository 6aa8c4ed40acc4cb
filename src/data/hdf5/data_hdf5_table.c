/*
 * data_hdf5_table.c: see data_hdf5_table.h. Arrays are contiguous; their rows are buffered, so that the library is
 * called once for about a megabyte. Texts are of variable length, as h5py writes and reads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5_table.h"

#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20, ARRAYS_MAX = 20, AXES_MAX = 64 };

struct array {
    hid_t id, type; /* type: of an element in memory */
    int ndim, is_text;
    hsize_t dim[CVY_NDIM_MAX];
    size_t row_bytes;
    int64_t room, waiting, written; /* rows */
    char *rows;                     /* [room]; NULL: texts, which are written one by one */
    char *name;
    int axis[CVY_NDIM_MAX];
};

struct axis {
    hid_t id; /* its dimension scale; negative: not made yet */
    char *name;
    int64_t n;
};

struct cvy_h5_table {
    char *path, *partial;
    hid_t file, text;
    int64_t nfailed; /* before the file was made */
    int64_t rows;
    struct array array[ARRAYS_MAX];
    int narray, naxis, is_netcdf;
    struct axis axis[AXES_MAX];
};

static cvy_status fault(const cvy_h5_table *t, const char *name)
{
    return cvy_h5_nfailed() != t->nfailed
               ? cvy_h5_lost(t->partial)
               : cvy_h5_fault(CVY_E_IO, "%s: data set %s cannot be written", t->partial, name);
}

/* ---- attributes ---- */

static cvy_status put_attribute(const cvy_h5_table *t, hid_t object, const char *name, hid_t stored, hid_t memory,
                                int64_t count, const void *data)
{
    return cvy_h5_put_attribute(object, name, stored, memory, count, data)
               ? CVY_OK
               : cvy_h5_fault(CVY_E_IO, "%s: attribute %s cannot be written", t->partial, name);
}

static cvy_status put_text(const cvy_h5_table *t, hid_t object, const char *name, const char *text)
{
    if (!text)
        return CVY_OK;
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    const cvy_status status = put_attribute(t, object, name, type, type, 0, text);
    H5Tclose(type);
    return status;
}

static cvy_status put_texts(const cvy_h5_table *t, hid_t object, const char *const *cf)
{
    for (int i = 0; i < CVY_CF_COUNT; i++)
        CVY_TRY(put_text(t, object, cvy_cf_name[i], cf[i]));
    return CVY_OK;
}

static cvy_status open_file(cvy_h5_table *t)
{
    cvy_h5_enter();
    t->text = H5Tcopy(H5T_C_S1);
    H5Tset_size(t->text, H5T_VARIABLE);
    H5Tset_cset(t->text, H5T_CSET_UTF8);
    t->nfailed = cvy_h5_nfailed();
    t->file = cvy_h5_make_file(t->partial, t->is_netcdf);
    cvy_status status = t->file >= 0 ? CVY_OK : cvy_h5_fault(CVY_E_IO, "%s: cannot be created", t->partial);
    if (status == CVY_OK && t->is_netcdf)
        status = put_text(t, t->file, "Conventions", "CF-1.8");
    cvy_h5_leave();
    return status;
}

cvy_status cvy_h5_table_create(const char *path, int64_t rows, int is_netcdf, cvy_h5_table **out)
{
    cvy_h5_table *t = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *t, &t));
    t->file = t->text = -1;
    t->rows = rows;
    t->is_netcdf = is_netcdf;
    CVY_TRY_OUT(cvy_mem_strdup(path, &t->path));
    CVY_TRY_OUT(cvy_mem_printf(&t->partial, "%s.aside-%ld", path, (long)getpid()));
    CVY_TRY_OUT(open_file(t));
    *out = t;
out:
    if (status != CVY_OK)
        status = cvy_h5_table_end(&t, status);
    return status;
}

/* ---- arrays ---- */

static cvy_status add_class_names(const cvy_h5_table *t, const struct array *a, const cvy_h5_array *what)
{
    if (what->nclasses == 0 || !what->class_name)
        return CVY_OK;
    return put_attribute(t, a->id, "class_names", t->text, t->text, what->nclasses, what->class_name);
}

static cvy_status create_set(const cvy_h5_table *t, struct array *a, hid_t stored, const cvy_h5_array *what)
{
    const hid_t space = H5Screate_simple(a->ndim, a->dim, NULL), list = H5Pcreate(H5P_DATASET_CREATE),
                link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_obj_track_times(list, 0);
    if (t->is_netcdf)
        H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_fill_time(list, a->is_text ? H5D_FILL_TIME_ALLOC : H5D_FILL_TIME_NEVER);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    H5Pset_create_intermediate_group(link, 1); /* the names of layers may have slashes */
    a->id = H5Dcreate2(t->file, a->name, stored, space, link, list, H5P_DEFAULT);
    const cvy_status status = a->id >= 0 ? CVY_OK : fault(t, a->name);
    H5Pclose(link);
    H5Pclose(list);
    H5Sclose(space);
    return status == CVY_OK ? add_class_names(t, a, what) : status;
}

/* ---- axes: dimension scales, as the specification of HDF5 and the netCDF library have them ---- */

/* Makes a data set the scale of an axis. */
static cvy_status make_scale(cvy_h5_table *t, int number, hid_t set, const char *name)
{
    t->axis[number].id = set;
    CVY_TRY(put_text(t, set, "CLASS", "DIMENSION_SCALE"));
    CVY_TRY(put_text(t, set, "NAME", name));
    return t->is_netcdf ? put_attribute(t, set, "_Netcdf4Dimid", H5T_STD_I32LE, H5T_NATIVE_INT, 0, &number) : CVY_OK;
}

/* Makes the coordinates of an axis. Without coordinates the netCDF library wants a data set without content all the
 * same, with a certain name and type. */
static cvy_status make_axis(cvy_h5_table *t, int number, const cvy_coordinates *what)
{
    const struct axis *x = &t->axis[number];
    char name[80];
    struct array a = {.id = -1, .ndim = 1, .name = x->name, .dim = {(hsize_t)x->n}};
    snprintf(name, sizeof name, "This is a netCDF dimension but not a netCDF variable.%10lld", (long long)x->n);
    CVY_TRY(create_set(t, &a, what->value ? H5T_IEEE_F64LE : H5T_IEEE_F32BE, &(cvy_h5_array){0}));
    CVY_TRY(make_scale(t, number, a.id, what->value ? x->name : name));
    if (what->value && H5Dwrite(a.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, what->value) < 0)
        return fault(t, x->name);
    return put_texts(t, a.id, what->cf);
}

cvy_status cvy_h5_table_axis(cvy_h5_table *t, const cvy_coordinates *what, int holds_itself, int *number_out)
{
    int twins = 0;
    for (int i = 0; i < t->naxis; i++) {
        twins += strcmp(t->axis[i].name, what->name) == 0;
        if (t->axis[i].n == what->n && strcmp(t->axis[i].name, what->name) == 0) {
            *number_out = i + 1;
            return CVY_OK;
        }
    }
    CVY_CHECK(t->naxis < AXES_MAX, CVY_E_UNSUPPORTED, "%s: more than %d axes", t->path, AXES_MAX);
    struct axis *x = &t->axis[t->naxis++];
    *x = (struct axis){.id = -1, .n = what->n};
    CVY_TRY(twins ? cvy_mem_printf(&x->name, "%s_%lld", what->name, (long long)what->n)
                  : cvy_mem_strdup(what->name, &x->name));
    *number_out = t->naxis;
    if (holds_itself)
        return CVY_OK;
    cvy_h5_enter();
    const cvy_status status = make_axis(t, t->naxis - 1, what);
    cvy_h5_leave();
    return status;
}

static int has_axis(const struct array *a, int i)
{
    return a->axis[i] != CVY_H5_NO_AXIS;
}

/* Whether the array is the scale of its axis. */
static int holds_axis(const cvy_h5_table *t, const struct array *a)
{
    return a->ndim == 1 && has_axis(a, 0) && strcmp(t->axis[a->axis[0] - 1].name, a->name) == 0;
}

/* Refers from an array to the scales of its axes. */
static cvy_status put_axes_of(const cvy_h5_table *t, const struct array *a)
{
    hobj_ref_t to[CVY_NDIM_MAX];
    hvl_t list[CVY_NDIM_MAX] = {{0}};
    int n = 0;
    for (int i = 0; i < a->ndim; i++) {
        if (!has_axis(a, i))
            continue;
        if (H5Rcreate(&to[i], t->axis[a->axis[i] - 1].id, ".", H5R_OBJECT, -1) < 0)
            return fault(t, a->name);
        list[i] = (hvl_t){1, &to[i]};
        n++;
    }
    if (n == 0 || holds_axis(t, a))
        return CVY_OK;
    const hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
    const cvy_status status = put_attribute(t, a->id, "DIMENSION_LIST", type, type, a->ndim, list);
    H5Tclose(type);
    return status;
}

/* Refers from a scale to all arrays that use it. */
static cvy_status put_users_of(const cvy_h5_table *t, int number)
{
    struct user {
        hobj_ref_t set;
        int axis;
    } user[ARRAYS_MAX * CVY_NDIM_MAX];
    int n = 0;
    for (int k = 0; k < t->narray; k++) {
        const struct array *a = &t->array[k];
        for (int i = 0; i < a->ndim && !holds_axis(t, a); i++) {
            if (a->axis[i] != number + 1)
                continue;
            memset(&user[n], 0, sizeof user[n]);
            user[n].axis = i;
            if (H5Rcreate(&user[n++].set, a->id, ".", H5R_OBJECT, -1) < 0)
                return fault(t, a->name);
        }
    }
    if (n == 0)
        return CVY_OK;
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof *user);
    H5Tinsert(type, "dataset", offsetof(struct user, set), H5T_STD_REF_OBJ);
    H5Tinsert(type, "dimension", offsetof(struct user, axis), H5T_NATIVE_INT);
    const cvy_status status = put_attribute(t, t->axis[number].id, "REFERENCE_LIST", type, type, n, user);
    H5Tclose(type);
    return status;
}

static cvy_status put_references(const cvy_h5_table *t)
{
    for (int i = 0; i < t->narray; i++)
        CVY_TRY(put_axes_of(t, &t->array[i]));
    for (int i = 0; i < t->naxis; i++)
        CVY_TRY(put_users_of(t, i));
    return CVY_OK;
}

/* ---- adding arrays ---- */

static cvy_status make_array(cvy_h5_table *t, struct array *a, const cvy_h5_array *what)
{
    const struct {
        cvy_dtype dtype;
        hid_t memory, stored;
    } types[] = {{CVY_DTYPE_F32, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE},
                 {CVY_DTYPE_F64, H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE},
                 {CVY_DTYPE_I32, H5T_NATIVE_INT32, H5T_STD_I32LE},
                 {CVY_DTYPE_I64, H5T_NATIVE_INT64, H5T_STD_I64LE}};
    hid_t stored = t->text;
    a->type = t->text;
    for (int i = 0; i < CVY_COUNT(types) && !what->is_text; i++)
        if (types[i].dtype == what->dtype) {
            a->type = types[i].memory;
            stored = types[i].stored;
        }
    CVY_CHECK(what->is_text || a->type != t->text, CVY_E_UNSUPPORTED, "%s: an array of %s", what->name,
              cvy_dtype_text(what->dtype));
    return create_set(t, a, stored, what);
}

cvy_status cvy_h5_table_add(cvy_h5_table *t, const cvy_h5_array *what)
{
    CVY_CHECK(t->narray < ARRAYS_MAX, CVY_E_UNSUPPORTED, "%s: more than %d data sets", t->path, ARRAYS_MAX);
    struct array *a = &t->array[t->narray++];
    *a = (struct array){.id = -1, .ndim = what->is_text ? 1 : what->shape.ndim + 1, .is_text = what->is_text};
    CVY_TRY(cvy_mem_strdup(what->name, &a->name));
    for (char *c = a->name; *c && t->is_netcdf; c++) /* a slash would make groups, in which programs do not look */
        *c = *c == '/' ? '_' : *c;
    memcpy(a->axis, what->axis, sizeof a->axis);
    a->dim[0] = (hsize_t)t->rows;
    if (!what->is_text) {
        CVY_CHECK(a->ndim <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED, "%s: samples of %s have too many axes", what->name,
                  cvy_shape_text(&what->shape));
        a->row_bytes = cvy_dtype_bytes(what->dtype) * (size_t)cvy_shape_elems(&what->shape);
        for (int i = 0; i < what->shape.ndim; i++)
            a->dim[i + 1] = (hsize_t)what->shape.dim[i];
        a->room = CVY_MAX(CVY_MIN((int64_t)(BUFFER_BYTES / a->row_bytes), t->rows), 1);
        CVY_TRY(cvy_mem_alloc((size_t)a->room * a->row_bytes, &a->rows));
    }
    cvy_h5_enter();
    cvy_status status = make_array(t, a, what);
    if (status == CVY_OK && t->is_netcdf && a->type == H5T_NATIVE_FLOAT)
        status = put_attribute(t, a->id, "_FillValue", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &(float){NAN});
    if (status == CVY_OK && what->cf)
        status = put_texts(t, a->id, what->cf);
    if (status == CVY_OK && holds_axis(t, a))
        status = make_scale(t, a->axis[0] - 1, H5Iinc_ref(a->id) > 0 ? a->id : -1, a->name);
    cvy_h5_leave();
    return status;
}

/* ---- rows ---- */

static cvy_status write_rows(const cvy_h5_table *t, struct array *a, int64_t n, const void *rows)
{
    cvy_h5_enter();
    const int good = cvy_h5_put_rows(a->id, a->type, a->ndim, a->dim, a->written, n, rows);
    const cvy_status status = good ? CVY_OK : fault(t, a->name);
    cvy_h5_leave();
    a->written += n;
    return status;
}

cvy_status cvy_h5_table_row(cvy_h5_table *t, int array, const void *row)
{
    struct array *a = &t->array[array];
    CVY_CHECK(a->written + a->waiting < t->rows, CVY_E_INTERNAL, "%s: more rows of %s than were announced", t->path,
              a->name);
    if (a->is_text)
        return write_rows(t, a, 1, &row);
    memcpy(a->rows + (size_t)a->waiting * a->row_bytes, row, a->row_bytes);
    if (++a->waiting < a->room)
        return CVY_OK;
    const int64_t n = a->waiting;
    a->waiting = 0;
    return write_rows(t, a, n, a->rows);
}

/* ---- the end ---- */

static cvy_status write_waiting(cvy_h5_table *t)
{
    for (int i = 0; i < t->narray; i++) {
        struct array *a = &t->array[i];
        const int64_t n = a->waiting;
        a->waiting = 0;
        if (n > 0)
            CVY_TRY(write_rows(t, a, n, a->rows));
        CVY_CHECK(a->written == t->rows, CVY_E_INTERNAL, "%s: %lld rows of %s, expected %lld", t->path,
                  (long long)a->written, a->name, (long long)t->rows);
    }
    return CVY_OK;
}

/* Closes all handles, in any state. */
static cvy_status close_file(cvy_h5_table *t)
{
    int good = 1;
    cvy_h5_enter();
    for (int i = 0; i < t->naxis; i++)
        good &= t->axis[i].id < 0 || H5Dclose(t->axis[i].id) >= 0;
    for (int i = 0; i < t->narray; i++)
        good &= t->array[i].id < 0 || H5Dclose(t->array[i].id) >= 0;
    if (t->text >= 0)
        H5Tclose(t->text);
    good &= t->file < 0 || H5Fclose(t->file) >= 0;
    cvy_status status = good ? CVY_OK : cvy_h5_fault(CVY_E_IO, "%s: cannot be written", t->partial);
    if (cvy_h5_nfailed() != t->nfailed)
        status = cvy_h5_lost(t->partial);
    cvy_h5_leave();
    return status;
}

cvy_status cvy_h5_table_end(cvy_h5_table **table, cvy_status status)
{
    cvy_h5_table *t = *table;
    if (!t)
        return status;
    if (status == CVY_OK)
        status = write_waiting(t);
    if (status == CVY_OK && t->naxis > 0) {
        cvy_h5_enter();
        status = put_references(t);
        cvy_h5_leave();
    }
    const int was_created = t->file >= 0;
    const cvy_status closed = close_file(t);
    if (status == CVY_OK || closed != CVY_OK)
        status = closed;
    if (status == CVY_OK)
        status = cvy_h5_publish(t->partial, t->path);
    if (status != CVY_OK && was_created)
        unlink(t->partial);
    for (int i = 0; i < t->narray; i++) {
        cvy_mem_free(&t->array[i].rows);
        cvy_mem_free(&t->array[i].name);
    }
    for (int i = 0; i < t->naxis; i++)
        cvy_mem_free(&t->axis[i].name);
    cvy_mem_free(&t->path);
    cvy_mem_free(&t->partial);
    cvy_mem_free(table);
    return status;
}

#else

cvy_status cvy_h5_table_create(const char *path, int64_t rows, int is_netcdf, cvy_h5_table **out)
{
    (void)rows, (void)is_netcdf, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: HDF5 is not part of this build: build it with libhdf5 (Debian: libhdf5-dev)",
             path);
}

cvy_status cvy_h5_table_add(cvy_h5_table *t, const cvy_h5_array *array)
{
    (void)t, (void)array;
    return CVY_E_UNSUPPORTED;
}

cvy_status cvy_h5_table_axis(cvy_h5_table *t, const cvy_coordinates *axis, int holds_itself, int *number_out)
{
    (void)t, (void)axis, (void)holds_itself, (void)number_out;
    return CVY_E_UNSUPPORTED;
}

cvy_status cvy_h5_table_row(cvy_h5_table *t, int array, const void *row)
{
    (void)t, (void)array, (void)row;
    return CVY_E_UNSUPPORTED;
}

cvy_status cvy_h5_table_end(cvy_h5_table **t, cvy_status status)
{
    (void)t;
    return status;
}

#endif

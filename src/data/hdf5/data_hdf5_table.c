/*
 * data_hdf5_table.c: see data_hdf5_table.h. Arrays are contiguous; their rows are buffered, so that the library is
 * called once for about a megabyte. Texts are of variable length, as h5py writes and reads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5_table.h"

#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"

enum { BUFFER_BYTES = 1 << 20, ARRAYS_MAX = 20 };

struct array {
    hid_t id, type; /* type: of an element in memory */
    int ndim, is_text;
    hsize_t dim[CVY_NDIM_MAX];
    size_t row_bytes;
    int64_t room, waiting, written; /* rows */
    char *rows;                     /* [room]; NULL: texts, which are written one by one */
    char *name;
};

struct cvy_h5_table {
    char *path, *partial;
    hid_t file, text;
    int64_t rows;
    struct array array[ARRAYS_MAX];
    int narray;
};

static cvy_status fault(const cvy_h5_table *t, const char *name)
{
    return cvy_h5_fault(CVY_E_IO, "%s: data set %s cannot be written", t->partial, name);
}

static cvy_status open_file(cvy_h5_table *t)
{
    cvy_h5_enter();
    t->text = H5Tcopy(H5T_C_S1);
    H5Tset_size(t->text, H5T_VARIABLE);
    H5Tset_cset(t->text, H5T_CSET_UTF8);
    t->file = cvy_h5_make_file(t->partial);
    const cvy_status status = t->file >= 0 ? CVY_OK : cvy_h5_fault(CVY_E_IO, "%s: cannot be created", t->partial);
    cvy_h5_leave();
    return status;
}

cvy_status cvy_h5_table_create(const char *path, int64_t rows, cvy_h5_table **out)
{
    cvy_h5_table *t = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *t, &t));
    t->file = t->text = -1;
    t->rows = rows;
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
    const hsize_t n = (hsize_t)what->nclasses;
    if (what->nclasses == 0 || !what->class_name)
        return CVY_OK;
    const hid_t space = H5Screate_simple(1, &n, NULL);
    const hid_t at = H5Acreate2(a->id, "class_names", t->text, space, H5P_DEFAULT, H5P_DEFAULT);
    const cvy_status status = at >= 0 && H5Awrite(at, t->text, what->class_name) >= 0 ? CVY_OK : fault(t, a->name);
    if (at >= 0)
        H5Aclose(at);
    H5Sclose(space);
    return status;
}

static cvy_status create_set(const cvy_h5_table *t, struct array *a, hid_t stored, const cvy_h5_array *what)
{
    const hid_t space = H5Screate_simple(a->ndim, a->dim, NULL), list = H5Pcreate(H5P_DATASET_CREATE),
                link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_obj_track_times(list, 0);
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
    const cvy_status status = make_array(t, a, what);
    cvy_h5_leave();
    return status;
}

/* ---- rows ---- */

static cvy_status write_rows(const cvy_h5_table *t, struct array *a, int64_t n, const void *rows)
{
    hsize_t start[CVY_NDIM_MAX] = {(hsize_t)a->written}, count[CVY_NDIM_MAX];
    memcpy(count, a->dim, sizeof count);
    count[0] = (hsize_t)n;
    cvy_h5_enter();
    const hid_t space = H5Dget_space(a->id), memory = H5Screate_simple(a->ndim, count, NULL);
    const int good = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                     H5Dwrite(a->id, a->type, memory, space, H5P_DEFAULT, rows) >= 0;
    const cvy_status status = good ? CVY_OK : fault(t, a->name);
    H5Sclose(memory);
    H5Sclose(space);
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
    for (int i = 0; i < t->narray; i++)
        good &= t->array[i].id < 0 || H5Dclose(t->array[i].id) >= 0;
    if (t->text >= 0)
        H5Tclose(t->text);
    good &= t->file < 0 || H5Fclose(t->file) >= 0;
    const cvy_status status = good ? CVY_OK : cvy_h5_fault(CVY_E_IO, "%s: cannot be written", t->partial);
    cvy_h5_leave();
    return status;
}

static cvy_status publish(const cvy_h5_table *t)
{
    int fd = cvy_file_open(t->partial, O_RDONLY | O_CLOEXEC, 0);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot be opened again: %s", t->partial, strerror(errno));
    const cvy_status status = cvy_file_sync(&fd, t->partial, t->path);
    if (fd >= 0)
        close(fd);
    return status;
}

cvy_status cvy_h5_table_end(cvy_h5_table **table, cvy_status status)
{
    cvy_h5_table *t = *table;
    if (!t)
        return status;
    if (status == CVY_OK)
        status = write_waiting(t);
    const int was_created = t->file >= 0;
    const cvy_status closed = close_file(t);
    if (status == CVY_OK)
        status = closed;
    if (status == CVY_OK)
        status = publish(t);
    if (status != CVY_OK && was_created)
        unlink(t->partial);
    for (int i = 0; i < t->narray; i++) {
        cvy_mem_free(&t->array[i].rows);
        cvy_mem_free(&t->array[i].name);
    }
    cvy_mem_free(&t->path);
    cvy_mem_free(&t->partial);
    cvy_mem_free(table);
    return status;
}

#else

cvy_status cvy_h5_table_create(const char *path, int64_t rows, cvy_h5_table **out)
{
    (void)rows, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: HDF5 is not part of this build: build it with libhdf5 (Debian: libhdf5-dev)",
             path);
}

cvy_status cvy_h5_table_add(cvy_h5_table *t, const cvy_h5_array *array)
{
    (void)t, (void)array;
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

/*
 * data_hdf5_groups.c: what each sample belongs to: the values of the data set that the option `group` names.
 *
 * It runs when the files are opened, after it is known which rows are samples. The data set holds a number, a time or a
 * text for each row. Times with units such as "days since 2000-01-01" become dates, so that files may count from
 * different days.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <math.h>
#include <string.h>

enum { PIECE_ROWS = 4096, TEXT_BYTES_MAX = 4096, UNITS_ROOM = 256 };

struct values { /* the data set in one file */
    const char *name;
    hid_t set, type;
    int axis, is_text, is_variable;
    size_t row_bytes;
    cvy_h5_number number;
    cvy_h5_packing packing;
    char units[UNITS_ROOM], calendar[UNITS_ROOM]; /* "": none */
    void *raw;                                    /* [PIECE_ROWS] rows */
    double *value;                                /* [PIECE_ROWS] */
};

/* Finds what the data set holds. Texts of a fixed length may be rows of characters, as NetCDF writes them. */
static cvy_status look_at(const cvy_h5_file *f, struct values *v)
{
    cvy_shape shape;
    char text[24];
    const hid_t space = H5Dget_space(v->set);
    const int ndim = cvy_h5_shape_of(space, &shape), is_row = ndim == 2 && shape.dim[0] == 1 && shape.dim[1] == f->rows;
    int64_t others = 1;
    H5Sclose(space);
    cvy_h5_type_text(v->type, text, sizeof text);
    v->is_text = H5Tget_class(v->type) == H5T_STRING;
    v->is_variable = v->is_text && H5Tis_variable_str(v->type) > 0;
    v->axis = is_row && f->rows > 1;
    CVY_CHECK(v->is_text || cvy_h5_number_of(v->type, &v->number), CVY_E_UNSUPPORTED,
              "data set %s holds %s, expected numbers or texts that say what each sample belongs to", v->name, text);
    for (int i = 0; i < ndim && i < CVY_NDIM_MAX; i++)
        others = i == v->axis ? others : others * CVY_MAX(shape.dim[i], 1);
    CVY_CHECK(ndim >= 1 && ndim <= CVY_NDIM_MAX && (others == 1 || (v->is_text && !v->is_variable && ndim == 2)),
              CVY_E_SHAPE, "data set %s is %s, expected one value for each sample", v->name, cvy_shape_text(&shape));
    CVY_CHECK(shape.dim[v->axis] == f->rows, CVY_E_SHAPE, "data set %s has %lld values for %lld samples", v->name,
              (long long)shape.dim[v->axis], (long long)f->rows);
    v->row_bytes = v->is_variable ? sizeof(char *) : H5Tget_size(v->type) * (size_t)others;
    CVY_CHECK(v->row_bytes > 0 && v->row_bytes <= TEXT_BYTES_MAX, CVY_E_UNSUPPORTED,
              "data set %s has texts of %zu bytes, at most %d", v->name, v->row_bytes, TEXT_BYTES_MAX);
    if (v->is_text)
        return CVY_OK;
    cvy_h5_text_attribute(v->set, "units", v->units, sizeof v->units);
    cvy_h5_text_attribute(v->set, "calendar", v->calendar, sizeof v->calendar);
    return cvy_h5_find_packing(v->set, v->name, &v->number, &v->packing);
}

static cvy_status open_values(cvy_hdf5 *h, cvy_h5_file *f, struct values *v)
{
    const hid_t id = cvy_h5_file_id(f);
    if (id < 0)
        return cvy_h5_cannot_open(f->path);
    v->set = cvy_h5_open_set(id, v->name);
    if (v->set < 0)
        return cvy_h5_no_set(h->pool, id, v->name);
    CVY_TRY(cvy_h5_check_parts(v->set, v->name));
    CVY_TRY(cvy_h5_check_filters(v->set, v->name));
    v->type = H5Dget_type(v->set);
    CVY_TRY(look_at(f, v));
    CVY_TRY(cvy_mem_alloc(PIECE_ROWS * CVY_MAX(v->row_bytes, sizeof(double)), &v->raw));
    return cvy_mem_alloc(PIECE_ROWS * sizeof *v->value, &v->value);
}

static void close_values(struct values *v)
{
    if (v->set >= 0)
        H5Dclose(v->set);
    if (v->type >= 0)
        H5Tclose(v->type);
    cvy_mem_free(&v->raw);
    cvy_mem_free(&v->value);
}

static cvy_status read_piece(struct values *v, int64_t first, int64_t n)
{
    CVY_TRY(cvy_h5_read_rows(v->set, v->axis, first, n, v->raw));
    if (v->is_text)
        return CVY_OK;
    cvy_h5_swap(&v->number, v->raw, n);
    cvy_h5_unpack_f64(&v->packing, &v->number, v->raw, n, v->value);
    return CVY_OK;
}

static cvy_status add_text(const struct values *v, int64_t row, cvy_groups *to)
{
    const char *text = (const char *)v->raw + (size_t)row * v->row_bytes;
    if (v->is_variable) /* the row has a pointer to its text */
        text = ((const char *const *)v->raw)[row];
    if (!text)
        return cvy_groups_add(to, "", 0);
    return cvy_groups_add(to, text, strnlen(text, v->is_variable ? TEXT_BYTES_MAX : v->row_bytes));
}

static cvy_status add_value(const struct values *v, int64_t row, cvy_groups *to)
{
    char date[40];
    const double value = v->is_text ? 0 : v->value[row];
    if (v->is_text)
        return add_text(v, row, to);
    if (*v->units && isfinite(value) &&
        cvy_time_text(v->units, *v->calendar ? v->calendar : NULL, value, date, sizeof date))
        return cvy_groups_add(to, date, strlen(date));
    return cvy_groups_add_number(to, value);
}

/* Gives back the memory of texts of any length. */
static void release_texts(struct values *v, int64_t n)
{
    const hsize_t count = (hsize_t)n;
    const hid_t space = v->is_variable ? H5Screate_simple(1, &count, NULL) : -1;
    if (space >= 0) {
        H5Dvlen_reclaim(v->type, space, H5P_DEFAULT, v->raw);
        H5Sclose(space);
    }
}

/* Adds the values of the file's samples, of which *number is the first. */
static cvy_status add_file(cvy_hdf5 *h, cvy_h5_file *f, struct values *v, int64_t *number)
{
    for (int64_t first = 0; first < f->rows; first += PIECE_ROWS) {
        const int64_t n = CVY_MIN(f->rows - first, PIECE_ROWS), end = f->first + first + n;
        cvy_status status = CVY_OK;
        CVY_TRY(read_piece(v, first, n));
        for (; *number < h->nsamples && status == CVY_OK; ++*number) {
            const int64_t row = h->selected ? h->selected[*number] : *number;
            if (row >= end)
                break;
            status = add_value(v, row - f->first - first, &h->groups);
        }
        release_texts(v, n);
        CVY_TRY(status);
    }
    return CVY_OK;
}

cvy_status cvy_h5_read_groups(cvy_hdf5 *h)
{
    int64_t number = 0;
    for (int64_t i = 0; i < h->nfile && h->o->group; i++) {
        struct values v = {.name = h->o->group, .set = -1, .type = -1};
        cvy_status status = cvy_h5_pin(h, i);
        if (status == CVY_OK) {
            cvy_h5_enter();
            status = open_values(h, &h->file[i], &v);
            if (status == CVY_OK)
                status = add_file(h, &h->file[i], &v, &number);
            close_values(&v);
            cvy_h5_leave();
            cvy_h5_unpin(h, i);
        }
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s: group", h->file[i].path);
    }
    return CVY_OK;
}

#endif

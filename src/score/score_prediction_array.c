/*
 * score_prediction_array.c: predictions as arrays, in one .npy file, or as data sets of an HDF5 or NetCDF-4 file with
 * the coordinates of the input: see score_prediction_file.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "score/score_prediction_file.h"

/* ---- .npy ---- */

/* The header of NumPy's format, version 1.0: magic, length of the header, and a Python dict, padded so that all is 128
 * bytes, or 192 or more for many dimensions. */
static cvy_status npy_begin(cvy_prediction_file *t)
{
    enum { BEFORE = 10, UNIT = 64 };
    const cvy_shape top = {1, {t->nlabel}}, *row = t->nset ? &t->set[0].shape : &top;
    char shape[CVY_NDIM_MAX * 24] = "1", dict[BEFORE + UNIT + sizeof shape];
    for (int i = 0, at = 0; i < row->ndim; i++)
        at += snprintf(shape + at, sizeof shape - (size_t)at, "%s%lld", i ? ", " : "", (long long)row->dim[i]);
    int bytes = snprintf(dict, sizeof dict, "{'descr': '<%s4', 'fortran_order': False, 'shape': (%lld, %s), }",
                         t->nset ? "f" : "i", (long long)t->rows, shape);
    const int whole = (BEFORE + bytes + 1 + UNIT - 1) / UNIT * UNIT, padded = CVY_MAX(whole, 2 * UNIT) - BEFORE;
    CVY_TRY(cvy_file_temporary_open(t->ask.out, &t->file));
    fwrite("\x93NUMPY\x01\x00", 1, 8, t->file.stream);
    fputc(padded & 255, t->file.stream);
    fputc(padded >> 8, t->file.stream);
    fwrite(dict, 1, (size_t)bytes, t->file.stream);
    for (; bytes < padded - 1; bytes++)
        fputc(' ', t->file.stream);
    fputc('\n', t->file.stream);
    return CVY_OK;
}

static cvy_status npy_row(cvy_prediction_file *t, const cvy_prediction_row *row)
{
    if (t->nset == 0)
        fwrite(row->label, sizeof *row->label, (size_t)t->nlabel, t->file.stream);
    else
        fwrite(row->value[0], sizeof *row->value[0], (size_t)t->set[0].elems, t->file.stream);
    return CVY_OK;
}

const cvy_prediction_format cvy_prediction_npy = {npy_begin, npy_row};

/* ---- HDF5 and NetCDF: "sample", "class" and "probability" if classes are asked for, then a data set for each set ----
 */

enum { SAMPLE, FIRST, CLASS = FIRST, PROBABILITY };
#define SAMPLE_NAME "sample"

/* All members read the same data. */
static const cvy_dataset *data_of(const cvy_prediction_file *t)
{
    return t->ensemble->member[0].data;
}

/* Whether an array of the file has this name, so that an axis cannot have it. */
static int is_array(const cvy_prediction_file *t, const char *name)
{
    for (int k = 0; k < t->nset; k++)
        if (strcmp(t->set[k].name, name) == 0)
            return 1;
    return strcmp(name, SAMPLE_NAME) == 0 ||
           (t->nlabel > 0 && (!strcmp(name, "class") || !strcmp(name, "probability")));
}

/* Whether a name, which may come from a file of weights, can be that of a variable or an axis. */
static int is_plain_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+@";
    return name && strlen(name) < 100 && (isalpha((unsigned char)*name) || *name == '_') &&
           name[strspn(name, allowed)] == 0;
}

static const cvy_reader_info *trained_on(const cvy_prediction_file *t)
{
    return &t->ensemble->member[0].network->spec.stored;
}

static int has_target_shape(const cvy_prediction_file *t, const cvy_prediction_set *set)
{
    const cvy_reader_info *stored = trained_on(t);
    return !set->by_class && !set->is_spread && stored->has_y && cvy_shape_elems(&stored->y_shape) == set->elems;
}

/* An output of the shape of the target of the training has its attributes: units, standard_name, long_name. */
static const char *const *attributes_of(const cvy_prediction_file *t, const cvy_prediction_set *set)
{
    return has_target_shape(t, set) ? trained_on(t)->y_cf : NULL;
}

/* Adds an axis, and renames it if an array has its name. Without a name it gets `fallback`; NULL: then it is left
 * out. */
static cvy_status add_axis(cvy_prediction_file *t, cvy_coordinates axis, const char *fallback, int *number_out)
{
    char name[160];
    if (!axis.name && !fallback)
        return CVY_OK;
    snprintf(name, sizeof name, "%s%s", axis.name ? axis.name : fallback,
             is_array(t, axis.name ? axis.name : fallback) ? "_axis" : "");
    axis.name = name;
    return cvy_h5_table_axis(t->table, &axis, 0, number_out);
}

/* Notes an axis along which the files of the data have different coordinates: those of one would be wrong for rows of
 * the others. */
static void note_mixed(cvy_prediction_file *t, const cvy_coordinates *axis)
{
    char name[160];
    snprintf(name, sizeof name, ", %.150s", axis->name ? axis->name : "the samples");
    const char *found = axis->is_mixed && t->mixed.data ? strstr(t->mixed.data, name) : NULL;
    if (axis->is_mixed && !(found && (found[strlen(name)] == 0 || found[strlen(name)] == ',')))
        cvy_text_add(&t->mixed, "%s", name);
}

/* The axis of the samples: as the input has it, or else the numbers of the samples themselves. */
static cvy_status add_sample_axis(cvy_prediction_file *t, cvy_pool *pool)
{
    cvy_coordinates axis;
    CVY_TRY(cvy_dataset_coordinates(data_of(t), CVY_ALONG_SAMPLES, 0, pool, &axis));
    note_mixed(t, &axis);
    if (axis.name && axis.n == t->rows)
        return add_axis(t, axis, NULL, &t->sample_axis);
    if (!t->is_netcdf)
        return CVY_OK;
    return cvy_h5_table_axis(t->table, &(cvy_coordinates){.name = SAMPLE_NAME, .n = t->rows}, 1, &t->sample_axis);
}

/* Finds an axis of the target or of the input that stands as far from the end of its shape, and has the same length. */
static cvy_status find_axis(cvy_prediction_file *t, const cvy_shape *shape, int i, cvy_pool *pool, cvy_coordinates *out)
{
    const cvy_reader_info *stored = cvy_dataset_reader_info(data_of(t));
    const struct {
        cvy_along along;
        const cvy_shape *shape;
    } from[] = {{CVY_ALONG_Y, &stored->y_shape}, {CVY_ALONG_X, &stored->shape}};
    for (int k = stored->has_y ? 0 : 1; k < CVY_COUNT(from); k++) {
        const int axis = from[k].shape->ndim - shape->ndim + i;
        *out = (cvy_coordinates){0};
        if (axis >= 0 && from[k].shape->dim[axis] == shape->dim[i])
            CVY_TRY(cvy_dataset_coordinates(data_of(t), from[k].along, axis, pool, out));
        note_mixed(t, out);
        if (out->name && out->n == shape->dim[i])
            return CVY_OK;
    }
    *out = (cvy_coordinates){.n = shape->dim[i]};
    return CVY_OK;
}

/* Adds an array, with its axes. axis_name: of its only axis; NULL: those of the input count. If the axis of the samples
 * has a name, all have one, because the netCDF library does not read arrays of which only some have. */
static cvy_status add_array(cvy_prediction_file *t, cvy_pool *pool, cvy_h5_array a, const char *axis_name)
{
    const int all = t->is_netcdf || t->sample_axis != CVY_H5_NO_AXIS;
    a.axis[0] = t->sample_axis;
    for (int i = 0; i < a.shape.ndim && i + 1 < CVY_COUNT(a.axis); i++) {
        cvy_coordinates axis = {.n = a.shape.dim[i]};
        char fallback[32];
        snprintf(fallback, sizeof fallback, "n%lld", (long long)axis.n);
        if (!axis_name)
            CVY_TRY(find_axis(t, &a.shape, i, pool, &axis));
        if (!axis.name && cvy_shape_equal(&a.shape, &trained_on(t)->y_shape) && is_plain_name(trained_on(t)->y_axis[i]))
            axis.name = trained_on(t)->y_axis[i];
        CVY_TRY(add_axis(t, axis, !all ? NULL : axis_name ? axis_name : fallback, &a.axis[i + 1]));
    }
    return cvy_h5_table_add(t->table, &a);
}

static cvy_status add_arrays(cvy_prediction_file *t, cvy_pool *pool)
{
    const cvy_h5_array sample = {.name = SAMPLE_NAME, .dtype = CVY_DTYPE_I64, .is_text = t->ask.names != 0},
                       label = {.name = "class",
                                .dtype = CVY_DTYPE_I32,
                                .shape = {1, {t->nlabel}},
                                .class_name = t->class_name,
                                .nclasses = t->nclasses},
                       share = {.name = "probability", .dtype = CVY_DTYPE_F64, .shape = {1, {t->nlabel}}};
    CVY_TRY(cvy_h5_table_create(t->ask.out, t->rows, t->is_netcdf, &t->table));
    CVY_TRY(add_sample_axis(t, pool));
    CVY_TRY(add_array(t, pool, sample, NULL));
    if (t->nlabel > 0) {
        CVY_TRY(add_array(t, pool, label, "best"));
        CVY_TRY(add_array(t, pool, share, "best"));
    }
    for (int k = 0; k < t->nset; k++) {
        const cvy_prediction_set *set = &t->set[k];
        const cvy_h5_array a = {.name = set->name,
                                .dtype = CVY_DTYPE_F32,
                                .shape = set->shape,
                                .class_name = set->by_class ? t->class_name : NULL,
                                .nclasses = set->by_class ? t->nclasses : 0,
                                .cf = attributes_of(t, set)};
        CVY_TRY(add_array(t, pool, a, set->by_class ? "classes" : NULL));
    }
    return CVY_OK;
}

static cvy_status hdf5_begin(cvy_prediction_file *t)
{
    cvy_pool *pool = NULL; /* of the coordinates, which are in the file afterwards */
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = add_arrays(t, pool);
    cvy_pool_destroy(&pool);
    CVY_TRY(status);
    CVY_TRY(t->mixed.status);
    if (t->mixed.data)
        cvy_log(t->ensemble->member[0].context, CVY_LOG_WARN,
                "%s: coordinates along %s are left out, because the files of the data have different ones", t->ask.out,
                t->mixed.data + strlen(", "));
    return CVY_OK;
}

/* In a NetCDF file an output that is the only one of the shape of the target takes its name and its axes. */
static void take_target(cvy_prediction_file *t)
{
    const cvy_reader_info *stored = trained_on(t);
    cvy_prediction_set *found = NULL;
    int count = 0;
    for (int k = 0; k < t->nset; k++)
        if (has_target_shape(t, &t->set[k])) {
            found = &t->set[k];
            count++;
        }
    if (count != 1)
        return;
    found->shape = stored->y_shape;
    if (found->elems == 1 && !stored->y_axis[0]) /* one number for each sample */
        found->shape = (cvy_shape){0};
    if (is_plain_name(stored->y_name) && !is_array(t, stored->y_name))
        found->name = stored->y_name;
}

static cvy_status netcdf_begin(cvy_prediction_file *t)
{
    t->is_netcdf = 1;
    take_target(t);
    return hdf5_begin(t);
}

static cvy_status hdf5_row(cvy_prediction_file *t, const cvy_prediction_row *row)
{
    int at = 0;
    CVY_TRY(cvy_h5_table_row(t->table, at++, row->name ? (const void *)row->name : &row->number));
    if (t->nlabel > 0) {
        CVY_TRY(cvy_h5_table_row(t->table, at++, row->label));
        CVY_TRY(cvy_h5_table_row(t->table, at++, row->share));
    }
    for (int k = 0; k < t->nset; k++)
        CVY_TRY(cvy_h5_table_row(t->table, at++, row->value[k]));
    return CVY_OK;
}

const cvy_prediction_format cvy_prediction_hdf5 = {hdf5_begin, hdf5_row};
const cvy_prediction_format cvy_prediction_netcdf = {netcdf_begin, hdf5_row};

/*
 * score_prediction_array.c: predictions as arrays, in one .npy file or as data sets of an HDF5 file: see
 * score_prediction_file.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
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

/* ---- HDF5: "sample", "class" and "probability" if classes are asked for, then a data set for each set ---- */

static cvy_status add_array(cvy_prediction_file *t, const char *name, cvy_dtype dtype, cvy_shape shape, int by_class)
{
    return cvy_h5_table_add(t->table, &(cvy_h5_array){.name = name,
                                                      .dtype = dtype,
                                                      .shape = shape,
                                                      .class_name = by_class ? t->class_name : NULL,
                                                      .nclasses = by_class ? t->nclasses : 0});
}

static cvy_status hdf5_begin(cvy_prediction_file *t)
{
    const cvy_shape top = {1, {t->nlabel}};
    CVY_TRY(cvy_h5_table_create(t->ask.out, t->rows, &t->table));
    CVY_TRY(cvy_h5_table_add(t->table,
                             &(cvy_h5_array){.name = "sample", .dtype = CVY_DTYPE_I64, .is_text = t->ask.names != 0}));
    if (t->nlabel > 0) {
        CVY_TRY(add_array(t, "class", CVY_DTYPE_I32, top, 1));
        CVY_TRY(add_array(t, "probability", CVY_DTYPE_F64, top, 0));
    }
    for (int k = 0; k < t->nset; k++)
        CVY_TRY(add_array(t, t->set[k].name, CVY_DTYPE_F32, t->set[k].shape, t->set[k].by_class));
    return CVY_OK;
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

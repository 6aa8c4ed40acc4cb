/*
 * data_hdf5_table.h: writes one HDF5 file of named arrays, row by row. All arrays have the same number of rows, which
 * is known before the first one. Their axes may have names and coordinates; then NetCDF programs read the file, too.
 * Equal rows give an equal file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_HDF5_TABLE_H
#define CVY_DATA_HDF5_TABLE_H

#include "data/data_reader.h"

typedef struct cvy_h5_table cvy_h5_table;

enum { CVY_H5_NO_AXIS = 0 };
typedef struct cvy_h5_array { /* what an array is; strings are borrowed for the call */
    const char *name;
    cvy_dtype dtype; /* F32, F64, I32 or I64 */
    int is_text;     /* 1: a row is one text, and dtype and shape are not used */
    cvy_shape shape; /* of a row; ndim 0: a single number */
    const char *const *class_name;
    int64_t nclasses; /* > 0: the array gets an attribute class_names */
    /* Numbers of axes that cvy_h5_table_axis() gave, or CVY_H5_NO_AXIS: of the rows, then of those of shape. If the
     * array has the name of its only axis, it has the coordinates of that axis. */
    int axis[CVY_NDIM_MAX];
    const char *const *cf; /* [CVY_CF_COUNT]: its attributes, such as units; NULL: none */
} cvy_h5_array;

/* Creates the file under a temporary name. is_netcdf: it becomes a NetCDF-4 file, whose arrays have an axis with a name
 * for each dimension. CVY_E_UNSUPPORTED: this build has no HDF5. */
cvy_status cvy_h5_table_create(const char *path, int64_t rows, int is_netcdf, cvy_h5_table **out);
/* Adds an axis, before the arrays that use it, or returns the one that fits. If it has the name of another one, it gets
 * a longer name. holds_itself: an array of its name will be added, which has its coordinates. */
cvy_status cvy_h5_table_axis(cvy_h5_table *t, const cvy_coordinates *axis, int holds_itself, int *number_out);
/* Adds an array, before the first row. Its number is the number of arrays that were added before. */
cvy_status cvy_h5_table_add(cvy_h5_table *t, const cvy_h5_array *array);
/* Adds the next row of an array; row: its elements, or the text. */
cvy_status cvy_h5_table_row(cvy_h5_table *t, int array, const void *row);
/* Ends the file. status: of all that came before; if it is a fault, or rows are missing, no file is left. Returns it,
 * or the fault of the last write. */
cvy_status cvy_h5_table_end(cvy_h5_table **t, cvy_status status);

#endif

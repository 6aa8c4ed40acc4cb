/*
 * data_mat.h: reads arrays of numbers from MAT-files of level 5, which MATLAB's save() writes (-v6, and -v7, the
 * default).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_MAT_H
#define CVY_DATA_MAT_H

#include "data/data_reader.h"

typedef struct cvy_mat_array {
    const char *name;
    int64_t n;
    double *value; /* [n], all axes as MATLAB stores them: the first one is the fastest */
} cvy_mat_array;
/* Reads the real array of this name; NULL: the one that is called `usual`, or the only one. Memory is of pool. Errors
 * name the file, and the arrays that it has. */
cvy_status cvy_mat_read(cvy_pool *pool, const char *path, const char *name, const char *usual, cvy_mat_array *out);

#endif

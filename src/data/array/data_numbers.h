/*
 * data_numbers.h: reads a list of whole numbers that stands in a file of its own: labels of pictures, or which pictures
 * belong to a split.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_NUMBERS_H
#define CVY_DATA_NUMBERS_H

#include "data/data_reader.h"

typedef struct cvy_number_list {
    const char *path, *name; /* name: of the array in the file; NULL: a text file */
    int64_t n;
    int32_t *value;
} cvy_number_list;
/* spec: FILE, a text file with a number on each line; or FILE.mat or FILE.mat:NAME, an array of a MAT-file. usual: the
 * name that is looked for without one. Memory is of pool. Errors name the file and the line or number. */
cvy_status cvy_number_list_read(cvy_pool *pool, const char *spec, const char *usual, cvy_number_list *out);

#endif

/*
 * data_npy.h: headers of NumPy's .npy files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_NPY_H
#define CVY_DATA_NPY_H

#include "data/array/data_array.h"

/* Reads the header that begins at a->base of a->file, and sets the other fields. Messages name the file. */
cvy_status cvy_npy_read_header(struct array *a);
/* The same for an array of one text per sample: it becomes one of bytes whose last axis is the text.
 * *text_bytes_out: of a character, 1 or 4. CVY_NOT_APPLICABLE: the array has numbers. */
cvy_status cvy_npy_read_text_header(struct array *a, int *text_bytes_out);

#endif

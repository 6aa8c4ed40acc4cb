/*
 * data_array.h: a file that holds an array of numbers whose first axis counts the samples: shared by the npy and IDX
 * readers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_ARRAY_H
#define CVY_DATA_ARRAY_H

#include "data/data_reader.h"

typedef enum {
    ARRAY_U8,
    ARRAY_I8,
    ARRAY_U16,
    ARRAY_I16,
    ARRAY_U32,
    ARRAY_I32,
    ARRAY_U64,
    ARRAY_I64,
    ARRAY_F32,
    ARRAY_F64,
    ARRAY_F16,
    ARRAY_BOOL /* a byte: 0 is false, any other value is true */
} array_kind;

struct array {
    cvy_data_file file;
    array_kind kind;
    int big_endian;
    int64_t base;    /* where the array's own file begins: not 0 within an archive */
    int64_t offset;  /* of the first element, in bytes */
    int64_t count;   /* number of records */
    cvy_shape shape; /* of one record; ndim 0 if the array has one axis */
    size_t record_bytes;
};

/* Checks that the file holds all records. The caller has set file, kind, offset, count and shape. CVY_E_FORMAT names
 * the first record that is missing. */
cvy_status array_check(struct array *a);
size_t array_kind_bytes(array_kind kind);
/* Converts n elements in memory to f32. */
void array_to_f32(array_kind kind, int big_endian, const void *from, int64_t n, float *out);
/* A number in memory. */
double array_number(array_kind kind, int big_endian, const void *from);
/* Reads record i: converted to f32, with `work` as scratch memory; or its bytes unchanged (U8). */
cvy_status array_read_f32(const struct array *a, int64_t i, cvy_bytes *work, float *out);
cvy_status array_read_u8(const struct array *a, int64_t i, uint8_t *out);
/* Reads a part of record i: the bytes unchanged of U8, f32 of all others. part: as the record is stored. work has
 * array_part_work_bytes(). */
size_t array_part_work_bytes(const struct array *a, const cvy_field_part *part);
cvy_status array_read_part(const struct array *a, int64_t i, const cvy_field_part *part, void *work, void *out);
/* Reads all records, one number per record, as labels. *largest_out: the largest label, at least 0. Reals are taken if
 * they are whole. CVY_E_FORMAT names a record whose label is no whole number, or does not fit into int32. */
cvy_status array_read_labels(const struct array *a, cvy_pool *pool, int32_t **out, int32_t *largest_out);

#endif

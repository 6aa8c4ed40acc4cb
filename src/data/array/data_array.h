/*
 * data_array.h: an array of numbers in a file, first axis the samples: what the npy and IDX readers have in common.
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
    ARRAY_F64
} array_kind;

struct array {
    cvy_data_file file;
    array_kind kind;
    int big_endian;
    int64_t offset;  /* of the first element */
    int64_t count;   /* records */
    cvy_shape shape; /* of one record; scalar for an array of one axis */
    size_t record_bytes;
};

/* file, kind, offset, count and shape are set: checks that the file holds all records. CVY_E_FORMAT names the first
 * that is missing. */
cvy_status array_check(struct array *a);
size_t array_kind_bytes(array_kind kind);
/* n elements that lie in memory. */
void array_to_f32(array_kind kind, int big_endian, const void *from, int64_t n, float *out);
/* Record i as f32, through work; or its bytes as they are (U8). */
cvy_status array_read_f32(const struct array *a, int64_t i, cvy_bytes *work, float *out);
cvy_status array_read_u8(const struct array *a, int64_t i, uint8_t *out);
/* All records of an array of integers, one number a record, as labels; *largest_out: the largest. CVY_E_FORMAT names a
 * record beyond int32. */
cvy_status array_read_labels(const struct array *a, cvy_pool *pool, int32_t **out, int32_t *largest_out);

#endif

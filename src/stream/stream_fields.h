/*
 * stream_fields.h: the fields of a sample, and new samples that were put field by field and are not used yet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_STREAM_FIELDS_H
#define CVY_STREAM_FIELDS_H

#include "base/base_status.h"
#include "data/data_reader.h"

enum { CVY_FIELDS_MAX = 16 };

typedef struct cvy_sample_field {
    char *name;
    cvy_dtype dtype;
    cvy_shape shape;
    int64_t elems;   /* of a sample */
    size_t bytes;    /* of a sample */
    cvy_bytes fresh; /* [nfresh] samples that were put */
    int64_t nfresh;  /* -1: none were put */
} cvy_sample_field;

/* A record is a sample with its fields one after another. Zero-initialise. */
typedef struct cvy_sample_fields {
    cvy_sample_field field[CVY_FIELDS_MAX];
    int n;
    size_t record_bytes;
} cvy_sample_fields;

/* owner: "the reservoir", for messages. */
cvy_status cvy_sample_fields_add(cvy_sample_fields *fields, const char *owner, const char *name, cvy_dtype dtype,
                                 const cvy_shape *sample_shape);
void cvy_sample_fields_remove_last(cvy_sample_fields *fields);
/* CVY_END after the last; outputs may be NULL. */
cvy_status cvy_sample_fields_get(const cvy_sample_fields *fields, int i, const char **name_out, cvy_dtype *dtype_out,
                                 cvy_shape *shape_out);
/* New samples of one field, in place of those that were put before; checked for numbers that are not finite. */
cvy_status cvy_sample_fields_put(cvy_sample_fields *fields, const char *owner, const char *name, cvy_dtype dtype,
                                 const void *data, int64_t elems);
/* Number of new samples, which all fields must have. */
cvy_status cvy_sample_fields_count(const cvy_sample_fields *fields, const char *owner, int64_t *n_out);
/* Forgets the new samples. */
void cvy_sample_fields_clear(cvy_sample_fields *fields);
/* Writes new sample i to a record. */
void cvy_sample_fields_to_record(const cvy_sample_fields *fields, int64_t i, char *record);
void cvy_sample_fields_free(cvy_sample_fields *fields);

/* The number of a word of opts.<option>; NULL is the first. */
cvy_status cvy_stream_find_word(const char *option, const char *given, const char *const *word, int n, int *out);

#endif

/*
 * data_example.h: tf.train.Example, the message in TFRecord files: named features, each of which is a list of byte
 * strings, floats or integers.
 *
 * It is read in place: a feature is a part of the record, and numbers are decoded when they are needed. Records may be
 * malicious, so everything is checked. Source: example.proto and feature.proto of TensorFlow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_EXAMPLE_H
#define CVY_DATA_EXAMPLE_H

#include "base/base_status.h"
#include "format/format_protobuf.h"

/* The values are the field numbers in the message Feature. */
typedef enum {
    CVY_FEATURE_ABSENT = 0, /* no such feature, or an empty list */
    CVY_FEATURE_BYTES = 1,
    CVY_FEATURE_FLOATS = 2,
    CVY_FEATURE_INTS = 3
} cvy_feature_kind;

typedef struct cvy_feature {
    cvy_feature_kind kind;
    cvy_wire list;
} cvy_feature;

const char *cvy_feature_kind_text(cvy_feature_kind kind); /* "bytes", "floats", "integers", "nothing" */

/* Finds n features by name in one pass; a NULL name is skipped. CVY_E_FORMAT: the record is not an Example, or has no
 * features. */
cvy_status cvy_example_find(const void *record, size_t bytes, const char *const *name, int n, cvy_feature *out);
/* Lists all features, "image/encoded (bytes), label (integers)", for messages. */
void cvy_example_describe(const void *record, size_t bytes, char *text, size_t room);

/* Returns 1 and the first byte string; 0 if the feature has another kind, is empty or is damaged. */
int cvy_feature_bytes(const cvy_feature *f, cvy_wire *out);
/* Copies the first `room` numbers. Returns how many the feature has, or -1 if it has another kind or is damaged. */
int64_t cvy_feature_ints(const cvy_feature *f, int64_t *out, int64_t room);
int64_t cvy_feature_floats(const cvy_feature *f, float *out, int64_t room);

/* ---- writing ---- */
typedef struct cvy_new_feature {
    const char *name;
    cvy_feature_kind kind;
    const void *data; /* the bytes of one string, or float, or int64_t */
    size_t count;     /* number of elements in data */
} cvy_new_feature;
size_t cvy_example_bytes(const cvy_new_feature *f, int n);
/* Writes cvy_example_bytes() bytes. */
void cvy_example_put(const cvy_new_feature *f, int n, uint8_t *to);

#endif

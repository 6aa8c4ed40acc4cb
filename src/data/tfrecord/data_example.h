/*
 * data_example.h: tf.train.Example, the message that TFRecord files hold: named features, each a list of byte strings,
 * floats or integers.
 *
 * Read in place: a feature is a stretch of the record, numbers are taken out when they are asked for. Records may be
 * hostile. Source: example.proto and feature.proto of TensorFlow.
 */
#ifndef CVY_DATA_EXAMPLE_H
#define CVY_DATA_EXAMPLE_H

#include "base/base_status.h"
#include "format/format_protobuf.h"

/* The values are the field numbers in the message Feature. */
typedef enum {
    CVY_FEATURE_ABSENT = 0, /* or without any list */
    CVY_FEATURE_BYTES = 1,
    CVY_FEATURE_FLOATS = 2,
    CVY_FEATURE_INTS = 3
} cvy_feature_kind;

typedef struct cvy_feature {
    cvy_feature_kind kind;
    cvy_wire list;
} cvy_feature;

const char *cvy_feature_kind_text(cvy_feature_kind kind); /* "bytes", "floats", "integers", "nothing" */

/* The features of these names (NULL: none wanted), n of them, in one pass. CVY_E_FORMAT: no Example, or one without
 * features. */
cvy_status cvy_example_find(const void *record, size_t bytes, const char *const *name, int n, cvy_feature *out);
/* All that it has, "image/encoded (bytes), label (integers)", for messages. */
void cvy_example_describe(const void *record, size_t bytes, char *text, size_t room);

/* The first byte string: 1; 0 where it is of another kind, has none, or is damaged. */
int cvy_feature_bytes(const cvy_feature *f, cvy_wire *out);
/* Copies the first `room` numbers; how many there are, or -1 where it is of another kind or damaged. */
int64_t cvy_feature_ints(const cvy_feature *f, int64_t *out, int64_t room);
int64_t cvy_feature_floats(const cvy_feature *f, float *out, int64_t room);

/* ---- writing ---- */
typedef struct cvy_new_feature {
    const char *name;
    cvy_feature_kind kind;
    const void *data; /* bytes (one string), float or int64_t */
    size_t count;     /* of them */
} cvy_new_feature;
size_t cvy_example_bytes(const cvy_new_feature *f, int n);
/* Writes that many bytes. */
void cvy_example_put(const cvy_new_feature *f, int n, uint8_t *to);

#endif

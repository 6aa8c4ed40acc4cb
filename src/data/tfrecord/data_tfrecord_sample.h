/*
 * data_tfrecord_sample.h: what the features of a record mean: which of them is the input, which the label, and so on.
 *
 * Between the framing (data_tfrecord.c) and the message (data_example.h). Names come from options; those in common use
 * are found by looking at the first good record.
 */
#ifndef CVY_DATA_TFRECORD_SAMPLE_H
#define CVY_DATA_TFRECORD_SAMPLE_H

#include "data/data_reader.h"
#include "data/tfrecord/data_example.h"

/* What features are for. The first six have an option each. */
enum {
    TF_IMAGE,
    TF_X,
    TF_LABEL,
    TF_TEXT,
    TF_Y,
    TF_WEIGHT,
    TF_X_SHAPE,
    TF_X_DTYPE,
    TF_Y_SHAPE,
    TF_HEIGHT,
    TF_WIDTH,
    TF_CHANNELS,
    TF_NROLE
};

struct tf_opts {
    const char *name[TF_WEIGHT + 1], *index;
    cvy_ints shape;
    int dtype, channels;
    int64_t first_label, classes;
};
extern const cvy_option cvy_tfrecord_options[];

struct tf_fields {
    struct tf_opts o;
    int resolved;
    const char *name[TF_NROLE]; /* NULL: the set has none */
    int by_name;                /* labels are names */
    cvy_shape x_shape;          /* of the first record, where it says it */
    cvy_shape y_shape;
    int64_t y_elems;
};

struct tf_sample {
    const uint8_t *record;
    size_t bytes;
    cvy_feature f[TF_NROLE];
};

cvy_status cvy_tf_check_options(const struct tf_opts *o);
/* The names that stay NULL are those of features that this record, the first, does not have. */
cvy_status cvy_tf_resolve(struct tf_fields *t, cvy_pool *pool, struct tf_sample *s);
/* Fills s->f from s->record. */
cvy_status cvy_tf_find(const struct tf_fields *t, struct tf_sample *s);
/* A shape in a record: 1; 0 where there is none. */
int cvy_tf_shape(const cvy_feature *f, cvy_shape *out);
/* Input, coding, dtype and shape of raw. */
cvy_status cvy_tf_take_x(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw);
/* Weight and y of raw; y's room is y_elems floats at least. */
cvy_status cvy_tf_take_targets(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw);
/* A number, or a name where the set's labels are names. */
cvy_status cvy_tf_label(const struct tf_fields *t, const struct tf_sample *s, int32_t *number, cvy_wire *name);

#endif

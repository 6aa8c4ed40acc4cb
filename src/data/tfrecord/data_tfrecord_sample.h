/*
 * data_tfrecord_sample.h: what the features of a record mean: which one is the input, which one the label, and so on.
 *
 * This is the layer between the framing (data_tfrecord.c) and the message (data_example.h). Options give the names of
 * features; usual names are searched in the first record that is not damaged.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_TFRECORD_SAMPLE_H
#define CVY_DATA_TFRECORD_SAMPLE_H

#include "data/data_reader.h"
#include "data/tfrecord/data_example.h"

/* Roles of features. The first six have an option each. */
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
    const char *name[TF_WEIGHT + 1], *index, *group;
    cvy_ints shape;
    int dtype, channels, channels_last;
    int64_t first_label, classes, cache_mb;
};
extern const cvy_option cvy_tfrecord_options[];

struct tf_fields {
    struct tf_opts o;
    int resolved;
    const char *name[TF_NROLE]; /* NULL: the data set has no such feature */
    int by_name;                /* labels are names, not numbers */
    cvy_shape x_shape;          /* of the first record, if the record gives it */
    cvy_shape y_shape;
    int64_t y_elems;
};

struct tf_sample {
    const uint8_t *record;
    size_t bytes;
    cvy_feature f[TF_NROLE];
};

cvy_status cvy_tf_check_options(const struct tf_opts *o);
/* Finds the names of the features. A name stays NULL if this record, the first good one, has no such feature. */
cvy_status cvy_tf_resolve(struct tf_fields *t, cvy_pool *pool, struct tf_sample *s);
/* Fills s->f from s->record. */
cvy_status cvy_tf_find(const struct tf_fields *t, struct tf_sample *s);
/* Returns 1 and a shape that the record gives, or 0 if it gives none. */
int cvy_tf_shape(const cvy_feature *f, cvy_shape *out);
/* Sets input, coding, dtype and shape of raw. */
cvy_status cvy_tf_take_x(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw);
/* Sets weight and y of raw. raw->y has room for at least y_elems floats. */
cvy_status cvy_tf_take_targets(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw);
/* Returns a number, or a name if the labels of the data set are names. */
cvy_status cvy_tf_label(const struct tf_fields *t, const struct tf_sample *s, int32_t *number, cvy_wire *name);

#endif

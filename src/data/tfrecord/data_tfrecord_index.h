/*
 * data_tfrecord_index.h: the state of the TFRecord reader, and the index file that saves the result of its first pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_TFRECORD_INDEX_H
#define CVY_DATA_TFRECORD_INDEX_H

#include "data/data_index.h"
#include "data/tfrecord/data_tfrecord_sample.h"

struct tf {
    cvy_pool *pool;
    struct tf_fields is;
    cvy_data_file *file; /* fd -1: the file is opened for each read */
    int64_t nfile;
    int64_t *first; /* [nfile + 1]: number of each file's first sample */
    cvy_entries entries;
    cvy_classes classes;
    int x_varies;
    struct cvy_tf_packed *packed; /* NULL: no file is compressed as a whole */
};

/* For the option `index`: the index file of a data set in that folder, and a hash of the state which the data must
 * have. */
typedef struct cvy_tf_index_file {
    char *path;
    uint64_t state;
} cvy_tf_index_file;
/* Computes both from size, time and both ends of each file of the data set. It creates the folder. */
cvy_status cvy_tf_index_file_find(const struct tf *t, cvy_tf_index_file *out);
/* Loads first, entries, classes and x_varies from the index file. CVY_NOT_APPLICABLE: it does not exist, belongs to
 * another state, or is damaged. */
cvy_status cvy_tf_index_file_load(const cvy_tf_index_file *index, struct tf *t);
/* Saves the index file. Call it before cvy_classes_resolve() changes the labels. */
cvy_status cvy_tf_index_file_save(const cvy_tf_index_file *index, const struct tf *t);

#endif

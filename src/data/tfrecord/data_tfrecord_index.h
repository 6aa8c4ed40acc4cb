/*
 * data_tfrecord_index.h: the state of the TFRecord reader, and the file that keeps what its first pass found.
 */
#ifndef CVY_DATA_TFRECORD_INDEX_H
#define CVY_DATA_TFRECORD_INDEX_H

#include "data/data_index.h"
#include "data/tfrecord/data_tfrecord_sample.h"

struct tf {
    cvy_pool *pool;
    struct tf_fields is;
    cvy_data_file *file; /* fd -1: opened when it is read */
    int64_t nfile;
    int64_t *first; /* [nfile + 1]: number of each file's first sample */
    cvy_entries entries;
    cvy_classes classes;
    int x_varies;
};

/* The option `index`: which file of that folder belongs to a set, and in which state the set must be. */
typedef struct cvy_tf_kept {
    char *path;
    uint64_t state;
} cvy_tf_kept;
/* Looks at size, time and both ends of each file of the set. The folder is made. */
cvy_status cvy_tf_kept_find(const struct tf *t, cvy_tf_kept *out);
/* Takes first, entries, classes and x_varies from it; CVY_NOT_APPLICABLE where it is not there, of another state, or
 * damaged. */
cvy_status cvy_tf_kept_load(const cvy_tf_kept *kept, struct tf *t);
/* Before labels are settled. */
cvy_status cvy_tf_kept_save(const cvy_tf_kept *kept, const struct tf *t);

#endif

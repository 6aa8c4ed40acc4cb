/*
 * data_dataset.h: what the files of a data set share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_DATASET_H
#define CVY_DATA_DATASET_H

#include <pthread.h>

#include "data/data_sources.h"

typedef struct cvy_dataset_scratch { /* what one read in progress needs */
    cvy_raw raw;
    cvy_bytes decoded, rows, guarded, whole[2]; /* whole: x and y, of which only parts are wanted */
    cvy_augment_scratch augmented;
    struct cvy_dataset_scratch *next;
} cvy_dataset_scratch;

struct cvy_dataset {
    cvy_pool *pool;
    cvy_dataset_info info;
    const cvy_reader_def *reader;
    void *state;
    cvy_reader_info stored;
    int borrows; /* 1: a view; reader and state belong to another data set */
    cvy_augment *augment;
    pthread_mutex_t lock; /* protects idle */
    int lock_made;
    cvy_dataset_scratch *idle;
    struct cvy_seen *seen; /* notes what is read; NULL: nobody compares samples */
    cvy_dataset *whole;    /* of a part: the whole set, and the part's numbers in it; else NULL */
    int64_t *number;
};

/* Frees the buffers that no read uses. */
void cvy_dataset_free_scratch(cvy_dataset *d);
/* The number that a sample has in the source, whatever part the set is. */
int64_t cvy_dataset_number_in_source(const cvy_dataset *d, int64_t number);

#endif

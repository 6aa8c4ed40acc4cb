/*
 * data_statistics.h: mean and standard deviation of each channel of a data set's x or y.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_STATISTICS_H
#define CVY_DATA_STATISTICS_H

#include "data/data.h"

typedef struct cvy_channel_statistics { /* of a field */
    int field;                          /* index of the field, which must be f32; set by the caller, as nchannels */
    int64_t nchannels;                  /* equal parts of a sample: 1: all elements are one channel */
    double *mean, *std;                 /* in the pool; a std of 0 means that all values are equal */
} cvy_channel_statistics;

typedef struct cvy_statistics_opts {
    int64_t limit; /* samples that are read, drawn by seed if there are more; 0: all */
    uint64_t seed;
    int threads, skip_bad;
} cvy_statistics_opts;

/* Computes the statistics of `count` fields in one pass. Each rank reads a part. The sums are in f64 over fixed parts
 * of the set and are combined in a fixed order, so the bits do not depend on the number of ranks or threads.
 * *nsamples_out: samples that were read. Collective. */
cvy_status cvy_channel_statistics_make(cvy_dataset *d, cvy_comm *comm, const cvy_statistics_opts *opts, cvy_pool *pool,
                                       cvy_channel_statistics *fields, int count, int64_t *nsamples_out);

#endif

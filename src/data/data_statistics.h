/*
 * data_statistics.h: mean and standard deviation of each channel of a data set's x.
 */
#ifndef CVY_DATA_STATISTICS_H
#define CVY_DATA_STATISTICS_H

#include "data/data.h"

typedef struct cvy_channel_statistics {
    int nchannels; /* 1 if there are more channels than CVY_LIST_MAX: statistics are then over all elements */
    double mean[CVY_LIST_MAX], std[CVY_LIST_MAX]; /* a std of 0 is replaced by 1 */
    int64_t nsamples;                             /* samples that were read */
    double seconds;
} cvy_channel_statistics;

/* Computes the statistics of all samples of d, or of `limit` seeded ones if d has more (0: all). Each rank reads a
 * part. The sums are in f64 over fixed parts of the set and are combined in a fixed order, so the bits do not depend on
 * the number of ranks or threads. Collective. */
cvy_status cvy_channel_statistics_make(cvy_dataset *d, cvy_comm *comm, int64_t limit, uint64_t seed, int threads,
                                       int skip_bad, cvy_channel_statistics *out);

#endif

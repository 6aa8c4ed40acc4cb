/*
 * data_statistics.h: mean and standard deviation of each channel of a data set's x.
 */
#ifndef CVY_DATA_STATISTICS_H
#define CVY_DATA_STATISTICS_H

#include "data/data.h"

typedef struct cvy_channel_statistics {
    int nchannels; /* 1 where there are more channels than a list of options holds: then of all elements together */
    double mean[CVY_LIST_MAX], std[CVY_LIST_MAX]; /* a std of 0 is given as 1 */
    int64_t nsamples;                             /* that were read */
    double seconds;
} cvy_channel_statistics;

/* Of all samples of d, or of `limit` seeded ones where there are more (0: all). Each rank reads a part; the sums are
 * taken in f64 over fixed parts of the set and combined in a fixed order, so the bits do not depend on the number of
 * ranks or threads. Collective. */
cvy_status cvy_channel_statistics_make(cvy_dataset *d, cvy_comm *comm, int64_t limit, uint64_t seed, int threads,
                                       int skip_bad, cvy_channel_statistics *out);

#endif

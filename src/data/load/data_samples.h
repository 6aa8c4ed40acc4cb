/*
 * data_samples.h: which samples a rank sees in which step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_SAMPLES_H
#define CVY_DATA_SAMPLES_H

#include "data/data.h"

/* ---- the order of samples: an epoch is cut into batches, a batch into micro-batches, a micro-batch into the ranks'
 * shares ---- */
typedef struct cvy_order {
    int64_t nsamples, batch, accumulate;
    int64_t steps_per_epoch; /* with the tail batch, unless it is dropped */
    int64_t last_step;       /* end of the run: the first step that is not run */
    int rank, nranks;
    int64_t shards; /* shards of deterministic training, each with its own micro-batch; 0: no shards */
} cvy_order;
cvy_order cvy_order_make(int64_t nsamples, int64_t batch, int64_t accumulate, int drop_tail, int64_t epochs_or_zero,
                         int64_t steps, const cvy_comm *comm);
int64_t cvy_order_batch(const cvy_order *o, int64_t step);          /* global number of samples of this step */
cvy_batch cvy_order_part(const cvy_order *o, int64_t n, int rank);  /* the samples of one rank out of n */
int64_t cvy_order_samples_before(const cvy_order *o, int64_t step); /* global number of samples before this step */
cvy_status cvy_order_share(void *order, int64_t step, cvy_share *shares, int max, int *nshare_out); /* a cvy_share_fn */

#endif

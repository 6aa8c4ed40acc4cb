/*
 * job_baseline.h: classic methods beside the network, where the data has them (collider events): cuts and a linear classifier on features.
 */
#ifndef CVY_JOB_BASELINE_H
#define CVY_JOB_BASELINE_H

#include "job/job_scoring.h"

typedef struct cvy_baselines {
    void *impl;                        /* NULL: the data has no baselines */
} cvy_baselines;

/* rows: network output (two classes) then label, for each sample in order of the data. Trains the baselines on the job's training data. Rank 0. */
cvy_status cvy_baselines_find(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, cvy_baselines *out);
/* Into an open "roc" object: the network's own errors. */
void cvy_baselines_add_network(const cvy_baselines *b, cvy_json *json);
/* "baselines" and "histograms" into the open top object. */
void cvy_baselines_add(const cvy_baselines *b, cvy_json *json);
void cvy_baselines_free(cvy_baselines *b);

#endif

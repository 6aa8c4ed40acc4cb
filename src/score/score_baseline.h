/*
 * score_baseline.h: classic methods to compare the network with, for data that have them (collider events): cuts and a
 * linear classifier on features.
 */
#ifndef CVY_SCORE_BASELINE_H
#define CVY_SCORE_BASELINE_H

#include "base/text/base_json.h"
#include "score/score_run.h"

/* rows: for each sample in the order of the data, the network output (two classes), then the label. Optimises the
 * baselines on the job's training data and adds "network", "baselines" and "histograms" to the open object of
 * test.json. If the data have no baselines, it does nothing. Call it on rank 0. */
cvy_status cvy_baselines_add(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, cvy_json *json);

#endif

/*
 * score_baseline.h: classic methods beside the network, where the data has them (collider events): cuts and a linear
 * classifier on features.
 */
#ifndef CVY_SCORE_BASELINE_H
#define CVY_SCORE_BASELINE_H

#include "base/base_json.h"
#include "score/score_run.h"

/* rows: network output (two classes), then label, for each sample in order of the data. Optimises the baselines on the
 * job's training data and adds "network", "baselines" and "histograms" to the open object of test.json; nothing where
 * the data has no baselines. On rank 0. */
cvy_status cvy_baselines_add(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, cvy_json *json);

#endif

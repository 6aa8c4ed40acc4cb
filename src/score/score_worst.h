/*
 * score_worst.h: the pictures that a network is most wrong about, for the run's page.
 */
#ifndef CVY_SCORE_WORST_H
#define CVY_SCORE_WORST_H

#include "base/base_json.h"
#include "score/score_run.h"

/* rows: network output, then label, for each sample in the order of the data. Adds "mistakes" to the open object of
 * test.json; nothing where the data are no pictures or have no classes. On rank 0. */
cvy_status cvy_mistakes_add(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, int64_t output_elems,
                            cvy_json *json);

#endif

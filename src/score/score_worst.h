/*
 * score_worst.h: the pictures with the largest errors of the network, for the report of the run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_WORST_H
#define CVY_SCORE_WORST_H

#include "base/text/base_json.h"
#include "score/score_run.h"

/* rows: for each sample in the order of the data, the network output, then the label. Adds "mistakes" to the open
 * object of test.json. If the data are not pictures or have no classes, it does nothing. Call it on rank 0. */
cvy_status cvy_worst_add(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, int64_t output_elems,
                         cvy_json *json);

#endif

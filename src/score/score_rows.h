/*
 * score_rows.h: what a pass compares the outputs of a batch with: the target, in units of its own, and the weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_ROWS_H
#define CVY_SCORE_ROWS_H

#include "data/data_reader.h"
#include "metric/metric.h"

typedef struct cvy_score_rows {
    const cvy_field *field; /* of the target */
    cvy_span target;        /* [n, shape...]; without data if the data set has no target */
    const double *weight;   /* see cvy_metric_rows */
    int64_t weight_each;
} cvy_score_rows;

/* Finds the target of the rows, and undoes its scaling in place: call it once for a batch. A skipped sample has weight
 * 0. The weights are in `room`, which the next batch uses again. CVY_E_MEMORY. */
cvy_status cvy_score_rows_of(const cvy_dataset_info *info, const cvy_rows *rows, cvy_bytes *room, cvy_score_rows *out);

#endif

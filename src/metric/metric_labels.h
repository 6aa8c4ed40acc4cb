/*
 * metric_labels.h: how classification metrics read outputs and labels.
 *
 * An output is [n, K, positions...], with one label for each position. K = 1 means a single logit for two classes; it
 * is positive for class 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_METRIC_LABELS_H
#define CVY_METRIC_LABELS_H

#include "metric/metric.h"

/* K for outputs of this sample shape. cvy_metric_classes() gives the number of classes: K, or 2 for a single logit. */
static inline int64_t cvy_metric_outputs(const cvy_shape *output)
{
    return output->ndim ? output->dim[0] : 1;
}

static inline int64_t cvy_metric_classes(const cvy_shape *output)
{
    return CVY_MAX(cvy_metric_outputs(output), 2);
}

/* K for a batch of rows. */
static inline int64_t cvy_rows_outputs(const cvy_metric_rows *rows)
{
    return rows->output->ndim > 1 ? rows->output->dim[1] : 1;
}

static inline int64_t cvy_rows_positions(const cvy_metric_rows *rows)
{
    return cvy_span_prod(rows->output, CVY_MIN(2, rows->output->ndim), rows->output->ndim);
}

/* Logit k of sample i at position p. */
static inline double cvy_rows_logit(const cvy_metric_rows *rows, int64_t i, int64_t k, int64_t p)
{
    const int64_t K = cvy_rows_outputs(rows), P = cvy_rows_positions(rows);
    return cvy_get(rows->output, (i * K + k) * P + p);
}

/* The label, or -1 if it does not count: it is ignored, or its weight is 0. */
static inline int64_t cvy_rows_label(const cvy_metric_labels *o, const cvy_metric_rows *rows, int64_t i, int64_t p)
{
    const int64_t label = (int64_t)cvy_get(rows->target, i * cvy_rows_positions(rows) + p);
    if (cvy_rows_weight(rows, i, p) == 0)
        return -1;
    for (int j = 0; j < o->ignore_label.count; j++)
        if (o->ignore_label.at[j] == label)
            return -1;
    return label;
}

/* The class of the largest logit, or the first of them if several are equal; -1 if a logit is NaN. */
static inline int64_t cvy_rows_argmax(const cvy_metric_rows *rows, int64_t i, int64_t p)
{
    const int64_t K = cvy_rows_outputs(rows);
    int64_t best = 0;
    for (int64_t k = 0; k < K; k++) {
        const double x = cvy_rows_logit(rows, i, k, p);
        if (x != x)
            return -1;
        if (x > cvy_rows_logit(rows, i, best, p))
            best = k;
    }
    return K == 1 ? cvy_rows_logit(rows, i, 0, p) > 0 : best;
}

#endif

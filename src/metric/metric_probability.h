/*
 * metric_probability.h: how metrics read the probabilities of classes: the softmax of the logits, or the sigmoid of a
 * single one, after a division by the temperature.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_METRIC_PROBABILITY_H
#define CVY_METRIC_PROBABILITY_H

#include <math.h>

#include "metric/metric_labels.h"

/* The first options of a metric on probabilities. */
typedef struct cvy_metric_probability {
    cvy_metric_labels labels;
    double temperature;
} cvy_metric_probability;
/* clang-format off */
#define CVY_TEMPERATURE_ROW                                                                                            \
    {"temperature", CVY_TYPE_REAL, offsetof(cvy_metric_probability, temperature), "1", ">0", "",                      \
     "logits are divided by it, as a calibration does"}
/* clang-format on */

/* Logit k of K >= 2: a single logit x stands for 0 and x. */
static inline double cvy_rows_scaled_logit(const cvy_metric_probability *o, const cvy_metric_rows *rows, int64_t i,
                                           int64_t k, int64_t p)
{
    if (cvy_rows_outputs(rows) == 1)
        return k == 1 ? cvy_rows_logit(rows, i, 0, p) / o->temperature : 0;
    return cvy_rows_logit(rows, i, k, p) / o->temperature;
}

/* The logarithm of the sum of the exponentials of all logits. The probability of class k is exp(logit k - this). NaN if
 * a logit is NaN. */
static inline double cvy_rows_log_sum(const cvy_metric_probability *o, const cvy_metric_rows *rows, int64_t i,
                                      int64_t p)
{
    const int64_t K = CVY_MAX(cvy_rows_outputs(rows), 2);
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < K; k++)
        top = fmax(top, cvy_rows_scaled_logit(o, rows, i, k, p));
    for (int64_t k = 0; k < K; k++)
        sum += exp(cvy_rows_scaled_logit(o, rows, i, k, p) - top);
    return top + log(sum);
}

#endif

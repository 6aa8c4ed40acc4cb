/*
 * metric accuracy: the share of samples, or of positions if a sample has several, whose largest output belongs to their
 * class. It runs after each forward pass of a validation or test pass. If several outputs are largest, the first
 * counts; a sample with a NaN output counts as wrong.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "metric/metric_labels.h"

static const cvy_option accuracy_opts[] = {CVY_IGNORE_LABEL_ROW, {0}};

enum { RIGHT, ALL, NSUMS };

static int64_t accuracy_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    (void)output;
    return NSUMS;
}

static void accuracy_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const int64_t P = cvy_rows_positions(rows);
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = cvy_rows_label(options, rows, i, p);
            if (label < 0)
                continue;
            sums[RIGHT] += cvy_rows_argmax(rows, i, p) == label ? cvy_rows_weight(rows, i, p) : 0;
            sums[ALL] += cvy_rows_weight(rows, i, p);
        }
}

static double accuracy_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                              int64_t nrows)
{
    (void)options;
    (void)output;
    (void)rows;
    (void)nrows;
    return sums[RIGHT] / sums[ALL];
}

CVY_METRIC_DEFINE(accuracy) = {
    .name = "accuracy",
    .summary = "share of samples that are classified correctly",
    .options = accuracy_opts,
    .options_size = sizeof(cvy_metric_labels),
    .higher_is_better = 1,
    .wants_labels = 1,
    .nsums = accuracy_nsums,
    .add = accuracy_add,
    .finish = accuracy_finish,
};

/*
 * metric balanced_accuracy: the mean recall of the classes that occur, with the confusion matrix. It runs after each
 * forward pass of a validation or test pass. A sample with a NaN output is predicted as no class, so it is missing from
 * its row of the matrix.
 *
 * Detail: "confusion" [[...]], rows are true classes and columns are predictions; "recall" and "precision" for each
 * class, null if a class does not occur or is never predicted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/text/base_json.h"
#include "metric/metric_labels.h"

static const cvy_option balanced_opts[] = {CVY_IGNORE_LABEL_ROW, {0}};

/* The matrix, then the total weight of each true class (NaN predictions are missing from the rows). */
static int64_t balanced_nsums(const void *options, const cvy_shape *output)
{
    const int64_t K = cvy_metric_classes(output);
    (void)options;
    return K * K + K;
}

static void balanced_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const int64_t P = cvy_rows_positions(rows), K = CVY_MAX(cvy_rows_outputs(rows), 2);
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = cvy_rows_label(options, rows, i, p), guess = cvy_rows_argmax(rows, i, p);
            if (label < 0)
                continue;
            sums[K * K + label] += cvy_rows_weight(rows, i, p);
            if (guess >= 0)
                sums[label * K + guess] += cvy_rows_weight(rows, i, p);
        }
}

static double recall(const double *sums, int64_t K, int64_t k)
{
    return sums[K * K + k] > 0 ? sums[k * K + k] / sums[K * K + k] : NAN;
}

static double precision(const double *sums, int64_t K, int64_t k)
{
    double guessed = 0;
    for (int64_t j = 0; j < K; j++)
        guessed += sums[j * K + k];
    return guessed > 0 ? sums[k * K + k] / guessed : NAN;
}

static double balanced_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                              int64_t nrows)
{
    const int64_t K = cvy_metric_classes(output);
    double sum = 0, present = 0;
    (void)options;
    (void)rows;
    (void)nrows;
    for (int64_t k = 0; k < K; k++)
        if (sums[K * K + k] > 0) {
            sum += recall(sums, K, k);
            present++;
        }
    return sum / present;
}

static void balanced_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                            int64_t nrows, cvy_json *json)
{
    const int64_t K = cvy_metric_classes(output);
    (void)options;
    (void)rows;
    (void)nrows;
    cvy_json_open(json, "confusion", '[');
    for (int64_t i = 0; i < K; i++) {
        cvy_json_open(json, NULL, '[');
        for (int64_t j = 0; j < K; j++)
            cvy_json_real(json, NULL, sums[i * K + j]);
        cvy_json_close(json, ']');
    }
    cvy_json_close(json, ']');
    cvy_json_open(json, "recall", '[');
    for (int64_t k = 0; k < K; k++)
        cvy_json_real(json, NULL, recall(sums, K, k));
    cvy_json_close(json, ']');
    cvy_json_open(json, "precision", '[');
    for (int64_t k = 0; k < K; k++)
        cvy_json_real(json, NULL, precision(sums, K, k));
    cvy_json_close(json, ']');
}

CVY_METRIC_DEFINE(balanced_accuracy) = {
    .name = "balanced_accuracy",
    .summary = "mean recall of the classes, with the confusion matrix",
    .options = balanced_opts,
    .options_size = sizeof(cvy_metric_labels),
    .higher_is_better = 1,
    .wants_labels = 1,
    .nsums = balanced_nsums,
    .add = balanced_add,
    .finish = balanced_finish,
    .detail = balanced_detail,
};

/*
 * metric ece: the expected calibration error: how far the confidence of a classifier is from its accuracy. It runs
 * after each forward pass of a validation or test pass. Source: Guo et al. 2017, with bins of equal width.
 *
 *     confidence  the largest probability of a sample (of each position, if it has several)
 *     bin m       the samples with (m - 1) / bins < confidence <= m / bins
 *     ece         sum over bins of (weight of the bin / weight of all) * |accuracy - mean confidence| in the bin
 *
 * Detail: "reliability" {count, confidence, accuracy}, each a list with a number for each bin: the weight of its
 * samples, their mean confidence and their accuracy, null if the bin is empty. With a temperature other than 1 it is
 * called "reliability_calibrated". If a logit is NaN, the result is NaN.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/text/base_json.h"
#include "metric/metric_probability.h"

struct ece {
    cvy_metric_probability probability;
    int64_t bins;
};

static const cvy_option ece_opts[] = {
    CVY_IGNORE_LABEL_ROW,
    CVY_TEMPERATURE_ROW,
    {"bins", CVY_TYPE_INT, CVY_FIELD(ece, bins), "15", "1..1000", "", "number of bins of equal width"},
    {0},
};

enum { WEIGHT, CONFIDENCE, RIGHT, NSUMS }; /* of each bin */

static int64_t ece_nsums(const void *options, const cvy_shape *output)
{
    (void)output;
    return NSUMS * ((const struct ece *)options)->bins;
}

static void add_position(const struct ece *o, const cvy_metric_rows *rows, int64_t i, int64_t p, int64_t label,
                         double *sums)
{
    const int64_t best = cvy_rows_argmax(rows, i, p);
    const double weight = cvy_rows_weight(rows, i, p);
    const double confidence = best < 0 ? NAN
                                       : exp(cvy_rows_scaled_logit(&o->probability, rows, i, best, p) -
                                             cvy_rows_log_sum(&o->probability, rows, i, p));
    const int64_t bin = best < 0 ? 0 : CVY_MIN(CVY_MAX((int64_t)ceil(confidence * (double)o->bins), 1), o->bins) - 1;
    sums[NSUMS * bin + WEIGHT] += weight;
    sums[NSUMS * bin + CONFIDENCE] += weight * confidence;
    sums[NSUMS * bin + RIGHT] += best == label ? weight : 0;
}

static void ece_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const struct ece *o = options;
    const int64_t P = cvy_rows_positions(rows);
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = cvy_rows_label(&o->probability.labels, rows, i, p);
            if (label >= 0)
                add_position(o, rows, i, p, label, sums);
        }
}

static double ece_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                         int64_t nrows)
{
    double gaps = 0, all = 0;
    (void)output;
    (void)rows;
    (void)nrows;
    for (int64_t m = 0; m < ((const struct ece *)options)->bins; m++) {
        gaps += fabs(sums[NSUMS * m + RIGHT] - sums[NSUMS * m + CONFIDENCE]);
        all += sums[NSUMS * m + WEIGHT];
    }
    return gaps / all;
}

static void ece_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                       int64_t nrows, cvy_json *json)
{
    const struct ece *o = options;
    static const char *const keys[] = {"count", "confidence", "accuracy"};
    (void)output;
    (void)rows;
    (void)nrows;
    cvy_json_open(json, o->probability.temperature == 1 ? "reliability" : "reliability_calibrated", '{');
    for (int what = WEIGHT; what < NSUMS; what++) {
        cvy_json_open(json, keys[what], '[');
        for (int64_t m = 0; m < o->bins; m++)
            cvy_json_real(json, NULL, sums[NSUMS * m + what] / (what == WEIGHT ? 1 : sums[NSUMS * m + WEIGHT]));
        cvy_json_close(json, ']');
    }
    cvy_json_close(json, '}');
}

CVY_METRIC_DEFINE(ece) = {
    .name = "ece",
    .summary = "expected calibration error: distance of confidence from accuracy",
    .options = ece_opts,
    .options_size = sizeof(struct ece),
    .wants_labels = 1,
    .nsums = ece_nsums,
    .add = ece_add,
    .finish = ece_finish,
    .detail = ece_detail,
};

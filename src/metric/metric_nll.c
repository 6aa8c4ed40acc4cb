/*
 * metrics nll and brier: how good the probabilities of classes are, as a whole. Both are least in the mean for the true
 * probabilities. They run after each forward pass of a validation or test pass. A sample with several positions, as in
 * segmentation, counts each position.
 *
 *     nll    sum weight * -log p[label] / sum weight: the negative log-likelihood, in nats
 *     brier  sum weight * (sum over classes k of (p[k] - [k = label])^2) / sum weight; Brier 1950
 *
 * For two classes, brier is twice the value of the definition that has one of the two terms. If a logit is NaN, the
 * result is NaN.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "metric/metric_probability.h"

static const cvy_option probability_opts[] = {CVY_IGNORE_LABEL_ROW, CVY_TEMPERATURE_ROW, {0}};

enum { SUM, ALL, NSUMS };

static int64_t probability_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    (void)output;
    return NSUMS;
}

typedef double (*score_fn)(const cvy_metric_probability *o, const cvy_metric_rows *rows, int64_t i, int64_t p,
                           int64_t label);

static double nll_of(const cvy_metric_probability *o, const cvy_metric_rows *rows, int64_t i, int64_t p, int64_t label)
{
    return cvy_rows_log_sum(o, rows, i, p) - cvy_rows_scaled_logit(o, rows, i, label, p);
}

static double brier_of(const cvy_metric_probability *o, const cvy_metric_rows *rows, int64_t i, int64_t p,
                       int64_t label)
{
    const double log_sum = cvy_rows_log_sum(o, rows, i, p);
    double sum = 0;
    for (int64_t k = 0; k < CVY_MAX(cvy_rows_outputs(rows), 2); k++) {
        const double d = exp(cvy_rows_scaled_logit(o, rows, i, k, p) - log_sum) - (k == label);
        sum += d * d;
    }
    return sum;
}

static void add_scores(const cvy_metric_probability *o, const cvy_metric_rows *rows, score_fn score, double *sums)
{
    const int64_t P = cvy_rows_positions(rows);
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = cvy_rows_label(&o->labels, rows, i, p);
            if (label < 0)
                continue;
            sums[SUM] += cvy_rows_weight(rows, i, p) * score(o, rows, i, p, label);
            sums[ALL] += cvy_rows_weight(rows, i, p);
        }
}

static void nll_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    add_scores(options, rows, nll_of, sums);
}

static void brier_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    add_scores(options, rows, brier_of, sums);
}

static double probability_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                                 int64_t nrows)
{
    (void)options;
    (void)output;
    (void)rows;
    (void)nrows;
    return sums[SUM] / sums[ALL];
}

CVY_METRIC_DEFINE(nll) = {
    .name = "nll",
    .summary = "negative log-likelihood of the classes, in nats",
    .options = probability_opts,
    .options_size = sizeof(cvy_metric_probability),
    .wants_labels = 1,
    .nsums = probability_nsums,
    .add = nll_add,
    .finish = probability_finish,
};

CVY_METRIC_DEFINE(brier) = {
    .name = "brier",
    .summary = "mean squared error of the probabilities, summed over classes",
    .options = probability_opts,
    .options_size = sizeof(cvy_metric_probability),
    .wants_labels = 1,
    .nsums = probability_nsums,
    .add = brier_add,
    .finish = probability_finish,
};

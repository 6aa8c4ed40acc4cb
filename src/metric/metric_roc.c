/*
 * metrics auc, efficiency_at_fpr: how well the score of one class ranks its samples before the others. They run after
 * each forward pass of a validation or test pass and keep one row for each sample; rank 0 makes the curve once, from
 * all rows. Source: Hanley and McNeil 1982. Ties are exact: samples of equal score are one step of the curve, and the
 * area under a step is a trapezium.
 *
 * The score is the log-odds of the class, x[c] - log(sum over k != c of exp(x[k])), or the single logit. It ranks as
 * softmax or sigmoid do, but it does not round to 1, where different samples would tie.
 *
 * Detail of auc: "roc" {fpr, tpr, threshold (a probability)}, at most 1000 points, evenly spaced along the curve.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "base/text/base_json.h"
#include "metric/metric_labels.h"

struct roc {
    cvy_metric_labels labels;
    int64_t positive;
    double fpr;
};

static const cvy_option auc_opts[] = {
    CVY_IGNORE_LABEL_ROW,
    {"positive", CVY_TYPE_INT, CVY_FIELD(roc, positive), "1", "0..", "", "number of the positive class"},
    {0},
};

static const cvy_option efficiency_opts[] = {
    CVY_IGNORE_LABEL_ROW,
    {"positive", CVY_TYPE_INT, CVY_FIELD(roc, positive), "1", "0..", "", "number of the positive class"},
    {"fpr", CVY_TYPE_REAL, CVY_FIELD(roc, fpr), "0.01", "0..1", "",
     "false positive rate: the share of the other classes that is taken for the positive one"},
    {0},
};

enum { SCORE, LABEL, WEIGHT, NCOLS };

static cvy_status roc_check(const void *options, const cvy_shape *output)
{
    const struct roc *o = options;
    CVY_CHECK(output->ndim <= 1, CVY_E_UNSUPPORTED, "ROC metrics rank whole samples, the output of one is %s",
              cvy_shape_text(output));
    CVY_CHECK(o->positive < cvy_metric_classes(output), CVY_E_CONFIG, "positive is %lld, expected 0 .. %lld",
              (long long)o->positive, (long long)cvy_metric_classes(output) - 1);
    return CVY_OK;
}

static double log_odds(const cvy_metric_rows *rows, int64_t i, int64_t positive)
{
    const int64_t K = cvy_rows_outputs(rows);
    double top = -INFINITY, sum = 0;
    if (K == 1)
        return positive == 1 ? cvy_rows_logit(rows, i, 0, 0) : -cvy_rows_logit(rows, i, 0, 0);
    for (int64_t k = 0; k < K; k++)
        if (k != positive)
            top = fmax(top, cvy_rows_logit(rows, i, k, 0));
    for (int64_t k = 0; k < K; k++)
        if (k != positive)
            sum += exp(cvy_rows_logit(rows, i, k, 0) - top);
    return cvy_rows_logit(rows, i, positive, 0) - top - log(sum);
}

/* A NaN score ranks last. */
static int roc_row(const void *options, const cvy_metric_rows *rows, int64_t i, float *cols)
{
    const struct roc *o = options;
    const int64_t label = cvy_rows_label(&o->labels, rows, i, 0);
    if (label < 0)
        return 0;
    const double score = log_odds(rows, i, o->positive);
    cols[SCORE] = score == score ? (float)score : -INFINITY;
    cols[LABEL] = label == o->positive;
    cols[WEIGHT] = (float)cvy_rows_weight(rows, i, 0);
    return 1;
}

/* An iterator over the sorted rows that takes one distinct score at a time. */
typedef struct curve {
    const float *rows;
    int64_t nrows, next;
    double positives, negatives; /* total weights */
    double tp, fp;               /* weights so far */
    float threshold;             /* score of the latest step */
} curve;

static curve curve_begin(const float *rows, int64_t nrows)
{
    curve c = {.rows = rows, .nrows = nrows, .threshold = INFINITY};
    for (int64_t i = 0; i < nrows; i++)
        *(rows[i * NCOLS + LABEL] > 0 ? &c.positives : &c.negatives) += rows[i * NCOLS + WEIGHT];
    return c;
}

static int curve_step(curve *c)
{
    if (c->next == c->nrows)
        return 0;
    c->threshold = c->rows[c->next * NCOLS + SCORE];
    for (; c->next < c->nrows && c->rows[c->next * NCOLS + SCORE] == c->threshold; c->next++)
        *(c->rows[c->next * NCOLS + LABEL] > 0 ? &c->tp : &c->fp) += c->rows[c->next * NCOLS + WEIGHT];
    return 1;
}

/* NaN if the weights of one of the two classes do not sum to more than 0: it is missing, or negative weights prevail.
 */
static double auc_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                         int64_t nrows)
{
    curve c = curve_begin(rows, nrows);
    double area = 0, tp = 0, fp = 0;
    (void)options;
    (void)output;
    (void)sums;
    while (curve_step(&c)) {
        area += (c.fp - fp) * (c.tp + tp) / 2;
        tp = c.tp;
        fp = c.fp;
    }
    return c.positives > 0 && c.negatives > 0 ? area / (c.positives * c.negatives) : NAN;
}

static void roc_why(const void *options, const cvy_shape *output, const double *sums, const float *rows, int64_t nrows,
                    char *text, size_t room)
{
    const curve c = curve_begin(rows, nrows);
    const long long positive = ((const struct roc *)options)->positive;
    (void)output;
    (void)sums;
    if (!(c.positives > 0))
        snprintf(text, room, "only one class occurs: no sample that counts is of class %lld (positive)", positive);
    else
        snprintf(text, room, "only one class occurs: all samples that count are of class %lld (positive)", positive);
}

static void efficiency_idle(const void *options, const cvy_shape *output, char *text, size_t room)
{
    (void)output;
    if (((const struct roc *)options)->fpr >= 1)
        snprintf(text, room, "fpr is 1, so it is always 1: take a smaller fpr");
}

/* The true-positive rate at the allowed false-positive rate. Between two points of the curve it is interpolated
 * linearly: a cut may take a share of the tied samples. */
static double efficiency_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                                int64_t nrows)
{
    curve c = curve_begin(rows, nrows);
    const double allowed = ((const struct roc *)options)->fpr * c.negatives;
    double tp = 0, fp = 0;
    (void)output;
    (void)sums;
    if (!(c.positives > 0 && c.negatives > 0))
        return NAN;
    while (curve_step(&c)) {
        if (c.fp > allowed)
            return (tp + (c.tp - tp) * (allowed - fp) / (c.fp - fp)) / c.positives;
        tp = c.tp;
        fp = c.fp;
    }
    return 1;
}

enum { FPR, TPR, THRESHOLD };

/* Writes one list of the curve's points. Points are thinned by distance along the curve, whose length (fpr + tpr) is 2;
 * the first and last points are always kept. */
static void points(const float *rows, int64_t nrows, int what, cvy_json *json)
{
    const double apart = 2.0 / 990;
    curve c = curve_begin(rows, nrows);
    double written = 0;
    static const char *const keys[] = {"fpr", "tpr", "threshold"};
    cvy_json_open(json, keys[what], '[');
    cvy_json_real(json, NULL, what == THRESHOLD ? 1 : 0);
    while (curve_step(&c)) {
        const double fpr = c.fp / c.negatives, tpr = c.tp / c.positives;
        if (c.next < c.nrows && fpr + tpr < written + apart)
            continue;
        written = fpr + tpr;
        cvy_json_real(json, NULL, what == FPR ? fpr : what == TPR ? tpr : 1 / (1 + exp(-(double)c.threshold)));
    }
    cvy_json_close(json, ']');
}

static void auc_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                       int64_t nrows, cvy_json *json)
{
    (void)options;
    (void)output;
    (void)sums;
    cvy_json_open(json, "roc", '{');
    for (int what = FPR; what <= THRESHOLD; what++)
        points(rows, nrows, what, json);
    cvy_json_close(json, '}');
}

CVY_METRIC_DEFINE(auc) = {
    .name = "auc",
    .summary = "area under the ROC curve",
    .options = auc_opts,
    .options_size = sizeof(struct roc),
    .higher_is_better = 1,
    .wants_labels = 1,
    .check = roc_check,
    .ncols = NCOLS,
    .row = roc_row,
    .finish = auc_finish,
    .why = roc_why,
    .detail = auc_detail,
};

CVY_METRIC_DEFINE(efficiency_at_fpr) = {
    .name = "efficiency_at_fpr",
    .summary = "true-positive rate at a fixed false-positive rate",
    .options = efficiency_opts,
    .options_size = sizeof(struct roc),
    .higher_is_better = 1,
    .wants_labels = 1,
    .check = roc_check,
    .ncols = NCOLS,
    .row = roc_row,
    .idle = efficiency_idle,
    .finish = efficiency_finish,
    .why = roc_why,
};

/*
 * metric top_k: the share of samples, or of positions if a sample has several, whose class is among the k largest
 * outputs. It runs after each forward pass of a validation or test pass. Among equal outputs the class with the lower
 * number comes first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "metric/metric_labels.h"

struct top_k {
    cvy_metric_labels labels;
    int64_t k;
};

static const cvy_option top_k_opts[] = {
    CVY_IGNORE_LABEL_ROW,
    {"k", CVY_TYPE_INT, CVY_FIELD(top_k, k), "5", "1..", "classes", "number of guesses per sample"},
    {0},
};

enum { RIGHT, ALL, NSUMS };

static int64_t top_k_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    (void)output;
    return NSUMS;
}

/* How many classes rank before the label's class; -1 if an output is NaN. A single logit x stands for the two outputs 0
 * and x. */
static int64_t place(const cvy_metric_rows *rows, int64_t i, int64_t p, int64_t label)
{
    const int64_t K = cvy_rows_outputs(rows);
    if (K == 1)
        return cvy_rows_argmax(rows, i, p) != label;
    const double mine = cvy_rows_logit(rows, i, label, p);
    int64_t before = 0;
    for (int64_t k = 0; k < K; k++) {
        const double x = cvy_rows_logit(rows, i, k, p);
        if (x != x)
            return -1;
        before += x > mine || (x == mine && k < label);
    }
    return before;
}

static void top_k_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const struct top_k *o = options;
    const int64_t P = cvy_rows_positions(rows);
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = cvy_rows_label(&o->labels, rows, i, p);
            if (label < 0)
                continue;
            const int64_t before = place(rows, i, p, label);
            sums[RIGHT] += before >= 0 && before < o->k ? cvy_rows_weight(rows, i, p) : 0;
            sums[ALL] += cvy_rows_weight(rows, i, p);
        }
}

static void top_k_idle(const void *options, const cvy_shape *output, char *text, size_t room)
{
    const int64_t k = ((const struct top_k *)options)->k, classes = cvy_metric_classes(output);
    if (k >= classes)
        snprintf(text, room, "k is %lld and there are %lld classes, so it is always 1: take a smaller k", (long long)k,
                 (long long)classes);
}

static double top_k_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                           int64_t nrows)
{
    (void)options;
    (void)output;
    (void)rows;
    (void)nrows;
    return sums[RIGHT] / sums[ALL];
}

CVY_METRIC_DEFINE(top_k) = {
    .name = "top_k",
    .summary = "share of samples whose class is among the k first guesses",
    .options = top_k_opts,
    .options_size = sizeof(struct top_k),
    .higher_is_better = 1,
    .wants_labels = 1,
    .nsums = top_k_nsums,
    .idle = top_k_idle,
    .add = top_k_add,
    .finish = top_k_finish,
};

/*
 * metric.h: exact metrics over a whole data set. Every sample counts once, whatever the number of ranks.
 *
 * A metric gets rows on each rank (in host memory, after a forward pass) and is merged over ranks once, at the end.
 * There are two ways. A vector of sums is added without an influence of the order (base_exact.h), so its bits depend
 * only on how the samples are cut into batches. Ranking metrics (ROC) gather compact rows on rank 0, in rank order.
 * finish() runs on rank 0 and its result is broadcast.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_METRIC_H
#define CVY_METRIC_H

#include "base/text/base_json.h"
#include <convoy/metric.h>

#include "comm/comm.h"
#include "graph/graph_op.h"

typedef struct cvy_metric_rows { /* one batch, on this rank */
    int64_t n;
    const cvy_span *output; /* [n, K...] raw output of the model (logits or predictions) */
    const cvy_span *target; /* [n] integer labels, or [n, ...] real targets */
    const double *weight;   /* [n, weight_each]; NULL: all 1. What has weight 0 is left out, whatever is there */
    int64_t weight_each;    /* 0 or 1: a weight for each sample; else one for each element of the target, or for each
                               position, where the channels share it */
} cvy_metric_rows;

/* The weight of element e of the target of sample i. */
static inline double cvy_rows_weight(const cvy_metric_rows *rows, int64_t i, int64_t e)
{
    if (!rows->weight)
        return 1;
    return rows->weight_each > 1 ? rows->weight[i * rows->weight_each + e % rows->weight_each] : rows->weight[i];
}

/* The mean weight of sample i, for metrics that look at whole samples. */
static inline double cvy_rows_sample_weight(const cvy_metric_rows *rows, int64_t i)
{
    const int64_t each = CVY_MAX(rows->weight_each, 1);
    double sum = 0;
    for (int64_t e = 0; e < each; e++)
        sum += cvy_rows_weight(rows, i, e);
    return sum / (double)each;
}

/* The options that all label metrics share. metric.c has checked that each label is a class or is ignored. */
typedef struct cvy_metric_labels {
    cvy_ints ignore_label;
} cvy_metric_labels;
/* clang-format off */
#define CVY_IGNORE_LABEL_ROW                                                                                           \
    {"ignore_label", CVY_TYPE_INTS, offsetof(cvy_metric_labels, ignore_label), "", "", "", "labels that are ignored"}
/* clang-format on */

typedef struct cvy_metric_def {
    const char *name, *summary;
    const cvy_option *options;
    size_t options_size;
    int higher_is_better;
    /* 1: targets are integers and the options begin with cvy_metric_labels. 0: targets are reals, as many as `targets`
     * says, or one for each output. */
    int wants_labels;
    /* Writes a sentence if the options make the value the same for all outputs; may be NULL. */
    void (*idle)(const void *options, const cvy_shape *output, char *text, size_t room);
    int64_t (*targets)(const void *options, const cvy_shape *output); /* targets of a sample; NULL: the outputs */
    /* Checks that the metric can be used with outputs of this sample shape; may be NULL. */
    cvy_status (*check)(const void *options, const cvy_shape *output);
    /* Prepares what rows need, in members of the options after those that are read; may be NULL. */
    cvy_status (*open)(cvy_pool *pool, void *options, const cvy_shape *output);
    /* Number of doubles that are summed over ranks, for outputs of this sample shape; NULL for row metrics. */
    int64_t (*nsums)(const void *options, const cvy_shape *output);
    /* 1: a sum has the digits of two doubles: sum i is sums[i] + sums[nsums + i] (base_twofold.h), in add, finish, why
     * and detail. For differences of large sums, such as a variance. */
    int twofold;
    void (*add)(const void *options, const cvy_metric_rows *rows, double *sums); /* NULL for row metrics */
    /* Row metrics only. Writes ncols floats (or as many as width() says) for sample i and returns 1, or returns 0 to
     * leave it out. finish and detail get all rows, sorted by column 0 in descending order and then by the other
     * columns, so their sums do not depend on the number of ranks. */
    int ncols;
    int64_t (*width)(const void *options, const cvy_shape *output);
    int (*row)(const void *options, const cvy_metric_rows *rows, int64_t i, float *cols);
    /* The scalar result, from the global sums or from all rows. */
    double (*finish)(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                     int64_t nrows);
    /* Called after a finish that gave no finite number for samples that count, with the same rows: writes the reason;
     * may be NULL. */
    void (*why)(const void *options, const cvy_shape *output, const double *sums, const float *rows, int64_t nrows,
                char *text, size_t room);
    /* Called after finish with the same rows. Adds results that are more than a scalar (a confusion matrix, ROC points)
     * to an open JSON object; may be NULL. */
    void (*detail)(const void *options, const cvy_shape *output, const double *sums, const float *rows, int64_t nrows,
                   cvy_json *json);
} cvy_metric_def;

#define CVY_METRIC_DEFINE(id) const cvy_metric_def cvy_metric_##id##_def
const cvy_metric_def *const *cvy_metric_table(int *count_out);
const cvy_metric_def *cvy_metric_find(const char *name);

/* ---- a metric in use ---- */
cvy_status cvy_metric_create(const char *name, const cvy_tree *options, const cvy_shape *output_sample,
                             cvy_metric **out);
/* Numbers of a vector, or channels of a map, of this sample shape. A map [H, W] is one channel. */
static inline int64_t cvy_metric_parts(const cvy_shape *output)
{
    return output->ndim == 1 || output->ndim > 2 ? output->dim[0] : 1;
}
/* Ignores one more label in a metric on labels. Call it before the first rows. */
void cvy_metric_ignore(cvy_metric *m, int64_t label);
cvy_status cvy_metric_add(cvy_metric *m, const cvy_metric_rows *rows);
/* Adds rows first .. first + n - 1 of a batch as if they were a batch of their own. */
cvy_status cvy_metric_add_part(cvy_metric *m, const cvy_metric_rows *rows, int64_t first, int64_t n);
/* Collective: merges the ranks and finishes; the value is equal on all ranks. detail (may be NULL) is written on rank 0
 * only. Afterwards the metric is ready for the next pass. */
cvy_status cvy_metric_finish(cvy_metric *m, cvy_comm *comm, double *value_out, cvy_json *detail);
int cvy_metric_has_detail(const cvy_metric *m);
/* Why the value of the latest pass is not finite, on rank 0; empty on the others, and if it is finite. */
enum { CVY_METRIC_WHY = 160 };
const char *cvy_metric_why(const cvy_metric *m);
/* Why the value is the same for all outputs of this shape; empty: it is not. */
void cvy_metric_idle(const cvy_metric *m, char text[CVY_METRIC_WHY]);
const cvy_shape *cvy_metric_output(const cvy_metric *m); /* shape of one sample's output */
int64_t cvy_metric_targets(const cvy_metric *m);         /* labels or numbers that a sample's target has */
int cvy_metric_wants_labels(const cvy_metric *m);        /* as its descriptor says */

#endif

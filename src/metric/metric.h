/*
 * metric.h: exact metrics over a whole data set: every sample once, as sums with counts, whatever the number of ranks.
 *
 * A metric sees rows on its rank (host memory, after a forward step) and is merged over ranks once at the end: either
 * by adding a vector of sums, exactly (base_exact.h), so that only what a batch is decides on their bits, or (ranking
 * metrics: ROC) by gathering compact rows on rank 0 in rank order. finish() runs on rank 0; results are then broadcast.
 */
#ifndef CVY_METRIC_H
#define CVY_METRIC_H

#include "base/base_json.h"
#include <convoy/metric.h>

#include "comm/comm.h"
#include "graph/graph_op.h"

typedef struct cvy_metric_rows { /* one batch, on this rank */
    int64_t n;
    const cvy_span *output; /* [n, K...] the model's raw output (logits or prediction) */
    const cvy_span *target; /* [n] integer labels, or [n, ...] real targets */
    const double *weight;   /* [n], or NULL for ones; 0 leaves the sample out */
} cvy_metric_rows;

/* What every metric on labels takes. The engine has checked that a label is a class or ignored. */
typedef struct cvy_metric_labels {
    cvy_ints ignore_label;
} cvy_metric_labels;
/* clang-format off */
#define CVY_IGNORE_LABEL_ROW                                                                                           \
    {"ignore_label", CVY_TYPE_INTS, offsetof(cvy_metric_labels, ignore_label), "", "", "", "labels that are left out"}
/* clang-format on */

typedef struct cvy_metric_def {
    const char *name, *summary;
    const cvy_option *options;
    size_t options_size;
    int higher_is_better;
    /* Integer targets, and options that begin with cvy_metric_labels; else real targets of the output's shape. */
    int wants_labels;
    /* Whether the metric suits an output of this sample shape; may be NULL. */
    cvy_status (*check)(const void *options, const cvy_shape *output);
    /* Number of doubles summed over ranks, for an output of this sample shape. */
    int64_t (*nsums)(const void *options, const cvy_shape *output);
    void (*add)(const void *options, const cvy_metric_rows *rows, double *sums); /* NULL for row metrics */
    /* Row metrics: writes ncols floats for a sample and returns 1, or 0 to leave it out. finish and detail get all rows
     * sorted by column 0 downwards, then by the others, so that their sums do not depend on the number of ranks. */
    int ncols;
    int (*row)(const void *options, const cvy_metric_rows *rows, int64_t i, float *cols);
    /* The scalar result, from the global sums or all rows. */
    double (*finish)(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                     int64_t nrows);
    /* More than a scalar: adds members (a confusion matrix, ROC points) to an open JSON object; may be NULL. */
    void (*detail)(const void *options, const cvy_shape *output, const double *sums, const float *rows, int64_t nrows,
                   cvy_json *json);
} cvy_metric_def;

#define CVY_METRIC_DEFINE(id) const cvy_metric_def cvy_metric_##id##_def
const cvy_metric_def *const *cvy_metric_table(int *count_out);
const cvy_metric_def *cvy_metric_find(const char *name);

/* A metric at work. */
cvy_status cvy_metric_create(const char *name, const cvy_tree *options, const cvy_shape *output_sample,
                             cvy_metric **out);
cvy_status cvy_metric_add(cvy_metric *m, const cvy_metric_rows *rows);
/* Rows first to first + n - 1 of a batch, as one. */
cvy_status cvy_metric_add_part(cvy_metric *m, const cvy_metric_rows *rows, int64_t first, int64_t n);
/* Collective: merges, finishes; the value is equal on all ranks. detail (may be NULL) is written on rank 0 only. Ready
 * for the next pass afterwards. */
cvy_status cvy_metric_finish(cvy_metric *m, cvy_comm *comm, double *value_out, cvy_json *detail);
const cvy_shape *cvy_metric_output(const cvy_metric *m); /* of one sample */

#endif

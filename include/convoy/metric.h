/*
 * convoy/metric.h: exact metrics over a whole data set for a program with its own evaluation loop.
 *
 *     cvy_metric_open("accuracy", &(cvy_shape){1, {10}}, &metric);
 *     for each batch: run a forward task, then
 *         cvy_metric_add_rows(metric, &(cvy_metric_batch){.size = sizeof(cvy_metric_batch), .rows = rows,
 *                             .output = logits, .target = labels, .target_dtype = CVY_DTYPE_I32});
 *     cvy_metric_reduce(metric, context, &value);                     // over all ranks; ready for the next pass
 *
 * Sums are exact, so the value does not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_METRIC_H
#define CONVOY_METRIC_H

#include <convoy/base.h>

CVY_BEGIN_DECLS

/** A metric, with the sums over the rows that were added since its last reduction. */
typedef struct cvy_metric cvy_metric;

/**
 * cvy_metric_open - make a metric from text
 * @metric: as an item of train.metrics of a job: a name, "accuracy", or a map in YAML, "{name: top_k, k: 5}"
 * @output: shape of one sample's output, without the batch: {1, {10}} for ten classes
 * @metric_out: the caller destroys it
 *
 * Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (unknown name or key: the nearest is named), CVY_E_SHAPE (a
 * metric that does not suit the output), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_metric_open(const char *metric, const cvy_shape *output, cvy_metric **metric_out);

/** Outputs and targets of a batch on this rank; zero-initialise, set size. Memory is borrowed for the call. */
typedef struct cvy_metric_batch {
    size_t size;
    /** Number of rows; may be 0. */
    int64_t rows;
    /** [rows, output...], of output_dtype: logits or predictions, as cvy_program_output() gives them. */
    const void *output;
    cvy_dtype output_dtype;
    /** Labels [rows] of an integer dtype, or real targets [rows, output...]; of the metric coverage, one for each
     * distribution of the output. */
    const void *target;
    cvy_dtype target_dtype;
    /** [rows]: 0 leaves a sample out; NULL: all count. */
    const double *weight;
} cvy_metric_batch;
CVY_SIZED_STRUCT(cvy_metric_batch)

/** Adds a batch on this rank. Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (targets of the wrong kind),
 * CVY_E_FORMAT (a label out of range, its row is named), CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_metric_add_rows(cvy_metric *metric, const cvy_metric_batch *batch);

/** The value over the rows of all ranks, equal on all of them; then the metric is empty again. NaN: it is not defined
 * for these rows, such as an area under a ROC curve of one class; compare with isnan() before you choose the best.
 * Collective: yes. Errors: CVY_E_COMM, CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_metric_reduce(cvy_metric *metric, cvy_context *context, double *value_out);

/** Destroys the object and sets the pointer to NULL; NULL is accepted. Collective: no. */
CVY_API void cvy_metric_destroy(cvy_metric **metric);

CVY_END_DECLS
#endif

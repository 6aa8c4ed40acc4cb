/*
 * metrics mae and rmse: mean absolute and root mean squared error.
 * They run after each forward pass of a validation or test pass. All elements of a sample count alike, unless weights
 * say how much each of them counts. The detail, "mae_by_output" or "rmse_by_output", has the error of each number of a
 * vector, or channel of a map; null if none of its elements has a weight.
 *
 *     mae   sum weight * |output - target| / sum weight               over samples and elements
 *     rmse  sqrt(sum weight * (output - target)^2 / sum weight)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/text/base_json.h"
#include "metric/metric.h"

enum { ERROR, WEIGHT, NEACH }; /* of each output */

static int64_t error_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    return NEACH * cvy_metric_parts(output);
}

/* cvy_metric_parts() of the sample shape. */
static int64_t parts_of(const cvy_span *output)
{
    return output->ndim == 2 || output->ndim > 3 ? output->dim[1] : 1;
}

static void add_errors(const cvy_metric_rows *rows, int squared, double *sums)
{
    const int64_t each = rows->output->elems / rows->n, part = each / parts_of(rows->output);
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t j = 0; j < each; j++) {
            const double weight = cvy_rows_weight(rows, i, j);
            double *s = sums + NEACH * (j / part);
            if (weight == 0)
                continue;
            const double d = cvy_get(rows->output, i * each + j) - cvy_get(rows->target, i * each + j);
            s[ERROR] += weight * (squared ? d * d : fabs(d));
            s[WEIGHT] += weight;
        }
}

static void mae_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    (void)options;
    add_errors(rows, 0, sums);
}

static void rmse_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    (void)options;
    add_errors(rows, 1, sums);
}

static double mae_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                         int64_t nrows)
{
    double error = 0, weight = 0;
    (void)options;
    (void)rows;
    (void)nrows;
    for (int64_t k = 0; k < cvy_metric_parts(output); k++) {
        error += sums[NEACH * k + ERROR];
        weight += sums[NEACH * k + WEIGHT];
    }
    return error / weight;
}

static double rmse_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                          int64_t nrows)
{
    return sqrt(mae_finish(options, output, sums, rows, nrows));
}

static void add_detail(const char *name, const cvy_shape *output, const double *sums, int squared, cvy_json *json)
{
    if (cvy_metric_parts(output) < 2)
        return;
    cvy_json_open(json, name, '[');
    for (int64_t k = 0; k < cvy_metric_parts(output); k++) {
        const double mean = sums[NEACH * k + ERROR] / sums[NEACH * k + WEIGHT];
        cvy_json_real(json, NULL, squared ? sqrt(mean) : mean);
    }
    cvy_json_close(json, ']');
}

static void mae_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                       int64_t nrows, cvy_json *json)
{
    (void)options;
    (void)rows;
    (void)nrows;
    add_detail("mae_by_output", output, sums, 0, json);
}

static void rmse_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                        int64_t nrows, cvy_json *json)
{
    (void)options;
    (void)rows;
    (void)nrows;
    add_detail("rmse_by_output", output, sums, 1, json);
}

CVY_METRIC_DEFINE(mae) = {
    .name = "mae",
    .summary = "mean absolute error",
    .nsums = error_nsums,
    .add = mae_add,
    .finish = mae_finish,
    .detail = mae_detail,
};

CVY_METRIC_DEFINE(rmse) = {
    .name = "rmse",
    .summary = "root mean squared error",
    .nsums = error_nsums,
    .add = rmse_add,
    .finish = rmse_finish,
    .detail = rmse_detail,
};

/*
 * metrics mae and rmse: mean absolute and root mean squared error.
 * They run after each forward pass of a validation or test pass. A sample contributes the mean over its elements.
 *
 *     mae   sum weight * mean of |output - target| / sum weight
 *     rmse  sqrt(sum weight * mean of (output - target)^2 / sum weight)
 */
#include <math.h>

#include "metric/metric.h"

enum { ERROR, ALL, NSUMS };

static int64_t error_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    (void)output;
    return NSUMS;
}

static void add_errors(const cvy_metric_rows *rows, int squared, double *sums)
{
    const int64_t each = rows->output->elems / rows->n;
    for (int64_t i = 0; i < rows->n; i++) {
        const double weight = rows->weight ? rows->weight[i] : 1;
        double error = 0;
        if (weight == 0)
            continue;
        for (int64_t j = i * each; j < (i + 1) * each; j++) {
            const double d = cvy_get(rows->output, j) - cvy_get(rows->target, j);
            error += squared ? d * d : fabs(d);
        }
        sums[ERROR] += weight * error / (double)each;
        sums[ALL] += weight;
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
    (void)options;
    (void)output;
    (void)rows;
    (void)nrows;
    return sums[ERROR] / sums[ALL];
}

static double rmse_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                          int64_t nrows)
{
    return sqrt(mae_finish(options, output, sums, rows, nrows));
}

CVY_METRIC_DEFINE(mae) = {
    .name = "mae",
    .summary = "mean absolute error",
    .nsums = error_nsums,
    .add = mae_add,
    .finish = mae_finish,
};

CVY_METRIC_DEFINE(rmse) = {
    .name = "rmse",
    .summary = "root mean squared error",
    .nsums = error_nsums,
    .add = rmse_add,
    .finish = rmse_finish,
};

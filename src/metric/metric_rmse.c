/*
 * metric rmse: root mean squared error.
 * After the forward of each validation or test step. A sample counts with the mean over its elements.
 *
 *     sqrt(sum weight * mean of (output - target)^2 / sum weight)
 */
#include <math.h>

#include "metric/metric.h"

enum { ERROR, ALL, NSUMS };

static int64_t rmse_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    (void)output;
    return NSUMS;
}

static void rmse_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const int64_t each = rows->output->elems / rows->n;
    (void)options;
    for (int64_t i = 0; i < rows->n; i++) {
        const double weight = rows->weight ? rows->weight[i] : 1;
        double error = 0;
        if (weight == 0)
            continue;
        for (int64_t j = i * each; j < (i + 1) * each; j++) {
            const double d = cvy_get(rows->output, j) - cvy_get(rows->target, j);
            error += d * d;
        }
        sums[ERROR] += weight * error / (double)each;
        sums[ALL] += weight;
    }
}

static double rmse_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                          int64_t nrows)
{
    (void)options;
    (void)output;
    (void)rows;
    (void)nrows;
    return sqrt(sums[ERROR] / sums[ALL]);
}

CVY_METRIC_DEFINE(rmse) = {
    .name = "rmse",
    .summary = "root mean squared error",
    .nsums = rmse_nsums,
    .add = rmse_add,
    .finish = rmse_finish,
};

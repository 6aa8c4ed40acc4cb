/*
 * metric mae: mean absolute error.
 * After the forward of each validation or test step. A sample counts with the mean over its elements.
 *
 *     sum weight * mean of |output - target| / sum weight
 */
#include <math.h>

#include "metric/metric.h"

enum { ERROR, ALL, NSUMS };

static int64_t mae_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    (void)output;
    return NSUMS;
}

static void mae_add(const void *options, const cvy_metric_rows *rows, double *sums)
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
            error += fabs(d);
        }
        sums[ERROR] += weight * error / (double)each;
        sums[ALL] += weight;
    }
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

CVY_METRIC_DEFINE(mae) = {
    .name = "mae",
    .summary = "mean absolute error",
    .nsums = mae_nsums,
    .add = mae_add,
    .finish = mae_finish,
};

/*
 * metric diversity: how much generated samples differ from each other, where 1 is as much as the true ones do. It runs
 * after each forward pass of a validation or test pass, and its batches decide which samples are compared.
 *
 * Each sample is compared with the one after it in its batch:
 *
 *     sqrt(sum |output[i] - output[i + 1]|^2 / sum |target[i] - target[i + 1]|^2)
 *
 * It is near 0 if a generator gives the same sample again and again, whatever its noise is (mode collapse). NaN: no
 * batch has two samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "metric/metric.h"

static const cvy_option diversity_opts[] = {{0}};

enum { OUTPUT, TARGET, NSUMS };

static int64_t diversity_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    (void)output;
    return NSUMS;
}

static double distance2(const cvy_span *x, int64_t each, int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < each; j++) {
        const double d = cvy_get(x, i * each + j) - cvy_get(x, (i + 1) * each + j);
        sum += d * d;
    }
    return sum;
}

static void diversity_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const int64_t each = rows->output->elems / rows->n;
    (void)options;
    for (int64_t i = 0; i + 1 < rows->n; i++) {
        if (cvy_rows_sample_weight(rows, i) == 0 || cvy_rows_sample_weight(rows, i + 1) == 0)
            continue;
        sums[OUTPUT] += distance2(rows->output, each, i);
        sums[TARGET] += distance2(rows->target, each, i);
    }
}

static double diversity_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                               int64_t nrows)
{
    (void)options;
    (void)output;
    (void)rows;
    (void)nrows;
    return sums[TARGET] > 0 ? sqrt(sums[OUTPUT] / sums[TARGET]) : NAN;
}

CVY_METRIC_DEFINE(diversity) = {
    .name = "diversity",
    .summary = "how much generated samples differ from each other; 1: as much as the true ones",
    .options = diversity_opts,
    .higher_is_better = 1,
    .nsums = diversity_nsums,
    .add = diversity_add,
    .finish = diversity_finish,
};

/*
 * metric diversity: how much generated samples differ from each other, where 1 is as much as the true ones do. It runs
 * after each forward pass of a validation or test pass.
 *
 *     sqrt(sum of the variances of all elements of the outputs / the same of the targets)
 *
 * This is the ratio of the root mean square distances between two samples, over all pairs, so it does not depend on how
 * samples are cut into batches. It is near 0 if a generator gives the same sample again and again, whatever its noise
 * is (mode collapse). NaN: there are fewer than two samples, or all targets are equal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_twofold.h"
#include "metric/metric.h"

static const cvy_option diversity_opts[] = {{0}};

/* Of all samples: their number, and the squares of all elements of the outputs and of the targets. Then the sums of
 * each element of the outputs, and of the targets. The rounding errors of all these sums follow. */
enum { COUNT, SQUARES, NHEAD = SQUARES + 2 };

static int64_t diversity_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    return NHEAD + 2 * cvy_shape_elems(output);
}

static void diversity_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const int64_t each = rows->output->elems / rows->n;
    const cvy_span *const set[] = {rows->output, rows->target};
    double *rest = sums + NHEAD + 2 * each;
    (void)options;
    for (int64_t i = 0; i < rows->n; i++) {
        if (cvy_rows_sample_weight(rows, i) == 0)
            continue;
        sums[COUNT]++;
        for (int k = 0; k < 2; k++)
            for (int64_t j = 0; j < each; j++) {
                const double x = cvy_get(set[k], i * each + j);
                cvy_twofold_sum_add(sums, rest, NHEAD + k * each + j, (cvy_twofold){x, 0});
                cvy_twofold_sum_add(sums, rest, SQUARES + k, cvy_twofold_product(x, x));
            }
    }
}

static cvy_twofold sum_at(const double *sums, int64_t each, int64_t i)
{
    return (cvy_twofold){sums[i], sums[NHEAD + 2 * each + i]};
}

/* The sum of the squared deviations of all elements of the outputs (k 0) or of the targets (1) from their means; 0 if
 * it is within rounding error of 0. */
static double spread(const double *sums, int64_t each, int k)
{
    const cvy_twofold squares = sum_at(sums, each, SQUARES + k), count = sum_at(sums, each, COUNT);
    cvy_twofold left = squares;
    for (int64_t j = 0; j < each; j++) {
        const cvy_twofold sum = sum_at(sums, each, NHEAD + k * each + j);
        left = cvy_twofold_add(left, cvy_twofold_minus(cvy_twofold_divide(cvy_twofold_multiply(sum, sum), count)));
    }
    return left.hi <= CVY_TWOFOLD_ROUNDING * squares.hi ? 0 : left.hi;
}

static double diversity_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                               int64_t nrows)
{
    const int64_t each = cvy_shape_elems(output);
    double of[2];
    (void)options;
    (void)rows;
    (void)nrows;
    if (sums[COUNT] < 2)
        return NAN;
    for (int k = 0; k < 2; k++)
        of[k] = spread(sums, each, k);
    return of[1] > 0 ? sqrt(of[0] / of[1]) : NAN;
}

CVY_METRIC_DEFINE(diversity) = {
    .name = "diversity",
    .summary = "how much generated samples differ from each other; 1: as much as the true ones",
    .options = diversity_opts,
    .higher_is_better = 1,
    .twofold = 1,
    .nsums = diversity_nsums,
    .add = diversity_add,
    .finish = diversity_finish,
};

/*
 * metric r2: the share of the targets' variance that the outputs explain (coefficient of determination).
 * It runs after each forward pass of a validation or test pass.
 *
 *     1 - sum weight (output - target)^2 / sum weight (target - mean target)^2      for each element of the output
 *
 * For several elements there are two averages: the mean of their values (average: uniform, as in scikit-learn's
 * r2_score), or the formula with the squares of all elements added first (average: variance), which is robust to
 * elements that hardly vary. Among others an element whose target never varies gives 1 if the output equals it exactly,
 * else 0, as in r2_score; if the target of no element varies, there is no value unless all are equal. Elements without
 * a weight in any sample are left out.
 *
 * The detail "r2_by_output" has the mean over the elements of each number of a vector, or channel of a map; null if it
 * has no value.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "base/number/base_twofold.h"
#include "base/text/base_json.h"
#include "metric/metric.h"

struct r2 {
    int by_variance; /* index into the words of `average` */
};

static const cvy_option r2_opts[] = {
    {"average", CVY_TYPE_CHOICE, CVY_FIELD(r2, by_variance), "uniform", "uniform|variance", "",
     "how the elements of an output are averaged"},
    {0},
};

/* Of each element, with the rounding errors of these sums after those of all elements: */
enum { WEIGHT, TARGET, TARGET2, ERROR2, NEACH };

static int64_t r2_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    return NEACH * cvy_shape_elems(output);
}

static void r2_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const int64_t each = rows->output->elems / rows->n;
    (void)options;
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t j = 0; j < each; j++) {
            const double weight = cvy_rows_weight(rows, i, j);
            if (weight == 0)
                continue;
            const double y = cvy_get(rows->target, i * each + j), d = cvy_get(rows->output, i * each + j) - y;
            const cvy_twofold of_weight = {weight, 0}, of_y = cvy_twofold_product(weight, y);
            double *s = sums + NEACH * j, *rest = s + NEACH * each;
            cvy_twofold_sum_add(s, rest, WEIGHT, of_weight);
            cvy_twofold_sum_add(s, rest, TARGET, of_y);
            cvy_twofold_sum_add(s, rest, TARGET2, cvy_twofold_multiply(of_y, (cvy_twofold){y, 0}));
            s[ERROR2] += weight * d * d;
        }
}

/* The sum of squared deviations of element j of `each` from the mean. */
static double spread(const double *sums, int64_t each, int64_t j)
{
    const double *s = sums + NEACH * j, *rest = s + NEACH * each;
    return cvy_twofold_spread((cvy_twofold){s[TARGET2], rest[TARGET2]}, (cvy_twofold){s[TARGET], rest[TARGET]},
                              (cvy_twofold){s[WEIGHT], rest[WEIGHT]});
}

static double explained(double error2, double spread2, double if_constant)
{
    return isnan(spread2) ? NAN : spread2 > 0 ? 1 - error2 / spread2 : error2 == 0 ? 1 : if_constant;
}

/* The mean over the elements first .. end - 1 of `each` that count; NaN if none does, or if none of their targets
 * varies. */
static double mean_of(const double *sums, int64_t each, int64_t first, int64_t end)
{
    double sum = 0, count = 0;
    int varies = 0;
    for (int64_t j = first; j < end; j++) {
        const double *s = sums + NEACH * j;
        if (s[WEIGHT] > 0) {
            const double spread2 = spread(sums, each, j);
            sum += explained(s[ERROR2], spread2, 0);
            varies |= spread2 > 0;
            count++;
        }
    }
    return varies || sum == count ? sum / count : NAN;
}

static double r2_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                        int64_t nrows)
{
    const int64_t each = cvy_shape_elems(output);
    double error2 = 0, spread2 = 0, weight = 0;
    (void)rows;
    (void)nrows;
    if (!((const struct r2 *)options)->by_variance)
        return mean_of(sums, each, 0, each);
    for (int64_t j = 0; j < each; j++) {
        const double *s = sums + NEACH * j;
        error2 += s[ERROR2];
        spread2 += s[WEIGHT] > 0 ? spread(sums, each, j) : 0;
        weight += s[WEIGHT];
    }
    return weight > 0 ? explained(error2, spread2, NAN) : NAN;
}

static void r2_why(const void *options, const cvy_shape *output, const double *sums, const float *rows, int64_t nrows,
                   char *text, size_t room)
{
    const int64_t each = cvy_shape_elems(output);
    int negative = 0;
    (void)options;
    (void)rows;
    (void)nrows;
    for (int64_t j = 0; j < each; j++)
        negative |= sums[NEACH * j + WEIGHT] > 0 && isnan(spread(sums, each, j));
    snprintf(text, room,
             negative ? "negative weights make the variance of a target less than 0"
                      : "the targets do not vary, so there is no variance to explain");
}

static void r2_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                      int64_t nrows, cvy_json *json)
{
    const int64_t parts = cvy_metric_parts(output), each = cvy_shape_elems(output) / CVY_MAX(parts, 1);
    (void)rows;
    (void)nrows;
    if (each > 1 && !((const struct r2 *)options)->by_variance)
        cvy_json_string(json, "r2_mean_of", "positions");
    if (parts < 2)
        return;
    cvy_json_open(json, "r2_by_output", '[');
    for (int64_t k = 0; k < parts; k++)
        cvy_json_real(json, NULL, mean_of(sums, parts * each, k * each, (k + 1) * each));
    cvy_json_close(json, ']');
}

CVY_METRIC_DEFINE(r2) = {
    .name = "r2",
    .summary = "share of the targets' variance that is explained",
    .options = r2_opts,
    .options_size = sizeof(struct r2),
    .higher_is_better = 1,
    .twofold = 1,
    .nsums = r2_nsums,
    .add = r2_add,
    .finish = r2_finish,
    .why = r2_why,
    .detail = r2_detail,
};

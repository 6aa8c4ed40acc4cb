/*
 * metric coverage: the share of the targets that lie in the interval that the network gives. It runs after each forward
 * pass of a validation or test pass, on the outputs of the losses quantile and gaussian_nll (op_distribution.h): blocks
 * of the target's shape.
 *
 * With levels, the output has a quantile for each of them, and the interval goes from the lowest level to the highest.
 * Without levels, the output has means and log variances, and the interval is the central one of the normal
 * distribution with probability `interval`.
 *
 *     coverage  sum weight * (share of the sample's targets inside, ends included) / sum weight
 *
 * Detail: "coverage" {expected, levels, below}: the probability of the interval; and with levels, the share of targets
 * that do not exceed the quantile of each level, which should equal the level.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/text/base_json.h"
#include "metric/metric.h"

struct coverage {
    cvy_reals levels;
    double interval;
};

static const cvy_option coverage_opts[] = {
    {"levels", CVY_TYPE_REALS, CVY_FIELD(coverage, levels), "", "0..1", "",
     "the levels of the loss quantile; none: the output is that of gaussian_nll"},
    {"interval", CVY_TYPE_REAL, CVY_FIELD(coverage, interval), "0.9", "0..1", "",
     "probability of the interval, without levels"},
    {0},
};

enum { INSIDE, ALL, NSUMS }; /* then the weight below each level */

static int64_t blocks_of(const struct coverage *o)
{
    return o->levels.count > 0 ? o->levels.count : 2;
}

static cvy_status coverage_check(const void *options, const cvy_shape *output)
{
    const struct coverage *o = options;
    CVY_CHECK(o->levels.count != 1, CVY_E_CONFIG, "coverage needs two or more levels, got one");
    CVY_CHECK(o->levels.count > 0 || (o->interval > 0 && o->interval < 1), CVY_E_CONFIG,
              "coverage: interval is %g, expected a number between 0 and 1", o->interval);
    CVY_CHECK(output->ndim > 0 && output->dim[0] % blocks_of(o) == 0, CVY_E_CONFIG,
              "coverage needs %lld outputs for each target, of a loss %s, and the output of a sample is %s",
              (long long)blocks_of(o), o->levels.count > 0 ? "quantile" : "gaussian_nll", cvy_shape_text(output));
    return CVY_OK;
}

static int64_t coverage_targets(const void *options, const cvy_shape *output)
{
    return cvy_shape_elems(output) / blocks_of(options);
}

static int64_t coverage_nsums(const void *options, const cvy_shape *output)
{
    (void)output;
    return NSUMS + ((const struct coverage *)options)->levels.count;
}

/* The distance of the ends of the central interval from the mean, in standard deviations: the inverse of
 * erf(z / sqrt(2)), by bisection, which always ends with the same bits. */
static double half_width(double probability)
{
    double low = 0, high = 40;
    for (int i = 0; i < 200 && low < high; i++) {
        const double middle = (low + high) / 2;
        *(erf(middle / sqrt(2)) < probability ? &low : &high) = middle;
    }
    return high;
}

/* The indices of the lowest and highest level. */
static void find_ends(const struct coverage *o, int *low_out, int *high_out)
{
    *low_out = *high_out = 0;
    for (int b = 1; b < o->levels.count; b++) {
        *low_out = o->levels.at[b] < o->levels.at[*low_out] ? b : *low_out;
        *high_out = o->levels.at[b] > o->levels.at[*high_out] ? b : *high_out;
    }
}

static void coverage_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const struct coverage *o = options;
    const int64_t blocks = blocks_of(o), each = rows->output->elems / rows->n / blocks;
    const double z = o->levels.count ? 0 : half_width(o->interval);
    int low = 0, high = 0;
    find_ends(o, &low, &high);
    for (int64_t i = 0; i < rows->n; i++) {
        const double weight = rows->weight ? rows->weight[i] : 1, share = weight / (double)each;
        const int64_t first = i * blocks * each;
        for (int64_t e = 0; e < each && weight != 0; e++) {
            const double t = cvy_get(rows->target, i * each + e);
            const double mean = cvy_get(rows->output, first + e), other = cvy_get(rows->output, first + each + e);
            const double a =
                o->levels.count ? cvy_get(rows->output, first + low * each + e) : mean - z * exp(other / 2);
            const double b =
                o->levels.count ? cvy_get(rows->output, first + high * each + e) : mean + z * exp(other / 2);
            sums[INSIDE] += t >= a && t <= b ? share : 0;
            for (int q = 0; q < o->levels.count; q++)
                sums[NSUMS + q] += t <= cvy_get(rows->output, first + q * each + e) ? share : 0;
        }
        sums[ALL] += weight;
    }
}

static double coverage_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                              int64_t nrows)
{
    (void)options;
    (void)output;
    (void)rows;
    (void)nrows;
    return sums[INSIDE] / sums[ALL];
}

static void coverage_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                            int64_t nrows, cvy_json *json)
{
    const struct coverage *o = options;
    int low = 0, high = 0;
    (void)output;
    (void)rows;
    (void)nrows;
    find_ends(o, &low, &high);
    cvy_json_open(json, "coverage", '{');
    cvy_json_real(json, "expected", o->levels.count ? o->levels.at[high] - o->levels.at[low] : o->interval);
    for (int what = 0; what < 2 && o->levels.count; what++) {
        cvy_json_open(json, what ? "below" : "levels", '[');
        for (int q = 0; q < o->levels.count; q++)
            cvy_json_real(json, NULL, what ? sums[NSUMS + q] / sums[ALL] : o->levels.at[q]);
        cvy_json_close(json, ']');
    }
    cvy_json_close(json, '}');
}

CVY_METRIC_DEFINE(coverage) = {
    .name = "coverage",
    .summary = "share of the targets inside the interval that the network gives",
    .options = coverage_opts,
    .options_size = sizeof(struct coverage),
    .higher_is_better = 1,
    .check = coverage_check,
    .targets = coverage_targets,
    .nsums = coverage_nsums,
    .add = coverage_add,
    .finish = coverage_finish,
    .detail = coverage_detail,
};

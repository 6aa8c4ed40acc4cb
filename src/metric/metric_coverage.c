/*
 * metric coverage: the share of the targets that lie in the interval that the network gives. It runs after each forward
 * pass of a validation or test pass, on the outputs of the losses quantile and gaussian_nll (op_distribution.h): blocks
 * of the target's shape.
 *
 * With levels, the output has a quantile for each of them, and the interval goes from the lowest level to the highest.
 * Without levels, the output has means and log variances, and the interval is the central one of the normal
 * distribution with probability `interval`.
 *
 *     coverage  sum weight * [target inside, ends included] / sum weight, over samples and their targets
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
    CVY_CHECK(o->levels.count != 1, CVY_E_CONFIG,
              "coverage needs two or more levels, whose lowest and highest are the interval, got one: %g",
              o->levels.at[0]);
    for (int i = 0; i < o->levels.count; i++)
        CVY_CHECK(o->levels.at[i] > 0 && o->levels.at[i] < 1, CVY_E_CONFIG,
                  "coverage: level %d is %g, expected a number between 0 and 1", i + 1, o->levels.at[i]);
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

struct ends {
    int low, high; /* indices of the lowest and the highest level */
    double z;      /* without levels: half the width of the interval, in standard deviations */
};

static struct ends find_ends(const struct coverage *o)
{
    struct ends e = {.z = o->levels.count > 0 ? 0 : half_width(o->interval)};
    for (int b = 1; b < o->levels.count; b++) {
        e.low = o->levels.at[b] < o->levels.at[e.low] ? b : e.low;
        e.high = o->levels.at[b] > o->levels.at[e.high] ? b : e.high;
    }
    return e;
}

/* The ends of the interval of a target, whose numbers are `stride` apart. */
static void find_interval(const struct coverage *o, const struct ends *ends, const cvy_span *output, int64_t at,
                          int64_t stride, double *low_out, double *high_out)
{
    if (o->levels.count > 0) {
        *low_out = cvy_get(output, at + ends->low * stride);
        *high_out = cvy_get(output, at + ends->high * stride);
        return;
    }
    const double mean = cvy_get(output, at), half = ends->z * exp(cvy_get(output, at + stride) / 2);
    *low_out = mean - half;
    *high_out = mean + half;
}

static void coverage_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const struct coverage *o = options;
    const int64_t blocks = blocks_of(o), each = rows->output->elems / rows->n / blocks;
    const struct ends ends = find_ends(o);
    for (int64_t i = 0; i < rows->n * each; i++) {
        const double weight = cvy_rows_weight(rows, i / each, i % each), t = cvy_get(rows->target, i);
        const int64_t at = i / each * blocks * each + i % each;
        double low = 0, high = 0;
        if (weight == 0)
            continue;
        find_interval(o, &ends, rows->output, at, each, &low, &high);
        sums[INSIDE] += t >= low && t <= high ? weight : 0;
        for (int q = 0; q < o->levels.count; q++)
            sums[NSUMS + q] += t <= cvy_get(rows->output, at + q * each) ? weight : 0;
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
    const struct ends ends = find_ends(o);
    (void)output;
    (void)rows;
    (void)nrows;
    cvy_json_open(json, "coverage", '{');
    cvy_json_real(json, "expected", o->levels.count ? o->levels.at[ends.high] - o->levels.at[ends.low] : o->interval);
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

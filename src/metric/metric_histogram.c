/*
 * metrics pixel_histogram and pixel_histogram_within: whether generated samples have values like the true ones, as a
 * set: which sample is compared with which does not matter. They run after each forward pass of a validation or test
 * pass.
 *
 * Each sample gives the share of its values in each bin, and their mean, standard deviation, skewness and kurtosis.
 *
 *     pixel_histogram         the largest difference of the two cumulative distributions of all values, at the ends of
 *                             the bins (Kolmogorov and Smirnov). 0: the same; 1: they do not overlap
 *     pixel_histogram_within  the share of the bins in which the mean shares agree within `errors` standard errors,
 *                             which are those of whole samples, since the values of a sample depend on each other.
 *                             Bins with fewer than 100 values in both sets are left out
 *
 * A value that is not finite belongs to no bin, and makes both of them NaN.
 *
 * The bins have equal width over `range`. Without it they are quarter octaves of |x| from 2^-16 to 2^16 on both sides
 * of zero, and what lies beyond is in the outermost ones. Detail of the first: "pixel_histogram" {from, to, output,
 * target, error, ks, p}, lists over the bins that occur, and "moments" {name, output, ..} likewise (metric_samples.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>

#include "metric/metric_samples.h"

enum { MEAN, STD, SKEWNESS, KURTOSIS, NMOMENT };
static const char *const moment_name[NMOMENT] = {"mean", "standard deviation", "skewness", "kurtosis"};
enum { EACH_OCTAVE = 4, OCTAVES = 32, LOWEST = -16, SIDE = EACH_OCTAVE * OCTAVES, BINS_MAX = 1024, FEWEST = 100 };

struct histogram {
    cvy_reals range;
    int64_t bins;
    cvy_within within;
    int64_t elems, nbin; /* set by histogram_open() */
    cvy_samples *compared;
    double *share; /* [nbin] */
};

#define RANGE_ROWS                                                                                                     \
    {"range",                                                                                                          \
     CVY_TYPE_REALS,                                                                                                   \
     CVY_FIELD(histogram, range),                                                                                      \
     "",                                                                                                               \
     "",                                                                                                               \
     "",                                                                                                               \
     "lowest and highest value, [0, 1] for example, for bins of equal width; none: bins of equal ratio"},              \
    {                                                                                                                  \
        "bins", CVY_TYPE_INT, CVY_FIELD(histogram, bins), "64", "2..1024", "", "number of bins of `range`"             \
    }
static const cvy_option histogram_opts[] = {RANGE_ROWS, {0}};
static const cvy_option histogram_within_opts[] = {RANGE_ROWS, CVY_WITHIN_ROW(histogram), {0}};

static cvy_status histogram_open(cvy_pool *pool, void *options, const cvy_shape *output)
{
    struct histogram *o = options;
    CVY_CHECK(o->range.count == 0 || (o->range.count == 2 && o->range.at[0] < o->range.at[1]), CVY_E_CONFIG,
              "pixel_histogram: range is two numbers, [low, high], got %d%s", o->range.count,
              o->range.count == 2 ? " that do not ascend" : "");
    o->elems = cvy_shape_elems(output);
    o->nbin = o->range.count ? o->bins : 2 * SIDE;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *o->compared * (size_t)CVY_MAX(o->nbin, NMOMENT), &o->compared));
    return cvy_pool_alloc(pool, sizeof *o->share * (size_t)o->nbin, &o->share);
}

/* Each set has its bins, then its moments. */
static int64_t columns_of(const struct histogram *o)
{
    return o->nbin + NMOMENT;
}

static int64_t histogram_width(const void *options, const cvy_shape *output)
{
    (void)output;
    return CVY_SAMPLES_SETS * columns_of(options);
}

/* Bins of equal ratio: the first half has negative numbers, the largest sizes first. */
static int64_t bin_of(const struct histogram *o, double x)
{
    if (o->range.count) {
        const double at = floor((x - o->range.at[0]) / (o->range.at[1] - o->range.at[0]) * (double)o->nbin);
        return (int64_t)CVY_MIN(CVY_MAX(at, 0), (double)(o->nbin - 1));
    }
    const double octave = x == 0 ? LOWEST : log2(fabs(x));
    const int64_t k = (int64_t)CVY_MIN(CVY_MAX(floor((octave - LOWEST) * EACH_OCTAVE), 0), (double)(SIDE - 1));
    return signbit(x) && x != 0 ? SIDE - 1 - k : SIDE + k;
}

/* The lower end of a bin; that of the bin after the last is the upper end of the last. */
static double end_of(const struct histogram *o, int64_t bin)
{
    if (o->range.count)
        return o->range.at[0] + (o->range.at[1] - o->range.at[0]) * (double)bin / (double)o->nbin;
    const int64_t k = bin - SIDE;
    return k == 0 ? 0 : copysign(exp2(LOWEST + (double)llabs(k) / EACH_OCTAVE), (double)k);
}

/* Writes the moments of `elems` values from `first` on. */
static void write_sample_moments(const cvy_span *from, int64_t first, int64_t elems, float *cols)
{
    const double n = (double)elems;
    double sum = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int64_t j = first; j < first + elems; j++)
        sum += cvy_get(from, j);
    for (int64_t j = first; j < first + elems; j++) {
        const double d = cvy_get(from, j) - sum / n;
        m2 += d * d / n;
        m3 += d * d * d / n;
        m4 += d * d * d * d / n;
    }
    cols[MEAN] = (float)(sum / n);
    cols[STD] = (float)sqrt(m2);
    cols[SKEWNESS] = m2 > 0 ? (float)(m3 / pow(m2, 1.5)) : 0;
    cols[KURTOSIS] = m2 > 0 ? (float)(m4 / (m2 * m2)) : 0;
}

static int histogram_row(const void *options, const cvy_metric_rows *rows, int64_t i, float *cols)
{
    const struct histogram *o = options;
    for (int which = 0; which < CVY_SAMPLES_SETS; which++, cols += columns_of(o)) {
        const cvy_span *from = which == CVY_SAMPLES_OUTPUT ? rows->output : rows->target;
        int finite = 1;
        for (int64_t b = 0; b < o->nbin; b++)
            o->share[b] = 0;
        for (int64_t j = 0; j < o->elems; j++) {
            const double x = cvy_get(from, i * o->elems + j);
            finite = finite && isfinite(x);
            o->share[bin_of(o, x)] += 1 / (double)o->elems;
        }
        for (int64_t b = 0; b < o->nbin; b++)
            cols[b] = finite ? (float)o->share[b] : NAN;
        write_sample_moments(from, i * o->elems, o->elems, cols + o->nbin);
    }
    return 1;
}

/* Compares columns first .. first + n - 1 of both sets. */
static void compare(const struct histogram *o, const float *rows, int64_t nrows, int64_t first, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        cvy_samples_compare(rows, nrows, CVY_SAMPLES_SETS * columns_of(o), first + k, columns_of(o) + first + k,
                            &o->compared[k]);
}

static double histogram_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                               int64_t nrows)
{
    const struct histogram *o = options;
    double difference = 0, largest = 0;
    (void)output;
    (void)sums;
    compare(o, rows, nrows, 0, o->nbin);
    for (int64_t b = 0; b < o->nbin; b++) {
        difference += o->compared[b].mean[CVY_SAMPLES_OUTPUT] - o->compared[b].mean[CVY_SAMPLES_TARGET];
        largest = CVY_MAX(largest, fabs(difference));
    }
    return nrows && isfinite(difference) ? largest : NAN;
}

/* Whether the bin has so many values that the error of its mean is known. */
static int counts(const struct histogram *o, int64_t bin, int64_t nrows)
{
    const double values = (double)o->elems * (double)nrows;
    return CVY_MAX(o->compared[bin].mean[0], o->compared[bin].mean[1]) * values >= FEWEST;
}

static double histogram_within_finish(const void *options, const cvy_shape *output, const double *sums,
                                      const float *rows, int64_t nrows)
{
    const struct histogram *o = options;
    int64_t agree = 0, all = 0;
    (void)output;
    (void)sums;
    compare(o, rows, nrows, 0, o->nbin);
    for (int64_t b = 0; b < o->nbin; b++)
        if (counts(o, b, nrows)) {
            agree += cvy_samples_agree(&o->compared[b], o->within.errors);
            all++;
        }
    return all ? (double)agree / (double)all : NAN;
}

static void write_moments(const struct histogram *o, const float *rows, int64_t nrows, cvy_json *json)
{
    compare(o, rows, nrows, o->nbin, NMOMENT);
    cvy_json_open(json, "moments", '{');
    cvy_json_open(json, "name", '[');
    for (int k = 0; k < NMOMENT; k++)
        cvy_json_string(json, NULL, moment_name[k]);
    cvy_json_close(json, ']');
    cvy_samples_write(o->compared, NMOMENT, json);
    cvy_json_close(json, '}');
}

/* histogram_finish() has compared the bins. */
static void histogram_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                             int64_t nrows, cvy_json *json)
{
    const struct histogram *o = options;
    int64_t first = 0, last = o->nbin - 1;
    (void)output;
    (void)sums;
    while (first < last && !counts(o, first, nrows))
        first++;
    while (last > first && !counts(o, last, nrows))
        last--;
    cvy_json_open(json, "pixel_histogram", '{');
    for (int end = 0; end < 2; end++) {
        cvy_json_open(json, end ? "to" : "from", '[');
        for (int64_t b = first; b <= last; b++)
            cvy_json_real(json, NULL, end_of(o, b + end));
        cvy_json_close(json, ']');
    }
    cvy_samples_write(o->compared + first, last - first + 1, json);
    cvy_json_close(json, '}');
    write_moments(o, rows, nrows, json);
}

CVY_METRIC_DEFINE(pixel_histogram) = {
    .name = "pixel_histogram",
    .summary = "distance between the values of generated samples and those of true ones",
    .options = histogram_opts,
    .options_size = sizeof(struct histogram),
    .open = histogram_open,
    .width = histogram_width,
    .row = histogram_row,
    .finish = histogram_finish,
    .detail = histogram_detail,
};

CVY_METRIC_DEFINE(pixel_histogram_within) = {
    .name = "pixel_histogram_within",
    .summary = "share of the bins that generated samples fill as true ones do, within their errors",
    .options = histogram_within_opts,
    .options_size = sizeof(struct histogram),
    .higher_is_better = 1,
    .open = histogram_open,
    .width = histogram_width,
    .row = histogram_row,
    .finish = histogram_within_finish,
};

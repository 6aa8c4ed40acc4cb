/*
 * metric_samples.c: compares two sets of samples by one number of each sample: see metric_samples.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "metric/metric_samples.h"

#include <math.h>

#include "base/machine/base_system.h"
#include "base/number/base_moments.h"

static int ascending(const void *a, const void *b, void *user)
{
    const float x = *(const float *)a, y = *(const float *)b;
    (void)user;
    return (x > y) - (x < y);
}

/* The distance of two sorted lists of n numbers each. */
static double distance_of(const float *a, const float *b, int64_t n)
{
    double distance = 0;
    for (int64_t i = 0, j = 0; i < n && j < n;) {
        const float x = CVY_MIN(a[i], b[j]);
        while (i < n && a[i] <= x)
            i++;
        while (j < n && b[j] <= x)
            j++;
        distance = CVY_MAX(distance, fabs((double)(i - j)) / (double)n);
    }
    return distance;
}

/* The probability of a larger distance between two sets of n samples of one distribution. */
static double probability(double distance, int64_t n)
{
    const double root = sqrt((double)n / 2), x = (root + 0.12 + 0.11 / root) * distance;
    double sum = 0;
    if (x < 0.2) /* the series needs many terms, and the sum is 1 within 1e-10 */
        return 1;
    for (int j = 1; j <= 100; j++)
        sum += (j % 2 ? 2 : -2) * exp(-2 * j * j * x * x);
    return CVY_MIN(CVY_MAX(sum, 0), 1);
}

void cvy_samples_compare(const float *rows, int64_t nrows, int64_t ncols, int64_t output, int64_t target,
                         cvy_samples *out)
{
    float *set[CVY_SAMPLES_SETS] = {NULL};
    const int64_t column[CVY_SAMPLES_SETS] = {output, target};
    *out = (cvy_samples){{NAN, NAN}, {NAN, NAN}, NAN, NAN, NAN};
    for (int64_t i = 0; i < nrows; i++)
        if (!isfinite(rows[i * ncols + output]) || !isfinite(rows[i * ncols + target]))
            return;
    if (nrows == 0 || cvy_mem_alloc((size_t)(2 * nrows) * sizeof(float), &set[0]) != CVY_OK)
        return;
    set[1] = set[0] + nrows;
    for (int which = 0; which < CVY_SAMPLES_SETS; which++) {
        for (int64_t i = 0; i < nrows; i++)
            set[which][i] = rows[i * ncols + column[which]];
        cvy_sort(set[which], (size_t)nrows, sizeof(float), ascending, NULL);
        const cvy_moments m = cvy_moments_of_f32(set[which], NULL, nrows);
        out->mean[which] = m.mean;
        out->std[which] = cvy_moments_sample_std(&m);
    }
    out->error = out->std[CVY_SAMPLES_TARGET] * sqrt(2 / (double)nrows);
    out->distance = distance_of(set[0], set[1], nrows);
    out->p = probability(out->distance, nrows);
    cvy_mem_free(&set[0]);
}

int cvy_samples_agree(const cvy_samples *s, double errors)
{
    return fabs(s->mean[CVY_SAMPLES_OUTPUT] - s->mean[CVY_SAMPLES_TARGET]) <= errors * s->error;
}

static void write_list(const char *name, const cvy_samples *s, int64_t count, size_t member, cvy_json *json)
{
    cvy_json_open(json, name, '[');
    for (int64_t i = 0; i < count; i++)
        cvy_json_real(json, NULL, *(const double *)((const char *)&s[i] + member));
    cvy_json_close(json, ']');
}

void cvy_samples_write(const cvy_samples *s, int64_t count, cvy_json *json)
{
    for (int which = 0; which < CVY_SAMPLES_SETS; which++) {
        const size_t at = (size_t)which * sizeof(double);
        cvy_json_open(json, which == CVY_SAMPLES_OUTPUT ? "output" : "target", '{');
        write_list("mean", s, count, offsetof(cvy_samples, mean) + at, json);
        write_list("std", s, count, offsetof(cvy_samples, std) + at, json);
        cvy_json_close(json, '}');
    }
    write_list("error", s, count, offsetof(cvy_samples, error), json);
    write_list("ks", s, count, offsetof(cvy_samples, distance), json);
    write_list("p", s, count, offsetof(cvy_samples, p), json);
}

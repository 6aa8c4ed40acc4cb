/*
 * metric_samples.h: compares two sets of samples by one number of each sample, for metrics of generated samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_METRIC_SAMPLES_H
#define CVY_METRIC_SAMPLES_H

#include "metric/metric.h"

enum { CVY_SAMPLES_OUTPUT, CVY_SAMPLES_TARGET, CVY_SAMPLES_SETS };

typedef struct cvy_samples {
    double mean[CVY_SAMPLES_SETS], std[CVY_SAMPLES_SETS];
    double error;    /* standard error of the difference of the means, if the outputs had the spread of the targets: few
                        samples that are far off would excuse any difference */
    double distance; /* of Kolmogorov and Smirnov: the largest difference of the two cumulative distributions */
    double p;        /* how probable such a distance is for two sets of the same distribution (Stephens 1970) */
} cvy_samples;

/* Compares columns `output` and `target` of the rows [nrows, ncols]. All members are NaN if there is no row, a number
 * that is not finite, or no memory. */
void cvy_samples_compare(const float *rows, int64_t nrows, int64_t ncols, int64_t output, int64_t target,
                         cvy_samples *out);
/* Whether the means agree within `errors` standard errors. */
int cvy_samples_agree(const cvy_samples *s, double errors);
/* Adds the members "output" and "target", each with lists "mean" and "std", then lists "error", "ks" and "p", with a
 * number for each of the `count` comparisons. */
void cvy_samples_write(const cvy_samples *s, int64_t count, cvy_json *json);

/* The option that metrics of the share within some standard errors have. */
typedef struct cvy_within {
    double errors;
} cvy_within;
#define CVY_WITHIN_ROW(type)                                                                                           \
    {                                                                                                                  \
        "errors", CVY_TYPE_REAL, CVY_FIELD(type, within.errors), "2", ">0", "standard errors",                         \
            "how far means may differ"                                                                                 \
    }

#endif

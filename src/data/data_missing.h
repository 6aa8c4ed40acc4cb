/*
 * data_missing.h: what becomes of the missing numbers of x: the option `missing` of readers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_MISSING_H
#define CVY_DATA_MISSING_H

#include "graph/graph.h"

typedef struct cvy_missing {
    int is_on;   /* 0: missing numbers are faults */
    int is_mean; /* they become the mean of the others in their channel, else `value` */
    float value; /* NaN if is_mean */
} cvy_missing;

/* Whether a text is what programs write for a value that is not there: empty, NA, NaN, null and the like. */
int cvy_missing_is_word(const char *text, size_t bytes);
/* text: a number or "mean"; NULL: the option is not given. */
cvy_status cvy_missing_parse(const char *text, cvy_missing *out);
/* Replaces each NaN of a sample [channels, ...] of n numbers; the mean is computed in f64. CVY_E_FORMAT: a channel has
 * no number; what: names the field in the message. */
cvy_status cvy_missing_fill(const cvy_missing *m, int64_t channels, int64_t n, const char *what, float *x);

#endif

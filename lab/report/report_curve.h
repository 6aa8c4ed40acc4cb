/*
 * report_curve.h: curves of many points as charts show them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_CURVE_H
#define CVY_REPORT_CURVE_H

#include "report/report_svg.h"

typedef struct cvy_binned_curve {
    double *x, *mean, *low, *high;
    int64_t n;
    int many; /* some points are means of several, so low and high are worth showing */
} cvy_binned_curve;

/* Averages groups of neighbouring points, at most 240 of them, and finds the minimum and maximum of each. */
cvy_status cvy_curve_bin(cvy_pool *pool, const double *x, const double *y, int64_t n, cvy_binned_curve *out);
/* Whether the values vary by a factor above 40 and are positive: then the axis is logarithmic. */
int cvy_chart_wants_log(const cvy_chart *chart);

#endif

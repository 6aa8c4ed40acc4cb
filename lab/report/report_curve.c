/* SPDX-License-Identifier: BSD-3-Clause */
/* report_curve.c: see report_curve.h. */
#include "report/report_curve.h"

#include <math.h>

enum { BINS = 240 };

cvy_status cvy_curve_bin(cvy_pool *pool, const double *x, const double *y, int64_t n, cvy_binned_curve *out)
{
    const int64_t nbin = CVY_MIN(n, BINS);
    cvy_binned_curve b = {.n = nbin, .many = n > nbin};
    CVY_TRY(cvy_pool_alloc(pool, sizeof(double) * (size_t)(nbin + 1), &b.x));
    CVY_TRY(cvy_pool_alloc(pool, sizeof(double) * (size_t)(nbin + 1), &b.mean));
    CVY_TRY(cvy_pool_alloc(pool, sizeof(double) * (size_t)(nbin + 1), &b.low));
    CVY_TRY(cvy_pool_alloc(pool, sizeof(double) * (size_t)(nbin + 1), &b.high));
    for (int64_t k = 0; k < nbin; k++) {
        double sum = 0, sum_x = 0, low = INFINITY, high = -INFINITY;
        int64_t count = 0;
        for (int64_t i = n * k / nbin; i < n * (k + 1) / nbin; i++) {
            if (!isfinite(y[i]) || !isfinite(x[i]))
                continue;
            sum += y[i], sum_x += x[i], count++;
            low = CVY_MIN(low, y[i]);
            high = CVY_MAX(high, y[i]);
        }
        b.x[k] = count ? sum_x / (double)count : NAN;
        b.mean[k] = count ? sum / (double)count : NAN;
        b.low[k] = count ? low : NAN;
        b.high[k] = count ? high : NAN;
    }
    *out = b;
    return CVY_OK;
}

int cvy_chart_wants_log(const cvy_chart *c)
{
    double low = INFINITY, high = 0;
    for (int s = 0; s < c->nseries; s++)
        for (int64_t i = 0; i < c->series[s].n; i++)
            if (isfinite(c->series[s].y[i])) {
                low = CVY_MIN(low, c->series[s].y[i]);
                high = CVY_MAX(high, c->series[s].y[i]);
            }
    return low > 0 && high > 40 * low;
}

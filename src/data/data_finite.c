/*
 * data_finite.c: see data_finite.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_finite.h"

#include <math.h>

/* Without a branch in the loop, so that the compiler uses vectors. */
int cvy_all_finite(const float *x, int64_t n)
{
    int finite = 1;
    for (int64_t i = 0; i < n; i++)
        finite &= isfinite(x[i]) != 0;
    return finite;
}

cvy_status cvy_check_finite(const char *what, const float *x, int64_t n)
{
    int64_t at = 0;
    if (cvy_all_finite(x, n))
        return CVY_OK;
    while (isfinite(x[at]))
        at++;
    CVY_FAIL(CVY_E_FORMAT, "element %lld of %s is %g, not a finite number", (long long)at, what, x[at]);
}

cvy_status cvy_check_mask(const float *mask, int64_t n)
{
    CVY_TRY(cvy_check_finite("weight", mask, n));
    for (int64_t i = 0; i < n; i++)
        CVY_CHECK(mask[i] >= 0, CVY_E_FORMAT, "element %lld of weight is %g, expected 0 or more", (long long)i,
                  mask[i]);
    return CVY_OK;
}

void cvy_clear_masked(float *y, int64_t n, const float *mask, int64_t nmask)
{
    for (int64_t i = 0; nmask > 0 && n % nmask == 0 && i < n; i++)
        if (mask[i % nmask] == 0)
            y[i] = 0;
}

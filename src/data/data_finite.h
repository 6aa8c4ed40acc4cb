/*
 * data_finite.h: checks of the numbers of a sample: which of them may be missing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_FINITE_H
#define CVY_DATA_FINITE_H

#include <stdint.h>

#include "base/base_status.h"

/* Whether all numbers of x [n] are finite. */
int cvy_all_finite(const float *x, int64_t n);
/* A single value that is not finite would spread to every weight, and its origin would be hard to find. what: names the
 * numbers x [n] in the message. CVY_E_FORMAT. */
cvy_status cvy_check_finite(const char *what, const float *x, int64_t n);
/* Checks that the weights of a sample are finite and not negative. CVY_E_FORMAT. */
cvy_status cvy_check_mask(const float *mask, int64_t n);
/* Numbers of y [n] of weight 0 may be anything, and become 0. mask: [nmask], which is repeated along y; if it does not
 * fit a whole number of times, y stays as it is. */
void cvy_clear_masked(float *y, int64_t n, const float *mask, int64_t nmask);

#endif

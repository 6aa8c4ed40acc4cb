/*
 * base_exact.h: sums of doubles without rounding. The bits do not depend on the order in which numbers are added, on
 * one rank or on several. It is meant for a few sums, such as the losses of a pass over validation data; each takes
 * half a kilobyte.
 *
 * A sum is a fixed-point number that has room for every double (Kulisch 1980). Its digits have 32 bits, and each is
 * kept in 64 bits. So carries are needed only when the sum is read, and the sums of several ranks are added digit by
 * digit. A sum can take up to 2^31 numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_EXACT_H
#define CVY_BASE_EXACT_H

#include <stdint.h>

enum { CVY_EXACT_DIGITS = 68, CVY_EXACT_WORDS = CVY_EXACT_DIGITS + 1 };

typedef struct cvy_exact {         /* zero-initialised, its value is 0 */
    int64_t word[CVY_EXACT_WORDS]; /* digits, the lowest first; then the count of numbers that were not finite */
} cvy_exact;

void cvy_exact_add(cvy_exact *sum, double x);
/* The value of the sum, rounded; NaN if any number was not finite. */
double cvy_exact_read(const cvy_exact *sum);

#endif

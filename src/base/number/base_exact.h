/*
 * base_exact.h: sums of doubles whose bits do not depend on the order in which numbers are added, on one rank or on
 * several.
 *
 * A cvy_exact is a fixed-point number that has room for every double (Kulisch 1980). Its digits have 32 bits, and each
 * is kept in 64 bits. So carries are needed only when the sum is read, and the sums of several ranks are added digit by
 * digit. Nothing is rounded. It is meant for a few sums, such as the losses of a pass over validation data; each takes
 * half a kilobyte.
 *
 * A cvy_exact_window keeps the highest four digits only, for vectors of many sums. Its highest digit is that of the
 * largest number added, and what lies below the lowest one is left out. So the result does not depend on the order
 * either, and it is off by at most 2^-96 of the largest number for each number added (the idea of Demmel and Nguyen
 * 2013).
 *
 * Both can take up to 2^31 numbers.
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

enum { CVY_EXACT_WINDOW_DIGITS = 4, CVY_EXACT_WINDOW_WORDS = CVY_EXACT_WINDOW_DIGITS + 2 };

typedef struct cvy_exact_window {           /* zero-initialised, its value is 0 */
    int64_t digit[CVY_EXACT_WINDOW_DIGITS]; /* the lowest first */
    int64_t bad;                            /* count of numbers that were not finite */
    int64_t top;                            /* place of the highest digit, counted as in cvy_exact */
} cvy_exact_window;

void cvy_exact_window_add(cvy_exact_window *sum, double x);
/* Moves the window up to this place; a lower place changes nothing. The windows of several ranks at one place are added
 * member by member, all but `top`. */
void cvy_exact_window_raise(cvy_exact_window *sum, int64_t top);
/* As cvy_exact_read(). */
double cvy_exact_window_read(const cvy_exact_window *sum);

#endif

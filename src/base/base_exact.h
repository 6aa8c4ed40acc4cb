/*
 * base_exact.h: sums of doubles without rounding: the same bits in whatever order numbers are added, on one rank or on
 * several. For sums of few numbers, such as the losses of a pass over validation data; each takes half a kilobyte.
 *
 * A sum is a number of fixed point that has room for every double (Kulisch 1980), in digits of 32 bits, each kept in
 * 64: there are no carries until it is read, and sums of several ranks are added digit by digit. Up to 2^31 numbers.
 */
#ifndef CVY_BASE_EXACT_H
#define CVY_BASE_EXACT_H

#include <stdint.h>

enum { CVY_EXACT_DIGITS = 68, CVY_EXACT_WORDS = CVY_EXACT_DIGITS + 1 };

typedef struct cvy_exact {         /* zero-initialised: 0 */
    int64_t word[CVY_EXACT_WORDS]; /* digits, the lowest first; then how many numbers were not finite */
} cvy_exact;

void cvy_exact_add(cvy_exact *sum, double x);
/* Rounded; NaN where any number was not finite. */
double cvy_exact_read(const cvy_exact *sum);

#endif

/*
 * base_exact.c: sums of doubles without rounding (base_exact.h). The lowest bit of digit 0 is worth 2^-1074, which is
 * the smallest positive double.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_exact.h"

#include <math.h>

enum { LOWEST = -1074, BITS = 32 };

void cvy_exact_add(cvy_exact *sum, double x)
{
    int exponent = 0;
    if (!isfinite(x)) {
        sum->word[CVY_EXACT_DIGITS]++;
        return;
    }
    const double part = frexp(fabs(x), &exponent);
    uint64_t mantissa = (uint64_t)ldexp(part, 53);
    int at = exponent - 53 - LOWEST;
    if (at < 0) { /* the lower bits of numbers near the smallest one are zero */
        mantissa >>= -at;
        at = 0;
    }
    /* The mantissa takes up to 84 bits from the lowest bit of this digit on, that is three digits. */
    const int digit = at / BITS, shift = at % BITS;
    const uint64_t low = (mantissa & UINT32_MAX) << shift, high = (mantissa >> BITS) << shift;
    const uint64_t digits[] = {low & UINT32_MAX, (low >> BITS) + (high & UINT32_MAX), high >> BITS};
    for (int i = 0; i < 3; i++)
        sum->word[digit + i] += x < 0 ? -(int64_t)digits[i] : (int64_t)digits[i];
}

/* Carries until each digit is in 0 .. 2^32 - 1, except the highest one, which keeps the sign. */
static void carry(int64_t *digit)
{
    for (int i = 0; i + 1 < CVY_EXACT_DIGITS; i++) {
        const int64_t rest = digit[i] & UINT32_MAX;
        digit[i + 1] += (digit[i] - rest) / ((int64_t)1 << BITS);
        digit[i] = rest;
    }
}

double cvy_exact_read(const cvy_exact *sum)
{
    int64_t digit[CVY_EXACT_DIGITS];
    double value = 0;
    if (sum->word[CVY_EXACT_DIGITS] != 0)
        return NAN;
    for (int i = 0; i < CVY_EXACT_DIGITS; i++)
        digit[i] = sum->word[i];
    carry(digit);
    const int negative = digit[CVY_EXACT_DIGITS - 1] < 0;
    for (int i = 0; i < CVY_EXACT_DIGITS && negative; i++)
        digit[i] = -digit[i];
    if (negative)
        carry(digit);
    for (int i = CVY_EXACT_DIGITS - 1; i >= 0; i--)
        value += ldexp((double)digit[i], i * BITS + LOWEST);
    return negative ? -value : value;
}

/*
 * base_exact.c: sums of doubles that do not depend on their order (base_exact.h). The lowest bit of digit 0 is worth
 * 2^-1074, which is the smallest positive double.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_exact.h"

#include <math.h>
#include <string.h>

enum { LOWEST = -1074, BITS = 32 };

/* Cuts the magnitude of a finite number into the three digits from the returned place on. */
static int cut(double x, uint64_t digits[3])
{
    int exponent = 0;
    const double part = frexp(fabs(x), &exponent);
    uint64_t mantissa = (uint64_t)ldexp(part, 53);
    int at = exponent - 53 - LOWEST;
    if (at < 0) { /* the lower bits of numbers near the smallest one are zero */
        mantissa >>= -at;
        at = 0;
    }
    /* The mantissa takes up to 84 bits from the lowest bit of this digit on, that is three digits. */
    const int shift = at % BITS;
    const uint64_t low = (mantissa & UINT32_MAX) << shift, high = (mantissa >> BITS) << shift,
                   middle = (low >> BITS) + (high & UINT32_MAX);
    digits[0] = low & UINT32_MAX;
    digits[1] = middle & UINT32_MAX;
    digits[2] = (high >> BITS) + (middle >> BITS);
    return at / BITS;
}

void cvy_exact_add(cvy_exact *sum, double x)
{
    uint64_t digits[3];
    if (!isfinite(x)) {
        sum->word[CVY_EXACT_DIGITS]++;
        return;
    }
    const int place = cut(x, digits);
    for (int i = 0; i < 3; i++)
        sum->word[place + i] += x < 0 ? -(int64_t)digits[i] : (int64_t)digits[i];
}

/* Carries until each of n digits is in 0 .. 2^32 - 1, except the highest one, which keeps the sign. */
static void carry(int64_t *digit, int n)
{
    for (int i = 0; i + 1 < n; i++) {
        const int64_t rest = digit[i] & UINT32_MAX;
        digit[i + 1] += (digit[i] - rest) / ((int64_t)1 << BITS);
        digit[i] = rest;
    }
}

/* The value of n digits, the lowest at this place. Changes them. */
static double read_digits(int64_t *digit, int n, int64_t place)
{
    double value = 0;
    carry(digit, n);
    const int negative = digit[n - 1] < 0;
    for (int i = 0; i < n && negative; i++)
        digit[i] = -digit[i];
    if (negative)
        carry(digit, n);
    for (int i = n - 1; i >= 0; i--)
        value += ldexp((double)digit[i], (int)(place + i) * BITS + LOWEST);
    return negative ? -value : value;
}

double cvy_exact_read(const cvy_exact *sum)
{
    int64_t digit[CVY_EXACT_DIGITS];
    if (sum->word[CVY_EXACT_DIGITS] != 0)
        return NAN;
    memcpy(digit, sum->word, sizeof digit);
    return read_digits(digit, CVY_EXACT_DIGITS, 0);
}

void cvy_exact_window_raise(cvy_exact_window *sum, int64_t top)
{
    const int64_t by = top - sum->top;
    if (by <= 0)
        return;
    for (int64_t i = 0; i < CVY_EXACT_WINDOW_DIGITS; i++)
        sum->digit[i] = i + by < CVY_EXACT_WINDOW_DIGITS ? sum->digit[i + by] : 0;
    sum->top = top;
}

/* The window moves by the number that is added and not by the sum, so that its place does not depend on the order. */
void cvy_exact_window_add(cvy_exact_window *sum, double x)
{
    uint64_t digits[3];
    if (x == 0)
        return;
    if (!isfinite(x)) {
        sum->bad++;
        return;
    }
    const int place = cut(x, digits);
    cvy_exact_window_raise(sum, place + (digits[2] ? 2 : digits[1] ? 1 : 0));
    for (int i = 0; i < 3; i++) {
        const int64_t at = place + i - (sum->top - CVY_EXACT_WINDOW_DIGITS + 1);
        if (at >= 0 && at < CVY_EXACT_WINDOW_DIGITS)
            sum->digit[at] += x < 0 ? -(int64_t)digits[i] : (int64_t)digits[i];
    }
}

double cvy_exact_window_read(const cvy_exact_window *sum)
{
    int64_t digit[CVY_EXACT_WINDOW_DIGITS];
    if (sum->bad != 0)
        return NAN;
    memcpy(digit, sum->digit, sizeof digit);
    return read_digits(digit, CVY_EXACT_WINDOW_DIGITS, sum->top - CVY_EXACT_WINDOW_DIGITS + 1);
}

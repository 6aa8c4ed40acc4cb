/*
 * base_spectrum.c: see base_spectrum.h. It transforms rows, then columns. Lengths that are a power of two are
 * transformed by halves (Cooley and Tukey 1965); all others as a convolution with a chirp, whose length is a power of
 * two (Bluestein 1970). So each length n takes about n log n operations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_spectrum.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

struct complex_number {
    double re, im;
};

struct transform {                 /* of one length */
    int64_t n, padded;             /* padded: the power of two that is transformed; n if it is one itself */
    struct complex_number *root;   /* [padded / 2]: exp(-2 pi i k / padded) */
    struct complex_number *chirp;  /* [n]: exp(-pi i k^2 / n); NULL: n is a power of two */
    struct complex_number *kernel; /* [padded]: the transform of the conjugate chirp, divided by padded */
    struct complex_number *work;   /* [padded] */
};

struct cvy_spectrum {
    int64_t H, W, count;
    double *re, *im; /* [H, W] */
    int32_t *number; /* [H, W]: the wave number of each element after the transform; count: it is left out */
    int64_t *waves;  /* [count + 1]: how many there are of each wave number */
    struct transform rows, columns;
};

/* ---- one dimension ---- */

static struct complex_number multiply(struct complex_number a, struct complex_number b)
{
    return (struct complex_number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* exp(-2 pi i part / whole) */
static struct complex_number root_of_unity(int64_t part, int64_t whole)
{
    const double angle = 2 * PI * (double)(part % whole) / (double)whole;
    return (struct complex_number){cos(angle), -sin(angle)};
}

/* Puts the numbers in the order of their reversed index bits. */
static void reverse(struct complex_number *a, int64_t n)
{
    for (int64_t i = 1, at = 0; i < n; i++) {
        int64_t bit = n >> 1;
        for (; at & bit; bit >>= 1)
            at ^= bit;
        at ^= bit;
        if (i < at) {
            const struct complex_number swapped = a[i];
            a[i] = a[at];
            a[at] = swapped;
        }
    }
}

/* Transforms a length that is a power of two, in place. */
static void transform_power(const struct transform *t, struct complex_number *a)
{
    reverse(a, t->padded);
    for (int64_t half = 1; half < t->padded; half *= 2)
        for (int64_t first = 0; first < t->padded; first += 2 * half)
            for (int64_t i = 0; i < half; i++) {
                struct complex_number *low = a + first + i, *high = low + half;
                const struct complex_number turned = multiply(*high, t->root[i * (t->padded / 2 / half)]), kept = *low;
                *low = (struct complex_number){kept.re + turned.re, kept.im + turned.im};
                *high = (struct complex_number){kept.re - turned.re, kept.im - turned.im};
            }
}

/* Transforms the n numbers in t->work. The inverse transform of the product is taken as the conjugate of the transform
 * of its conjugate. */
static void transform(const struct transform *t)
{
    struct complex_number *a = t->work;
    if (!t->chirp) {
        transform_power(t, a);
        return;
    }
    for (int64_t i = 0; i < t->n; i++)
        a[i] = multiply(a[i], t->chirp[i]);
    memset(a + t->n, 0, sizeof *a * (size_t)(t->padded - t->n));
    transform_power(t, a);
    for (int64_t i = 0; i < t->padded; i++) {
        a[i] = multiply(a[i], t->kernel[i]);
        a[i].im = -a[i].im;
    }
    transform_power(t, a);
    for (int64_t i = 0; i < t->n; i++)
        a[i] = multiply((struct complex_number){a[i].re, -a[i].im}, t->chirp[i]);
}

/* k^2 is taken modulo 2 n, so that the angle stays exact. */
static void make_chirp(struct transform *t)
{
    for (int64_t k = 0; k < t->n; k++)
        t->chirp[k] = root_of_unity(k * k % (2 * t->n), 2 * t->n);
    for (int64_t k = 0; k < t->n; k++) {
        const struct complex_number c = {t->chirp[k].re / (double)t->padded, -t->chirp[k].im / (double)t->padded};
        t->kernel[k] = c;
        if (k > 0)
            t->kernel[t->padded - k] = c;
    }
    transform_power(t, t->kernel);
}

static cvy_status make_transform(cvy_pool *pool, int64_t n, struct transform *t)
{
    const int is_power = (n & (n - 1)) == 0;
    *t = (struct transform){.n = n, .padded = 1};
    while (t->padded < (is_power ? n : 2 * n - 1))
        t->padded *= 2;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *t->root * (size_t)(t->padded / 2 + 1), &t->root));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *t->work * (size_t)t->padded, &t->work));
    for (int64_t k = 0; k < t->padded / 2; k++)
        t->root[k] = root_of_unity(k, t->padded);
    if (is_power)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *t->chirp * (size_t)n, &t->chirp));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *t->kernel * (size_t)t->padded, &t->kernel));
    make_chirp(t);
    return CVY_OK;
}

/* ---- planes ---- */

/* Transforms n numbers of the plane that are `step` apart. */
static void transform_line(const struct transform *t, double *re, double *im, int64_t step)
{
    for (int64_t i = 0; i < t->n; i++)
        t->work[i] = (struct complex_number){re[i * step], im[i * step]};
    transform(t);
    for (int64_t i = 0; i < t->n; i++) {
        re[i * step] = t->work[i].re;
        im[i * step] = t->work[i].im;
    }
}

static int64_t wave_number(const cvy_spectrum *s, int64_t y, int64_t x)
{
    const double longer = (double)(s->H > s->W ? s->H : s->W), down = (double)(y <= s->H / 2 ? y : s->H - y),
                 right = (double)(x <= s->W / 2 ? x : s->W - x);
    const double k = longer * hypot(down / (double)s->H, right / (double)s->W) + 0.5;
    return k < (double)s->count ? (int64_t)k : s->count;
}

cvy_status cvy_spectrum_create(cvy_pool *pool, int64_t H, int64_t W, cvy_spectrum **out)
{
    cvy_spectrum *s = NULL;
    size_t bytes = 0;
    CVY_CHECK(H >= 1 && W >= 1 && H <= 1 << 30 && W <= 1 << 30, CVY_E_SHAPE,
              "a spectrum of a plane of %lldx%lld, expected 1x1 to 2^30 along a side", (long long)H, (long long)W);
    CVY_TRY(cvy_size_mul((size_t)H, (size_t)W, &bytes));
    CVY_TRY(cvy_size_mul(bytes, sizeof *s->re, &bytes));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s, &s));
    s->H = H;
    s->W = W;
    s->count = cvy_spectrum_count(H, W);
    CVY_TRY(cvy_pool_alloc(pool, bytes, &s->re));
    CVY_TRY(cvy_pool_alloc(pool, bytes, &s->im));
    CVY_TRY(cvy_pool_alloc(pool, bytes / sizeof *s->re * sizeof *s->number, &s->number));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s->waves * (size_t)(s->count + 1), &s->waves));
    CVY_TRY(make_transform(pool, W, &s->rows));
    CVY_TRY(make_transform(pool, H, &s->columns));
    for (int64_t i = 0; i < H * W; i++) {
        s->number[i] = (int32_t)wave_number(s, i / W, i % W);
        s->waves[s->number[i]]++;
    }
    *out = s;
    return CVY_OK;
}

double *cvy_spectrum_plane(cvy_spectrum *s)
{
    return s->re;
}

void cvy_spectrum_compute(cvy_spectrum *s, double *power)
{
    const double elems = (double)s->H * (double)s->W;
    memset(s->im, 0, sizeof *s->im * (size_t)(s->H * s->W));
    memset(power, 0, sizeof *power * (size_t)s->count);
    for (int64_t y = 0; y < s->H; y++)
        transform_line(&s->rows, s->re + y * s->W, s->im + y * s->W, 1);
    for (int64_t x = 0; x < s->W; x++)
        transform_line(&s->columns, s->re + x, s->im + x, s->W);
    for (int64_t i = 0; i < s->H * s->W; i++) {
        const int32_t k = s->number[i];
        if (k < s->count)
            power[k] += (s->re[i] * s->re[i] + s->im[i] * s->im[i]) / (elems * elems);
    }
    for (int64_t k = 0; k < s->count; k++)
        power[k] = s->waves[k] > 0 ? power[k] / (double)s->waves[k] : 0;
}

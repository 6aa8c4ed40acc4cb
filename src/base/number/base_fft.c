/*
 * base_fft.c: the Fourier transform of fields: radix 2, in place (Cooley and Tukey 1965), and the plain sum for lengths
 * that are no power of two.
 *
 * Generators call it for each field that they make, power spectra (base_spectrum.c) for each field that they look at. A
 * field is transformed only along its first axis, so that each butterfly combines two whole rows and compilers can
 * vectorise it; a transposition brings the other axis there. Real and imaginary parts are separate planes for the same
 * reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_fft.h"

#include <math.h>
#include <string.h>

cvy_status cvy_fft_make(cvy_pool *pool, int64_t n, cvy_fft *out)
{
    int64_t *place = NULL;
    float *cosine = NULL, *sine = NULL;
    const int is_power = n >= 2 && (n & (n - 1)) == 0;
    CVY_CHECK(n >= 1, CVY_E_ARGUMENT, "a Fourier transform of length %lld, expected at least 1", (long long)n);
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *cosine, &cosine));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *sine, &sine));
    if (is_power)
        CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *place, &place));
    for (int64_t i = 1; i < n && is_power; i++)
        place[i] = place[i / 2] / 2 + (i & 1) * (n / 2);
    for (int64_t k = 0; k < n; k++) {
        const double angle = 6.283185307179586476925 * (double)k / (double)n;
        cosine[k] = (float)cos(angle);
        sine[k] = (float)sin(angle);
    }
    *out = (cvy_fft){.n = n, .place = place, .cosine = cosine, .sine = sine};
    return CVY_OK;
}

static void swap_rows(float *restrict a, float *restrict b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float keep = a[i];
        a[i] = b[i];
        b[i] = keep;
    }
}

/* (a, b) becomes (a + w b, a - w b) at each position. */
static void butterfly(float *restrict ar, float *restrict ai, float *restrict br, float *restrict bi, int64_t n,
                      float wr, float wi)
{
    for (int64_t i = 0; i < n; i++) {
        const float re = br[i] * wr - bi[i] * wi, im = br[i] * wi + bi[i] * wr;
        br[i] = ar[i] - re;
        bi[i] = ai[i] - im;
        ar[i] += re;
        ai[i] += im;
    }
}

static void transform_by_halves(const cvy_fft *fft, int64_t width, float *re, float *im)
{
    const int64_t n = fft->n;
    for (int64_t i = 0; i < n; i++) {
        if (fft->place[i] <= i)
            continue;
        swap_rows(re + i * width, re + fft->place[i] * width, width);
        swap_rows(im + i * width, im + fft->place[i] * width, width);
    }
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t base = 0; base < n; base += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                const int64_t a = (base + k) * width, b = a + half * width, w = k * (n / (2 * half));
                butterfly(re + a, im + a, re + b, im + b, width, fft->cosine[w], fft->sine[w]);
            }
}

/* (to) += (from) w at each position. */
static void add_turned(const float *restrict fr, const float *restrict fi, int64_t n, float wr, float wi,
                       float *restrict tr, float *restrict ti)
{
    for (int64_t i = 0; i < n; i++) {
        tr[i] += fr[i] * wr - fi[i] * wi;
        ti[i] += fr[i] * wi + fi[i] * wr;
    }
}

static void transform_by_sums(const cvy_fft *fft, int64_t width, float *re, float *im, float *work)
{
    const int64_t n = fft->n;
    float *tr = work, *ti = work + n * width;
    memset(work, 0, (size_t)(2 * n * width) * sizeof *work);
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t w = k * r % n;
            add_turned(re + k * width, im + k * width, width, fft->cosine[w], fft->sine[w], tr + r * width,
                       ti + r * width);
        }
    memcpy(re, tr, (size_t)(n * width) * sizeof *re);
    memcpy(im, ti, (size_t)(n * width) * sizeof *im);
}

void cvy_fft_columns(const cvy_fft *fft, int64_t width, float *re, float *im, float *work)
{
    if (fft->place)
        transform_by_halves(fft, width, re, im);
    else
        transform_by_sums(fft, width, re, im, work);
}

static void transpose(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n; k++) {
            const float keep = x[i * n + k];
            x[i * n + k] = x[k * n + i];
            x[k * n + i] = keep;
        }
}

void cvy_fft_2d(const cvy_fft *fft, float *re, float *im)
{
    for (int axis = 0; axis < 2; axis++) {
        cvy_fft_columns(fft, fft->n, re, im, NULL);
        transpose(re, fft->n);
        transpose(im, fft->n);
    }
}

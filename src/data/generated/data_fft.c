/*
 * data_fft.c: the Fourier transform of square fields: radix 2, in place (Cooley and Tukey 1965).
 *
 * Generators call it for each field that they make. A field is transformed only along its first axis, so that each
 * butterfly combines two whole rows and compilers can vectorise it; a transposition brings the other axis there. Real
 * and imaginary parts are separate planes for the same reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/generated/data_fft.h"

#include <math.h>

cvy_status cvy_fft_make(cvy_pool *pool, int64_t n, cvy_fft *out)
{
    int64_t *place = NULL;
    float *cosine = NULL, *sine = NULL;
    CVY_CHECK(n >= 2 && (n & (n - 1)) == 0, CVY_E_ARGUMENT,
              "a Fourier transform of length %lld, expected a power of two", (long long)n);
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *place, &place));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(n / 2) * sizeof *cosine, &cosine));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(n / 2) * sizeof *sine, &sine));
    for (int64_t i = 1; i < n; i++)
        place[i] = place[i / 2] / 2 + (i & 1) * (n / 2);
    for (int64_t k = 0; k < n / 2; k++) {
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

static void transform_columns(const cvy_fft *fft, float *re, float *im)
{
    const int64_t n = fft->n;
    for (int64_t i = 0; i < n; i++) {
        if (fft->place[i] <= i)
            continue;
        swap_rows(re + i * n, re + fft->place[i] * n, n);
        swap_rows(im + i * n, im + fft->place[i] * n, n);
    }
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t base = 0; base < n; base += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                const int64_t a = (base + k) * n, b = a + half * n, w = k * (n / (2 * half));
                butterfly(re + a, im + a, re + b, im + b, n, fft->cosine[w], fft->sine[w]);
            }
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
        transform_columns(fft, re, im);
        transpose(re, fft->n);
        transpose(im, fft->n);
    }
}

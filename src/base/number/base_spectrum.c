/*
 * base_spectrum.c: the power spectrum of a map, averaged over the directions of its waves: see base_spectrum.h.
 *
 * Metrics call it for each map of a validation or test pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_spectrum.h"

#include <math.h>
#include <string.h>

/* The index of a wave and its negative, which has the same strength in a real map. */
static double fold(int64_t k, int64_t n)
{
    return (double)(2 * k <= n ? k : n - k);
}

cvy_status cvy_spectrum_make(cvy_pool *pool, int64_t h, int64_t w, cvy_spectrum *out)
{
    cvy_spectrum s = {.h = h, .w = w, .nbin = CVY_MIN(h, w) / 2};
    int32_t *bin = NULL;
    int64_t *nwave = NULL;
    CVY_CHECK(s.nbin >= 1, CVY_E_ARGUMENT, "a power spectrum of maps of %lld x %lld, expected 2 x 2 or more",
              (long long)h, (long long)w);
    CVY_TRY(cvy_fft_make(pool, h, &s.along[0]));
    CVY_TRY(cvy_fft_make(pool, w, &s.along[1]));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(h * w) * sizeof *bin, &bin));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)s.nbin * sizeof *nwave, &nwave));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(6 * h * w) * sizeof *s.work, &s.work));
    for (int64_t i = 0; i < h * w; i++) {
        const double y = fold(i / w, h) / (double)h, x = fold(i % w, w) / (double)w;
        const int64_t k = llround(hypot(y, x) * (double)CVY_MIN(h, w));
        bin[i] = k >= 1 && k <= s.nbin ? (int32_t)(k - 1) : -1;
        if (bin[i] >= 0)
            nwave[bin[i]]++;
    }
    s.bin = bin;
    s.nwave = nwave;
    *out = s;
    return CVY_OK;
}

static void transpose(const float *restrict from, int64_t h, int64_t w, float *restrict to)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            to[x * h + y] = from[y * w + x];
}

void cvy_spectrum_add(const cvy_spectrum *s, const float *x, double *power)
{
    const int64_t n = s->h * s->w;
    const double scale = 1 / ((double)n * (double)n);
    float *re = s->work, *im = re + n, *turned_re = im + n, *turned_im = turned_re + n, *spare = turned_im + n;
    memcpy(re, x, (size_t)n * sizeof *re);
    memset(im, 0, (size_t)n * sizeof *im);
    cvy_fft_columns(&s->along[0], s->w, re, im, spare);
    transpose(re, s->h, s->w, turned_re);
    transpose(im, s->h, s->w, turned_im);
    cvy_fft_columns(&s->along[1], s->h, turned_re, turned_im, spare);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i % s->w * s->h + i / s->w;
        if (s->bin[i] >= 0)
            power[s->bin[i]] += scale *
                                ((double)turned_re[at] * turned_re[at] + (double)turned_im[at] * turned_im[at]) /
                                (double)s->nwave[s->bin[i]];
    }
}

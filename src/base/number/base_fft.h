/*
 * base_fft.h: the Fourier transform of fields of two axes, for data generators and power spectra.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_FFT_H
#define CVY_BASE_FFT_H

#include "base/base_mem.h"

typedef struct cvy_fft {
    int64_t n;                  /* length of the transform */
    const int64_t *place;       /* [n] bit-reversed index; NULL: n is no power of two */
    const float *cosine, *sine; /* [n]: of 2 pi k / n */
} cvy_fft;

/* Makes the tables for transforms of length n, at least 1, in pool. A power of two takes n log n operations, other
 * lengths take n^2. */
cvy_status cvy_fft_make(cvy_pool *pool, int64_t n, cvy_fft *out);
/* Transforms the columns of a field [n, width] in place; real and imaginary parts are planes. x[r] becomes sum over k
 * of x[k] exp(2 pi i k r / n), without scaling. work: [2, n, width], used if n is no power of two, else NULL will do.
 * Threads may share the tables. */
void cvy_fft_columns(const cvy_fft *fft, int64_t width, float *re, float *im, float *work);
/* Transforms both axes of a square field [n, n], n a power of two, in place. */
void cvy_fft_2d(const cvy_fft *fft, float *re, float *im);

#endif

/*
 * data_fft.h: the Fourier transform of square fields, for data generators.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_FFT_H
#define CVY_DATA_FFT_H

#include "base/base_mem.h"

typedef struct cvy_fft {
    int64_t n;                  /* a power of two, at least 2 */
    const int64_t *place;       /* [n] bit-reversed index */
    const float *cosine, *sine; /* [n / 2]: of 2 pi k / n */
} cvy_fft;

/* Makes the tables for fields of n x n, in pool. */
cvy_status cvy_fft_make(cvy_pool *pool, int64_t n, cvy_fft *out);
/* Transforms in place; real and imaginary parts are planes [n, n]. x[r] becomes sum over k of x[k] exp(2 pi i k.r / n),
 * without scaling. Threads may share the tables. */
void cvy_fft_2d(const cvy_fft *fft, float *re, float *im);

#endif

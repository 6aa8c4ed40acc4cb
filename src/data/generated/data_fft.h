/*
 * data_fft.h: the Fourier transform of square fields, for the generators of data.
 */
#ifndef CVY_DATA_FFT_H
#define CVY_DATA_FFT_H

#include "base/base_mem.h"

typedef struct cvy_fft {
    int64_t n;                  /* a power of two, at least 2 */
    const int64_t *place;       /* [n] bits in reverse */
    const float *cosine, *sine; /* [n / 2] of 2 pi k / n */
} cvy_fft;

/* Tables for fields of n x n; in pool. */
cvy_status cvy_fft_make(cvy_pool *pool, int64_t n, cvy_fft *out);
/* In place, real and imaginary part as planes [n, n]: x[r] becomes the sum over k of x[k] exp(+2 pi i k.r / n). No
 * scaling. Threads may share the tables. */
void cvy_fft_2d(const cvy_fft *fft, float *re, float *im);

#endif

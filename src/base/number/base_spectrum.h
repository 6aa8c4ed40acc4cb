/*
 * base_spectrum.h: the power spectrum of a map: how strong its waves are, by their wave number.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_SPECTRUM_H
#define CVY_BASE_SPECTRUM_H

#include "base/number/base_fft.h"

typedef struct cvy_spectrum {
    int64_t h, w, nbin;   /* nbin: half the shorter side */
    cvy_fft along[2];     /* of h and w */
    const int32_t *bin;   /* [h, w] bin of each wave; -1: none */
    const int64_t *nwave; /* [nbin] */
    float *work;          /* [6, h, w]: a spectrum belongs to one thread */
} cvy_spectrum;

/* Makes the tables for maps [h, w], each at least 2, in pool. */
cvy_status cvy_spectrum_make(cvy_pool *pool, int64_t h, int64_t w, cvy_spectrum *out);
/* Adds the power of a map x [h, w] to power [nbin]. Bin b has the waves whose wave number, in waves along the shorter
 * side, rounds to b + 1; its power is their mean |sum over r of x[r] exp(-2 pi i k r)|^2 / (h w)^2. So the sum of power
 * times nwave over all bins is the variance of the map, but for the waves in its corners. */
void cvy_spectrum_add(const cvy_spectrum *s, const float *x, double *power);

#endif

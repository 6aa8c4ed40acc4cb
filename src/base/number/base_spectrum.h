/*
 * base_spectrum.h: the power spectrum of a plane, averaged over directions: how strongly it varies at each scale.
 *
 * A plane [H, W] is transformed by Fourier. The wave number k = 0 .. count - 1 counts the waves along its longer side,
 * and power[k] is the mean of |F|^2 / (H W)^2 over all waves whose wave number rounds to k, in any direction. power[0]
 * is the square of the plane's mean. White noise of variance v has the power v / (H W) at each k > 0. Waves beyond the
 * last wave number, which exist only along diagonals, are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_SPECTRUM_H
#define CVY_BASE_SPECTRUM_H

#include <stdint.h>

#include "base/base_mem.h"

/* Tables and working memory for planes of one size. One thread at a time may use it. */
typedef struct cvy_spectrum cvy_spectrum;

/* Number of wave numbers of planes of this size: half of the longer side, and the mean. */
static inline int64_t cvy_spectrum_count(int64_t H, int64_t W)
{
    return (H > W ? H : W) / 2 + 1;
}

/* Makes it for planes of H x W, 1 to 2^30 along a side. It lives as long as the pool, and takes 20 bytes for each
 * element of the plane and a few lines. Errors: CVY_E_SHAPE, CVY_E_MEMORY. */
cvy_status cvy_spectrum_create(cvy_pool *pool, int64_t H, int64_t W, cvy_spectrum **out);
/* The plane [H, W], which the caller fills before each cvy_spectrum_compute(). That overwrites it. */
double *cvy_spectrum_plane(cvy_spectrum *s);
/* Computes power[cvy_spectrum_count(H, W)] of the plane. If a number of the plane is not finite, no power is. */
void cvy_spectrum_compute(cvy_spectrum *s, double *power);

#endif

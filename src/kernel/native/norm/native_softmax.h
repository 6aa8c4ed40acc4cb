/*
 * native_softmax.h: maximum and sum of exponentials over the classes, which softmax and softmax cross-entropy share.
 * The layout is plain, [N, K, positions...].
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_SOFTMAX_H
#define CVY_NATIVE_SOFTMAX_H

#include <math.h>

#include "kernel/native/native_math.h"

/* Number of positions that are computed at the same time in vector lanes. */
#define CVY_STRIP 64

/* One row of K logits, for a tensor without positions. */
CVY_INLINE void cvy_softmax_row(const float *x, int64_t K, float *top_out, float *sum_out)
{
    float top = x[0], sum = 0;
#pragma omp simd reduction(max : top)
    for (int64_t k = 0; k < K; k++)
        top = x[k] > top ? x[k] : top;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < K; k++)
        sum += cvy_exp(x[k] - top);
    *top_out = top;
    *sum_out = sum;
}

/* n <= CVY_STRIP adjacent positions; logit k of position j is x[k * P + j]. */
CVY_INLINE void cvy_softmax_strip(const float *x, int64_t K, int64_t P, int64_t n, float *top, float *sum)
{
    for (int64_t j = 0; j < n; j++) {
        top[j] = x[j];
        sum[j] = 0;
    }
    for (int64_t k = 0; k < K; k++)
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            top[j] = x[k * P + j] > top[j] ? x[k * P + j] : top[j];
    for (int64_t k = 0; k < K; k++)
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            sum[j] += cvy_exp(x[k * P + j] - top[j]);
}

#endif

/*
 * native_avg_pool.h: the parameters of the loops of average pooling.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_AVG_POOL_H
#define CVY_NATIVE_AVG_POOL_H

#include "kernel/native/native_simd.h"
#include "kernel/native/pool/native_pool.h"

/* Indices first .. end-1 of a dimension: the source coordinates that a window covers, or the windows that cover a
 * source coordinate. */
typedef struct cvy_pool_span {
    int64_t first, end;
} cvy_pool_span;

typedef struct cvy_avg_pool {
    cvy_pool_walk w;
    const cvy_simd *simd; /* NULL: the layout is plain */
    int threads;
    int half;                /* values are bf16 */
    cvy_pool_span *reads[3]; /* of each window of a dimension */
    cvy_pool_span *cover[3]; /* of each source coordinate of a dimension */
    const void *src;         /* of the running call: forward's source, backward's ddst */
    void *dst;
    float *rows; /* one row of sums for each thread */
} cvy_avg_pool;

/* Floats in a row of sums. */
static inline int64_t cvy_avg_pool_row(const cvy_pool_walk *w)
{
    return CVY_MAX(w->src[2], w->dst[2]) * w->planes.block;
}

#endif

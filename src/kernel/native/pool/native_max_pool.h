/*
 * native_max_pool.h: the parameters of the loops of max pooling.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_MAX_POOL_H
#define CVY_NATIVE_MAX_POOL_H

#include "kernel/native/native_simd.h"
#include "kernel/native/pool/native_pool.h"

typedef struct cvy_max_pool {
    cvy_pool_walk w;
    const cvy_simd *simd; /* NULL: uses the loops for any layout and index */
    int threads, relu, bf16;
    int64_t sliced_pitch, sliced_step; /* of dst or ddst, which may be a slice: see cvy_planes */
    int32_t no_winner;                 /* with relu: the index of a window whose maximum is not above zero */
    const void *src, *ddst;            /* of the running call */
    void *dst, *dsrc;
    void *index;
    const void *index_in;
    int stream; /* dst and index, or dsrc, are written with non-temporal stores */
} cvy_max_pool;

#endif

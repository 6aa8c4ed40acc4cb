/*
 * base_philox.h: one block of Philox 4x32-10 as an inline function, so that kernels can compute many blocks at once in
 * vector lanes. All other code calls cvy_rng_block() and the other functions in base_rng.h, which draw the same
 * numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_PHILOX_H
#define CVY_BASE_PHILOX_H

#include "base/number/base_rng.h"

static inline void cvy_philox(const cvy_rng *rng, uint64_t counter, uint32_t *w0, uint32_t *w1, uint32_t *w2,
                              uint32_t *w3)
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = rng->stream[0], c3 = rng->stream[1];
    uint32_t k0 = rng->key[0], k1 = rng->key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = UINT64_C(0xD2511F53) * c0, p1 = UINT64_C(0xCD9E8D57) * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c0 = n0;
        c1 = (uint32_t)p1;
        c2 = n2;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    *w0 = c0;
    *w1 = c1;
    *w2 = c2;
    *w3 = c3;
}

#endif

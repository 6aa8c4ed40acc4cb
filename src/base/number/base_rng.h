/*
 * base_rng.h: random numbers that are a pure function of key and counter (Philox 4x32-10, Salmon et al. 2011), so that
 * every thread, rank and layout gets the same numbers; and a permutation that is computed instead of stored.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_RNG_H
#define CVY_BASE_RNG_H

#include <stdint.h>

typedef struct {
    uint32_t key[2];
    uint32_t stream[2];
} cvy_rng;
/* A separate stream for each (seed, name, a, b): name is a layer or a purpose, a and b are for example step or epoch
 * and sample. */
cvy_rng cvy_rng_make(uint64_t seed, const char *name, uint64_t a, uint64_t b);
uint64_t cvy_rng_name(const char *name); /* hash of a name, to make streams without the text */
cvy_rng cvy_rng_make_hashed(uint64_t seed, uint64_t name, uint64_t a, uint64_t b);
void cvy_rng_block(const cvy_rng *rng, uint64_t counter, uint32_t out[4]); /* four words of block `counter` */
uint32_t cvy_rng_u32(const cvy_rng *rng, uint64_t index);                  /* word index & 3 of block index >> 2 */
double cvy_rng_uniform(const cvy_rng *rng, uint64_t index); /* in [0, 1) with 53 bits; one block for each index */
double cvy_rng_normal(const cvy_rng *rng, uint64_t index);  /* Box-Muller; one block for each index */
uint64_t cvy_rng_below(const cvy_rng *rng, uint64_t index, uint64_t bound); /* 0 .. bound-1 */

/* A random permutation of 0 .. count-1, which maps a place to an element: a Feistel network with cycle walking. */
typedef struct {
    uint64_t count;
    uint32_t half_bits;
    uint64_t key;
} cvy_permutation;
cvy_permutation cvy_permutation_make(uint64_t seed, uint64_t epoch, uint64_t count);
uint64_t cvy_permutation_at(const cvy_permutation *p, uint64_t place);

#endif

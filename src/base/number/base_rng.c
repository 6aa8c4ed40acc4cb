/*
 * base_rng.c: random numbers that depend on what they are used for, not on when or where they are drawn.
 *
 * The generator is Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC
 * 2011): ten rounds of multiplication turn a 128-bit counter and a 64-bit key into four words. Initialisation, dropout,
 * augmentation and shuffling all use it, so their results do not depend on ranks, threads or layouts. The permutation
 * is a Feistel network (Luby and Rackoff 1988) with cycle walking.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_philox.h"

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection in which every output bit depends on every
 * input bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

uint64_t cvy_rng_name(const char *name)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325); /* FNV-1a, then mixed */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    return mix(h);
}

/* If a and b are below 2^32, as steps and samples are, different values give different streams by construction. Their
 * upper halves go into the key. */
cvy_rng cvy_rng_make_hashed(uint64_t seed, uint64_t name, uint64_t a, uint64_t b)
{
    uint64_t key = mix(mix(seed + UINT64_C(0x9E3779B97F4A7C15)) ^ name);
    const uint64_t upper = (a >> 32 << 32) | (b >> 32);
    if (upper)
        key = mix(key ^ mix(upper));
    return (cvy_rng){{(uint32_t)key, (uint32_t)(key >> 32)}, {(uint32_t)a, (uint32_t)b}};
}

cvy_rng cvy_rng_make(uint64_t seed, const char *name, uint64_t a, uint64_t b)
{
    return cvy_rng_make_hashed(seed, cvy_rng_name(name), a, b);
}

void cvy_rng_block(const cvy_rng *rng, uint64_t counter, uint32_t out[4])
{
    cvy_philox(rng, counter, &out[0], &out[1], &out[2], &out[3]);
}

uint32_t cvy_rng_u32(const cvy_rng *rng, uint64_t index)
{
    uint32_t word[4];
    cvy_rng_block(rng, index >> 2, word);
    return word[index & 3];
}

/* A number in [0, 1) from 53 bits of two words. */
static double unit(uint32_t high, uint32_t low)
{
    return (double)((uint64_t)(high >> 5) << 26 | low >> 6) * 0x1p-53;
}

double cvy_rng_uniform(const cvy_rng *rng, uint64_t index)
{
    uint32_t word[4];
    cvy_rng_block(rng, index, word);
    return unit(word[0], word[1]);
}

double cvy_rng_normal(const cvy_rng *rng, uint64_t index)
{
    uint32_t word[4];
    cvy_rng_block(rng, index, word);
    const double radius = sqrt(-2 * log(1 - unit(word[0], word[1]))); /* 1 - u is never 0 */
    return radius * cos(6.283185307179586476925 * unit(word[2], word[3]));
}

/* The upper half of a 64 by 64 bit product. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* 64 random bits scaled down: the bias is below bound / 2^64. */
uint64_t cvy_rng_below(const cvy_rng *rng, uint64_t index, uint64_t bound)
{
    uint32_t word[4];
    cvy_rng_block(rng, index, word);
    return multiply_high((uint64_t)word[0] << 32 | word[1], bound);
}

/* ---- permutation ---- */

enum {
    FEISTEL_ROUNDS = 8,
    HALF_BITS_MIN = 4
}; /* very small Feistel networks permute badly, so tiny sets use a network for 256 elements */

cvy_permutation cvy_permutation_make(uint64_t seed, uint64_t epoch, uint64_t count)
{
    cvy_permutation p = {.count = count, .half_bits = HALF_BITS_MIN};
    while (p.half_bits < 32 && (UINT64_C(1) << (2 * p.half_bits)) < count)
        p.half_bits++;
    const cvy_rng rng = cvy_rng_make(seed, "permutation", epoch, 0);
    p.key = (uint64_t)cvy_rng_u32(&rng, 0) << 32 | cvy_rng_u32(&rng, 1);
    return p;
}

static uint64_t feistel(const cvy_permutation *p, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << p->half_bits) - 1;
    uint64_t left = x >> p->half_bits, right = x & mask;
    for (uint64_t round = 1; round <= FEISTEL_ROUNDS; round++) {
        const uint64_t next = left ^ (mix(p->key ^ mix(right + (round << 40))) & mask);
        left = right;
        right = next;
    }
    return left << p->half_bits | right;
}

/* The network permutes 2^(2 half_bits) elements. Repeating it while the element is outside 0 .. count-1 still gives a
 * permutation; this takes at most four rounds on average (more only for sets smaller than 64). */
uint64_t cvy_permutation_at(const cvy_permutation *p, uint64_t place)
{
    if (place >= p->count)
        return place;
    do
        place = feistel(p, place);
    while (place >= p->count);
    return place;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_rng.c: random numbers (known answers of the Philox paper's code) and the permutation. */
#include <stdlib.h>

#include "base/base_mem.h"
#include "base/number/base_rng.h"
#include "test_util.h"

/* Test vectors of the authors' library Random123, file kat_vectors. */
static void philox_known_answers(void)
{
    static const struct {
        cvy_rng rng;
        uint64_t counter;
        uint32_t out[4];
    } rows[] = {
        {{{0, 0}, {0, 0}}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{{~0u, ~0u}, {~0u, ~0u}}, ~UINT64_C(0), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{{0xa4093822, 0x299f31d0}, {0x13198a2e, 0x03707344}},
         UINT64_C(0x85a308d3243f6a88),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        uint32_t out[4];
        cvy_rng_block(&rows[i].rng, rows[i].counter, out);
        for (int k = 0; k < 4; k++)
            EXPECT_INT(out[k], rows[i].out[k]);
    }
}

static void rng_moments(void)
{
    const cvy_rng rng = cvy_rng_make(1, "conv1.weight", 2, 3), other = cvy_rng_make(1, "conv1.weight", 3, 2);
    const int n = 200000;
    double sum = 0, squares = 0, uniform = 0, joint = 0;
    int below[5] = {0};
    for (int i = 0; i < n; i++) {
        const double x = cvy_rng_normal(&rng, (uint64_t)i), u = cvy_rng_uniform(&rng, (uint64_t)i);
        EXPECT(u >= 0 && u < 1);
        sum += x;
        squares += x * x;
        uniform += u;
        joint += (u - .5) * (cvy_rng_uniform(&other, (uint64_t)i) - .5);
        below[cvy_rng_below(&rng, (uint64_t)i, 5)]++;
    }
    EXPECT_NEAR(sum / n, 0, 5 / sqrt(n));
    EXPECT_NEAR(squares / n, 1, 5 * sqrt(2.0 / n));
    EXPECT_NEAR(uniform / n, .5, 5 * sqrt(1 / 12.0 / n));
    EXPECT_NEAR(joint / n, 0, 5.0 / 12 / sqrt(n)); /* streams that differ in one word are independent */
    for (int i = 0; i < 5; i++)
        EXPECT_NEAR(below[i] / (double)n, .2, 5 * sqrt(.16 / n));
    EXPECT(cvy_rng_u32(&rng, 7) != cvy_rng_u32(&other, 7));
    EXPECT_INT(cvy_rng_below(&rng, 0, 1), 0);
}

static void permutation_is_a_bijection(void)
{
    static const uint64_t counts[] = {1, 2, 3, 10, 255, 256, 257, 1000, 50000};
    static char seen[50000];
    for (int c = 0; c < CVY_COUNT(counts); c++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            const cvy_permutation p = cvy_permutation_make(7, epoch, counts[c]);
            uint64_t missed = counts[c];
            memset(seen, 0, sizeof seen);
            for (uint64_t i = 0; i < counts[c]; i++) {
                const uint64_t at = cvy_permutation_at(&p, i);
                if (at < counts[c] && !seen[at]) {
                    seen[at] = 1;
                    missed--;
                }
            }
            EXPECT_INT(missed, 0);
        }
}

/* Over many epochs every element comes equally often at every position, and neighbours do not stay neighbours. */

static void permutation_is_fair(void)
{
    int count[5][5] = {{0}}, neighbours = 0;
    const int n = 20000;
    for (int e = 0; e < n; e++) {
        const cvy_permutation p = cvy_permutation_make(1, (uint64_t)e, 5);
        for (uint64_t i = 0; i < 5; i++)
            count[i][cvy_permutation_at(&p, i)]++;
    }
    for (int i = 0; i < 25; i++)
        EXPECT_NEAR(count[i / 5][i % 5] / (double)n, .2, 5 * sqrt(.16 / n));
    const cvy_permutation p = cvy_permutation_make(1, 0, 50000);
    for (uint64_t i = 0; i + 1 < 50000; i++)
        neighbours += cvy_permutation_at(&p, i) + 1 == cvy_permutation_at(&p, i + 1);
    EXPECT(neighbours < 10);
}

int main(void)
{
    TEST(philox_known_answers);
    TEST(rng_moments);
    TEST(permutation_is_a_bijection);
    TEST(permutation_is_fair);
    return test_end();
}

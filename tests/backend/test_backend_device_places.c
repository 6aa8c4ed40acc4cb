/* rows: clang asan */
/*
 * test_backend_device_places.c: the arithmetic of places in the language of kernels (device.h), compiled as C11:
 * quotients of numbers of 32 bits and of larger ones, walks over axes, words of several activations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define CVY_DEVICE 1
#define BF16 1
#define CVY_SHARED_SECTION "shared_device_places"
#include "backend/gpu/device.h"

#include "base/number/base_rng.h"
#include "test_util.h"

/* Numbers of up to `bits` bits. */
static i64 draw(const cvy_rng *rng, int *index, int bits)
{
    const u64 high = cvy_rng_u32(rng, (u64)(*index)++), low = cvy_rng_u32(rng, (u64)(*index)++);
    return (i64)((high << 32 | low) >> (64 - bits));
}

static void quotients(void)
{
    static const i64 edges[] = {0, 1, 2, 0xffffffff, 0x100000000, 0x100000001, 0x7fffffffffffffff};
    const cvy_rng rng = cvy_rng_make(1, "quotients", 0, 0);
    int index = 0, wrong = 0;
    for (int i = 0; i < 20000; i++) {
        const i64 a = draw(&rng, &index, 1 + i % 63), b = draw(&rng, &index, 1 + i / 63 % 63);
        wrong += b > 0 && QUOTIENT(a, b) != a / b;
    }
    for (int i = 0; i < CVY_COUNT(edges); i++)
        for (int k = 1; k < CVY_COUNT(edges); k++)
            wrong += QUOTIENT(edges[i], edges[k]) != edges[i] / edges[k];
    EXPECT_INT(wrong, 0);
}

/* A tensor of more than 2^32 elements, and the same numbers by division. */
static void walks(void)
{
    const struct walk w = {.count = (i64)70000 * 80000 * 3,
                           .ndim = 3,
                           .dim = {70000, 80000, 3},
                           .a = {240000, 1, 80000},
                           .b = {0, 5, (i64)1 << 40}};
    const cvy_rng rng = cvy_rng_make(1, "walks", 0, 0);
    int index = 0, wrong = 0;
    for (int n = 0; n < 1000; n++) {
        const i64 i = draw(&rng, &index, 1 + n % 63) % w.count, x = i / 240000, y = i / 3 % 80000, z = i % 3;
        WALK(i, w, at_a, at_b)
        wrong += at_a != 240000 * x + y + 80000 * z || at_b != 5 * y + z * ((i64)1 << 40);
    }
    EXPECT_INT(wrong, 0);
}

static void words(void)
{
    static const float x[] = {1, -2.5F, 0, 3e38F};
    u64 word = 0;
    for (int k = 0; k < 4; k++)
        word |= IN_WORD(x[k], k);
    for (int k = 0; k < 4; k++)
        EXPECT_NEAR(FROM_WORD(word, k), bf16_get(bf16_of(x[k])), 0);
}

int main(void)
{
    TEST(quotients);
    TEST(walks);
    TEST(words);
    return test_end();
}

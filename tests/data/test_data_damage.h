/*
 * test_data_damage.h: makes damaged copies of a file in which one thing is wrong: each bit flipped, and each length
 * cut.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_DATA_DAMAGE_H
#define TEST_DATA_DAMAGE_H

#include "test_data_support.h"

enum { DAMAGE_CUT = 8 };

/* Writes scratch/name with each bit of each byte flipped in turn, and also cut off before each byte (then bit is
 * DAMAGE_CUT), and calls look() for each file. */
static inline void damage_each_byte(const char *name, const void *data, size_t bytes,
                                    void (*look)(const char *name, int bit, void *user), void *user)
{
    uint8_t *copy = malloc(bytes);
    TRUE_THAT(copy);
    memcpy(copy, data, bytes);
    for (size_t at = 0; at < bytes; at++) {
        for (int bit = 0; bit < DAMAGE_CUT; bit++) {
            copy[at] ^= (uint8_t)(1 << bit);
            put_file(in_scratch(name), copy, bytes);
            copy[at] ^= (uint8_t)(1 << bit);
            look(name, bit, user);
        }
        put_file(in_scratch(name), copy, at);
        look(name, DAMAGE_CUT, user);
    }
    free(copy);
}

#endif

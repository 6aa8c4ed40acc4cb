/*
 * program_util.h: what the tests of the public program share: one context, models made from their inputs, feeds filled
 * with numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_PROGRAM_UTIL_H
#define CVY_TEST_PROGRAM_UTIL_H

#include <convoy/convoy.h>

#include "test_util.h"

static cvy_context *context; /* one for the whole test */

static inline cvy_model *new_model(const char *name)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create(name, &m));
    return m;
}

static inline void add_input(cvy_model *m, const char *name, int64_t n)
{
    EXPECT_OK(cvy_model_add_input(m, name, CVY_DTYPE_F64, &(cvy_shape){1, {n}}));
}

/* Returns pseudo-random numbers that are the same on every machine and rank. */
static inline double noise(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ (i >> 29)) * 0xbf58476d1ce4e5b9u;
    return (double)((i ^ (i >> 32)) >> 11) * 0x1p-52 - 1;
}

static inline void fill(cvy_program *p, int step, const char *input, int64_t elems, uint64_t seed)
{
    double *feed = cvy_program_feed(p, step, input);
    EXPECT(feed != NULL);
    for (int64_t i = 0; feed && i < elems; i++)
        feed[i] = noise(seed * 1000 + (uint64_t)i);
}

#endif

/*
 * ranks_util.h: what the tests share that compare training on several ranks with one rank alone: both contexts, a small
 * network, samples that are the same on any rank, and access to all weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_RANKS_UTIL_H
#define CVY_TEST_RANKS_UTIL_H

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_status.h"
#include "test_util.h"

enum { X = 2 * 4 * 4, CONV = 8 * 2 * 9, FC = 3 * 8 * 4, WEIGHTS = CONV + FC + 8 };

static cvy_context *all, *alone;

/* Makes a network with the inputs x, label and weight, the output "fc" and the layer "drop" before it. */
static inline cvy_model *new_network(const char *name)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create(name, &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add_input(m, "weight", CVY_DTYPE_F32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 8, kernel: 3, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool", "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "dropout", "drop", "p: 0.1", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3, bias: false", NULL));
    return m;
}

static inline double wave(int64_t i)
{
    return sin(0.7 * (double)i + 0.3 * (double)(i * i % 101));
}

/* Writes the numbers of sample n to row r. They depend on its class, n % 3. */
static inline void fill_sample(const cvy_span *x, int64_t r, int64_t n)
{
    for (int64_t i = 0; i < X; i++)
        cvy_set(x, r * X + i, wave(n * X + i) + (i % 3 == n % 3 ? 2 : 0));
}

static inline void read_weights(const cvy_program *p, cvy_dtype dtype, double *out)
{
    static const struct {
        const char *name;
        int64_t n;
    } list[] = {{"conv.weight", CONV}, {"fc.weight", FC}, {"bn.running_var", 8}};
    static double raw[CONV + FC];
    const cvy_span span = {.dtype = dtype, .data = raw};
    for (int k = 0; k < CVY_COUNT(list); k++) {
        EXPECT_OK(cvy_program_get(p, list[k].name, raw, list[k].n));
        for (int64_t i = 0; i < list[k].n; i++)
            *out++ = cvy_get(&span, i);
    }
}

#endif

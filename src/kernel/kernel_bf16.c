/*
 * kernel_bf16.c: conversions between bf16 and f32, for kernels that compute with bf16 values in f32.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"

struct conversion {
    const void *from;
    void *to;
};

CVY_SIMD static void widen_range(int64_t first, int64_t end, void *arg)
{
    const struct conversion *c = arg;
    cvy_floats_load(1, c->from, first, end - first, (float *)c->to + first);
}

CVY_SIMD static void narrow_range(int64_t first, int64_t end, void *arg)
{
    const struct conversion *c = arg;
    cvy_floats_store(1, (const float *)c->from + first, end - first, c->to, first);
}

void cvy_bf16_widen(int threads, const cvy_bf16 *from, int64_t n, float *to)
{
    struct conversion c = {from, to};
    cvy_parallel_for(threads, n, CVY_GRAIN, widen_range, &c);
}

void cvy_bf16_narrow(int threads, const float *from, int64_t n, cvy_bf16 *to)
{
    struct conversion c = {from, to};
    cvy_parallel_for(threads, n, CVY_GRAIN, narrow_range, &c);
}

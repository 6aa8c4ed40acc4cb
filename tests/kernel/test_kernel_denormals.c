/*
 * test_kernel_denormals.c: loops of kernels treat denormal numbers as zero, on one thread and on several, and leave the
 * setting of the calling thread unchanged, so that a caller's own computation is not affected.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <float.h>

#include "kernel/kernel.h"
#include "test_util.h"

struct loop {
    volatile float *x;
};

static void halve(int64_t first, int64_t last, void *arg)
{
    const struct loop *loop = arg;
    for (int64_t i = first; i < last; i++)
        loop->x[i] = 0.5f * loop->x[i];
}

/* Denormal results are zero within the loop and are kept outside of it. */
static void loop_of(int threads, int64_t grain)
{
    volatile float x[64], own = FLT_MIN;
    const struct loop loop = {x};
    for (int i = 0; i < 64; i++)
        x[i] = FLT_MIN;
    cvy_parallel_for(threads, 64, grain, halve, (void *)(uintptr_t)&loop);
#if defined(__SSE2__)
    for (int i = 0; i < 64; i++)
        EXPECT(x[i] == 0);
#endif
    own = 0.5f * own;
    EXPECT(own > 0);
}

static void one_thread(void)
{
    loop_of(1, 1);
    loop_of(2, 1000);
}

static void two_threads(void)
{
    loop_of(2, 1);
}

int main(void)
{
    TEST(one_thread);
    TEST(two_threads);
    return test_end();
}

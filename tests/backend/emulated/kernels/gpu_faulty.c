/*
 * gpu_faulty.c: kernels with faults that the emulated device must find, for its own test. The drivers do not know them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct faulty {
    i64 n;
    int fault; /* 0: none */
};

#ifdef CVY_DEVICE

KERNEL(faulty_fill)(GLOBAL float *dst, float value, struct faulty f)
{
    const i64 end = f.fault == 1 ? f.n + 1 : f.n;
    FOR_EACH (i, end)
        dst[f.fault == 2 ? i - 1 : i] = value;
}

/* The sums of the blocks. 1: no barrier before the sum; 2: one thread leaves early; 3: reads what nobody has written.
 */
KERNEL(faulty_sum)(GLOBAL const float *src, GLOBAL float *sums, struct faulty f)
{
    SHARED float s[256];
    if (f.fault == 2 && THREAD == THREADS - 1)
        return;
    if (f.fault != 3 || THREAD > 0)
        s[THREAD] = (i64)BLOCK * THREADS + THREAD < f.n ? src[(i64)BLOCK * THREADS + THREAD] : 0;
    if (f.fault != 1)
        BARRIER();
    if (THREAD == THREADS / 2) {
        float sum = 0;
        for (int i = 0; i < THREADS; i++)
            sum += s[i];
        sums[BLOCK] = sum;
    }
    BARRIER();
}

/* Each block reads what another one writes. */
KERNEL(faulty_blocks)(GLOBAL float *x)
{
    if (THREAD == 0)
        x[BLOCK] = x[(BLOCK + 1) % BLOCKS] + 1;
}

/* table: addresses. */
KERNEL(faulty_table)(GLOBAL const i64 *table, i64 by)
{
    FOR_EACH (i, 1)
        AT_ADDRESS(float, table[0] + by)[0] += 1;
}

#endif

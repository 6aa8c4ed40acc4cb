/*
 * gpu_ending.c: adds a bias to each channel of a result in place, and takes its relu.
 *
 * The result is a matrix in memory: a row for each position of each sample, a column for each channel. A thread has
 * four columns, whose biases it keeps, and goes through rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct ending {
    i64 rows;
    int channels, width, parts; /* width: threads of a row in a block; parts: blocks that share the rows */
    int bias, relu, whole;      /* whole: four columns are read and written at once */
};

#ifdef CVY_DEVICE

/* A thread reads so many rows before it writes the first one, because the time of a read is long. */
enum { AT_ONCE = 4 };

/* Grid: columns, parts. */
KERNEL(ending)(GLOBAL act *to, GLOBAL const float *bias, struct ending e)
{
    const int c = FOUR * (BLOCK * e.width + THREAD % e.width), n = MIN(e.channels - c, FOUR);
    const int step = THREADS / e.width * e.parts;
    float b[FOUR];
    for (int k = 0; k < FOUR; k++)
        b[k] = e.bias && k < n ? bias[c + k] : 0.0f;
    for (i64 row = BLOCK_Y * (THREADS / e.width) + THREAD / e.width; row < e.rows && n > 0; row += AT_ONCE * step) {
        float x[AT_ONCE][FOUR];
        for (int i = 0; i < AT_ONCE; i++)
            if (row + i * step < e.rows)
                get_four(to, (row + i * step) * e.channels + c, n, e.whole, x[i]);
        for (int i = 0; i < AT_ONCE && row + i * step < e.rows; i++) {
            for (int k = 0; k < FOUR; k++) {
                x[i][k] += b[k];
                x[i][k] = e.relu && !(x[i][k] > 0) ? 0.0f : x[i][k];
            }
            set_four(to, (row + i * step) * e.channels + c, n, e.whole, x[i]);
        }
    }
}

#else
#include "kernel/gpu/conv/gpu_ending.h"

CVY_GPU_SOURCE_DECLARE(gpu_ending);

cvy_status cvy_gpu_finish_make(const cvy_kernel_ask *ask, int64_t elems, int64_t channels, int bias, int relu,
                               cvy_gpu_finish *out)
{
    cvy_gpu_finish f = {.rows = elems / channels, .channels = (int)channels, .bias = bias, .relu = relu};
    CVY_TRY(cvy_gpu_act(ask->node, &f.act));
    if (bias || relu)
        CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_ending), "ending", f.act, &f.kernel));
    *out = f;
    return CVY_OK;
}

cvy_status cvy_gpu_finish_run(const cvy_gpu_finish *f, void *to, const void *bias)
{
    const int64_t quads = cvy_gpu_tiles(f->channels, FOUR);
    const int width = cvy_gpu_columns(quads);
    const void *const pointer[] = {to};
    const struct ending e = {
        .rows = f->rows,
        .channels = f->channels,
        .width = width,
        .parts = cvy_gpu_row_parts(f->rows, quads, width, 1),
        .bias = f->bias,
        .relu = f->relu,
        .whole = f->channels % FOUR == 0 && cvy_gpu_are_aligned(FOUR * cvy_dtype_bytes(f->act), pointer, 1),
    };
    const void *from = f->bias ? bias : to; /* without a bias it is not read */
    if (!f->bias && !f->relu)
        return CVY_OK;
    return CVY_GPU_LAUNCH(&f->kernel, cvy_gpu_tiles(quads, width), e.parts, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(to),
                          CVY_GPU_POINTER(from), CVY_GPU_VALUE(e));
}
#endif

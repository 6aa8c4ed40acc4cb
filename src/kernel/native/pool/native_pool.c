/*
 * native_pool.c: makes the walk of a pooling window. Called at planning time only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pool/native_pool.h"

/* Window x reads source position x * stride - pad + tap. */
static cvy_status make_reach(cvy_pool_walk *w)
{
    const int64_t stride = w->stride[2];
    CVY_TRY(cvy_mem_alloc((size_t)w->kernel[2] * sizeof *w->reach, &w->reach));
    for (int64_t tap = 0; tap < w->kernel[2]; tap++) {
        const int64_t before = w->pad[2] - tap, room = w->src[2] + before;
        const int64_t first = before > 0 ? (before + stride - 1) / stride : 0;
        const int64_t end = room <= 0 ? 0 : CVY_MIN(w->dst[2], (room + stride - 1) / stride);
        w->reach[tap] = (struct cvy_pool_reach){first, CVY_MAX(first, end), first * stride - before};
    }
    return CVY_OK;
}

cvy_status cvy_pool_walk_make(const cvy_window *w, const cvy_shape *src, const cvy_layout *layout, cvy_pool_walk *out)
{
    cvy_pool_walk walk = {.planes = cvy_planes_make(src, layout), .src_elems = w->src_elems, .dst_elems = w->dst_elems};
    /* cvy_window stores its real dimensions first; here the dimension along a row is always the last. */
    const int shift = 3 - w->nspace;
    for (int d = 0; d < 3; d++) {
        const int from = d - shift;
        walk.src[d] = from < 0 ? 1 : w->src[from];
        walk.dst[d] = from < 0 ? 1 : w->dst[from];
        walk.kernel[d] = from < 0 ? 1 : w->kernel[from];
        walk.stride[d] = from < 0 ? 1 : w->stride[from];
        walk.pad[d] = from < 0 ? 0 : w->pad[from];
        walk.pad_end[d] = from < 0 ? 0 : w->pad_end[from];
    }
    CVY_TRY(make_reach(&walk));
    *out = walk;
    return CVY_OK;
}

/* PyTorch's rule (see op_avg_pool.c): a window is cut off at the end of the padding; with count_include_pad all
 * remaining positions count. */
cvy_status cvy_pool_walk_average(cvy_pool_walk *w, int count_include_pad)
{
    for (int d = 0; d < 3; d++) {
        CVY_TRY(cvy_mem_alloc((size_t)w->dst[d] * sizeof *w->inverse[d], &w->inverse[d]));
        for (int64_t at = 0; at < w->dst[d]; at++) {
            int64_t first, end;
            const int64_t start = cvy_pool_taps(w, d, at, &first, &end);
            const int64_t whole = CVY_MIN(start + w->kernel[d], w->src[d] + w->pad_end[d]) - start;
            w->inverse[d][at] = 1.0f / (float)(count_include_pad ? whole : end - first);
        }
    }
    return CVY_OK;
}

void cvy_pool_walk_free(cvy_pool_walk *walk)
{
    for (int d = 0; d < 3; d++)
        cvy_mem_free(&walk->inverse[d]);
    cvy_mem_free(&walk->reach);
}

/*
 * native_pool.h: the sliding window of a pooling as our kernels walk it: three dimensions with the innermost last.
 */
#ifndef CVY_NATIVE_POOL_H
#define CVY_NATIVE_POOL_H

#include <string.h>

#include "kernel/native/native_common.h"
#include "op/op_pool.h"

typedef struct cvy_pool_walk {
    cvy_planes planes; /* of the source */
    int64_t src[3], dst[3], kernel[3], stride[3], pad[3];
    int64_t src_elems, dst_elems;
    int wide; /* the index is i32, not u8 */
    struct cvy_pool_reach {
        int64_t first, end,
            start; /* windows of a row that touch the source with this tap, and where the first of them does */
    } * reach;     /* of each tap of the last dimension */
} cvy_pool_walk;

/* The walk of a pooling from a source of this shape and layout. */
cvy_status cvy_pool_walk_make(const cvy_window *w, const cvy_shape *src, const cvy_layout *layout, cvy_pool_walk *out);
void cvy_pool_walk_free(cvy_pool_walk *walk);

/* The taps first .. end-1 of the window at destination coordinate `at` that touch the source in dimension d, and the
 * source coordinate of tap 0. */
static inline int64_t cvy_pool_taps(const cvy_pool_walk *w, int d, int64_t at, int64_t *first_out, int64_t *end_out)
{
    const int64_t start = at * w->stride[d] - w->pad[d];
    *first_out = start < 0 ? -start : 0;
    *end_out = start + w->kernel[d] > w->src[d] ? w->src[d] - start : w->kernel[d];
    return start;
}

/* Clears the rows of a source plane that destination row `row` is the first to touch, just before it does (so they are
 * in the cache), and all that are left once row is the number of rows. *clear: rows that have been cleared. */
CVY_INLINE void cvy_pool_clear(const cvy_pool_walk *w, int64_t block, int64_t row, float *dsrc, int64_t *clear)
{
    const int64_t d = row / w->dst[1], h = row % w->dst[1], row_elems = w->src[2] * block;
    int64_t touched = w->src[0] * w->src[1];
    if (row < w->dst[0] * w->dst[1])
        touched = (CVY_MIN(d * w->stride[0] - w->pad[0] + w->kernel[0], w->src[0]) - 1) * w->src[1] +
                  CVY_MIN(h * w->stride[1] - w->pad[1] + w->kernel[1], w->src[1]);
    if (touched > *clear) {
        memset(dsrc + *clear * row_elems, 0, (size_t)((touched - *clear) * row_elems) * sizeof *dsrc);
        *clear = touched;
    }
}

#endif

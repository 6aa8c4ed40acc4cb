/*
 * native_pool.h: the sliding window of a pooling as convoy's own kernels use it: three dimensions, the innermost last.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_POOL_H
#define CVY_NATIVE_POOL_H

#include "kernel/native/native_common.h"
#include "op/conv/op_pool.h"

typedef struct cvy_pool_walk {
    cvy_planes planes; /* of the source */
    int64_t src[3], dst[3], kernel[3], stride[3], pad[3], pad_end[3];
    int64_t src_elems, dst_elems;
    int wide; /* the index is i32, not u8 */
    struct cvy_pool_reach {
        int64_t first, end,
            start;     /* windows first .. end-1 of a row read the source with this tap; window first reads `start` */
    } * reach;         /* of each tap of the last dimension */
    float *inverse[3]; /* of an average: 1 / counted positions, for each destination coordinate of a dimension */
} cvy_pool_walk;

/* Makes the walk of a pooling from a source of this shape and layout. The caller frees it with cvy_pool_walk_free. */
cvy_status cvy_pool_walk_make(const cvy_window *w, const cvy_shape *src, const cvy_layout *layout, cvy_pool_walk *out);
/* Adds the inverses for an average. Their product over the dimensions is 1 / divisor. */
cvy_status cvy_pool_walk_average(cvy_pool_walk *walk, int count_include_pad);
void cvy_pool_walk_free(cvy_pool_walk *walk);

/* Finds the taps first .. end-1 of the window at destination coordinate `at` that read the source in dimension d.
 * Returns the source coordinate of tap 0. */
static inline int64_t cvy_pool_taps(const cvy_pool_walk *w, int d, int64_t at, int64_t *first_out, int64_t *end_out)
{
    const int64_t start = at * w->stride[d] - w->pad[d];
    *first_out = start < 0 ? -start : 0;
    *end_out = start + w->kernel[d] > w->src[d] ? w->src[d] - start : w->kernel[d];
    return start;
}

/* Finds the windows first .. end-1 whose taps in dimension d read source coordinate `at`; none if end <= first. */
CVY_INLINE void cvy_pool_windows_over(const cvy_pool_walk *w, int d, int64_t at, int64_t *first_out, int64_t *end_out)
{
    const int64_t from = at + w->pad[d] - w->kernel[d] + 1, stride = w->stride[d];
    *first_out = from <= 0 ? 0 : (from + stride - 1) / stride;
    *end_out = CVY_MIN(w->dst[d], (at + w->pad[d]) / stride + 1);
}

#endif

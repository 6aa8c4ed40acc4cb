/*
 * native_pool.h: the sliding window of a pooling as our kernels walk it: three dimensions with the innermost last.
 */
#ifndef CVY_NATIVE_POOL_H
#define CVY_NATIVE_POOL_H

#include "kernel/native/native_common.h"
#include "op/op_pool.h"

typedef struct cvy_pool_walk {
    cvy_planes planes;                                                       /* of the source */
    int64_t src[3], dst[3], kernel[3], stride[3], pad[3];
    int64_t src_elems, dst_elems;
    int wide;                                                                /* the index is i32, not u8 */
} cvy_pool_walk;

/* The walk of a pooling from a source of this shape and layout. */
cvy_status cvy_pool_walk_make(const cvy_window *w, const cvy_shape *src, const cvy_layout *layout, cvy_pool_walk *out);

/* The taps first .. end-1 of the window at destination coordinate `at` that touch the source in dimension d, and the source coordinate of tap 0. */
static inline int64_t cvy_pool_taps(const cvy_pool_walk *w, int d, int64_t at, int64_t *first_out, int64_t *end_out)
{
    const int64_t start = at * w->stride[d] - w->pad[d];
    *first_out = start < 0 ? -start : 0;
    *end_out = start + w->kernel[d] > w->src[d] ? w->src[d] - start : w->kernel[d];
    return start;
}

/* The destination coordinates first .. end-1 whose tap `tap` touches the source in dimension d. */
static inline void cvy_pool_reach(const cvy_pool_walk *w, int d, int64_t tap, int64_t *first_out, int64_t *end_out)
{
    const int64_t before = w->pad[d] - tap, room = w->src[d] + before;       /* 0 <= at * stride - before < src */
    *first_out = before > 0 ? (before + w->stride[d] - 1) / w->stride[d] : 0;
    *end_out = room <= 0 ? 0 : CVY_MIN(w->dst[d], (room + w->stride[d] - 1) / w->stride[d]);
}

#endif

/*
 * native_pool.c: makes the walk of a pooling window. At planning time only.
 */
#include "kernel/native/native_pool.h"

cvy_status cvy_pool_walk_make(const cvy_window *w, const cvy_shape *src, const cvy_layout *layout, cvy_pool_walk *out)
{
    cvy_pool_walk walk = {.planes = cvy_planes_make(src, layout), .src_elems = w->src_elems, .dst_elems = w->dst_elems};
    CVY_EXPECT(walk.planes.block == 1 || cvy_layout_channel_block(layout, src->ndim) == walk.planes.block);
    /* cvy_window has its real dimensions first; here the row is the last. */
    const int shift = 3 - w->nspace;
    for (int d = 0; d < 3; d++) {
        const int from = d - shift;
        walk.src[d] = from < 0 ? 1 : w->src[from];
        walk.dst[d] = from < 0 ? 1 : w->dst[from];
        walk.kernel[d] = from < 0 ? 1 : w->kernel[from];
        walk.stride[d] = from < 0 ? 1 : w->stride[from];
        walk.pad[d] = from < 0 ? 0 : w->pad[from];
    }
    *out = walk;
    return CVY_OK;
}

/*
 * gpu_walk.c: see gpu_walk.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/gpu_walk.h"

static void swap(int64_t *a, int64_t *b)
{
    const int64_t was = *a;
    *a = *b;
    *b = was;
}

void cvy_gpu_axes_sort(cvy_gpu_axes *axes, int by_b)
{
    const int64_t *step = by_b ? axes->b : axes->a;
    for (int i = 1; i < axes->ndim; i++)
        for (int d = i; d > 0 && step[d - 1] < step[d]; d--) {
            swap(&axes->dim[d - 1], &axes->dim[d]);
            swap(&axes->a[d - 1], &axes->a[d]);
            swap(&axes->b[d - 1], &axes->b[d]);
        }
}

struct walk cvy_gpu_walk_make(const cvy_gpu_axes *axes)
{
    struct walk w = {.count = 1};
    for (int d = 0; d < axes->ndim; d++) {
        const int64_t dim = axes->dim[d], a = axes->a[d], b = axes->b[d];
        const int64_t last = w.ndim - 1;
        w.count *= dim;
        if (dim == 1)
            continue;
        if (last >= 0 && w.a[last] == dim * a && w.b[last] == dim * b) {
            w.dim[last] *= dim;
            w.a[last] = a;
            w.b[last] = b;
            continue;
        }
        w.dim[w.ndim] = dim;
        w.a[w.ndim] = a;
        w.b[w.ndim++] = b;
    }
    if (w.ndim == 0)
        w.dim[w.ndim++] = 1;
    return w;
}

void cvy_gpu_steps(const cvy_shape *shape, const cvy_layout *layout, int64_t step[CVY_NDIM_MAX])
{
    cvy_blocking b = {0};
    if (cvy_blocking_make(layout, shape, &b) != CVY_OK)
        b = (cvy_blocking){0};
    for (int d = 0; d < shape->ndim; d++)
        step[d] = b.stride[d];
}

/* The elements of a tensor that are consecutive, also in a slice: the channels of a position, or those of a sample. */
static int64_t row_of(const cvy_shape *shape, const cvy_layout *layout)
{
    const cvy_layout base = cvy_layout_slice(layout, 1), plain = cvy_layout_plain(),
                     as_plain = cvy_layout_slice(&plain, 1);
    return shape->dim[1] * (cvy_layout_equal(&base, &as_plain) ? cvy_shape_positions(shape) : 1);
}

int64_t cvy_gpu_slices(const cvy_kernel_ask *ask, int64_t src_step[CVY_NODE_SRC_MAX],
                       int64_t dst_step[CVY_NODE_DST_MAX])
{
    const cvy_node *node = ask->node;
    const cvy_shape *shape = cvy_node_src(node, 0);
    int sliced = 0;
    for (int i = 0; i < node->nsrc + node->ndst; i++)
        sliced |= cvy_layout_whole(i < node->nsrc ? &ask->src[i] : &ask->dst[i - node->nsrc]) > 0;
    const int64_t row = sliced ? row_of(shape, &ask->src[0]) : 0;
    for (int i = 0; i < node->nsrc + node->ndst; i++) {
        const cvy_layout *layout = i < node->nsrc ? &ask->src[i] : &ask->dst[i - node->nsrc];
        const int64_t whole = cvy_layout_whole(layout), step = whole > 0 ? row / shape->dim[1] * whole : row;
        if (i < node->nsrc)
            src_step[i] = step;
        else
            dst_step[i - node->nsrc] = step;
    }
    return row;
}

int cvy_gpu_lanes(cvy_dtype act, int64_t n, const void *const *pointer, int npointer)
{
    const int lanes = 8 / (int)cvy_dtype_bytes(act);
    return n % lanes == 0 && cvy_gpu_are_aligned(8, pointer, npointer) ? lanes : 1;
}

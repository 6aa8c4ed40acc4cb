/*
 * gpu_reorder.c: the kernel library for GPUs, and its reorders: copies between layouts without blocks, and between f32
 * and bf16, by the kernels of backend/gpu/gpu_copy.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/gpu_walk.h"
#include "kernel/gpu/update/gpu_update.h"

struct call {
    cvy_gpu_kernel kernel;
    struct walk w; /* a: in the source, b: in the target */
};

/* In the order of the target's memory, so that neighbouring threads write neighbouring elements. */
static struct walk walk_of(const cvy_blocking *from, const cvy_blocking *to)
{
    cvy_gpu_axes axes = {.ndim = to->ndim};
    for (int d = 0; d < to->ndim; d++) {
        axes.dim[d] = to->dim[d];
        axes.a[d] = from->stride[d];
        axes.b[d] = to->stride[d];
    }
    cvy_gpu_axes_sort(&axes, 1);
    return cvy_gpu_walk_make(&axes);
}

static cvy_status reorder_create(const cvy_space *space, const cvy_shape *shape, const cvy_memory_format *from,
                                 const cvy_memory_format *to, int threads, void **call_out)
{
    cvy_blocking from_places, to_places;
    struct call *call = NULL;
    (void)threads;
    CVY_TRY(cvy_blocking_make(&from->layout, shape, &from_places));
    CVY_TRY(cvy_blocking_make(&to->layout, shape, &to_places));
    CVY_CHECK(from_places.nblock == 0 && to_places.nblock == 0, CVY_NOT_APPLICABLE,
              "a GPU has no layouts with blocks, such as '%s'", (from_places.nblock ? from : to)->layout.tag);
    CVY_TRY(cvy_mem_alloc(sizeof *call, &call));
    call->w = walk_of(&from_places, &to_places);
    const cvy_status status = cvy_gpu_copy_get(space, from->dtype, to->dtype, &call->kernel);
    if (status != CVY_OK)
        cvy_mem_free(&call);
    *call_out = call;
    return status == CVY_NOT_APPLICABLE ? CVY_E_UNSUPPORTED : status; /* nothing else does it */
}

static cvy_status reorder_run(void *state, const void *src, void *dst)
{
    const struct call *call = state;
    return cvy_gpu_copy_walk(&call->kernel, CVY_LANE_COMPUTE, &call->w, src, dst);
}

CVY_LIBRARY_DEFINE(gpu) = {
    .name = "gpu",
    .help = "convoy's own kernels for any GPU",
    .on_gpu = 1,
    .reorder_create = reorder_create,
    .reorder_run = reorder_run,
    .reorder_destroy = cvy_gpu_free_state,
    .join = cvy_gpu_update_join,
};

/*
 * gpu_common.c: layouts, dtypes and states that the kernels for GPUs share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/gpu_common.h"

#include "backend/gpu/device.h"

cvy_status cvy_gpu_offer(const cvy_kernel_ask *ask, const cvy_gpu_source *source, const char *name, cvy_dtype act,
                         cvy_gpu_kernel *out)
{
    return cvy_gpu_kernel_get(ask->space, source, name, act, out);
}

cvy_status cvy_gpu_act_of(const cvy_value *value, cvy_dtype *act_out)
{
    *act_out = value->dtype;
    if (*act_out == CVY_DTYPE_F32 || *act_out == CVY_DTYPE_BF16)
        return CVY_OK;
    return cvy_error_set(CVY_NOT_APPLICABLE, "this kernel computes in f32 and bf16; %s is %s", value->name,
                         cvy_dtype_text(*act_out));
}

cvy_status cvy_gpu_act(const cvy_node *node, cvy_dtype *act_out)
{
    return cvy_gpu_act_of(node->src[0], act_out);
}

int cvy_gpu_number_kind(cvy_dtype dtype)
{
    switch (dtype) {
    case CVY_DTYPE_F32: return NUMBER_F32;
    case CVY_DTYPE_F64: return NUMBER_F64;
    case CVY_DTYPE_BF16: return NUMBER_BF16;
    case CVY_DTYPE_I32: return NUMBER_I32;
    case CVY_DTYPE_I64: return NUMBER_I64;
    default: return NUMBER_U8;
    }
}

cvy_layout cvy_gpu_layout(const cvy_shape *shape)
{
    return shape->ndim > 2 ? cvy_layout_channels_last(shape->ndim) : cvy_layout_plain();
}

static int is_blocked(const cvy_layout *layout, const cvy_shape *shape)
{
    cvy_blocking b;
    return cvy_blocking_make(layout, shape, &b) != CVY_OK || b.nblock > 0;
}

cvy_layout cvy_gpu_unblocked(const cvy_kernel_ask *ask, int i)
{
    return is_blocked(&ask->src[i], &ask->node->src[i]->shape) ? cvy_layout_plain() : ask->src[i];
}

void cvy_gpu_common_layout(cvy_kernel_ask *ask, int nsrc, int inplace)
{
    cvy_layout layout = cvy_layout_plain();
    for (int i = 0; i < nsrc && cvy_layout_is_plain(&layout); i++)
        layout = cvy_gpu_unblocked(ask, i);
    for (int i = 0; i < nsrc; i++)
        ask->src[i] = layout;
    ask->dst[0] = layout;
    ask->inplace[0] = inplace + 1;
}

cvy_gpu_planes cvy_gpu_planes_make(const cvy_shape *shape, const cvy_layout *layout)
{
    cvy_gpu_planes p = {
        .n = shape->ndim > 0 ? shape->dim[0] : 1, .channels = shape->ndim > 1 ? shape->dim[1] : 1, .positions = 1};
    for (int d = 2; d < shape->ndim; d++)
        p.positions *= shape->dim[d];
    const int last = shape->ndim > 2 && !cvy_layout_is_plain(layout);
    p.elems = p.n * p.channels * p.positions;
    p.of_n = p.channels * p.positions;
    p.of_c = last ? 1 : p.positions;
    p.of_p = last ? p.channels : 1;
    return p;
}

int cvy_gpu_are_aligned(size_t bytes, const void *const *pointer, int npointer)
{
    int aligned = 1;
    for (int i = 0; i < npointer; i++)
        aligned = aligned && (uintptr_t)pointer[i] % bytes == 0;
    return aligned;
}

void cvy_gpu_free_state(void *state)
{
    cvy_mem_free(&state);
}

cvy_status cvy_gpu_zero(const cvy_gpu_kernel *kernel, void *data, size_t bytes)
{
    return bytes ? kernel->gpu->backend->zero(kernel->gpu, CVY_LANE_COMPUTE, data, bytes) : CVY_OK;
}

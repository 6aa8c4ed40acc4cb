/*
 * native_bf16.c: offers and views of the bf16 kernels. Called at planning time only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pointwise/native_bf16.h"

cvy_strips cvy_strips_make(const cvy_shape *shape, const cvy_layout *layout)
{
    const int64_t block = cvy_layout_channel_block(layout, shape->ndim);
    cvy_strips s = {.n = shape->dim[0], .channels = shape->dim[1], .positions = 1};
    for (int d = 2; d < shape->ndim; d++)
        s.positions *= shape->dim[d];
    if (block > 1) {
        s.lanes = block;
        s.parts = (s.channels + block - 1) / block;
        s.all_lanes = s.parts * block;
        s.part = s.positions * block;
        s.position = block;
    } else {
        s.lanes = CVY_MIN(CVY_STRIP_LANES, s.channels);
        s.parts = (s.channels + s.lanes - 1) / s.lanes;
        s.all_lanes = s.channels;
        s.part = s.lanes;
        s.position = s.channels;
    }
    s.sample = s.positions * s.all_lanes;
    return s;
}

cvy_status cvy_native_bf16(const cvy_node *node, int i)
{
    if (node->src[i]->dtype == CVY_DTYPE_BF16)
        return CVY_OK;
    return cvy_error_set(CVY_NOT_APPLICABLE, "this kernel computes in bf16; the source is %s",
                         cvy_dtype_text(node->src[i]->dtype));
}

cvy_layout cvy_native_strips(const cvy_kernel_ask *ask, int i)
{
    const int ndim = ask->node->src[i]->shape.ndim;
    return cvy_layout_channel_block(&ask->src[i], ndim) > 1 ? ask->src[i] : cvy_layout_channels_last(ndim);
}

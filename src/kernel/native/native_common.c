/*
 * native_common.c: offers and views that convoy's own kernels share. Called at planning time only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"
#include "base/machine/base_isa.h"

/* Whether the layout is channels last, or a slice of such a tensor. */
static int is_channels_last(const cvy_layout *layout, int ndim)
{
    const cvy_layout last = cvy_layout_channels_last(ndim), a = cvy_layout_slice(&last, 1),
                     b = cvy_layout_slice(layout, 1);
    return ndim > 2 && cvy_layout_equal(&a, &b);
}

cvy_planes cvy_planes_make(const cvy_shape *shape, const cvy_layout *layout)
{
    cvy_planes p = {.n = shape->dim[0], .channels = shape->dim[1], .positions = 1};
    const int64_t whole = cvy_layout_whole(layout);
    const int last = is_channels_last(layout, shape->ndim);
    p.block = last ? p.channels : CVY_MAX(1, cvy_layout_channel_block(layout, shape->ndim));
    p.groups = (p.channels + p.block - 1) / p.block;
    p.pitch = whole > 0 && !last ? whole / p.block : p.groups;
    p.step = whole > 0 && last ? whole : p.block;
    for (int d = 2; d < shape->ndim; d++)
        p.positions *= shape->dim[d];
    return p;
}

cvy_status cvy_native_f32(const cvy_node *node)
{
    if (node->src[0]->dtype == CVY_DTYPE_F32)
        return CVY_OK;
    return cvy_error_set(CVY_NOT_APPLICABLE, "this kernel computes in f32; the source is %s",
                         cvy_dtype_text(node->src[0]->dtype));
}

cvy_status cvy_native_f32_or_bf16(const cvy_node *node)
{
    if (node->src[0]->dtype == CVY_DTYPE_F32 || node->src[0]->dtype == CVY_DTYPE_BF16)
        return CVY_OK;
    return cvy_error_set(CVY_NOT_APPLICABLE, "this kernel computes in f32 and bf16; the source is %s",
                         cvy_dtype_text(node->src[0]->dtype));
}

cvy_layout cvy_native_channels(const cvy_kernel_ask *ask, int i)
{
    const int ndim = ask->node->src[i]->shape.ndim;
    return ndim >= 2 && cvy_layout_channel_block(&ask->src[i], ndim) > 0 ? ask->src[i] : cvy_layout_plain();
}

cvy_layout cvy_native_activation(const cvy_kernel_ask *ask, int i)
{
    const int ndim = ask->node->src[i]->shape.ndim;
    const cvy_layout last = cvy_layout_channels_last(ndim);
    return cvy_layout_equal(&ask->src[i], &last) ? last : cvy_native_channels(ask, i);
}

cvy_layout cvy_native_preferred(const cvy_shape *shape)
{
    int64_t block = 1;
#if CVY_HAVE_ONEDNN && defined(__x86_64__) && defined(__GNUC__)
    block = cvy_isa_may_use(CVY_ISA_AVX512F) ? 16 : 8;
#endif
    return shape->ndim > 2 && shape->dim[1] >= block ? cvy_layout_channels(shape->ndim, block) : cvy_layout_plain();
}

cvy_status cvy_native_offer_elementwise(cvy_kernel_ask *ask, int nsrc, int inplace)
{
    CVY_TRY(cvy_native_f32(ask->node));
    cvy_native_common_layout(ask, nsrc, inplace);
    return CVY_OK;
}

void cvy_native_common_layout(cvy_kernel_ask *ask, int nsrc, int inplace)
{
    cvy_layout layout = ask->src[0];
    for (int i = 1; i < nsrc && cvy_layout_is_plain(&layout); i++)
        layout = ask->src[i];
    for (int i = 0; i < nsrc; i++)
        ask->src[i] = layout;
    ask->dst[0] = layout;
    ask->inplace[0] = inplace + 1;
}

cvy_status cvy_native_dst_elems(const cvy_kernel_ask *ask, int64_t *elems_out)
{
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(&ask->dst[0], &ask->node->dst[0]->shape, &b));
    *elems_out = b.elems;
    return CVY_OK;
}

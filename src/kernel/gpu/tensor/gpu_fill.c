/*
 * gpu_fill.c: fill and constant: tensors of one value.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

#ifdef CVY_DEVICE

KERNEL(fill_1)(GLOBAL u8 *dst, i64 n, i64 bits)
{
    FOR_EACH (i, n)
        dst[i] = (u8)bits;
}

KERNEL(fill_2)(GLOBAL u16 *dst, i64 n, i64 bits)
{
    FOR_EACH (i, n)
        dst[i] = (u16)bits;
}

KERNEL(fill_4)(GLOBAL u32 *dst, i64 n, i64 bits)
{
    FOR_EACH (i, n)
        dst[i] = (u32)bits;
}

KERNEL(fill_8)(GLOBAL u64 *dst, i64 n, i64 bits)
{
    FOR_EACH (i, n)
        dst[i] = (u64)bits;
}

#else
#include <string.h>

#include "kernel/gpu/gpu_walk.h"
#include "op/tensor/op_constant.h"
#include "op/tensor/op_fill.h"

CVY_GPU_SOURCE_DECLARE(gpu_fill);

struct call {
    cvy_gpu_kernel kernel;
    int64_t n, bits;
};

static cvy_status kernel_get(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    const size_t bytes = cvy_dtype_bytes(ask->node->dst[0]->dtype);
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_fill),
                         bytes == 1   ? "fill_1"
                         : bytes == 2 ? "fill_2"
                         : bytes == 4 ? "fill_4"
                                      : "fill_8",
                         CVY_DTYPE_F32, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    if (!ask->dst_fixed[0])
        ask->dst[0] = cvy_gpu_layout(cvy_node_dst(ask->node, 0));
    return kernel_get(ask, &kernel);
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    struct call *s = NULL;
    int64_t bits = 0;
    const cvy_span one = {.dtype = node->dst[0]->dtype, .elems = 1, .data = &bits};
    cvy_set(&one, 0,
            strcmp(node->op->name, "fill") == 0 ? ((const cvy_fill_opts *)node->options)->value
                                                : ((const cvy_constant_opts *)node->options)->value);
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->n = cvy_shape_elems(cvy_node_dst(node, 0));
    s->bits = bits;
    return kernel_get(ask, &s->kernel);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)src;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->n), CVY_GPU_VALUE(s->bits));
}

CVY_KERNEL_DEFINE(gpu_fill) = {CVY_GPU_FIELDS("fill", offer, create, run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_constant) = {CVY_GPU_FIELDS("constant", offer, create, run, cvy_gpu_free_state)};
#endif

/*
 * native_relu.c: relu and relu_grad of f32 and bf16 in one pass over memory, in place if the plan allows it.
 *
 * relu runs if it is not fused into a convolution; relu_grad runs for every relu. Both are limited by memory bandwidth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"

struct relu {
    int64_t elems, grain;
    int threads, bf16;
    cvy_planes p; /* relu_grad with a source that is a slice works plane by plane; else block = 0 */
    int64_t ddst_pitch, y_pitch;
    const void *src, *ddst; /* of the running call */
    void *dst;
};

static cvy_status relu_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    cvy_native_common_layout(ask, ask->node->nsrc, 0);
    return CVY_OK;
}

static cvy_status relu_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct relu *s = NULL;
    int64_t elems;
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->elems = elems;
    s->threads = ask->threads;
    s->bf16 = ask->node->src[0]->dtype == CVY_DTYPE_BF16;
    s->grain = s->bf16 ? 2 * CVY_GRAIN : CVY_GRAIN;
    *state_out = s;
    return CVY_OK;
}

static void relu_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Returns all bits set if a bf16 is above zero: the sign bit is not set, another bit is, and it is not NaN. */
CVY_INLINE cvy_bf16 positive(cvy_bf16 x)
{
    return (cvy_bf16)(x - 1) < 0x7f80 ? 0xffff : 0;
}

CVY_SIMD static void relu_range(int64_t first, int64_t end, void *arg)
{
    const struct relu *s = arg;
    const float *src = s->src;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = src[i] > 0 ? src[i] : 0;
}

CVY_SIMD static void relu_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct relu *s = arg;
    const cvy_bf16 *src = s->src;
    cvy_bf16 *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = src[i] & positive(src[i]);
}

static cvy_status relu_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct relu *s = state;
    (void)scratch;
    s->src = src[0];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->elems, s->grain, s->bf16 ? relu_bf16_range : relu_range, s);
    return CVY_OK;
}

CVY_SIMD static void relu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct relu *s = arg;
    const float *ddst = s->ddst, *y = s->src;
    float *dsrc = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float d = ddst[i];
        dsrc[i] = y[i] > 0 ? d : 0;
    }
}

CVY_SIMD static void relu_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct relu *s = arg;
    const cvy_bf16 *ddst = s->ddst, *y = s->src;
    cvy_bf16 *dsrc = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dsrc[i] = ddst[i] & positive(y[i]);
}

static void relu_grad_planes(int64_t first, int64_t end, void *arg)
{
    const struct relu *s = arg;
    const int64_t elems = s->p.positions * s->p.block, bytes = elems * (s->bf16 ? 2 : 4);
    for (int64_t plane = first; plane < end; plane++) {
        struct relu one = *s;
        one.ddst = (const char *)s->ddst + cvy_plane_in(&s->p, s->ddst_pitch, plane) * bytes;
        one.src = (const char *)s->src + cvy_plane_in(&s->p, s->y_pitch, plane) * bytes;
        one.dst = (char *)s->dst + plane * bytes;
        if (s->bf16)
            relu_grad_bf16_range(0, elems, &one);
        else
            relu_grad_range(0, elems, &one);
    }
}

static cvy_status relu_grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_shape *shape = &ask->node->dst[0]->shape;
    CVY_TRY(relu_create(ask, state_out));
    struct relu *s = *state_out;
    if (!cvy_layout_whole(&ask->src[0]) && !cvy_layout_whole(&ask->src[1]))
        return CVY_OK;
    s->p = cvy_planes_make(shape, &ask->dst[0]);
    s->ddst_pitch = cvy_planes_make(shape, &ask->src[0]).pitch;
    s->y_pitch = cvy_planes_make(shape, &ask->src[1]).pitch;
    return CVY_OK;
}

static cvy_status relu_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct relu *s = state;
    (void)scratch;
    s->ddst = src[0];
    s->src = src[1];
    s->dst = dst[0];
    if (s->p.block)
        cvy_parallel_for(s->threads, s->p.n * s->p.groups,
                         CVY_MAX(1, s->grain / CVY_MAX(1, s->p.positions * s->p.block)), relu_grad_planes, s);
    else
        cvy_parallel_for(s->threads, s->elems, s->grain, s->bf16 ? relu_grad_bf16_range : relu_grad_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_relu) = {
    .name = "native.relu",
    .op = "relu",
    .preference = 50,
    .offer = relu_offer,
    .create = relu_create,
    .run = relu_run,
    .destroy = relu_destroy,
};

CVY_KERNEL_DEFINE(native_relu_grad) = {
    .name = "native.relu_grad",
    .op = "relu_grad",
    .preference = 50,
    .slice_src = 3,
    .offer = relu_offer,
    .create = relu_grad_create,
    .run = relu_grad_run,
    .destroy = relu_destroy,
};

/*
 * native_bf16_multiply_channels.c: product of a bf16 activation and one factor for each channel, and its gradient for
 * the factor, in one pass over memory each. Factors are plain [N, C]. Values are computed in f32 and rounded once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pointwise/native_bf16.h"

struct multiply_channels {
    cvy_strips s;
    int threads;
    const cvy_bf16 *a, *b; /* of the running call: src and factor; in the gradient ddst and src */
    cvy_bf16 *dst;
};

static cvy_status multiply_channels_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_bf16(ask->node, 0));
    ask->src[0] = ask->dst[0] = cvy_native_strips(ask, 0);
    ask->src[1] = cvy_layout_plain();
    ask->inplace[0] = 1;
    return CVY_OK;
}

static cvy_status multiply_channels_grad_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_bf16(ask->node, 0));
    ask->src[0] = ask->src[1] = cvy_native_strips(ask, 0);
    ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct multiply_channels *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->s = cvy_strips_make(&ask->node->src[0]->shape, &ask->src[0]);
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Padding lanes have factor 0. */
CVY_SIMD static void multiply_channels_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct multiply_channels *s = arg;
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->s.parts, p = item % s->s.parts, width = cvy_strip_width(&s->s, p),
                      c = p * s->s.lanes, at = n * s->s.sample + p * s->s.part;
        const cvy_bf16 *src = s->a + at;
        cvy_bf16 *dst = s->dst + at;
        float factor[CVY_STRIP_LANES] = {0};
        for (int64_t l = 0; l < CVY_MIN(width, s->s.channels - c); l++)
            factor[l] = cvy_bf16_get(s->b[n * s->s.channels + c + l]);
        for (int64_t i = 0; i < s->s.positions; i++, src += s->s.position, dst += s->s.position)
#pragma omp simd
            for (int64_t l = 0; l < width; l++)
                dst[l] = cvy_bf16_of(cvy_bf16_get(src[l]) * factor[l]);
    }
}

CVY_SIMD static void multiply_channels_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct multiply_channels *s = arg;
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->s.parts, p = item % s->s.parts, width = cvy_strip_width(&s->s, p),
                      c = p * s->s.lanes, at = n * s->s.sample + p * s->s.part;
        const cvy_bf16 *a = s->a + at, *b = s->b + at;
        float sum[CVY_STRIP_LANES] = {0};
        for (int64_t i = 0; i < s->s.positions; i++, a += s->s.position, b += s->s.position)
            for (int64_t l = 0; l < width; l++)
                sum[l] += cvy_bf16_get(a[l]) * cvy_bf16_get(b[l]);
        for (int64_t l = 0; l < CVY_MIN(width, s->s.channels - c); l++)
            s->dst[n * s->s.channels + c + l] = cvy_bf16_of(sum[l]);
    }
}

static cvy_status run(struct multiply_channels *s, void *const *src, void *const *dst, cvy_range_fn body)
{
    s->a = src[0];
    s->b = src[1];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->s.n * s->s.parts, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, s->s.positions * s->s.lanes)),
                     body, s);
    return CVY_OK;
}

static cvy_status multiply_channels_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, multiply_channels_bf16_range);
}

static cvy_status multiply_channels_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, multiply_channels_grad_bf16_range);
}

CVY_KERNEL_DEFINE(native_multiply_channels_bf16) = {
    .name = "native.multiply_channels_bf16",
    .op = "multiply_channels",
    .preference = 50,
    .offer = multiply_channels_offer,
    .create = create,
    .run = multiply_channels_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_multiply_channels_grad_bf16) = {
    .name = "native.multiply_channels_grad_bf16",
    .op = "multiply_channels_grad",
    .preference = 50,
    .offer = multiply_channels_grad_offer,
    .create = create,
    .run = multiply_channels_grad_run,
    .destroy = destroy,
};

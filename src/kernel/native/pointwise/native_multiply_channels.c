/*
 * native_multiply_channels.c: product of an f32 activation and one factor for each channel, and its gradient for the
 * factor, in one pass over memory each. Used by squeeze-and-excitation and other gates.
 *
 * Factors are plain [N, C] for every layout of the activation. Memory is walked in vectors of 16 floats: channels of
 * one position if channels are in blocks, else adjacent positions. A plane is summed by one thread, so sums do not
 * depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"

enum { LANES = 16 };

struct multiply_channels {
    cvy_planes p;
    int threads;
    const float *a, *b; /* of the running call: src and factor; in the gradient ddst and src */
    float *dst;
};

static cvy_status multiply_channels_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    ask->src[0] = ask->dst[0] = cvy_native_channels(ask, 0);
    ask->src[1] = cvy_layout_plain();
    ask->inplace[0] = 1;
    return CVY_OK;
}

static cvy_status multiply_channels_grad_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    cvy_layout layout = cvy_native_channels(ask, 0);
    if (cvy_layout_is_plain(&layout))
        layout = cvy_native_channels(ask, 1);
    ask->src[0] = ask->src[1] = layout;
    ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct multiply_channels *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->p = cvy_planes_make(&ask->node->src[0]->shape, &ask->src[0]);
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Padding lanes have factor 0. */
CVY_SIMD static void multiply_channels_range(int64_t first, int64_t end, void *arg)
{
    const struct multiply_channels *s = arg;
    const cvy_planes *p = &s->p;
    const int64_t block = p->block, elems = p->positions * block;
    for (int64_t plane = first; plane < end; plane++) {
        const int64_t n = plane / p->groups, c = plane % p->groups * block;
        const float *src = s->a + plane * elems;
        float *dst = s->dst + plane * elems, factor[LANES] = {0};
        for (int64_t l = 0; l < LANES; l++)
            if (c + l % block < p->channels)
                factor[l] = s->b[n * p->channels + c + l % block];
        int64_t i = 0;
        for (; i + LANES <= elems; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++)
                dst[i + l] = src[i + l] * factor[l];
        for (; i < elems; i++)
            dst[i] = src[i] * factor[i % LANES];
    }
}

CVY_SIMD static void multiply_channels_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct multiply_channels *s = arg;
    const cvy_planes *p = &s->p;
    const int64_t block = p->block, elems = p->positions * block;
    for (int64_t plane = first; plane < end; plane++) {
        const int64_t n = plane / p->groups, c = plane % p->groups * block;
        const float *a = s->a + plane * elems, *b = s->b + plane * elems;
        float sum[LANES] = {0};
        int64_t i = 0;
        for (; i + LANES <= elems; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++)
                sum[l] += a[i + l] * b[i + l];
        for (; i < elems; i++)
            sum[i % LANES] += a[i] * b[i];
        for (int64_t l = 0; l < CVY_MIN(block, p->channels - c); l++) {
            float total = 0;
            for (int64_t k = l; k < LANES; k += block)
                total += sum[k];
            s->dst[n * p->channels + c + l] = total;
        }
    }
}

static cvy_status run(struct multiply_channels *s, void *const *src, void *const *dst, cvy_range_fn body)
{
    s->a = src[0];
    s->b = src[1];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->p.n * s->p.groups, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, s->p.positions * s->p.block)),
                     body, s);
    return CVY_OK;
}

static cvy_status multiply_channels_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, multiply_channels_range);
}

static cvy_status multiply_channels_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, multiply_channels_grad_range);
}

CVY_KERNEL_DEFINE(native_multiply_channels) = {
    .name = "native.multiply_channels",
    .op = "multiply_channels",
    .preference = 50,
    .offer = multiply_channels_offer,
    .create = create,
    .run = multiply_channels_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_multiply_channels_grad) = {
    .name = "native.multiply_channels_grad",
    .op = "multiply_channels_grad",
    .preference = 50,
    .offer = multiply_channels_grad_offer,
    .create = create,
    .run = multiply_channels_grad_run,
    .destroy = destroy,
};

/*
 * native_bf16_global_pool.c: the mean and the maximum over the positions of each channel of a bf16 activation, and
 * their gradients.
 *
 * They are used between the last convolution and the classifier, and in gates. Results [N, C] are plain.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pointwise/native_bf16.h"
#include "op/conv/op_pool.h"

struct global_pool {
    cvy_strips s; /* of the larger tensor */
    int threads;
    const cvy_bf16 *in; /* of the running call */
    cvy_bf16 *out;
    const int32_t *index; /* of the maximum: read by the gradient, */
    int32_t *index_out;   /* and written forward, if a gradient needs it */
};

static cvy_status forward_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_bf16(ask->node, 0));
    ask->src[0] = cvy_native_strips(ask, 0);
    return CVY_OK;
}

static cvy_status backward_offer(cvy_kernel_ask *ask)
{
    const cvy_global_pool_grad_opts *o = ask->node->options;
    CVY_TRY(cvy_native_bf16(ask->node, 0));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->dst[0] = cvy_layout_channels_last(o->src.ndim);
    return CVY_OK;
}

static cvy_status create(const cvy_shape *shape, const cvy_layout *layout, int threads, void **state_out)
{
    struct global_pool *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->s = cvy_strips_make(shape, layout);
    s->threads = threads;
    *state_out = s;
    return CVY_OK;
}

static cvy_status forward_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(&ask->node->src[0]->shape, &ask->src[0], ask->threads, state_out);
}

static cvy_status backward_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(&ask->node->dst[0]->shape, &ask->dst[0], ask->threads, state_out);
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_SIMD static void global_pool_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->s.parts, p = item % s->s.parts, width = cvy_strip_width(&s->s, p),
                      c = p * s->s.lanes;
        const cvy_bf16 *src = s->in + n * s->s.sample + p * s->s.part;
        float sum[CVY_STRIP_LANES] = {0};
        for (int64_t i = 0; i < s->s.positions; i++)
            for (int64_t l = 0; l < width; l++)
                sum[l] += cvy_bf16_get(src[i * s->s.position + l]);
        for (int64_t l = 0; l < CVY_MIN(width, s->s.channels - c); l++)
            s->out[n * s->s.channels + c + l] = cvy_bf16_of(sum[l] / (float)s->s.positions);
    }
}

CVY_SIMD static void global_pool_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->s.parts, p = item % s->s.parts, width = cvy_strip_width(&s->s, p),
                      c = p * s->s.lanes;
        cvy_bf16 *dst = s->out + n * s->s.sample + p * s->s.part, value[CVY_STRIP_LANES] = {0};
        for (int64_t l = 0; l < CVY_MIN(width, s->s.channels - c); l++)
            value[l] = cvy_bf16_of(cvy_bf16_get(s->in[n * s->s.channels + c + l]) / (float)s->s.positions);
        for (int64_t i = 0; i < s->s.positions; i++)
            for (int64_t l = 0; l < width; l++)
                dst[i * s->s.position + l] = value[l];
    }
}

/* A NaN is the maximum, and the first of equal elements. */
CVY_SIMD static void global_max_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->s.parts, p = item % s->s.parts, width = cvy_strip_width(&s->s, p),
                      c = p * s->s.lanes;
        const cvy_bf16 *src = s->in + n * s->s.sample + p * s->s.part;
        float max[CVY_STRIP_LANES];
        int32_t at[CVY_STRIP_LANES] = {0};
        for (int64_t l = 0; l < width; l++)
            max[l] = cvy_bf16_get(src[l]);
        for (int32_t i = 1; i < (int32_t)s->s.positions; i++)
#pragma omp simd
            for (int64_t l = 0; l < width; l++) {
                const float x = cvy_bf16_get(src[i * s->s.position + l]);
                const int more = x > max[l] || (x != x && max[l] == max[l]);
                max[l] = more ? x : max[l];
                at[l] = more ? i : at[l];
            }
        for (int64_t l = 0; l < CVY_MIN(width, s->s.channels - c); l++) {
            s->out[n * s->s.channels + c + l] = cvy_bf16_of(max[l]);
            if (s->index_out)
                s->index_out[n * s->s.channels + c + l] = at[l];
        }
    }
}

CVY_SIMD static void global_max_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->s.parts, p = item % s->s.parts, width = cvy_strip_width(&s->s, p),
                      c = p * s->s.lanes;
        cvy_bf16 *dst = s->out + n * s->s.sample + p * s->s.part;
        for (int64_t i = 0; i < s->s.positions; i++)
            memset(dst + i * s->s.position, 0, (size_t)width * sizeof *dst);
        for (int64_t l = 0; l < CVY_MIN(width, s->s.channels - c); l++)
            dst[s->index[n * s->s.channels + c + l] * s->s.position + l] = s->in[n * s->s.channels + c + l];
    }
}

static cvy_status run(struct global_pool *s, void *const *src, void *const *dst, cvy_range_fn body)
{
    s->in = src[0];
    s->out = dst[0];
    cvy_parallel_for(s->threads, s->s.n * s->s.parts, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, s->s.positions * s->s.lanes)),
                     body, s);
    return CVY_OK;
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, global_pool_bf16_range);
}

static cvy_status backward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, global_pool_grad_bf16_range);
}

static cvy_status max_forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct global_pool *s = state;
    (void)scratch;
    s->index_out = dst[1];
    return run(s, src, dst, global_max_bf16_range);
}

static cvy_status max_backward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct global_pool *s = state;
    (void)scratch;
    s->index = src[1];
    return run(s, src, dst, global_max_grad_bf16_range);
}

CVY_KERNEL_DEFINE(native_global_avg_pool_bf16) = {
    .name = "native.global_avg_pool_bf16",
    .op = "global_avg_pool",
    .preference = 50,
    .offer = forward_offer,
    .create = forward_create,
    .run = forward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_global_avg_pool_grad_bf16) = {
    .name = "native.global_avg_pool_grad_bf16",
    .op = "global_avg_pool_grad",
    .preference = 50,
    .offer = backward_offer,
    .create = backward_create,
    .run = backward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_global_max_pool_bf16) = {
    .name = "native.global_max_pool_bf16",
    .op = "global_max_pool",
    .preference = 50,
    .offer = forward_offer,
    .create = forward_create,
    .run = max_forward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_global_max_pool_grad_bf16) = {
    .name = "native.global_max_pool_grad_bf16",
    .op = "global_max_pool_grad",
    .preference = 50,
    .offer = backward_offer,
    .create = backward_create,
    .run = max_backward_run,
    .destroy = destroy,
};

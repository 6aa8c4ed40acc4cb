/*
 * native_global_pool.c: the mean and the maximum over the positions of each channel, and their gradients.
 *
 * They are used between the last convolution and the classifier, and in gates. Results [N, C] are plain for every
 * layout of the source.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/native/native_common.h"
#include "op/conv/op_pool.h"

enum { LANES = 16 };

struct global_pool {
    cvy_planes p; /* of the source */
    int threads;
    const float *src; /* of the running call: forward's source, backward's ddst */
    float *dst;
    const int32_t *index; /* of the maximum: read by the gradient, */
    int32_t *index_out;   /* and written forward, if a gradient needs it */
};

static cvy_status global_pool_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    ask->src[0] = cvy_native_channels(ask, 0);
    return CVY_OK;
}

/* Elements of a plane are counted in 32 bits, like the index. */
static cvy_status global_max_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(global_pool_offer(ask));
    const cvy_planes p = cvy_planes_make(&ask->node->src[0]->shape, &ask->src[0]);
    CVY_CHECK(p.positions * p.block <= INT32_MAX, CVY_NOT_APPLICABLE, "this kernel takes planes of at most %d elements",
              INT32_MAX);
    return CVY_OK;
}

/* The consumer's preferred layout of the gradient is not known here, so this asks for the layout that convolutions
 * probably prefer. */
static cvy_status global_pool_grad_offer(cvy_kernel_ask *ask)
{
    const cvy_global_pool_grad_opts *o = ask->node->options;
    CVY_TRY(cvy_native_f32(ask->node));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->dst[0] = cvy_native_preferred(&o->src);
    return CVY_OK;
}

static cvy_status create(const cvy_shape *shape, const cvy_layout *layout, int threads, void **state_out)
{
    struct global_pool *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->p = cvy_planes_make(shape, layout);
    s->threads = threads;
    *state_out = s;
    return CVY_OK;
}

static cvy_status global_pool_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(&ask->node->src[0]->shape, &ask->src[0], ask->threads, state_out);
}

static cvy_status global_pool_grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(&ask->node->dst[0]->shape, &ask->dst[0], ask->threads, state_out);
}

static void global_pool_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* ---- the mean ---- */

/* Sums 16 lanes at a time: channels of one position if channels are in blocks, else adjacent positions. */
CVY_SIMD static void global_pool_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    const cvy_planes *p = &s->p;
    const int64_t block = p->block, elems = p->positions * block;
    for (int64_t plane = first; plane < end; plane++) {
        const float *src = s->src + plane * elems;
        float sum[LANES] = {0};
        int64_t i = 0;
        for (; i + LANES <= elems; i += LANES)
            for (int l = 0; l < LANES; l++)
                sum[l] += src[i + l];
        for (; i < elems; i++)
            sum[i % LANES] += src[i];
        const int64_t n = plane / p->groups, c = plane % p->groups * block;
        for (int64_t l = 0; l < CVY_MIN(block, p->channels - c); l++) {
            float total = 0;
            for (int64_t k = l; k < LANES; k += block)
                total += sum[k];
            s->dst[n * p->channels + c + l] = total / (float)p->positions;
        }
    }
}

CVY_SIMD static void global_pool_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    const cvy_planes *p = &s->p;
    const int64_t block = p->block, elems = p->positions * block;
    for (int64_t plane = first; plane < end; plane++) {
        const int64_t n = plane / p->groups, c = plane % p->groups * block;
        float *dst = s->dst + plane * elems, value[LANES] = {0};
        for (int64_t k = 0; k < LANES; k++)
            if (c + k % block < p->channels)
                value[k] = s->src[n * p->channels + c + k % block] / (float)p->positions;
        int64_t i = 0;
        for (; i + LANES <= elems; i += LANES)
            for (int l = 0; l < LANES; l++)
                dst[i + l] = value[l];
        for (; i < elems; i++)
            dst[i] = value[i % LANES];
    }
}

/* ---- the maximum ---- */

/* Whether b takes the place of a maximum a that comes before it. */
CVY_INLINE int exceeds(float b, float a)
{
    return b > a || (b != b && a == a);
}

/* The same 16 lanes. Each lane keeps its maximum and the element where it was first; lanes beyond a short plane keep an
 * element that no other exceeds. */
CVY_SIMD static void global_max_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    const cvy_planes *p = &s->p;
    const int64_t block = p->block, elems = p->positions * block;
    for (int64_t plane = first; plane < end; plane++) {
        const float *src = s->src + plane * elems;
        float max[LANES];
        int32_t at[LANES];
        for (int32_t l = 0; l < LANES; l++) {
            max[l] = l < elems ? src[l] : -INFINITY;
            at[l] = l < elems ? l : INT32_MAX;
        }
        int64_t i = LANES;
        for (; i + LANES <= elems; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                const int more = exceeds(src[i + l], max[l]);
                max[l] = more ? src[i + l] : max[l];
                at[l] = more ? (int32_t)i + l : at[l];
            }
        for (; i < elems; i++)
            if (exceeds(src[i], max[i % LANES])) {
                max[i % LANES] = src[i];
                at[i % LANES] = (int32_t)i;
            }
        const int64_t n = plane / p->groups, c = plane % p->groups * block;
        for (int64_t l = 0; l < CVY_MIN(block, p->channels - c); l++) {
            int64_t best = l;
            for (int64_t k = l + block; k < LANES; k += block)
                if (exceeds(max[k], max[best]) || (!exceeds(max[best], max[k]) && at[k] < at[best]))
                    best = k;
            s->dst[n * p->channels + c + l] = max[best];
            if (s->index_out)
                s->index_out[n * p->channels + c + l] = (int32_t)(at[best] / block);
        }
    }
}

CVY_SIMD static void global_max_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    const cvy_planes *p = &s->p;
    const int64_t block = p->block, elems = p->positions * block;
    for (int64_t plane = first; plane < end; plane++) {
        const int64_t n = plane / p->groups, c = plane % p->groups * block;
        float *dst = s->dst + plane * elems;
        memset(dst, 0, (size_t)elems * sizeof *dst);
        for (int64_t l = 0; l < CVY_MIN(block, p->channels - c); l++)
            dst[s->index[n * p->channels + c + l] * block + l] = s->src[n * p->channels + c + l];
    }
}

/* ---- running ---- */

static cvy_status run(struct global_pool *s, void *const *src, void *const *dst, cvy_range_fn body)
{
    s->src = src[0];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->p.n * s->p.groups, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, s->p.positions * s->p.block)),
                     body, s);
    return CVY_OK;
}

static cvy_status global_pool_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, global_pool_range);
}

static cvy_status global_pool_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, global_pool_grad_range);
}

static cvy_status global_max_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct global_pool *s = state;
    (void)scratch;
    s->index_out = dst[1];
    return run(s, src, dst, global_max_range);
}

static cvy_status global_max_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct global_pool *s = state;
    (void)scratch;
    s->index = src[1];
    return run(s, src, dst, global_max_grad_range);
}

CVY_KERNEL_DEFINE(native_global_avg_pool) = {
    .name = "native.global_avg_pool",
    .op = "global_avg_pool",
    .preference = 50,
    .offer = global_pool_offer,
    .create = global_pool_create,
    .run = global_pool_run,
    .destroy = global_pool_destroy,
};

CVY_KERNEL_DEFINE(native_global_avg_pool_grad) = {
    .name = "native.global_avg_pool_grad",
    .op = "global_avg_pool_grad",
    .preference = 50,
    .offer = global_pool_grad_offer,
    .create = global_pool_grad_create,
    .run = global_pool_grad_run,
    .destroy = global_pool_destroy,
};

CVY_KERNEL_DEFINE(native_global_max_pool) = {
    .name = "native.global_max_pool",
    .op = "global_max_pool",
    .preference = 50,
    .offer = global_max_offer,
    .create = global_pool_create,
    .run = global_max_run,
    .destroy = global_pool_destroy,
};

CVY_KERNEL_DEFINE(native_global_max_pool_grad) = {
    .name = "native.global_max_pool_grad",
    .op = "global_max_pool_grad",
    .preference = 50,
    .offer = global_pool_grad_offer,
    .create = global_pool_grad_create,
    .run = global_max_grad_run,
    .destroy = global_pool_destroy,
};

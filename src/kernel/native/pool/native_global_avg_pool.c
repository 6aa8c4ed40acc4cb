/*
 * native_global_avg_pool.c: the mean over the positions of each channel, and its gradient.
 *
 * It is used between the last convolution and the classifier. The result [N, C] is plain for every layout of the
 * source.
 */
#include "kernel/native/native_common.h"
#include "op/conv/op_pool.h"

struct global_pool {
    cvy_planes p; /* of the source */
    int threads;
    const float *src; /* of the running call: forward's source, backward's ddst */
    float *dst;
};

static cvy_status global_pool_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    ask->src[0] = cvy_native_channels(ask, 0);
    return CVY_OK;
}

/* The consumer's preferred layout of the gradient is not known here, so this asks for the layout that convolutions
 * probably prefer. */
static cvy_status global_pool_grad_offer(cvy_kernel_ask *ask)
{
    const cvy_global_pool_grad_opts *o = ask->node->options;
    CVY_TRY(cvy_native_f32(ask->node));
    ask->src[0] = cvy_layout_plain();
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

/* Sums 16 lanes at a time: channels of one position if channels are in blocks, else adjacent positions. */
CVY_SIMD static void global_pool_range(int64_t first, int64_t end, void *arg)
{
    const struct global_pool *s = arg;
    const cvy_planes *p = &s->p;
    const int64_t block = p->block, elems = p->positions * block;
    for (int64_t plane = first; plane < end; plane++) {
        const float *src = s->src + plane * elems;
        float sum[16] = {0};
        int64_t i = 0;
        for (; i + 16 <= elems; i += 16)
            for (int l = 0; l < 16; l++)
                sum[l] += src[i + l];
        for (; i < elems; i++)
            sum[i % 16] += src[i];
        const int64_t n = plane / p->groups, c = plane % p->groups * block;
        for (int64_t l = 0; l < CVY_MIN(block, p->channels - c); l++) {
            float total = 0;
            for (int64_t k = l; k < 16; k += block)
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
        float *dst = s->dst + plane * elems, value[16] = {0};
        for (int64_t k = 0; k < 16; k++)
            if (c + k % block < p->channels)
                value[k] = s->src[n * p->channels + c + k % block] / (float)p->positions;
        int64_t i = 0;
        for (; i + 16 <= elems; i += 16)
            for (int l = 0; l < 16; l++)
                dst[i + l] = value[l];
        for (; i < elems; i++)
            dst[i] = value[i % 16];
    }
}

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

/*
 * native_prelu.c: prelu and its gradient of f32, in one pass over memory each.
 *
 * Memory is cut into chunks whose weights repeat every 16 elements: planes of one channel or block of channels, or with
 * one weight for the layer any piece. The gradient of the weight is summed for each chunk, and these sums are added in
 * order, so it does not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"
#include "op/pointwise/op_activation.h"

enum { LANES = 16, PIECE = 8192 };

struct prelu {
    int64_t elems, chunk, chunks;   /* elements in all, elements of a chunk, number of chunks */
    int64_t weights, groups, block; /* chunk i has the `block` weights from i % groups * block on */
    int threads;
    const float *ddst, *src, *weight; /* of the running call */
    float *dst;
    double *sum; /* [chunks, block] */
};

static void chunks_of(const cvy_node *node, const cvy_layout *layout, struct prelu *s)
{
    const struct cvy_prelu *o = node->options;
    const cvy_shape *shape = &node->dst[0]->shape;
    s->weights = s->groups = s->block = 1;
    s->chunk = PIECE;
    if (o->per_channel) {
        const cvy_planes p = cvy_planes_make(shape, layout);
        s->weights = p.channels;
        s->groups = p.groups;
        s->block = p.block;
        s->chunk = CVY_MAX(1, p.positions * p.block);
    }
}

/* The layout of the activations: for a slope per channel, plain or blocked by channels. */
static cvy_layout layout_of(const cvy_kernel_ask *ask, int i)
{
    const struct cvy_prelu *o = ask->node->options;
    return o->per_channel ? cvy_native_channels(ask, i) : ask->src[i];
}

static cvy_status prelu_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    ask->src[0] = ask->dst[0] = layout_of(ask, 0);
    ask->src[1] = cvy_layout_plain();
    ask->inplace[0] = 1;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct prelu *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->threads = ask->threads;
    chunks_of(ask->node, &ask->dst[0], s);
    CVY_TRY(cvy_native_dst_elems(ask, &s->elems));
    s->chunks = (s->elems + s->chunk - 1) / s->chunk;
    return CVY_OK;
}

static cvy_status prelu_grad_offer(cvy_kernel_ask *ask)
{
    struct prelu s;
    int64_t elems;
    CVY_TRY(cvy_native_f32(ask->node));
    cvy_layout layout = layout_of(ask, 0);
    if (cvy_layout_is_plain(&layout))
        layout = layout_of(ask, 1);
    ask->src[0] = ask->src[1] = ask->dst[0] = layout;
    ask->src[2] = ask->dst[1] = cvy_layout_plain();
    ask->inplace[0] = 1;
    chunks_of(ask->node, &layout, &s);
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    ask->scratch_bytes = sizeof(double) * (size_t)((elems + s.chunk - 1) / s.chunk * s.block);
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

/* The weights of a chunk, repeated. Padding lanes have weight 0. */
CVY_INLINE void weights_of(const struct prelu *s, int64_t chunk, float out[LANES])
{
    const int64_t first = chunk % s->groups * s->block;
    for (int64_t l = 0; l < LANES; l++) {
        const int64_t k = first + l % s->block;
        out[l] = k < s->weights ? s->weight[k] : 0;
    }
}

CVY_SIMD static void prelu_range(int64_t first, int64_t end, void *arg)
{
    const struct prelu *s = arg;
    for (int64_t chunk = first; chunk < end; chunk++) {
        const int64_t at = chunk * s->chunk, n = CVY_MIN(s->chunk, s->elems - at);
        const float *x = s->src + at;
        float *dst = s->dst + at, weight[LANES];
        weights_of(s, chunk, weight);
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++)
                dst[i + l] = x[i + l] > 0 ? x[i + l] : weight[l] * x[i + l];
        for (; i < n; i++)
            dst[i] = x[i] > 0 ? x[i] : weight[i % LANES] * x[i];
    }
}

CVY_SIMD static void prelu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct prelu *s = arg;
    for (int64_t chunk = first; chunk < end; chunk++) {
        const int64_t at = chunk * s->chunk, n = CVY_MIN(s->chunk, s->elems - at);
        const float *x = s->src + at, *ddst = s->ddst + at;
        float *dst = s->dst + at, weight[LANES], sum[LANES] = {0};
        weights_of(s, chunk, weight);
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                const float d = ddst[i + l];
                sum[l] += x[i + l] > 0 ? 0 : d * x[i + l];
                dst[i + l] = x[i + l] > 0 ? d : weight[l] * d;
            }
        for (; i < n; i++) {
            const float d = ddst[i];
            sum[i % LANES] += x[i] > 0 ? 0 : d * x[i];
            dst[i] = x[i] > 0 ? d : weight[i % LANES] * d;
        }
        for (int64_t l = 0; l < s->block; l++) {
            double total = 0;
            for (int64_t k = l; k < LANES; k += s->block)
                total += sum[k];
            s->sum[chunk * s->block + l] = total;
        }
    }
}

static void run_chunks(struct prelu *s, cvy_range_fn body)
{
    cvy_parallel_for(s->threads, s->chunks, CVY_MAX(1, CVY_GRAIN / s->chunk), body, s);
}

static cvy_status prelu_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct prelu *s = state;
    (void)scratch;
    s->src = src[0];
    s->weight = src[1];
    s->dst = dst[0];
    run_chunks(s, prelu_range);
    return CVY_OK;
}

static cvy_status prelu_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct prelu *s = state;
    float *dweight = dst[1];
    s->ddst = src[0];
    s->src = src[1];
    s->weight = src[2];
    s->dst = dst[0];
    s->sum = scratch;
    run_chunks(s, prelu_grad_range);
    for (int64_t k = 0; k < s->weights; k++) {
        double total = 0;
        for (int64_t chunk = k / s->block; chunk < s->chunks; chunk += s->groups)
            total += s->sum[chunk * s->block + k % s->block];
        dweight[k] = (float)total;
    }
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_prelu) = {
    .name = "native.prelu",
    .op = "prelu",
    .preference = 50,
    .offer = prelu_offer,
    .create = create,
    .run = prelu_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_prelu_grad) = {
    .name = "native.prelu_grad",
    .op = "prelu_grad",
    .preference = 50,
    .offer = prelu_grad_offer,
    .create = create,
    .run = prelu_grad_run,
    .destroy = destroy,
};

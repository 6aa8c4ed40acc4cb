/*
 * gpu_lrn.c: lrn and its gradient on f32 and bf16, with channels last.
 *
 * op/norm/op_lrn.c has the formulas. A thread has one element; its neighbours in memory are the channels of its window.
 * The gradient needs the sum of a second term over the window. A block computes that term for all its elements, and for
 * half a window on each side of them, which the next block computes again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct lrn {
    i64 elems;
    int channels, reach;  /* reach: channels of the window on each side */
    float weight;         /* alpha / size */
    float beta, k, slope; /* slope: 2 alpha beta / size */
};

#ifdef CVY_DEVICE

/* scale^-beta, without a general power for the usual exponent. */
INLINE float power_of(float scale, float beta)
{
    if (beta == 0.75f) {
        const float root = SQRT(scale);
        return 1.0f / (root * SQRT(root));
    }
    return POW(scale, -beta);
}

INLINE float scale_at(struct lrn a, GLOBAL const act *src, i64 i, int c)
{
    const i64 end = i + MIN(a.reach, a.channels - 1 - c);
    float sum = 0;
    for (i64 j = i - MIN(a.reach, c); j <= end; j++) {
        const float x = GET(src, j);
        sum = FMA(x, x, sum);
    }
    return FMA(a.weight, sum, a.k);
}

KERNEL(lrn)(GLOBAL const act *src, GLOBAL act *dst, struct lrn a)
{
    FOR_EACH (i, a.elems)
        SET(dst, i, GET(src, i) * power_of(scale_at(a, src, i, (int)(i % a.channels)), a.beta));
}

/* A block has THREADS - 2 reach elements. */
KERNEL(lrn_grad)(GLOBAL const act *src, GLOBAL const act *ddst, GLOBAL act *dsrc, struct lrn a)
{
    SHARED float term[256]; /* ddst * src * scale^(-beta - 1) */
    const i64 i = (i64)BLOCK * (THREADS - 2 * a.reach) + THREAD - a.reach;
    const int inside = i >= 0 && i < a.elems, c = inside ? (int)(i % a.channels) : 0;
    float x = 0, passed = 0;
    term[THREAD] = 0;
    if (inside) {
        const float scale = scale_at(a, src, i, c);
        x = GET(src, i);
        passed = GET(ddst, i) * power_of(scale, a.beta);
        term[THREAD] = passed * x / scale;
    }
    BARRIER();
    if (inside && THREAD >= a.reach && THREAD < THREADS - a.reach) {
        float sum = 0;
        for (int j = -MIN(a.reach, c); j <= MIN(a.reach, a.channels - 1 - c); j++)
            sum += term[THREAD + j];
        SET(dsrc, i, passed - a.slope * x * sum);
    }
}

#else
#include "kernel/gpu/gpu_common.h"
#include "op/norm/op_lrn.h"

CVY_GPU_SOURCE_DECLARE(gpu_lrn);

enum { LRN_SIZE_MAX = 129 }; /* half of the threads of a block at least give a result */

struct call {
    cvy_gpu_kernel kernel;
    struct lrn a;
    int is_grad;
};

static cvy_status make(const cvy_kernel_ask *ask, struct call *c)
{
    const cvy_lrn_opts *o = ask->node->options;
    const cvy_shape *shape = &ask->node->src[0]->shape;
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    CVY_CHECK(o->size <= LRN_SIZE_MAX && shape->dim[1] < INT32_MAX, CVY_NOT_APPLICABLE,
              "this kernel has windows of at most %d channels, not %lld", LRN_SIZE_MAX, (long long)o->size);
    *c = (struct call){.is_grad = ask->node->nsrc == 2};
    c->a = (struct lrn){.elems = cvy_shape_elems(shape),
                        .channels = (int)shape->dim[1],
                        .reach = (int)(o->size / 2),
                        .weight = (float)(o->alpha / (double)o->size),
                        .beta = (float)o->beta,
                        .k = (float)o->k,
                        .slope = (float)(2 * o->alpha * o->beta / (double)o->size)};
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_lrn), c->is_grad ? "lrn_grad" : "lrn", act, &c->kernel);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    struct call c;
    CVY_TRY(make(ask, &c));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_gpu_layout(&ask->node->src[i]->shape);
    ask->dst[0] = ask->src[0];
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    return make(ask, c);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const int64_t each = CVY_GPU_THREADS - 2 * c->a.reach;
    (void)scratch;
    if (c->is_grad)
        return CVY_GPU_LAUNCH(&c->kernel, (c->a.elems + each - 1) / each, 1, 1, CVY_GPU_THREADS,
                              CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(dst[0]),
                              CVY_GPU_VALUE(c->a));
    return CVY_GPU_LAUNCH(&c->kernel, cvy_gpu_blocks(c->a.elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_lrn) = {CVY_GPU_FIELDS("lrn", offer, create, run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_lrn_grad) = {CVY_GPU_FIELDS("lrn_grad", offer, create, run, cvy_gpu_free_state)};
#endif

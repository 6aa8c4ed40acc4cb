/*
 * gpu_lrn_within.c: lrn_within and its gradient on f32 and bf16, with channels last.
 *
 * op/norm/op_lrn_within.c has the formulas. A thread has one element of a channel; neighbouring threads have
 * neighbouring channels, whose windows are beside each other in memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct within {
    i64 elems;
    int channels, reach;  /* reach: positions of the window on each side */
    int dim0, dim1, dim2; /* of the positions; 1 where there are fewer dimensions */
    int keeps;            /* the scale is wanted */
    float weight;         /* alpha / taps */
    float beta, k, slope; /* slope: 2 alpha beta / taps */
};

#ifdef CVY_DEVICE

/* The sum of x, or of its squares, over the window around element i. */
INLINE float window_sum(struct within a, GLOBAL const act *x, i64 i, int squared)
{
    const i64 row = i / a.channels;
    const int p2 = (int)(row % a.dim2), p1 = (int)(row / a.dim2 % a.dim1),
              p0 = (int)(row / ((i64)a.dim2 * a.dim1) % a.dim0);
    float sum = 0;
    for (int d0 = -MIN(a.reach, p0); d0 <= MIN(a.reach, a.dim0 - 1 - p0); d0++)
        for (int d1 = -MIN(a.reach, p1); d1 <= MIN(a.reach, a.dim1 - 1 - p1); d1++)
            for (int d2 = -MIN(a.reach, p2); d2 <= MIN(a.reach, a.dim2 - 1 - p2); d2++) {
                const float v = GET(x, i + (((i64)d0 * a.dim1 + d1) * a.dim2 + d2) * a.channels);
                sum += squared ? v * v : v;
            }
    return sum;
}

KERNEL(lrn_within)(GLOBAL const act *src, GLOBAL act *dst, GLOBAL act *kept, struct within a)
{
    FOR_EACH (i, a.elems) {
        const float scale = FMA(a.weight, window_sum(a, src, i, 1), a.k);
        SET(dst, i, GET(src, i) * POW(scale, -a.beta));
        if (a.keeps)
            SET(kept, i, scale);
    }
}

/* part = ddst * src * scale^(-beta - 1), whose sum over a window the next kernel needs. */
KERNEL(lrn_within_part)
(GLOBAL const act *src, GLOBAL const act *ddst, GLOBAL const act *scale, GLOBAL act *part, struct within a)
{
    FOR_EACH (i, a.elems)
        SET(part, i, GET(ddst, i) * GET(src, i) * POW(GET(scale, i), -a.beta) / GET(scale, i));
}

KERNEL(lrn_within_grad)
(GLOBAL const act *src, GLOBAL const act *ddst, GLOBAL const act *scale, GLOBAL const act *part, GLOBAL act *dsrc,
 struct within a)
{
    FOR_EACH (i, a.elems)
        SET(dsrc, i, GET(ddst, i) * POW(GET(scale, i), -a.beta) - a.slope * GET(src, i) * window_sum(a, part, i, 0));
}

#else
#include "kernel/gpu/gpu_common.h"
#include "op/norm/op_lrn.h"

CVY_GPU_SOURCE_DECLARE(gpu_lrn_within);

struct call {
    cvy_gpu_kernel kernel, part;
    struct within a;
    int is_grad;
};

static cvy_status make(const cvy_kernel_ask *ask, struct call *c)
{
    const cvy_lrn_opts *o = ask->node->options;
    const cvy_shape *shape = &ask->node->src[0]->shape;
    int64_t dim[3] = {1, 1, 1};
    double taps = 1;
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    for (int d = 2; d < shape->ndim; d++) {
        taps *= (double)o->size;
        dim[3 - shape->ndim + d] = shape->dim[d];
    }
    CVY_CHECK(cvy_shape_elems(shape) / CVY_MAX(shape->dim[0], 1) < INT32_MAX && o->size < INT32_MAX, CVY_NOT_APPLICABLE,
              "this kernel counts positions in 32 bits, and the source is %s", cvy_shape_text(shape));
    *c = (struct call){.is_grad = ask->node->nsrc == 3};
    c->a = (struct within){.elems = cvy_shape_elems(shape),
                           .channels = (int)shape->dim[1],
                           .reach = (int)(o->size / 2),
                           .dim0 = (int)dim[0],
                           .dim1 = (int)dim[1],
                           .dim2 = (int)dim[2],
                           .keeps = !c->is_grad && ask->node->dst[1],
                           .weight = (float)(o->alpha / taps),
                           .beta = (float)o->beta,
                           .k = (float)o->k,
                           .slope = (float)(2 * o->alpha * o->beta / taps)};
    if (c->is_grad)
        CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_lrn_within), "lrn_within_part", act, &c->part));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_lrn_within), c->is_grad ? "lrn_within_grad" : "lrn_within", act,
                         &c->kernel);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    struct call c;
    CVY_TRY(make(ask, &c));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_gpu_layout(&ask->node->src[i]->shape);
    ask->dst[0] = ask->dst[1] = ask->src[0];
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    return make(ask, c);
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *kept = c->a.keeps ? dst[1] : dst[0];
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel, cvy_gpu_blocks(c->a.elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_POINTER(kept), CVY_GPU_VALUE(c->a));
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    (void)scratch;
    CVY_TRY(CVY_GPU_LAUNCH(&c->part, cvy_gpu_blocks(c->a.elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(dst[1]),
                           CVY_GPU_VALUE(c->a)));
    return CVY_GPU_LAUNCH(&c->kernel, cvy_gpu_blocks(c->a.elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(dst[1]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_lrn_within) = {CVY_GPU_FIELDS("lrn_within", offer, create, forward_run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_lrn_within_grad) = {
    CVY_GPU_FIELDS("lrn_within_grad", offer, create, grad_run, cvy_gpu_free_state)};
#endif

/*
 * gpu_gradient_penalty.c: gradient_penalty and its gradient, of f32 and bf16. src/op/loss/op_gradient_penalty.c has the
 * formula.
 *
 * A block has a sample, whose elements may be in any order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { PENALTY_THREADS = 256 };
struct penalty {
    i64 samples, each;
    double target, loss_weight;
};

#ifdef CVY_DEVICE

KERNEL(gradient_penalty)(GLOBAL const act *g, GLOBAL const double *norm, GLOBAL double *part, struct penalty a)
{
    SHARED double s[PENALTY_THREADS];
    double loss = 0;
    for (i64 n = BLOCK; n < a.samples; n += BLOCKS) {
        double squares = 0;
        for (i64 i = n * a.each + THREAD; i < (n + 1) * a.each; i += THREADS)
            squares += (double)GET(g, i) * GET(g, i);
        BLOCK_SUM(squares, s);
        const double off = SQRT_D(squares) - a.target;
        loss += norm[0] == 0 ? 0 : off * off / norm[0];
    }
    if (THREAD == 0)
        part[BLOCK] = loss;
}

KERNEL(gradient_penalty_grad)
(GLOBAL const double *dloss, GLOBAL const act *g, GLOBAL const double *norm, GLOBAL act *dg, struct penalty a)
{
    SHARED double s[PENALTY_THREADS];
    for (i64 n = BLOCK; n < a.samples; n += BLOCKS) {
        double squares = 0;
        for (i64 i = n * a.each + THREAD; i < (n + 1) * a.each; i += THREADS)
            squares += (double)GET(g, i) * GET(g, i);
        BLOCK_SUM(squares, s);
        const double slope = SQRT_D(squares);
        const double factor =
            slope > 0 && norm[0] != 0 ? 2 * (slope - a.target) / slope * a.loss_weight * dloss[0] / norm[0] : 0;
        for (i64 i = n * a.each + THREAD; i < (n + 1) * a.each; i += THREADS)
            SET(dg, i, (float)(factor * GET(g, i)));
    }
}

#else
#include "kernel/gpu/loss/gpu_loss.h"

CVY_GPU_SOURCE_DECLARE(gpu_gradient_penalty);

struct call {
    cvy_gpu_kernel kernel, sum;
    struct penalty a;
    int64_t blocks;
};

static int64_t blocks_of(const cvy_node *node)
{
    return CVY_MIN(node->src[cvy_gpu_loss_first(node)]->shape.dim[0], CVY_GPU_LOSS_BLOCKS);
}

/* The name of the operator is that of its kernel. */
static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act_of(ask->node->src[cvy_gpu_loss_first(ask->node)], &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_gradient_penalty), ask->node->op->name, act, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int first = cvy_gpu_loss_first(node);
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    ask->src[first] = cvy_gpu_loss_layout(&ask->src[first], &node->src[first]->shape);
    if (first) {
        ask->dst[0] = ask->src[first];
        ask->inplace[0] = first + 1;
    } else {
        ask->scratch_bytes = sizeof(double) * (size_t)blocks_of(node);
    }
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const struct cvy_gradient_penalty *o = node->options;
    const cvy_shape *g = &node->src[cvy_gpu_loss_first(node)]->shape;
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->a = (struct penalty){g->dim[0], cvy_shape_elems(g) / g->dim[0], o->target, o->loss_weight};
    c->blocks = blocks_of(node);
    CVY_TRY(kernel(ask, &c->kernel));
    return cvy_gpu_loss_first(node) ? CVY_OK : cvy_gpu_loss_sum_get(ask->space, &c->sum);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, PENALTY_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(c->a)));
    return cvy_gpu_loss_sum_run(&c->sum, scratch, c->blocks, c->a.loss_weight, dst[0]);
}

static cvy_status run_grad(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, PENALTY_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_gradient_penalty) = {CVY_GPU_FIELDS("gradient_penalty", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_gradient_penalty_grad) = {
    CVY_GPU_FIELDS("gradient_penalty_grad", offer, create, run_grad, cvy_gpu_free_state)};
#endif

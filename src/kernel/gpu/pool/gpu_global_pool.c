/*
 * gpu_global_pool.c: global_avg_pool and global_max_pool, and their gradients, of f32 and bf16 with channels last.
 *
 * A block has 32 channels of one sample: rows of 32 threads go through the positions, and the rows are then joined in
 * order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { GLOBAL_WIDTH = 32, GLOBAL_THREADS = 256 };
struct global_pool {
    i64 elems, channels, positions; /* elems: of the source */
    i64 groups;                     /* of channels */
    int saves;                      /* the index is wanted */
};

#ifdef CVY_DEVICE

KERNEL(global_avg_pool)(GLOBAL const act *src, GLOBAL act *dst, struct global_pool p)
{
    SHARED float s[GLOBAL_THREADS];
    const i64 n = BLOCK / p.groups, c = (BLOCK - n * p.groups) * GLOBAL_WIDTH + THREAD % GLOBAL_WIDTH;
    const int row = THREAD / GLOBAL_WIDTH, rows = THREADS / GLOBAL_WIDTH;
    float sum = 0;
    for (i64 x = row; x < p.positions && c < p.channels; x += rows)
        sum += GET(src, (n * p.positions + x) * p.channels + c);
    s[THREAD] = sum;
    BARRIER();
    if (row == 0 && c < p.channels) {
        for (int r = 1; r < rows; r++)
            sum += s[r * GLOBAL_WIDTH + THREAD];
        SET(dst, n * p.channels + c, sum / (float)p.positions);
    }
}

KERNEL(global_avg_pool_grad)(GLOBAL const act *ddst, GLOBAL act *dsrc, struct global_pool p)
{
    const i64 each = p.positions * p.channels;
    FOR_EACH (i, p.elems) {
        const i64 n = i / each;
        SET(dsrc, i, GET(ddst, n * p.channels + i % p.channels) / (float)p.positions);
    }
}

/* Whether v at position x is the maximum in place of best at position at: the first of equal ones is. */
INLINE int wins(float v, int x, float best, int at)
{
    if (v != v || best != best)
        return v != v && (best == best || x < at);
    return v > best || (v == best && x < at);
}

KERNEL(global_max_pool)(GLOBAL const act *src, GLOBAL act *dst, GLOBAL int *index, struct global_pool p)
{
    SHARED float s[GLOBAL_THREADS];
    SHARED int s_at[GLOBAL_THREADS];
    const i64 n = BLOCK / p.groups, c = (BLOCK - n * p.groups) * GLOBAL_WIDTH + THREAD % GLOBAL_WIDTH;
    const int row = THREAD / GLOBAL_WIDTH, rows = THREADS / GLOBAL_WIDTH;
    float best = 0;
    int at = -1;
    for (i64 x = row; x < p.positions && c < p.channels; x += rows) {
        const float v = GET(src, (n * p.positions + x) * p.channels + c);
        if (at < 0 || wins(v, (int)x, best, at)) {
            best = v;
            at = (int)x;
        }
    }
    s[THREAD] = best;
    s_at[THREAD] = at;
    BARRIER();
    if (row == 0 && c < p.channels) {
        for (int r = 1; r < rows; r++) {
            const float v = s[r * GLOBAL_WIDTH + THREAD];
            const int x = s_at[r * GLOBAL_WIDTH + THREAD];
            if (x >= 0 && wins(v, x, best, at)) {
                best = v;
                at = x;
            }
        }
        SET(dst, n * p.channels + c, best);
        if (p.saves)
            index[n * p.channels + c] = at;
    }
}

KERNEL(global_max_pool_grad)(GLOBAL const act *ddst, GLOBAL const int *index, GLOBAL act *dsrc, struct global_pool p)
{
    const i64 each = p.positions * p.channels;
    FOR_EACH (i, p.elems) {
        const i64 n = i / each, c = i % p.channels, x = (i - n * each) / p.channels;
        dsrc[i] = index[n * p.channels + c] == x ? ddst[n * p.channels + c] : 0;
    }
}

#else
#include "kernel/gpu/gpu_common.h"
#include "op/conv/op_pool.h"

CVY_GPU_SOURCE_DECLARE(gpu_global_pool);

struct call {
    cvy_gpu_kernel kernel;
    struct global_pool p;
    int64_t blocks;
    int nsrc, ndst;
};

/* The name of the operator is that of its kernel. */
static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_global_pool), ask->node->op->name, act, out);
}

static const cvy_shape *large_side(const cvy_node *node)
{
    return node->src[0]->shape.ndim > 2 ? &node->src[0]->shape : &node->dst[0]->shape;
}

/* What is [N, C] is plain. */
static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_gpu_layout(&ask->node->src[i]->shape);
    for (int i = 0; i < ask->node->ndst; i++)
        if (ask->node->dst[i])
            ask->dst[i] = cvy_gpu_layout(&ask->node->dst[i]->shape);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const cvy_shape *shape = large_side(node);
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->p = (struct global_pool){.elems = cvy_shape_elems(shape),
                                .channels = shape->dim[1],
                                .positions = cvy_shape_positions(shape),
                                .groups = (shape->dim[1] + GLOBAL_WIDTH - 1) / GLOBAL_WIDTH};
    c->blocks = shape == &node->src[0]->shape ? shape->dim[0] * c->p.groups : cvy_gpu_blocks(c->p.elems);
    c->nsrc = node->nsrc;
    c->ndst = node->op->ndst;
    return kernel(ask, &c->kernel);
}

/* The index is a second destination forward, and a second source backward. */
static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct call *c = state;
    struct global_pool p = c->p;
    const int has_index = c->nsrc > 1 || c->ndst > 1;
    void *const index = c->ndst > 1 && dst[1] ? dst[1] : dst[0];
    (void)scratch;
    p.saves = c->ndst > 1 && dst[1];
    const cvy_gpu_arg plain[] = {CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(p)},
                      forward[] = {CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(dst[0]), CVY_GPU_POINTER(index),
                                   CVY_GPU_VALUE(p)},
                      backward[] = {CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[c->nsrc - 1]), CVY_GPU_POINTER(dst[0]),
                                    CVY_GPU_VALUE(p)};
    return cvy_gpu_launch(&c->kernel, c->blocks, 1, 1, GLOBAL_THREADS,
                          !has_index     ? plain
                          : c->nsrc == 1 ? forward
                                         : backward,
                          has_index ? 4 : 3);
}

CVY_KERNEL_DEFINE(gpu_global_avg_pool) = {CVY_GPU_FIELDS("global_avg_pool", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_global_avg_pool_grad) = {
    CVY_GPU_FIELDS("global_avg_pool_grad", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_global_max_pool) = {CVY_GPU_FIELDS("global_max_pool", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_global_max_pool_grad) = {
    CVY_GPU_FIELDS("global_max_pool_grad", offer, create, run, cvy_gpu_free_state)};
#endif

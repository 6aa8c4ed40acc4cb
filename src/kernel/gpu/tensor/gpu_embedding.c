/*
 * gpu_embedding.c: rows of a table and the gradient of the table, of f32 and bf16. The table and its gradient are f32.
 *
 * The gradient has a block for each index. If the row was named before, the block has nothing to do; else it adds the
 * gradients of all indices that name its row, in their order. An index that names no row gives NaN, so that the run
 * stops with losses that are not finite: a kernel cannot report a fault as the host does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct embedding {
    i64 n, rows, channels;
    int kind; /* of an index: for number_at */
};

#ifdef CVY_DEVICE

/* The row that index i names; -1: none. */
INLINE i64 row_at(GLOBAL const u8 *index, i64 i, struct embedding o)
{
    const double x = number_at(index, o.kind, i);
    return x >= 0 && x < (double)o.rows && x == (double)(i64)x ? (i64)x : -1;
}

KERNEL(embedding)(GLOBAL const u8 *index, GLOBAL const float *table, GLOBAL act *dst, struct embedding o)
{
    FOR_EACH (k, o.n * o.channels) {
        const i64 i = QUOTIENT(k, o.channels), row = row_at(index, i, o);
        SET(dst, k, row < 0 ? FLOAT_OF(0x7fc00000u) : table[row * o.channels + k - i * o.channels]);
    }
}

/* A block of 256 threads for each index. dtable is zero before. */
KERNEL(embedding_grad)(GLOBAL const u8 *index, GLOBAL const act *ddst, GLOBAL float *dtable, struct embedding o)
{
    SHARED int same[256];
    const i64 row = row_at(index, BLOCK, o);
    int before = 0;
    for (i64 j = THREAD; j < BLOCK; j += THREADS)
        before |= row_at(index, j, o) == row;
    same[THREAD] = before;
    BARRIER();
    before = 0;
    for (int t = 0; t < THREADS; t++)
        before |= same[t];
    if (before || row < 0)
        return;
    for (i64 c0 = 0; c0 < o.channels; c0 += THREADS) {
        const i64 c = c0 + THREAD;
        float sum = 0;
        for (i64 j0 = BLOCK; j0 < o.n; j0 += THREADS) {
            BARRIER();
            same[THREAD] = j0 + THREAD < o.n && row_at(index, j0 + THREAD, o) == row;
            BARRIER();
            for (int t = 0; t < THREADS && c < o.channels; t++)
                if (same[t])
                    sum += GET(ddst, (j0 + t) * o.channels + c);
        }
        if (c < o.channels)
            dtable[row * o.channels + c] = sum;
    }
}

#else
#include "kernel/gpu/gpu_walk.h"
#include "op/tensor/op_embedding.h"

CVY_GPU_SOURCE_DECLARE(gpu_embedding);

struct call {
    cvy_gpu_kernel kernel;
    struct embedding o;
};

static int is_grad(const cvy_node *node)
{
    return (node->op->flags & CVY_OP_HIDDEN) != 0;
}

static cvy_status kernel_get(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    const cvy_node *node = ask->node;
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act_of(is_grad(node) ? node->src[1] : node->dst[0], &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_embedding), is_grad(node) ? "embedding_grad" : "embedding", act, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->src[0] = ask->src[1] = ask->dst[0] = cvy_layout_plain();
    return kernel_get(ask, &kernel);
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_embedding_opts *o = ask->node->options;
    struct call *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->o = (struct embedding){cvy_shape_elems(cvy_node_src(ask->node, 0)), o->rows, o->channels,
                              cvy_gpu_number_kind(ask->node->src[0]->dtype)};
    return kernel_get(ask, &s->kernel);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.n * s->o.channels), 1, 1, CVY_GPU_THREADS,
                          CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->o));
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    CVY_TRY(cvy_gpu_zero(&s->kernel, dst[0], sizeof(float) * (size_t)(s->o.rows * s->o.channels)));
    return CVY_GPU_LAUNCH(&s->kernel, s->o.n, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_embedding) = {CVY_GPU_FIELDS("embedding", offer, create, run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_embedding_grad) = {CVY_GPU_FIELDS("embedding_grad", offer, create, grad_run, cvy_gpu_free_state)};
#endif

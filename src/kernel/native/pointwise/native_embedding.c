/*
 * native_embedding.c: rows of a table and the gradient of the table, of f32 and bf16.
 *
 * The table and its gradient are f32. A thread adds its own columns of all samples, in their order, so the gradient
 * does not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"
#include "op/tensor/op_embedding.h"

struct embedding {
    const cvy_node *node;
    int64_t channels, rows;
    int threads, half;
    cvy_span index;
    const void *from; /* of the running call: the table; in the gradient ddst */
    void *to;
};

/* The activation is the result, or source 1 of the gradient. */
static const cvy_value *activation_of(const cvy_node *node)
{
    return node->op->flags & CVY_OP_HIDDEN ? node->src[1] : node->dst[0];
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_dtype dtype = activation_of(ask->node)->dtype;
    CVY_CHECK(dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "this kernel computes in f32 and bf16; the result is %s", cvy_dtype_text(dtype));
    ask->src[0] = ask->src[1] = ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_embedding_opts *o = ask->node->options;
    const cvy_value *src = ask->node->src[0];
    struct embedding *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->node = ask->node;
    s->channels = o->channels;
    s->rows = o->rows;
    s->threads = ask->threads;
    s->half = activation_of(ask->node)->dtype == CVY_DTYPE_BF16;
    s->index = (cvy_span){.dtype = src->dtype, .ndim = src->shape.ndim, .elems = cvy_shape_elems(&src->shape)};
    memcpy(s->index.dim, src->shape.dim, sizeof s->index.dim);
    *state_out = s;
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_SIMD static void embedding_range(int64_t first, int64_t end, void *arg)
{
    const struct embedding *s = arg;
    for (int64_t i = first; i < end; i++)
        cvy_floats_store(s->half, (const float *)s->from + (int64_t)cvy_get(&s->index, i) * s->channels, s->channels,
                         s->to, i * s->channels);
}

CVY_SIMD static void embedding_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct embedding *s = arg;
    float *dst = s->to;
    for (int64_t row = 0; row < s->rows; row++)
        memset(dst + row * s->channels + first, 0, (size_t)(end - first) * sizeof *dst);
    for (int64_t i = 0; i < s->index.elems; i++) {
        float *sum = dst + (int64_t)cvy_get(&s->index, i) * s->channels;
        const float *d = (const float *)s->from + i * s->channels;
        const cvy_bf16 *narrow = (const cvy_bf16 *)s->from + i * s->channels;
        if (s->half)
            for (int64_t c = first; c < end; c++)
                sum[c] += cvy_bf16_get(narrow[c]);
        else
            for (int64_t c = first; c < end; c++)
                sum[c] += d[c];
    }
}

static cvy_status embedding_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct embedding *s = state;
    (void)scratch;
    s->index.data = src[0];
    s->from = src[1];
    s->to = dst[0];
    CVY_TRY(cvy_embedding_check(s->node, &s->index));
    cvy_parallel_for(s->threads, s->index.elems, CVY_MAX(1, CVY_GRAIN / s->channels), embedding_range, s);
    return CVY_OK;
}

static cvy_status embedding_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct embedding *s = state;
    (void)scratch;
    s->index.data = src[0];
    s->from = src[1];
    s->to = dst[0];
    CVY_TRY(cvy_embedding_check(s->node, &s->index));
    cvy_parallel_for(s->threads, s->channels, CVY_MAX(16, CVY_GRAIN / CVY_MAX(1, s->index.elems + s->rows)),
                     embedding_grad_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_embedding) = {
    .name = "native.embedding",
    .op = "embedding",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = embedding_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_embedding_grad) = {
    .name = "native.embedding_grad",
    .op = "embedding_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = embedding_grad_run,
    .destroy = destroy,
};

/*
 * native_combine.c: sum, product, difference and maximum of tensors of one shape, the gradient of the maximum, and the
 * product of a tensor and a number, of f32 and bf16, in one pass over memory each.
 *
 * Results of bf16 are computed in f32 and rounded once. Sums are used for residual connections and for gradients that
 * come from several consumers; products for gates and their gradients.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"
#include "op/pointwise/op_scale.h"

struct combine {
    int64_t elems, grain;
    int threads, nsrc, ndst, bf16;
    float by; /* factor of the operator scale */
    cvy_range_fn range;
    const void *src[CVY_NODE_SRC_MAX]; /* of the running call */
    void *dst[CVY_NODE_DST_MAX];
};

enum combine_how { ADD, MULTIPLY, SUBTRACT, MAXIMUM };

/* `how` is a constant after inlining. */
CVY_INLINE float combined(enum combine_how how, float a, float b)
{
    switch (how) {
    case ADD: return a + b;
    case MULTIPLY: return a * b;
    case SUBTRACT: return a - b;
    default: return a > b || a != a ? a : b; /* NaN if one of them is NaN */
    }
}

/* A tile of the result stays in the first-level cache while the sources are read one after the other. */
CVY_INLINE void combine_floats(const struct combine *s, int64_t first, int64_t end, enum combine_how how)
{
    enum { TILE = 2048 };
    for (int64_t at = first; at < end; at += TILE) {
        const int64_t n = CVY_MIN(TILE, end - at);
        const float *a = (const float *)s->src[0] + at, *b = (const float *)s->src[1] + at;
        float *dst = (float *)s->dst[0] + at;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dst[i] = combined(how, a[i], b[i]);
        for (int k = 2; k < s->nsrc; k++) {
            const float *c = (const float *)s->src[k] + at;
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                dst[i] = combined(how, dst[i], c[i]);
        }
    }
}

CVY_INLINE void combine_bf16(const struct combine *s, int64_t first, int64_t end, enum combine_how how)
{
    enum { TILE = 1024 };
    float all[TILE];
    for (int64_t at = first; at < end; at += TILE) {
        const int64_t n = CVY_MIN(TILE, end - at);
        cvy_floats_load(1, s->src[0], at, n, all);
        for (int k = 1; k < s->nsrc; k++) {
            const cvy_bf16 *c = (const cvy_bf16 *)s->src[k] + at;
            for (int64_t i = 0; i < n; i++)
                all[i] = combined(how, all[i], cvy_bf16_get(c[i]));
        }
        cvy_floats_store(1, all, n, s->dst[0], at);
    }
}

CVY_SIMD static void add_range(int64_t first, int64_t end, void *arg)
{
    combine_floats(arg, first, end, ADD);
}

CVY_SIMD static void add_bf16_range(int64_t first, int64_t end, void *arg)
{
    combine_bf16(arg, first, end, ADD);
}

CVY_SIMD static void multiply_range(int64_t first, int64_t end, void *arg)
{
    combine_floats(arg, first, end, MULTIPLY);
}

CVY_SIMD static void multiply_bf16_range(int64_t first, int64_t end, void *arg)
{
    combine_bf16(arg, first, end, MULTIPLY);
}

CVY_SIMD static void subtract_range(int64_t first, int64_t end, void *arg)
{
    combine_floats(arg, first, end, SUBTRACT);
}

CVY_SIMD static void subtract_bf16_range(int64_t first, int64_t end, void *arg)
{
    combine_bf16(arg, first, end, SUBTRACT);
}

CVY_SIMD static void maximum_range(int64_t first, int64_t end, void *arg)
{
    combine_floats(arg, first, end, MAXIMUM);
}

CVY_SIMD static void maximum_bf16_range(int64_t first, int64_t end, void *arg)
{
    combine_bf16(arg, first, end, MAXIMUM);
}

/* Source 0 is ddst. First the maximum of a tile and each winner's share of ddst are found, then the gradients. */
CVY_INLINE void maximum_grad(const struct combine *s, int half, int64_t first, int64_t end)
{
    enum { TILE = 512 };
    float max[TILE], share[TILE], x[TILE], equal[TILE];
    for (int64_t at = first; at < end; at += TILE) {
        const int64_t n = CVY_MIN(TILE, end - at);
        cvy_floats_load(half, s->src[1], at, n, max);
        for (int k = 2; k < s->nsrc; k++) {
            cvy_floats_load(half, s->src[k], at, n, x);
            for (int64_t i = 0; i < n; i++)
                max[i] = combined(MAXIMUM, max[i], x[i]);
        }
        memset(equal, 0, sizeof equal);
        for (int k = 1; k < s->nsrc; k++) {
            cvy_floats_load(half, s->src[k], at, n, x);
            for (int64_t i = 0; i < n; i++)
                equal[i] += x[i] == max[i] ? 1.0f : 0.0f;
        }
        cvy_floats_load(half, s->src[0], at, n, share);
        for (int64_t i = 0; i < n; i++)
            share[i] /= equal[i];
        for (int k = 1; k < s->nsrc; k++) {
            cvy_floats_load(half, s->src[k], at, n, x);
            for (int64_t i = 0; i < n; i++)
                x[i] = x[i] == max[i] ? share[i] : 0.0f;
            cvy_floats_store(half, x, n, s->dst[k - 1], at);
        }
    }
}

CVY_SIMD static void maximum_grad_range(int64_t first, int64_t end, void *arg)
{
    maximum_grad(arg, 0, first, end);
}

CVY_SIMD static void maximum_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    maximum_grad(arg, 1, first, end);
}

CVY_SIMD static void scale_range(int64_t first, int64_t end, void *arg)
{
    const struct combine *s = arg;
    const float *src = s->src[0], by = s->by;
    float *dst = s->dst[0];
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = by * src[i];
}

CVY_SIMD static void scale_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct combine *s = arg;
    const cvy_bf16 *src = s->src[0];
    const float by = s->by;
    cvy_bf16 *dst = s->dst[0];
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = cvy_bf16_of(by * cvy_bf16_get(src[i]));
}

static const struct combine_op {
    const char *op;
    cvy_range_fn range[2]; /* f32, bf16 */
} combine_ops[] = {
    {"add", {add_range, add_bf16_range}},
    {"multiply", {multiply_range, multiply_bf16_range}},
    {"subtract", {subtract_range, subtract_bf16_range}},
    {"maximum", {maximum_range, maximum_bf16_range}},
    {"maximum_grad", {maximum_grad_range, maximum_grad_bf16_range}},
    {"scale", {scale_range, scale_bf16_range}},
};

static cvy_status offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    cvy_native_common_layout(ask, ask->node->nsrc, 0);
    for (int i = 1; i < ask->node->ndst; i++)
        ask->dst[i] = ask->dst[0];
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    struct combine *s = NULL;
    int64_t elems;
    int row = 0;
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    while (strcmp(combine_ops[row].op, node->op->name) != 0)
        row++;
    s->elems = elems;
    s->threads = ask->threads;
    s->nsrc = node->nsrc;
    s->ndst = node->ndst;
    s->bf16 = node->src[0]->dtype == CVY_DTYPE_BF16;
    s->range = combine_ops[row].range[s->bf16];
    s->grain = s->bf16 ? 2 * CVY_GRAIN : CVY_GRAIN;
    *state_out = s;
    return CVY_OK;
}

static cvy_status scale_create(const cvy_kernel_ask *ask, void **state_out)
{
    CVY_TRY(create(ask, state_out));
    ((struct combine *)*state_out)->by = (float)((const cvy_scale_opts *)ask->node->options)->by;
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct combine *s = state;
    (void)scratch;
    for (int i = 0; i < s->nsrc; i++)
        s->src[i] = src[i];
    for (int i = 0; i < s->ndst; i++)
        s->dst[i] = dst[i];
    cvy_parallel_for(s->threads, s->elems, s->grain, s->range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_add) = {
    .name = "native.add",
    .op = "add",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_multiply) = {
    .name = "native.multiply",
    .op = "multiply",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_subtract) = {
    .name = "native.subtract",
    .op = "subtract",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_maximum) = {
    .name = "native.maximum",
    .op = "maximum",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_maximum_grad) = {
    .name = "native.maximum_grad",
    .op = "maximum_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_scale) = {
    .name = "native.scale",
    .op = "scale",
    .preference = 50,
    .offer = offer,
    .create = scale_create,
    .run = run,
    .destroy = destroy,
};

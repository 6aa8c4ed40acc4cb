/*
 * native_add.c: the sum of two to eight tensors, and the product of a tensor and a number, of f32 and bf16, in one pass
 * over memory each.
 *
 * Sums of bf16 are computed in f32 and rounded once. They are used for residual connections and for gradients that come
 * from several consumers.
 */
#include "kernel/native/native_common.h"
#include "op/pointwise/op_scale.h"

struct add {
    int64_t elems, grain;
    int threads, nsrc, bf16;
    float by;                          /* factor of the operator scale */
    const void *src[CVY_NODE_SRC_MAX]; /* of the running call */
    void *dst;
};

static cvy_status add_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    cvy_native_common_layout(ask, ask->node->nsrc, 0);
    return CVY_OK;
}

static cvy_status add_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct add *s = NULL;
    int64_t elems;
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->elems = elems;
    s->threads = ask->threads;
    s->nsrc = ask->node->nsrc;
    s->bf16 = ask->node->src[0]->dtype == CVY_DTYPE_BF16;
    s->grain = s->bf16 ? 2 * CVY_GRAIN : CVY_GRAIN;
    *state_out = s;
    return CVY_OK;
}

static cvy_status scale_create(const cvy_kernel_ask *ask, void **state_out)
{
    CVY_TRY(add_create(ask, state_out));
    ((struct add *)*state_out)->by = (float)((const cvy_scale_opts *)ask->node->options)->by;
    return CVY_OK;
}

static void add_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* A tile of the result stays in the first-level cache while the sources are added one after the other. */
CVY_SIMD static void add_range(int64_t first, int64_t end, void *arg)
{
    enum { TILE = 2048 };
    const struct add *s = arg;
    for (int64_t at = first; at < end; at += TILE) {
        const int64_t n = CVY_MIN(TILE, end - at);
        const float *a = (const float *)s->src[0] + at, *b = (const float *)s->src[1] + at;
        float *dst = (float *)s->dst + at;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dst[i] = a[i] + b[i];
        for (int k = 2; k < s->nsrc; k++) {
            const float *c = (const float *)s->src[k] + at;
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                dst[i] += c[i];
        }
    }
}

CVY_SIMD static void add_bf16_range(int64_t first, int64_t end, void *arg)
{
    enum { TILE = 1024 };
    const struct add *s = arg;
    float sum[TILE];
    for (int64_t at = first; at < end; at += TILE) {
        const int64_t n = CVY_MIN(TILE, end - at);
        cvy_floats_load(1, s->src[0], at, n, sum);
        for (int k = 1; k < s->nsrc; k++) {
            const cvy_bf16 *c = (const cvy_bf16 *)s->src[k] + at;
            for (int64_t i = 0; i < n; i++)
                sum[i] += cvy_bf16_get(c[i]);
        }
        cvy_floats_store(1, sum, n, s->dst, at);
    }
}

CVY_SIMD static void scale_range(int64_t first, int64_t end, void *arg)
{
    const struct add *s = arg;
    const float *src = s->src[0], by = s->by;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = by * src[i];
}

CVY_SIMD static void scale_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct add *s = arg;
    const cvy_bf16 *src = s->src[0];
    const float by = s->by;
    cvy_bf16 *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = cvy_bf16_of(by * cvy_bf16_get(src[i]));
}

static cvy_status run(struct add *s, void *const *src, void *const *dst, cvy_range_fn body)
{
    for (int i = 0; i < s->nsrc; i++)
        s->src[i] = src[i];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->elems, s->grain, body, s);
    return CVY_OK;
}

static cvy_status add_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct add *s = state;
    (void)scratch;
    return run(s, src, dst, s->bf16 ? add_bf16_range : add_range);
}

static cvy_status scale_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct add *s = state;
    (void)scratch;
    return run(s, src, dst, s->bf16 ? scale_bf16_range : scale_range);
}

CVY_KERNEL_DEFINE(native_add) = {
    .name = "native.add",
    .op = "add",
    .preference = 50,
    .offer = add_offer,
    .create = add_create,
    .run = add_run,
    .destroy = add_destroy,
};

CVY_KERNEL_DEFINE(native_scale) = {
    .name = "native.scale",
    .op = "scale",
    .preference = 50,
    .offer = add_offer,
    .create = scale_create,
    .run = scale_run,
    .destroy = add_destroy,
};

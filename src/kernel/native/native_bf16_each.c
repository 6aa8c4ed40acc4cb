/*
 * native_bf16_each.c: relu, its gradient, add and scale on bf16, in one pass over memory, in place where the plan allows.
 * In the step: as their f32 kernels; half the bytes. Sums of add are formed in f32 and rounded once.
 */
#include "kernel/native/native_bf16.h"
#include "op/op_scale.h"

struct each {
    int64_t elems;
    int threads, nsrc;
    float by;                              /* scale */
    const cvy_bf16 *src[CVY_NODE_SRC_MAX]; /* of the running call */
    cvy_bf16 *dst;
};

static cvy_status each_offer(cvy_kernel_ask *ask)
{
    return cvy_native_bf16_elementwise(ask, ask->node->nsrc, 0);
}

static cvy_status each_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct each *s = NULL;
    int64_t elems;
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->elems = elems;
    s->threads = ask->threads;
    s->nsrc = ask->node->nsrc;
    *state_out = s;
    return CVY_OK;
}

static cvy_status scale_create(const cvy_kernel_ask *ask, void **state_out)
{
    CVY_TRY(each_create(ask, state_out));
    ((struct each *)*state_out)->by = (float)((const cvy_scale_opts *)ask->node->options)->by;
    return CVY_OK;
}

static void each_destroy(void *state)
{
    cvy_mem_free(&state);
}

static cvy_status run(struct each *s, void *const *src, void *const *dst, cvy_range_fn body)
{
    for (int i = 0; i < s->nsrc; i++)
        s->src[i] = src[i];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->elems, 2 * CVY_GRAIN, body, s);
    return CVY_OK;
}

/* A number above zero has no sign bit, some other bit, and is no NaN. */
CVY_INLINE cvy_bf16 positive(cvy_bf16 x)
{
    return (cvy_bf16)(x - 1) < 0x7f80 ? 0xffff : 0;
}

CVY_SIMD static void relu_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct each *s = arg;
    const cvy_bf16 *src = s->src[0];
    cvy_bf16 *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = src[i] & positive(src[i]);
}

CVY_SIMD static void relu_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct each *s = arg;
    const cvy_bf16 *ddst = s->src[0], *y = s->src[1];
    cvy_bf16 *dsrc = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dsrc[i] = ddst[i] & positive(y[i]);
}

CVY_SIMD static void scale_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct each *s = arg;
    const cvy_bf16 *src = s->src[0];
    const float by = s->by;
    cvy_bf16 *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = cvy_bf16_of(by * cvy_bf16_get(src[i]));
}

CVY_SIMD static void add_bf16_range(int64_t first, int64_t end, void *arg)
{
    enum { TILE = 1024 };
    const struct each *s = arg;
    float sum[TILE];
    for (int64_t at = first; at < end; at += TILE) {
        const int64_t n = CVY_MIN(TILE, end - at);
        const cvy_bf16 *a = s->src[0] + at, *b = s->src[1] + at;
        cvy_bf16 *dst = s->dst + at;
        for (int64_t i = 0; i < n; i++)
            sum[i] = cvy_bf16_get(a[i]) + cvy_bf16_get(b[i]);
        for (int k = 2; k < s->nsrc; k++) {
            const cvy_bf16 *c = s->src[k] + at;
            for (int64_t i = 0; i < n; i++)
                sum[i] += cvy_bf16_get(c[i]);
        }
        for (int64_t i = 0; i < n; i++)
            dst[i] = cvy_bf16_of(sum[i]);
    }
}

static cvy_status relu_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, relu_bf16_range);
}

static cvy_status relu_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, relu_grad_bf16_range);
}

static cvy_status scale_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, scale_bf16_range);
}

static cvy_status add_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, add_bf16_range);
}

CVY_KERNEL_DEFINE(native_relu_bf16) = {
    .name = "native.relu_bf16",
    .op = "relu",
    .preference = 50,
    .offer = each_offer,
    .create = each_create,
    .run = relu_run,
    .destroy = each_destroy,
};

CVY_KERNEL_DEFINE(native_relu_grad_bf16) = {
    .name = "native.relu_grad_bf16",
    .op = "relu_grad",
    .preference = 50,
    .offer = each_offer,
    .create = each_create,
    .run = relu_grad_run,
    .destroy = each_destroy,
};

CVY_KERNEL_DEFINE(native_add_bf16) = {
    .name = "native.add_bf16",
    .op = "add",
    .preference = 50,
    .offer = each_offer,
    .create = each_create,
    .run = add_run,
    .destroy = each_destroy,
};

CVY_KERNEL_DEFINE(native_scale_bf16) = {
    .name = "native.scale_bf16",
    .op = "scale",
    .preference = 50,
    .offer = each_offer,
    .create = scale_create,
    .run = scale_run,
    .destroy = each_destroy,
};

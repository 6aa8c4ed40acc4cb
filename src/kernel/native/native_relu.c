/*
 * native_relu.c: relu and relu_grad in one pass over memory, in place where the plan allows.
 * In the step: where no convolution took the relu in; relu_grad behind every relu. Both are bound by memory bandwidth.
 */
#include "kernel/native/native_common.h"

struct relu {
    int64_t elems;
    int threads;
    const float *src, *ddst; /* of the running call */
    float *dst;
};

static cvy_status relu_offer(cvy_kernel_ask *ask)
{
    return cvy_native_offer_elementwise(ask, 1, 0);
}

static cvy_status relu_grad_offer(cvy_kernel_ask *ask)
{
    return cvy_native_offer_elementwise(ask, 2, 0);
}

static cvy_status relu_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct relu *s = NULL;
    int64_t elems;
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->elems = elems;
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
}

static void relu_destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_SIMD static void relu_range(int64_t first, int64_t end, void *arg)
{
    const struct relu *s = arg;
    const float *src = s->src;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = src[i] > 0 ? src[i] : 0;
}

static cvy_status relu_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct relu *s = state;
    (void)scratch;
    s->src = src[0];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->elems, CVY_GRAIN, relu_range, s);
    return CVY_OK;
}

CVY_SIMD static void relu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct relu *s = arg;
    const float *ddst = s->ddst, *y = s->src;
    float *dsrc = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float d = ddst[i];
        dsrc[i] = y[i] > 0 ? d : 0;
    }
}

static cvy_status relu_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct relu *s = state;
    (void)scratch;
    s->ddst = src[0];
    s->src = src[1];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->elems, CVY_GRAIN, relu_grad_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_relu) = {
    .name = "native.relu",
    .op = "relu",
    .preference = 50,
    .offer = relu_offer,
    .create = relu_create,
    .run = relu_run,
    .destroy = relu_destroy,
};

CVY_KERNEL_DEFINE(native_relu_grad) = {
    .name = "native.relu_grad",
    .op = "relu_grad",
    .preference = 50,
    .offer = relu_grad_offer,
    .create = relu_create,
    .run = relu_grad_run,
    .destroy = relu_destroy,
};

/*
 * native_activation.c: leaky_relu, sigmoid, tanh, their gradients, and clip_value: one pass over memory, in place if
 * the plan allows it.
 *
 * clip_value runs in the UPDATE phase. All except the exponentials are limited by memory bandwidth.
 */
#include "kernel/native/native_math.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_clip.h"

struct elementwise {
    int64_t elems;
    int threads;
    float parameter;    /* slope or limit */
    const float *a, *b; /* sources, of the running call */
    float *dst;
};

static cvy_status unary_offer(cvy_kernel_ask *ask)
{
    return cvy_native_offer_elementwise(ask, 1, 0);
}

static cvy_status binary_offer(cvy_kernel_ask *ask)
{
    return cvy_native_offer_elementwise(ask, 2, 0);
}

/* sigmoid(0) is not 0, so padding lanes would not stay zero. The layout is plain if the source's layout has padding. */
static cvy_status sigmoid_offer(cvy_kernel_ask *ask)
{
    int64_t elems = 0;
    CVY_TRY(unary_offer(ask));
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    if (elems != cvy_shape_elems(&ask->node->dst[0]->shape))
        ask->src[0] = ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, double parameter, void **state_out)
{
    struct elementwise *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->threads = ask->threads;
    s->parameter = (float)parameter;
    *state_out = s;
    return cvy_native_dst_elems(ask, &s->elems);
}

static cvy_status plain_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, 0, state_out);
}

static cvy_status leaky_relu_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, ((const struct cvy_leaky_relu *)ask->node->options)->slope, state_out);
}

static cvy_status clip_value_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, ((const struct cvy_clip_value *)ask->node->options)->limit, state_out);
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

static cvy_status run(struct elementwise *s, void *const *src, int nsrc, void *const *dst, cvy_range_fn range)
{
    s->a = src[0];
    s->b = nsrc > 1 ? src[1] : NULL;
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->elems, CVY_GRAIN, range, s);
    return CVY_OK;
}

/* ---- leaky_relu ---- */

CVY_SIMD static void leaky_relu_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] > 0 ? a[i] : parameter * a[i];
}

static cvy_status leaky_relu_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 1, dst, leaky_relu_range);
}

CVY_KERNEL_DEFINE(native_leaky_relu) = {
    .name = "native.leaky_relu",
    .op = "leaky_relu",
    .preference = 50,
    .offer = unary_offer,
    .create = leaky_relu_create,
    .run = leaky_relu_run,
    .destroy = destroy,
};

/* ---- leaky_relu_grad ---- */

CVY_SIMD static void leaky_relu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = b[i] > 0 ? a[i] : parameter * a[i];
}

static cvy_status leaky_relu_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 2, dst, leaky_relu_grad_range);
}

CVY_KERNEL_DEFINE(native_leaky_relu_grad) = {
    .name = "native.leaky_relu_grad",
    .op = "leaky_relu_grad",
    .preference = 50,
    .offer = binary_offer,
    .create = leaky_relu_create,
    .run = leaky_relu_grad_run,
    .destroy = destroy,
};

/* ---- sigmoid ---- */

CVY_SIMD static void sigmoid_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = 1.0f / (1.0f + cvy_exp(-a[i]));
}

static cvy_status sigmoid_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 1, dst, sigmoid_range);
}

CVY_KERNEL_DEFINE(native_sigmoid) = {
    .name = "native.sigmoid",
    .op = "sigmoid",
    .preference = 50,
    .offer = sigmoid_offer,
    .create = plain_create,
    .run = sigmoid_run,
    .destroy = destroy,
};

/* ---- sigmoid_grad ---- */

CVY_SIMD static void sigmoid_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] * b[i] * (1.0f - b[i]);
}

static cvy_status sigmoid_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 2, dst, sigmoid_grad_range);
}

CVY_KERNEL_DEFINE(native_sigmoid_grad) = {
    .name = "native.sigmoid_grad",
    .op = "sigmoid_grad",
    .preference = 50,
    .offer = binary_offer,
    .create = plain_create,
    .run = sigmoid_grad_run,
    .destroy = destroy,
};

/* ---- tanh ---- */

CVY_SIMD static void tanh_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = cvy_tanh(a[i]);
}

static cvy_status tanh_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 1, dst, tanh_range);
}

CVY_KERNEL_DEFINE(native_tanh) = {
    .name = "native.tanh",
    .op = "tanh",
    .preference = 50,
    .offer = unary_offer,
    .create = plain_create,
    .run = tanh_run,
    .destroy = destroy,
};

/* ---- tanh_grad ---- */

CVY_SIMD static void tanh_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] * (1.0f - b[i]) * (1.0f + b[i]);
}

static cvy_status tanh_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 2, dst, tanh_grad_range);
}

CVY_KERNEL_DEFINE(native_tanh_grad) = {
    .name = "native.tanh_grad",
    .op = "tanh_grad",
    .preference = 50,
    .offer = binary_offer,
    .create = plain_create,
    .run = tanh_grad_run,
    .destroy = destroy,
};

/* ---- clip_value ---- */

CVY_SIMD static void clip_value_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] > parameter ? parameter : a[i] < -parameter ? -parameter : a[i];
}

static cvy_status clip_value_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 1, dst, clip_value_range);
}

CVY_KERNEL_DEFINE(native_clip_value) = {
    .name = "native.clip_value",
    .op = "clip_value",
    .preference = 50,
    .offer = unary_offer,
    .create = clip_value_create,
    .run = clip_value_run,
    .destroy = destroy,
};

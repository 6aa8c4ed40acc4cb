/*
 * native_activation.c: leaky_relu, sigmoid, tanh, their gradients, and clip_value: one pass over memory, in place if
 * the plan allows it.
 *
 * clip_value runs in the UPDATE phase. All except the exponentials are limited by memory bandwidth.
 */
#include <string.h>

#include "kernel/native/native_math.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_clip.h"

struct elementwise {
    cvy_range_fn range;
    int64_t elems;
    int threads, nsrc;
    float parameter;    /* slope or limit */
    const float *a, *b; /* sources, of the running call */
    float *dst;
};

CVY_SIMD static void leaky_relu_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] > 0 ? a[i] : parameter * a[i];
}

CVY_SIMD static void leaky_relu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = b[i] > 0 ? a[i] : parameter * a[i];
}

CVY_SIMD static void sigmoid_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = 1.0f / (1.0f + cvy_exp(-a[i]));
}

CVY_SIMD static void sigmoid_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] * b[i] * (1.0f - b[i]);
}

CVY_SIMD static void tanh_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = cvy_tanh(a[i]);
}

CVY_SIMD static void tanh_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] * (1.0f - b[i]) * (1.0f + b[i]);
}

CVY_SIMD static void clip_value_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] > parameter ? parameter : a[i] < -parameter ? -parameter : a[i];
}

static double slope_of(const void *options)
{
    return ((const struct cvy_leaky_relu *)options)->slope;
}

static double limit_of(const void *options)
{
    return ((const struct cvy_clip_value *)options)->limit;
}

static const struct activation {
    const char *op;
    int nsrc, zero_changes; /* zero_changes: the result for zeros is not zero */
    cvy_range_fn range;
    double (*parameter)(const void *options);
} activations[] = {
    {"leaky_relu", 1, 0, leaky_relu_range, slope_of},
    {"leaky_relu_grad", 2, 0, leaky_relu_grad_range, slope_of},
    {"sigmoid", 1, 1, sigmoid_range, NULL},
    {"sigmoid_grad", 2, 0, sigmoid_grad_range, NULL},
    {"tanh", 1, 0, tanh_range, NULL},
    {"tanh_grad", 2, 0, tanh_grad_range, NULL},
    {"clip_value", 1, 0, clip_value_range, limit_of},
};

static const struct activation *activation_of(const cvy_node *node)
{
    int i = 0;
    while (strcmp(activations[i].op, node->op->name) != 0)
        i++;
    return &activations[i];
}

/* The layout is plain if the source's layout has padding and padding lanes would not stay zero. */
static cvy_status offer(cvy_kernel_ask *ask)
{
    const struct activation *a = activation_of(ask->node);
    int64_t elems = 0;
    CVY_TRY(cvy_native_offer_elementwise(ask, a->nsrc, 0));
    if (!a->zero_changes)
        return CVY_OK;
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    if (elems != cvy_shape_elems(&ask->node->dst[0]->shape))
        ask->src[0] = ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const struct activation *a = activation_of(ask->node);
    struct elementwise *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->range = a->range;
    s->nsrc = a->nsrc;
    s->threads = ask->threads;
    s->parameter = a->parameter ? (float)a->parameter(ask->node->options) : 0;
    *state_out = s;
    return cvy_native_dst_elems(ask, &s->elems);
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct elementwise *s = state;
    (void)scratch;
    s->a = src[0];
    s->b = s->nsrc > 1 ? src[1] : NULL;
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->elems, CVY_GRAIN, s->range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_leaky_relu) = {
    .name = "native.leaky_relu",
    .op = "leaky_relu",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_leaky_relu_grad) = {
    .name = "native.leaky_relu_grad",
    .op = "leaky_relu_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_sigmoid) = {
    .name = "native.sigmoid",
    .op = "sigmoid",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_sigmoid_grad) = {
    .name = "native.sigmoid_grad",
    .op = "sigmoid_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_tanh) = {
    .name = "native.tanh",
    .op = "tanh",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_tanh_grad) = {
    .name = "native.tanh_grad",
    .op = "tanh_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_clip_value) = {
    .name = "native.clip_value",
    .op = "clip_value",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

/*
 * native_activation.c: leaky_relu, sigmoid, tanh, silu, gelu, hard_swish, hard_sigmoid, elu, softplus, clamp, their
 * gradients, offset and clip_value: one pass over memory, in place if the plan allows it.
 *
 * clip_value runs in the UPDATE phase. All except the exponentials are limited by memory bandwidth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/native_math.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_clip.h"

struct elementwise {
    cvy_range_fn range;
    int64_t elems;
    int threads, nsrc;
    float parameter;    /* slope, limit, or a lower bound */
    float second;       /* another one: of clamp the upper bound */
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

CVY_SIMD static void silu_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] / (1.0f + cvy_exp(-a[i]));
}

CVY_SIMD static void silu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float y = 1.0f / (1.0f + cvy_exp(-b[i]));
        dst[i] = a[i] * y * (1.0f + b[i] * (1.0f - y));
    }
}

/* The argument of the hyperbolic tangent in gelu with approximate: tanh. */
CVY_INLINE float gelu_argument(float x)
{
    return 0.7978845608028654f * (x + 0.044715f * x * x * x);
}

CVY_SIMD static void gelu_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] * (0.5f + 0.5f * cvy_tanh(gelu_argument(a[i])));
}

CVY_SIMD static void gelu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float x = b[i], t = cvy_tanh(gelu_argument(x));
        const float density = (1.0f - t) * (1.0f + t) * 0.3989422804014327f * (1.0f + 0.134145f * x * x);
        dst[i] = a[i] * (0.5f + 0.5f * t + x * density);
    }
}

/* The normal distribution function of x, and exp(-x^2 / 2). The tail is exp(-z^2) times a polynomial in 1 / (1 + z / 2)
 * with z = |x| / sqrt(2), fitted by least squares of the relative error, which is below 5e-8 before rounding. */
CVY_INLINE float normal_distribution(float x, float *density_out)
{
    const float e = cvy_exp(-0.5f * x * x), t = 1.0f / (1.0f + 0.35355339059327376f * (x < 0 ? -x : x));
    float p = -0.0590008443f;
    p = p * t + 0.28426073f;
    p = p * t - 0.486588753f;
    p = p * t + 0.277415228f;
    p = p * t - 0.0262101769f;
    p = p * t + 0.202525526f;
    p = p * t + 0.243140907f;
    p = p * t + 0.282370686f;
    p = p * t + 0.282086656f;
    const float tail = 0.5f * p * t * e;
    *density_out = e;
    return x < 0 ? tail : 1.0f - tail;
}

CVY_SIMD static void gelu_exact_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float density;
        dst[i] = a[i] * normal_distribution(a[i], &density);
    }
}

CVY_SIMD static void gelu_exact_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float density;
        const float below = normal_distribution(b[i], &density);
        dst[i] = a[i] * (below + b[i] * density * 0.3989422804014327f);
    }
}

CVY_SIMD static void hard_swish_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] <= -3.0f ? 0.0f : a[i] >= 3.0f ? a[i] : a[i] * (a[i] + 3.0f) * (1.0f / 6.0f);
}

CVY_SIMD static void hard_swish_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = b[i] <= -3.0f ? 0.0f : b[i] >= 3.0f ? a[i] : a[i] * (b[i] * (1.0f / 3.0f) + 0.5f);
}

/* exp(x) - 1 for x <= 0 by the hyperbolic tangent of x / 2, which loses no digits near 0. */
CVY_SIMD static void elu_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float t = cvy_tanh(a[i] < 0 ? 0.5f * a[i] : 0.0f);
        dst[i] = a[i] > 0 ? a[i] : parameter * (2.0f * t / (1.0f - t));
    }
}

CVY_SIMD static void elu_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b, parameter = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = b[i] > 0 ? a[i] : a[i] * (b[i] + parameter);
}

CVY_SIMD static void softplus_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, beta = s->parameter, threshold = s->second;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float z = beta * a[i], bend = cvy_log_1_plus(cvy_exp(z > 0 ? -z : z));
        dst[i] = z > threshold ? a[i] : ((z < 0 ? 0.0f : z) + bend) / beta;
    }
}

CVY_SIMD static void softplus_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b, beta = s->parameter, threshold = s->second;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float z = beta * b[i];
        dst[i] = z > threshold ? a[i] : a[i] / (1.0f + cvy_exp(-z));
    }
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

CVY_SIMD static void clamp_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, low = s->parameter, high = s->second;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] < low ? low : a[i] > high ? high : a[i];
}

CVY_SIMD static void clamp_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b, low = s->parameter, high = s->second;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = b[i] > low && b[i] < high ? a[i] : 0.0f;
}

CVY_SIMD static void hard_sigmoid_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, alpha = s->parameter, beta = s->second;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float y = alpha * a[i] + beta;
        dst[i] = y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y;
    }
}

CVY_SIMD static void hard_sigmoid_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, *b = s->b, alpha = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = b[i] > 0.0f && b[i] < 1.0f ? alpha * a[i] : 0.0f;
}

CVY_SIMD static void offset_range(int64_t first, int64_t end, void *arg)
{
    const struct elementwise *s = arg;
    const float *a = s->a, by = s->parameter;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = a[i] + by;
}

static double slope_of(const void *options)
{
    return ((const struct cvy_leaky_relu *)options)->slope;
}

static double alpha_of(const void *options)
{
    return ((const struct cvy_elu *)options)->alpha;
}

static double beta_of(const void *options)
{
    return ((const struct cvy_softplus *)options)->beta;
}

static double threshold_of(const void *options)
{
    return ((const struct cvy_softplus *)options)->threshold;
}

static double limit_of(const void *options)
{
    return ((const struct cvy_clip_value *)options)->limit;
}

static double low_of(const void *options)
{
    return cvy_clamp_low(options);
}

static double high_of(const void *options)
{
    return cvy_clamp_high(options);
}

static double line_slope_of(const void *options)
{
    return ((const struct cvy_hard_sigmoid *)options)->alpha;
}

static double line_start_of(const void *options)
{
    return ((const struct cvy_hard_sigmoid *)options)->beta;
}

static double summand_of(const void *options)
{
    return ((const struct cvy_offset *)options)->by;
}

static const struct activation {
    const char *op;
    int nsrc, zero_changes; /* zero_changes: the result for zeros may not be zero */
    cvy_range_fn range;
    double (*parameter)(const void *options);
    double (*second)(const void *options);
} activations[] = {
    {"leaky_relu", 1, 0, leaky_relu_range, slope_of, NULL},
    {"leaky_relu_grad", 2, 0, leaky_relu_grad_range, slope_of, NULL},
    {"sigmoid", 1, 1, sigmoid_range, NULL, NULL},
    {"sigmoid_grad", 2, 0, sigmoid_grad_range, NULL, NULL},
    {"tanh", 1, 0, tanh_range, NULL, NULL},
    {"tanh_grad", 2, 0, tanh_grad_range, NULL, NULL},
    {"silu", 1, 0, silu_range, NULL, NULL},
    {"silu_grad", 2, 0, silu_grad_range, NULL, NULL},
    {"gelu", 1, 0, gelu_range, NULL, NULL},
    {"gelu_grad", 2, 0, gelu_grad_range, NULL, NULL},
    {"hard_swish", 1, 0, hard_swish_range, NULL, NULL},
    {"hard_swish_grad", 2, 0, hard_swish_grad_range, NULL, NULL},
    {"elu", 1, 0, elu_range, alpha_of, NULL},
    {"elu_grad", 2, 0, elu_grad_range, alpha_of, NULL},
    {"softplus", 1, 1, softplus_range, beta_of, threshold_of},
    {"softplus_grad", 2, 0, softplus_grad_range, beta_of, threshold_of},
    {"clamp", 1, 1, clamp_range, low_of, high_of},
    {"clamp_grad", 2, 0, clamp_grad_range, low_of, high_of},
    {"hard_sigmoid", 1, 1, hard_sigmoid_range, line_slope_of, line_start_of},
    {"hard_sigmoid_grad", 2, 0, hard_sigmoid_grad_range, line_slope_of, line_start_of},
    {"offset", 1, 1, offset_range, summand_of, NULL},
    {"clip_value", 1, 0, clip_value_range, limit_of, NULL},
};

static const struct activation *activation_of(const cvy_node *node)
{
    int i = 0;
    while (strcmp(activations[i].op, node->op->name) != 0)
        i++;
    return &activations[i];
}

static int is_exact_gelu(const cvy_node *node)
{
    const struct cvy_gelu *o = node->options;
    return strncmp(node->op->name, "gelu", 4) == 0 && !o->tanh;
}

static int clamps_zero_to_zero(const cvy_node *node)
{
    const struct cvy_clamp *o = node->options;
    return strcmp(node->op->name, "clamp") == 0 && o->min <= 0 && o->max >= 0;
}

/* The layout is plain if the source's layout has padding and padding lanes would not stay zero. */
static cvy_status offer(cvy_kernel_ask *ask)
{
    const struct activation *a = activation_of(ask->node);
    int64_t elems = 0;
    CVY_TRY(cvy_native_offer_elementwise(ask, a->nsrc, 0));
    if (!a->zero_changes || clamps_zero_to_zero(ask->node))
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
    if (is_exact_gelu(ask->node))
        s->range = a->nsrc == 1 ? gelu_exact_range : gelu_exact_grad_range;
    s->nsrc = a->nsrc;
    s->threads = ask->threads;
    s->parameter = a->parameter ? (float)a->parameter(ask->node->options) : 0;
    s->second = a->second ? (float)a->second(ask->node->options) : 0;
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

#define KERNEL_OF(type)                                                                                                \
    {                                                                                                                  \
        .name = "native." type, .op = type, .preference = 50, .offer = offer, .create = create, .run = run,            \
        .destroy = destroy                                                                                             \
    }
CVY_KERNEL_DEFINE(native_leaky_relu) = KERNEL_OF("leaky_relu");
CVY_KERNEL_DEFINE(native_leaky_relu_grad) = KERNEL_OF("leaky_relu_grad");
CVY_KERNEL_DEFINE(native_sigmoid) = KERNEL_OF("sigmoid");
CVY_KERNEL_DEFINE(native_sigmoid_grad) = KERNEL_OF("sigmoid_grad");
CVY_KERNEL_DEFINE(native_tanh) = KERNEL_OF("tanh");
CVY_KERNEL_DEFINE(native_tanh_grad) = KERNEL_OF("tanh_grad");
CVY_KERNEL_DEFINE(native_silu) = KERNEL_OF("silu");
CVY_KERNEL_DEFINE(native_silu_grad) = KERNEL_OF("silu_grad");
CVY_KERNEL_DEFINE(native_gelu) = KERNEL_OF("gelu");
CVY_KERNEL_DEFINE(native_gelu_grad) = KERNEL_OF("gelu_grad");
CVY_KERNEL_DEFINE(native_hard_swish) = KERNEL_OF("hard_swish");
CVY_KERNEL_DEFINE(native_hard_swish_grad) = KERNEL_OF("hard_swish_grad");
CVY_KERNEL_DEFINE(native_elu) = KERNEL_OF("elu");
CVY_KERNEL_DEFINE(native_elu_grad) = KERNEL_OF("elu_grad");
CVY_KERNEL_DEFINE(native_softplus) = KERNEL_OF("softplus");
CVY_KERNEL_DEFINE(native_softplus_grad) = KERNEL_OF("softplus_grad");
CVY_KERNEL_DEFINE(native_clamp) = KERNEL_OF("clamp");
CVY_KERNEL_DEFINE(native_clamp_grad) = KERNEL_OF("clamp_grad");
CVY_KERNEL_DEFINE(native_hard_sigmoid) = KERNEL_OF("hard_sigmoid");
CVY_KERNEL_DEFINE(native_hard_sigmoid_grad) = KERNEL_OF("hard_sigmoid_grad");
CVY_KERNEL_DEFINE(native_offset) = KERNEL_OF("offset");
CVY_KERNEL_DEFINE(native_clip_value) = KERNEL_OF("clip_value");

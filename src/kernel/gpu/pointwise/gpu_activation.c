/*
 * gpu_activation.c: functions of one element and their gradients, of f32 and bf16: activations, scale (of losses, too),
 * offset, clip_value, and exp, log, sqrt ..
 *
 * One kernel has all functions, and one has all gradients; which function it is, is an argument. All are limited by the
 * bandwidth of memory. The formulas are those of src/op/pointwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum {
    OF_RELU,
    OF_LEAKY_RELU,   /* a: the slope */
    OF_ELU,          /* a: alpha */
    OF_CLAMP,        /* a, b: the bounds */
    OF_HARD_SIGMOID, /* a, b: alpha and beta */
    OF_HARD_SWISH,
    OF_SIGMOID,
    OF_SILU,
    OF_TANH,
    OF_GELU,
    OF_GELU_TANH,
    OF_SOFTPLUS, /* a, b: beta and the threshold */
    OF_SCALE,    /* a: the factor */
    OF_OFFSET,   /* a: the summand */
    OF_EXP,
    OF_LOG,
    OF_SQRT,
    OF_SQUARE,
    OF_RECIPROCAL,
    OF_POWER, /* a: the exponent */
    OF_ABS,
    OF_ERF,
    OF_SOFTSIGN,
    OF_SIN,
    OF_COS,
};
struct activation {
    i64 n;
    i64 row, from, other, to; /* of slices (cvy_gpu_slices): steps of the sources and the destination */
    int f, lanes;             /* n counts words of so many elements, which are read and written at once */
    float a, b;
};

#ifdef CVY_DEVICE

INLINE float gelu_argument(float x)
{
    return 0.7978845608028654f * (x + 0.044715f * x * x * x);
}

/* exp(x) - 1 of x <= 0, by which near 0 no digits are lost. */
INLINE float exp_minus_1(float x)
{
    const float t = TANH(0.5f * x);
    return 2.0f * t / (1.0f - t);
}

INLINE float softplus_of(float x, float beta, float threshold)
{
    const float z = beta * x;
    return z > threshold ? x : ((z > 0 ? z : 0.0f) + LOG1P(EXP(-ABS(z)))) / beta;
}

INLINE float value_of(int f, float a, float b, float x)
{
    switch (f) {
    case OF_RELU: return x > 0 ? x : 0.0f;
    case OF_LEAKY_RELU: return x > 0 ? x : a * x;
    case OF_ELU: return x > 0 ? x : a * exp_minus_1(x);
    case OF_CLAMP: return x < a ? a : x > b ? b : x;
    case OF_HARD_SIGMOID: return a * x + b < 0 ? 0.0f : a * x + b > 1 ? 1.0f : a * x + b;
    case OF_HARD_SWISH: return x <= -3 ? 0.0f : x >= 3 ? x : x * (x + 3.0f) / 6.0f;
    case OF_SIGMOID: return 1.0f / (1.0f + EXP(-x));
    case OF_SILU: return x / (1.0f + EXP(-x));
    case OF_TANH: return TANH(x);
    case OF_GELU: return x * (0.5f + 0.5f * ERF(0.70710678118654752f * x));
    case OF_GELU_TANH: return x * (0.5f + 0.5f * TANH(gelu_argument(x)));
    case OF_SOFTPLUS: return softplus_of(x, a, b);
    case OF_SCALE: return a * x;
    case OF_OFFSET: return x + a;
    case OF_EXP: return EXP(x);
    case OF_LOG: return LOG(x);
    case OF_SQRT: return SQRT(x);
    case OF_SQUARE: return x * x;
    case OF_RECIPROCAL: return 1.0f / x;
    case OF_POWER: return POW(x, a);
    case OF_ABS: return ABS(x);
    case OF_ERF: return ERF(x);
    case OF_SOFTSIGN: return x / (1.0f + ABS(x));
    case OF_SIN: return SIN(x);
    default: return COS(x);
    }
}

INLINE float gelu_slope(float x)
{
    return 0.5f + 0.5f * ERF(0.70710678118654752f * x) + x * EXP(-0.5f * x * x) * 0.3989422804014327f;
}

INLINE float gelu_tanh_slope(float x)
{
    const float t = TANH(gelu_argument(x));
    const float density = (1.0f - t) * (1.0f + t) * 0.3989422804014327f * (1.0f + 0.134145f * x * x);
    return 0.5f + 0.5f * t + x * density;
}

INLINE float silu_slope(float x)
{
    const float s = 1.0f / (1.0f + EXP(-x));
    return s * (1.0f + x * (1.0f - s));
}

/* v: the source or the result of the function, whichever its formula has. */
INLINE float slope_of(int f, float a, float b, float v)
{
    switch (f) {
    case OF_ELU: return v > 0 ? 1.0f : v + a;
    case OF_CLAMP: return v > a && v < b ? 1.0f : 0.0f;
    case OF_HARD_SIGMOID: return v > 0 && v < 1 ? a : 0.0f;
    case OF_HARD_SWISH: return v <= -3 ? 0.0f : v >= 3 ? 1.0f : v / 3.0f + 0.5f;
    case OF_SIGMOID: return v * (1.0f - v);
    case OF_SILU: return silu_slope(v);
    case OF_TANH: return (1.0f - v) * (1.0f + v);
    case OF_GELU: return gelu_slope(v);
    case OF_GELU_TANH: return gelu_tanh_slope(v);
    case OF_SOFTPLUS: return a * v > b ? 1.0f : 1.0f / (1.0f + EXP(-a * v));
    case OF_EXP: return v;
    case OF_LOG: return 1.0f / v;
    case OF_SQRT: return 0.5f / v;
    case OF_SQUARE: return 2.0f * v;
    case OF_RECIPROCAL: return -v * v;
    case OF_POWER: return a == 0 ? 0.0f : a * POW(v, a - 1.0f);
    case OF_ABS: return v > 0 ? 1.0f : v < 0 ? -1.0f : 0.0f;
    case OF_ERF: return 1.1283791670955126f * EXP(-v * v);
    case OF_SOFTSIGN: return 1.0f / ((1.0f + ABS(v)) * (1.0f + ABS(v)));
    case OF_SIN: return COS(v);
    default: return -SIN(v);
    }
}

KERNEL(activation)(GLOBAL const act *src, GLOBAL act *dst, struct activation o)
{
    FOR_EACH (i, o.n) {
        const i64 row = o.row ? QUOTIENT(i, o.row) : 0, at = i - row * o.row;
        const u64 word = o.lanes > 1 ? ((GLOBAL const u64 *)src)[i] : 0;
        u64 result = 0;
        for (int k = 0; k < o.lanes; k++) {
            const float x = o.lanes > 1 ? FROM_WORD(word, k) : GET(src, row * o.from + at);
            const float y = value_of(o.f, o.a, o.b, x);
            if (o.lanes > 1)
                result |= IN_WORD(y, k);
            else
                SET(dst, row * o.to + at, y);
        }
        if (o.lanes > 1)
            ((GLOBAL u64 *)dst)[i] = result;
    }
}

/* Of a loss, which is a number, and of sums of batch norm, which ranks share. */
KERNEL(scale_doubles)(GLOBAL const double *src, GLOBAL double *dst, struct activation o, double by)
{
    FOR_EACH (i, o.n) {
        const i64 row = o.row ? QUOTIENT(i, o.row) : 0, at = i - row * o.row;
        dst[row * o.to + at] = by * src[row * o.from + at];
    }
}

/* A part of relu that is off has the gradient 0, also if ddst is not finite. */
INLINE float gradient_of(int f, float a, float b, float d, float v)
{
    if (f == OF_RELU)
        return v > 0 ? d : 0.0f;
    if (f == OF_LEAKY_RELU)
        return v > 0 ? d : a * d;
    return d * slope_of(f, a, b, v);
}

KERNEL(activation_grad)(GLOBAL const act *ddst, GLOBAL const act *from, GLOBAL act *dsrc, struct activation o)
{
    FOR_EACH (i, o.n) {
        const i64 row = o.row ? QUOTIENT(i, o.row) : 0, at = i - row * o.row;
        const u64 ddst_word = o.lanes > 1 ? ((GLOBAL const u64 *)ddst)[i] : 0;
        const u64 from_word = o.lanes > 1 ? ((GLOBAL const u64 *)from)[i] : 0;
        u64 result = 0;
        for (int k = 0; k < o.lanes; k++) {
            const float d = o.lanes > 1 ? FROM_WORD(ddst_word, k) : GET(ddst, row * o.from + at);
            const float v = o.lanes > 1 ? FROM_WORD(from_word, k) : GET(from, row * o.other + at);
            const float y = gradient_of(o.f, o.a, o.b, d, v);
            if (o.lanes > 1)
                result |= IN_WORD(y, k);
            else
                SET(dsrc, row * o.to + at, y);
        }
        if (o.lanes > 1)
            ((GLOBAL u64 *)dsrc)[i] = result;
    }
}

#else
#include <string.h>

#include "kernel/gpu/gpu_walk.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_clip.h"
#include "op/pointwise/op_function.h"
#include "op/pointwise/op_scale.h"

CVY_GPU_SOURCE_DECLARE(gpu_activation);

/* ---- the options of an operator as numbers of its function ---- */

static void leaky_relu_numbers(const void *options, struct activation *out)
{
    out->a = (float)((const struct cvy_leaky_relu *)options)->slope;
}

static void elu_numbers(const void *options, struct activation *out)
{
    out->a = (float)((const struct cvy_elu *)options)->alpha;
}

static void clamp_numbers(const void *options, struct activation *out)
{
    out->a = (float)cvy_clamp_low(options);
    out->b = (float)cvy_clamp_high(options);
}

static void clip_value_numbers(const void *options, struct activation *out)
{
    out->b = (float)((const struct cvy_clip_value *)options)->limit;
    out->a = -out->b;
}

static void hard_sigmoid_numbers(const void *options, struct activation *out)
{
    const struct cvy_hard_sigmoid *o = options;
    out->a = (float)o->alpha;
    out->b = (float)o->beta;
}

static void gelu_numbers(const void *options, struct activation *out)
{
    out->f = ((const struct cvy_gelu *)options)->tanh ? OF_GELU_TANH : OF_GELU;
}

static void softplus_numbers(const void *options, struct activation *out)
{
    const struct cvy_softplus *o = options;
    out->a = (float)o->beta;
    out->b = (float)o->threshold;
}

static void scale_numbers(const void *options, struct activation *out)
{
    out->a = (float)((const cvy_scale_opts *)options)->by;
}

static void offset_numbers(const void *options, struct activation *out)
{
    out->a = (float)((const struct cvy_offset *)options)->by;
}

static void power_numbers(const void *options, struct activation *out)
{
    out->a = (float)((const cvy_function_opts *)options)->exponent;
}

/* The rows of exp .. cos are in the order of the numbers in cvy_function_opts. */
static const struct row {
    const char *op; /* the gradient of op is op_grad */
    int f;
    void (*numbers)(const void *options, struct activation *out);
} rows[] = {
    {"exp", OF_EXP, NULL},
    {"log", OF_LOG, NULL},
    {"sqrt", OF_SQRT, NULL},
    {"square", OF_SQUARE, NULL},
    {"reciprocal", OF_RECIPROCAL, NULL},
    {"power", OF_POWER, power_numbers},
    {"abs", OF_ABS, NULL},
    {"erf", OF_ERF, NULL},
    {"softsign", OF_SOFTSIGN, NULL},
    {"sin", OF_SIN, NULL},
    {"cos", OF_COS, NULL},
    {"relu", OF_RELU, NULL},
    {"leaky_relu", OF_LEAKY_RELU, leaky_relu_numbers},
    {"elu", OF_ELU, elu_numbers},
    {"clamp", OF_CLAMP, clamp_numbers},
    {"clip_value", OF_CLAMP, clip_value_numbers},
    {"hard_sigmoid", OF_HARD_SIGMOID, hard_sigmoid_numbers},
    {"hard_swish", OF_HARD_SWISH, NULL},
    {"sigmoid", OF_SIGMOID, NULL},
    {"silu", OF_SILU, NULL},
    {"tanh", OF_TANH, NULL},
    {"gelu", OF_GELU, gelu_numbers},
    {"softplus", OF_SOFTPLUS, softplus_numbers},
    {"scale", OF_SCALE, scale_numbers},
    {"offset", OF_OFFSET, offset_numbers},
};

static const struct row *row_of(const cvy_node *node)
{
    const size_t length = strlen(node->op->name) - (node->nsrc > 1 ? strlen("_grad") : 0);
    if (strcmp(node->op->name, "function_grad") == 0)
        return &rows[((const cvy_function_opts *)node->options)->function];
    for (int i = 0; i < CVY_COUNT(rows); i++)
        if (strlen(rows[i].op) == length && strncmp(rows[i].op, node->op->name, length) == 0)
            return &rows[i];
    return NULL;
}

/* ---- planning and running ---- */

struct call {
    cvy_gpu_kernel kernel;
    struct activation o;
    int nsrc, from; /* from: the source of a gradient that its formula has */
    cvy_dtype act;
    int doubles;
    double by; /* of a scale of doubles */
};

static int scales_doubles(const cvy_node *node)
{
    return node->src[0]->dtype == CVY_DTYPE_F64 && strcmp(node->op->name, "scale") == 0;
}

static cvy_status kernel_of(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    if (scales_doubles(ask->node))
        return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_activation), "scale_doubles", CVY_DTYPE_F32, out);
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_activation), ask->node->nsrc > 1 ? "activation_grad" : "activation",
                         act, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    CVY_TRY(kernel_of(ask, &kernel));
    cvy_gpu_common_layout(ask, ask->node->nsrc, 0);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const struct row *row = row_of(node);
    int64_t src_step[CVY_NODE_SRC_MAX], dst_step[CVY_NODE_DST_MAX];
    struct call *s = NULL;
    cvy_gpu_kernel kernel;
    CVY_CHECK(row, CVY_E_INTERNAL, "the kernel for activations has no row for %s", node->op->name);
    CVY_TRY(kernel_of(ask, &kernel));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct call){.kernel = kernel, .o = {.n = cvy_shape_elems(&node->dst[0]->shape), .f = row->f}};
    s->nsrc = node->nsrc;
    s->act = node->src[0]->dtype;
    s->doubles = scales_doubles(node);
    s->by = s->doubles ? ((const cvy_scale_opts *)node->options)->by : 0;
    s->from = node->nsrc > 2 && (row->f == OF_EXP || row->f == OF_SQRT || row->f == OF_RECIPROCAL) ? 2 : 1;
    s->o.row = cvy_gpu_slices(ask, src_step, dst_step);
    s->o.from = src_step[0];
    s->o.other = node->nsrc > 1 ? src_step[s->from] : 0;
    s->o.to = dst_step[0];
    if (row->numbers)
        row->numbers(node->options, &s->o);
    *state_out = s;
    return CVY_OK;
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    if (s->doubles)
        return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                              CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->o), CVY_GPU_VALUE(s->by));
    struct activation o = s->o;
    const void *const pointer[] = {src[0], dst[0], s->nsrc > 1 ? src[s->from] : dst[0]};
    o.lanes = o.row ? 1 : cvy_gpu_lanes(s->act, o.n, pointer, CVY_COUNT(pointer));
    o.n /= o.lanes;
    if (s->nsrc == 1)
        return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(o.n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                              CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(o));
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(o.n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[s->from]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(o));
}

/* clang-format off */
#define FIELDS(of) \
    CVY_GPU_FIELDS(of, offer, create, run, cvy_gpu_free_state), .slice_src = ~0U, .slice_dst = 1, .slice_last = 1
CVY_KERNEL_DEFINE(gpu_relu) = {FIELDS("relu")};
CVY_KERNEL_DEFINE(gpu_relu_grad) = {FIELDS("relu_grad")};
CVY_KERNEL_DEFINE(gpu_leaky_relu) = {FIELDS("leaky_relu")};
CVY_KERNEL_DEFINE(gpu_leaky_relu_grad) = {FIELDS("leaky_relu_grad")};
CVY_KERNEL_DEFINE(gpu_elu) = {FIELDS("elu")};
CVY_KERNEL_DEFINE(gpu_elu_grad) = {FIELDS("elu_grad")};
CVY_KERNEL_DEFINE(gpu_clamp) = {FIELDS("clamp")};
CVY_KERNEL_DEFINE(gpu_clamp_grad) = {FIELDS("clamp_grad")};
CVY_KERNEL_DEFINE(gpu_clip_value) = {FIELDS("clip_value")};
CVY_KERNEL_DEFINE(gpu_hard_sigmoid) = {FIELDS("hard_sigmoid")};
CVY_KERNEL_DEFINE(gpu_hard_sigmoid_grad) = {FIELDS("hard_sigmoid_grad")};
CVY_KERNEL_DEFINE(gpu_hard_swish) = {FIELDS("hard_swish")};
CVY_KERNEL_DEFINE(gpu_hard_swish_grad) = {FIELDS("hard_swish_grad")};
CVY_KERNEL_DEFINE(gpu_sigmoid) = {FIELDS("sigmoid")};
CVY_KERNEL_DEFINE(gpu_sigmoid_grad) = {FIELDS("sigmoid_grad")};
CVY_KERNEL_DEFINE(gpu_silu) = {FIELDS("silu")};
CVY_KERNEL_DEFINE(gpu_silu_grad) = {FIELDS("silu_grad")};
CVY_KERNEL_DEFINE(gpu_tanh) = {FIELDS("tanh")};
CVY_KERNEL_DEFINE(gpu_tanh_grad) = {FIELDS("tanh_grad")};
CVY_KERNEL_DEFINE(gpu_gelu) = {FIELDS("gelu")};
CVY_KERNEL_DEFINE(gpu_gelu_grad) = {FIELDS("gelu_grad")};
CVY_KERNEL_DEFINE(gpu_softplus) = {FIELDS("softplus")};
CVY_KERNEL_DEFINE(gpu_softplus_grad) = {FIELDS("softplus_grad")};
CVY_KERNEL_DEFINE(gpu_scale) = {FIELDS("scale")};
CVY_KERNEL_DEFINE(gpu_offset) = {FIELDS("offset")};
CVY_KERNEL_DEFINE(gpu_exp) = {FIELDS("exp")};
CVY_KERNEL_DEFINE(gpu_log) = {FIELDS("log")};
CVY_KERNEL_DEFINE(gpu_sqrt) = {FIELDS("sqrt")};
CVY_KERNEL_DEFINE(gpu_square) = {FIELDS("square")};
CVY_KERNEL_DEFINE(gpu_reciprocal) = {FIELDS("reciprocal")};
CVY_KERNEL_DEFINE(gpu_power) = {FIELDS("power")};
CVY_KERNEL_DEFINE(gpu_abs) = {FIELDS("abs")};
CVY_KERNEL_DEFINE(gpu_erf) = {FIELDS("erf")};
CVY_KERNEL_DEFINE(gpu_softsign) = {FIELDS("softsign")};
CVY_KERNEL_DEFINE(gpu_sin) = {FIELDS("sin")};
CVY_KERNEL_DEFINE(gpu_cos) = {FIELDS("cos")};
CVY_KERNEL_DEFINE(gpu_function_grad) = {FIELDS("function_grad")};
/* clang-format on */
#endif

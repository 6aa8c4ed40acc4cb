/*
 * wrap_stencil.c: an operator of your own, as a library that convoy loads.
 *
 * wrap_stencil is a convolution of each channel with a trained kernel of its own, on a domain that is periodic: the
 * neighbour of the last column is the first one. Images of a barrel (a detector around a beam, a map of the earth, a
 * periodic simulation) have no edge there, and zeros beyond it would be wrong.
 *
 *     dst[n,c,y,x] = sum over r, s of weight[c,r,s] * src[n, c, y + r - K/2, x + s - K/2]
 *
 * Columns wrap around, and with `wrap: both` rows do, too; otherwise rows beyond the image are zero. Sources are
 * [N, C, H, W], f32 or f64.
 *
 *     make PKG_CONFIG_PATH=PREFIX/lib/pkgconfig        builds wrap_stencil.so
 *     convoy check-op wrap_stencil.so                  tests it
 *     mpiexec -n 2 convoy train barrel.yaml            trains with it
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/operator.h>

#include <stdio.h>

/* ---- options: wrap_stencil: {kernel: 5, wrap: both} ---- */

struct wrap_options {
    int64_t kernel;
    int wrap;
};
enum { WRAP_COLUMNS, WRAP_BOTH };

static const cvy_operator_option options[] = {
    {"kernel", CVY_OPERATOR_INT, offsetof(struct wrap_options, kernel), "3", "odd 1..",
     "rows and columns of the kernel"},
    {"wrap", CVY_OPERATOR_CHOICE, offsetof(struct wrap_options, wrap), "columns", "columns|both",
     "axes that are periodic"},
    {0},
};

/* A kernel for each channel starts as He et al. 2015 advise for its number of inputs. */
static const cvy_operator_param params[] = {{"weight", "he", NULL, 1}, {0}};

/* ---- shapes ---- */

static int wrap_shape(cvy_operator_shapes *s)
{
    const struct wrap_options *o = s->options;
    const cvy_operator_tensor *src = &s->src[0];
    if (src->ndim != 4) {
        snprintf(s->message, sizeof s->message, "wrap_stencil needs a source [N, C, H, W], got %d dimensions",
                 src->ndim);
        return 1;
    }
    if (o->kernel > src->dim[3] || (o->wrap == WRAP_BOTH && o->kernel > src->dim[2])) {
        snprintf(s->message, sizeof s->message, "a kernel of %lld does not fit around an image of %lld x %lld",
                 (long long)o->kernel, (long long)src->dim[2], (long long)src->dim[3]);
        return 1;
    }
    s->dst[0].ndim = 4;
    for (int d = 0; d < 4; d++)
        s->dst[0].dim[d] = src->dim[d];
    s->param[0].ndim = 3;
    s->param[0].dim[0] = src->dim[1];
    s->param[0].dim[1] = s->param[0].dim[2] = o->kernel;
    s->fan_in[0] = s->fan_out[0] = o->kernel * o->kernel;
    return 0;
}

/* ---- computing: the same loops for both dtypes ---- */

/* The index on an axis of n elements, or -1 beyond an edge. */
static int64_t place(int64_t i, int64_t n, int wraps)
{
    if (i >= 0 && i < n)
        return i;
    return wraps ? (i + n) % n : -1;
}

#define DEFINE_LOOPS(real, name)                                                                                       \
    static void forward_##name(const cvy_operator_call *c)                                                             \
    {                                                                                                                  \
        const struct wrap_options *o = c->options;                                                                     \
        const int64_t C = c->src[0].dim[1], H = c->src[0].dim[2], W = c->src[0].dim[3], K = o->kernel;                 \
        const real *src = c->src[0].data, *weight = c->param[0].data;                                                  \
        real *dst = c->dst[0].data;                                                                                    \
        for (int64_t plane = 0; plane < c->src[0].dim[0] * C; plane++)                                                 \
            for (int64_t y = 0; y < H; y++)                                                                            \
                for (int64_t x = 0; x < W; x++) {                                                                      \
                    real sum = 0;                                                                                      \
                    for (int64_t r = 0; r < K; r++) {                                                                  \
                        const int64_t row = place(y + r - K / 2, H, o->wrap == WRAP_BOTH);                             \
                        for (int64_t s = 0; s < K && row >= 0; s++)                                                    \
                            sum += weight[(plane % C * K + r) * K + s] *                                               \
                                   src[(plane * H + row) * W + place(x + s - K / 2, W, 1)];                            \
                    }                                                                                                  \
                    dst[(plane * H + y) * W + x] = sum;                                                                \
                }                                                                                                      \
    }                                                                                                                  \
    static void backward_##name(const cvy_operator_call *c)                                                            \
    {                                                                                                                  \
        const struct wrap_options *o = c->options;                                                                     \
        const int64_t C = c->src[0].dim[1], H = c->src[0].dim[2], W = c->src[0].dim[3], K = o->kernel;                 \
        const real *src = c->src[0].data, *weight = c->param[0].data, *ddst = c->ddst->data;                           \
        real *dsrc = c->dsrc[0].data, *dweight = c->dparam[0].data;                                                    \
        for (int64_t i = 0; i < c->dsrc[0].elems && dsrc; i++)                                                         \
            dsrc[i] = 0;                                                                                               \
        for (int64_t i = 0; i < c->dparam[0].elems && dweight; i++)                                                    \
            dweight[i] = 0;                                                                                            \
        for (int64_t plane = 0; plane < c->src[0].dim[0] * C; plane++)                                                 \
            for (int64_t y = 0; y < H; y++)                                                                            \
                for (int64_t x = 0; x < W; x++)                                                                        \
                    for (int64_t r = 0; r < K; r++) {                                                                  \
                        const int64_t row = place(y + r - K / 2, H, o->wrap == WRAP_BOTH);                             \
                        for (int64_t s = 0; s < K && row >= 0; s++) {                                                  \
                            const int64_t from = (plane * H + row) * W + place(x + s - K / 2, W, 1);                   \
                            const int64_t k = (plane % C * K + r) * K + s;                                             \
                            const real d = ddst[(plane * H + y) * W + x];                                              \
                            if (dsrc)                                                                                  \
                                dsrc[from] += weight[k] * d;                                                           \
                            if (dweight)                                                                               \
                                dweight[k] += src[from] * d;                                                           \
                        }                                                                                              \
                    }                                                                                                  \
    }
DEFINE_LOOPS(float, f32)
DEFINE_LOOPS(double, f64)

static int wrap_forward(const cvy_operator_call *c)
{
    if (c->src[0].dtype == CVY_DTYPE_F64)
        forward_f64(c);
    else
        forward_f32(c);
    return 0;
}

static int wrap_backward(const cvy_operator_call *c)
{
    if (c->src[0].dtype == CVY_DTYPE_F64)
        backward_f64(c);
    else
        backward_f32(c);
    return 0;
}

static void wrap_cost(const cvy_operator_call *c, cvy_operator_cost *cost_out)
{
    const struct wrap_options *o = c->options;
    cost_out->forward_flop = 2 * c->dst[0].elems * o->kernel * o->kernel;
    cost_out->backward_flop = 2 * cost_out->forward_flop;
}

/* ---- the table ---- */

/* Cases of the test: more than one sample and channel, an image that is not square, a kernel as wide as the image. */
static const cvy_operator_sample samples[] = {
    {"2x3x5x7", NULL, 0, 0},
    {"3x2x4x6", "wrap: both", 0, 0},
    {"1x2x5x5", "kernel: 5, wrap: both", 0, 0},
    {"2x4x3x8", "kernel: 1", 0, 0},
    {0},
};

static const cvy_operator wrap_stencil = {
    .size = sizeof wrap_stencil,
    .name = "wrap_stencil",
    .summary = "convolution of each channel with a kernel of its own, on a periodic image",
    .options_size = sizeof(struct wrap_options),
    .options = options,
    .nsrc_min = 1,
    .nsrc_max = 1,
    .params = params,
    .splits = CVY_OPERATOR_SPLIT_SAMPLES | CVY_OPERATOR_SPLIT_CHANNELS,
    .reads = CVY_OPERATOR_READS_SOURCES, /* the gradient of the weight needs them */
    .shape = wrap_shape,
    .forward = wrap_forward,
    .backward = wrap_backward,
    .cost = wrap_cost,
    .samples = samples,
};

static const cvy_operator *const operators[] = {&wrap_stencil, NULL};

static const cvy_extension extension = {
    .abi = CVY_EXTENSION_ABI,
    .version = CVY_VERSION_NUMBER,
    .size = sizeof extension,
    .name = "wrap_stencil",
    .operators = operators,
};

const cvy_extension *convoy_extension(void)
{
    return &extension;
}

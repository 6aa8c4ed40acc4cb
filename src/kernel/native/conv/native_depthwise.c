/*
 * native_depthwise.c: the gradient of a depthwise convolution for its weight and bias, in f32 with channels in blocks.
 *
 * Each channel has a filter of its own, so there is no matrix product. A vector holds the channels of a block at one
 * position. A row of ddst is multiplied by the rows of the source under it, and the sums of all taps of a filter row
 * stay in registers. The samples are cut into chunks, whose number does not depend on that of the threads; the sums of
 * the chunks are added in order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/conv/op_conv.h"

enum { CHUNKS = 16 };

typedef float lanes8 __attribute__((vector_size(8 * sizeof(float))));
typedef float lanes16 __attribute__((vector_size(16 * sizeof(float))));

struct depthwise {
    int64_t n, channels, groups, chunks; /* groups: blocks of channels */
    int64_t src[2], dst[2], kernel[2], stride[2], pad[2], dilation[2];
    int block, threads, has_bias;
    int64_t first, end; /* the places of a row whose taps are all inside of the source */
    int64_t numbers;    /* floats of the sums of a block in a chunk: taps, then the bias */
    const float *x, *d; /* of the running call */
    float *sums;
};

/* ---- planning ---- */

static cvy_status fill(const cvy_kernel_ask *ask, struct depthwise *s)
{
    const cvy_node *node = ask->node;
    const cvy_conv_grad_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_native_f32(node));
    CVY_TRY(cvy_conv_window(&o->conv, &o->src, &w, &c));
    CVY_CHECK(c.groups == c.nsrc && c.groups == c.ndst && c.groups >= 8, CVY_NOT_APPLICABLE,
              "this kernel is for depthwise convolutions of at least 8 channels");
    CVY_CHECK(w.nspace == 2 && (w.kernel[1] == 3 || w.kernel[1] == 5 || w.kernel[1] == 7), CVY_NOT_APPLICABLE,
              "this kernel is for pictures and filters with 3, 5 or 7 columns");
    *s = (struct depthwise){
        .n = c.n, .channels = c.nsrc, .threads = ask->threads, .has_bias = o->conv.bias, .chunks = CHUNKS};
    for (int i = 0; i < 2; i++) {
        s->src[i] = w.src[i];
        s->dst[i] = w.dst[i];
        s->kernel[i] = w.kernel[i];
        s->stride[i] = w.stride[i];
        s->pad[i] = w.pad[i];
        s->dilation[i] = w.dilation[i];
    }
    const int64_t room = w.src[1] + w.pad[1] - (w.kernel[1] - 1) * w.dilation[1];
    s->first = CVY_MIN((w.pad[1] + w.stride[1] - 1) / w.stride[1], w.dst[1]);
    s->end = room > 0 ? CVY_MAX(s->first, CVY_MIN((room + w.stride[1] - 1) / w.stride[1], w.dst[1])) : s->first;
    s->chunks = CVY_MAX(1, CVY_MIN(s->chunks, s->n));
    return CVY_OK;
}

static void set_block(struct depthwise *s, int64_t block)
{
    s->block = (int)block;
    s->groups = (s->channels + block - 1) / block;
    s->numbers = (s->kernel[0] * s->kernel[1] + 1) * block;
}

/* The layout of a source that is in blocks; else the one that convolutions prefer, or blocks of 8. */
static cvy_layout blocks_of(const cvy_kernel_ask *ask)
{
    const cvy_shape *shape = &ask->node->src[0]->shape;
    const cvy_layout asked[] = {ask->src[0], ask->src[1], cvy_native_preferred(shape)};
    for (int i = 0; i < CVY_COUNT(asked); i++) {
        const int64_t block = cvy_layout_channel_block(&asked[i], shape->ndim);
        if (block == 8 || block == 16)
            return asked[i];
    }
    return cvy_layout_channels(shape->ndim, 8);
}

static cvy_status depthwise_offer(cvy_kernel_ask *ask)
{
    struct depthwise s;
    CVY_TRY(fill(ask, &s));
    const cvy_layout layout = blocks_of(ask);
    set_block(&s, cvy_layout_channel_block(&layout, ask->node->src[0]->shape.ndim));
    ask->src[0] = ask->src[1] = layout;
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    ask->scratch_bytes = sizeof(float) * (size_t)(s.chunks * s.groups * s.numbers);
    return CVY_OK;
}

static cvy_status depthwise_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct depthwise *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    const cvy_status status = fill(ask, s);
    set_block(s, cvy_layout_channel_block(&ask->src[0], ask->node->src[0]->shape.ndim));
    *state_out = s;
    return status;
}

static void depthwise_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* ---- sums ---- */

/* One tap at one place: sum += d * x. */
CVY_INLINE void add_place(const int B, float *sum, const float *d, const float *x)
{
#pragma omp simd
    for (int l = 0; l < B; l++)
        sum[l] += d[l] * x[l];
}

/* The places of a row at its ends, where some taps are outside of the source. */
CVY_INLINE void add_edge(const struct depthwise *s, const int B, const float *d, const float *x, int64_t from,
                         int64_t to, float *sum)
{
    for (int64_t place = from; place < to; place++)
        for (int64_t tap = 0; tap < s->kernel[1]; tap++) {
            const int64_t at = place * s->stride[1] - s->pad[1] + tap * s->dilation[1];
            if (at >= 0 && at < s->src[1])
                add_place(B, sum + tap * B, d + place * B, x + at * B);
        }
}

/* Adds the products of a row of ddst and a row of the source to the sums of TAPS taps, for vectors of a type. */
#define TAP(k)                                                                                                         \
    if (taps > k) {                                                                                                    \
        memcpy(&v, x + k * step, sizeof v);                                                                            \
        t##k += g * v;                                                                                                 \
    }
#define TAKE(k)                                                                                                        \
    if (taps > k) {                                                                                                    \
        memcpy(&v, sum + k * width, sizeof v);                                                                         \
        v += t##k;                                                                                                     \
        memcpy(sum + k * width, &v, sizeof v);                                                                         \
    }
#define DEFINE_ADD_ROW(name, lanes, B)                                                                                 \
    CVY_INLINE void name(const struct depthwise *s, const int taps, const float *d, const float *row, float *sum)      \
    {                                                                                                                  \
        const int64_t width = B, step = width * s->dilation[1];                                                        \
        lanes t0 = {0}, t1 = t0, t2 = t0, t3 = t0, t4 = t0, t5 = t0, t6 = t0, g, v;                                    \
        for (int64_t place = s->first; place < s->end; place++) {                                                      \
            const float *x = row + (place * s->stride[1] - s->pad[1]) * B;                                             \
            memcpy(&g, d + place * B, sizeof g);                                                                       \
            TAP(0) TAP(1) TAP(2) TAP(3) TAP(4) TAP(5) TAP(6)                                                           \
        }                                                                                                              \
        TAKE(0) TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6) add_edge(s, B, d, row, 0, s->first, sum);              \
        add_edge(s, B, d, row, s->end, s->dst[1], sum);                                                                \
    }
DEFINE_ADD_ROW(add_row_8, lanes8, 8)
DEFINE_ADD_ROW(add_row_16, lanes16, 16)

/* A block of channels of one sample: x and d are its planes. */
CVY_INLINE void add_plane(const struct depthwise *s, const int B, const int taps, const float *x, const float *d,
                          float *sums)
{
    float *bias = sums + s->kernel[0] * taps * B;
    for (int64_t row = 0; row < s->dst[0]; row++) {
        const float *from = d + row * s->dst[1] * B;
        for (int64_t tap = 0; tap < s->kernel[0]; tap++) {
            const int64_t at = row * s->stride[0] - s->pad[0] + tap * s->dilation[0];
            if (at < 0 || at >= s->src[0])
                continue;
            if (B == 16)
                add_row_16(s, taps, from, x + at * s->src[1] * B, sums + tap * taps * B);
            else
                add_row_8(s, taps, from, x + at * s->src[1] * B, sums + tap * taps * B);
        }
        for (int64_t place = 0; s->has_bias && place < s->dst[1]; place++)
#pragma omp simd
            for (int l = 0; l < B; l++)
                bias[l] += from[place * B + l];
    }
}

CVY_INLINE void add_item(const struct depthwise *s, const int B, const int taps, int64_t item)
{
    const int64_t chunk = item / s->groups, group = item % s->groups;
    const int64_t x_elems = s->src[0] * s->src[1] * B, d_elems = s->dst[0] * s->dst[1] * B;
    float *sums = s->sums + item * s->numbers;
    memset(sums, 0, sizeof *sums * (size_t)s->numbers);
    for (int64_t n = s->n * chunk / s->chunks; n < s->n * (chunk + 1) / s->chunks; n++) {
        const int64_t plane = n * s->groups + group;
        add_plane(s, B, taps, s->x + plane * x_elems, s->d + plane * d_elems, sums);
    }
}

CVY_SIMD static void depthwise_range(int64_t first, int64_t end, void *arg)
{
    const struct depthwise *s = arg;
    for (int64_t i = first; i < end; i++)
        switch (s->block + s->kernel[1]) {
        case 16 + 3: add_item(s, 16, 3, i); break;
        case 16 + 5: add_item(s, 16, 5, i); break;
        case 16 + 7: add_item(s, 16, 7, i); break;
        case 8 + 3: add_item(s, 8, 3, i); break;
        case 8 + 5: add_item(s, 8, 5, i); break;
        default: add_item(s, 8, 7, i); break;
        }
}

static cvy_status depthwise_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct depthwise *s = state;
    const int64_t taps = s->kernel[0] * s->kernel[1];
    float *weight = dst[0], *bias = s->has_bias ? dst[1] : NULL;
    s->x = src[0];
    s->d = src[1];
    s->sums = scratch;
    cvy_parallel_for(s->threads, s->chunks * s->groups, 1, depthwise_range, s);
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t t = 0; t < taps + s->has_bias; t++) {
            double sum = 0;
            for (int64_t k = 0; k < s->chunks; k++)
                sum += s->sums[(k * s->groups + c / s->block) * s->numbers + t * s->block + c % s->block];
            *(t < taps ? &weight[c * taps + t] : &bias[c]) = (float)sum;
        }
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_depthwise_grad_weight) = {
    .name = "native.depthwise_grad_weight",
    .op = "conv_grad_weight",
    .preference = 110,
    .offer = depthwise_offer,
    .create = depthwise_create,
    .run = depthwise_run,
    .destroy = depthwise_destroy,
};

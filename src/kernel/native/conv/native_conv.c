/*
 * native_conv.c: convolution, deconvolution and their gradients as matrix products, for builds without oneDNN.
 *
 * A strip of destination rows is unfolded (im2col): it becomes a matrix with a row for each channel and tap of the
 * filter, and a column for each position (Chellapilla, Puri and Simard 2006). The samples are divided among the
 * threads. A deconvolution is the same with source and destination exchanged. Layouts are plain. The samples of bf16
 * activations are converted to f32 one by one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/conv/native_gemm.h"
#include "op/conv/op_conv.h"

enum sum {
    FORWARD,
    BACKWARD,
    WEIGHT
}; /* FORWARD: window source to destination; BACKWARD: the reverse; WEIGHT: their product */

struct conv {
    enum sum sum;
    const cvy_gemm_tile *tile;
    int threads, relu, has_bias;
    int half; /* activations are bf16 */
    cvy_window_channels c;
    int64_t src[3], dst[3], kernel[3], stride[3], pad[3], dilation[3]; /* the last is along a row */
    int64_t src_elems, dst_elems, taps;
    int64_t unfolded;               /* rows of the unfolded matrix of one group */
    int64_t strip;                  /* destination rows at a time */
    int64_t src_sample, dst_sample; /* elements of a sample */
    /* Floats of scratch memory: the unfolded strip; with half, a sample of each side; all of one thread. */
    int64_t col_floats, side_floats[2], thread_floats;
    /* Of the running call. src and dst are those of the window, also if dst is read and src written. */
    void *window_src, *window_dst;
    float *weight, *weight_sum, *bias;
    const void *sum_to; /* BACKWARD: the result is added to it; it may be window_src. NULL: to the bias or zero */
    float *scratch;
};

/* One sample, in f32. */
struct sample {
    float *src, *dst;
};

/* ---- unfolding ---- */

/* For one channel and one tap: the positions x0 .. x1-1 of a destination row that read the source. */
struct run {
    int64_t src, x0, x1; /* src: source offset of position x0. There are none if x0 == x1 */
};

CVY_INLINE struct run row_run(const struct conv *s, int64_t row, const int64_t tap[3])
{
    const int64_t d = row / s->dst[1] * s->stride[0] - s->pad[0] + tap[0] * s->dilation[0];
    const int64_t h = row % s->dst[1] * s->stride[1] - s->pad[1] + tap[1] * s->dilation[1];
    const int64_t before = s->pad[2] - tap[2] * s->dilation[2], room = s->src[2] + before, stride = s->stride[2];
    const int64_t x0 = before > 0 ? CVY_MIN((before + stride - 1) / stride, s->dst[2]) : 0;
    const int64_t x1 = room > 0 ? CVY_MIN(s->dst[2], (room + stride - 1) / stride) : 0;
    if (d < 0 || d >= s->src[0] || h < 0 || h >= s->src[1] || x1 <= x0)
        return (struct run){0, 0, 0};
    return (struct run){(d * s->src[1] + h) * s->src[2] + x0 * stride - before, x0, x1};
}

CVY_INLINE void split_tap(const struct conv *s, int64_t t, int64_t tap[3])
{
    tap[2] = t % s->kernel[2];
    tap[1] = t / s->kernel[2] % s->kernel[1];
    tap[0] = t / s->kernel[2] / s->kernel[1];
}

/* src: the first channel of the group in one sample. col: [unfolded, n * dst[2]]. */
CVY_SIMD static void unfold(const struct conv *s, const float *src, int64_t first, int64_t n, float *col)
{
    const int64_t width = s->dst[2], stride = s->stride[2];
    for (int64_t u = 0; u < s->unfolded; u++) {
        int64_t tap[3];
        split_tap(s, u % s->taps, tap);
        const float *channel = src + u / s->taps * s->src_elems;
        for (int64_t row = 0; row < n; row++, col += width) {
            const struct run r = row_run(s, first + row, tap);
            const float *from = channel + r.src;
            memset(col, 0, (size_t)r.x0 * sizeof *col);
            if (stride == 1)
                memcpy(col + r.x0, from, (size_t)(r.x1 - r.x0) * sizeof *col);
            else
                for (int64_t x = 0; x < r.x1 - r.x0; x++)
                    col[r.x0 + x] = from[x * stride];
            memset(col + r.x1, 0, (size_t)(width - r.x1) * sizeof *col);
        }
    }
}

/* The transpose of unfold: adds col to src. */
CVY_SIMD static void fold(const struct conv *s, const float *col, int64_t first, int64_t n, float *src)
{
    const int64_t width = s->dst[2], stride = s->stride[2];
    for (int64_t u = 0; u < s->unfolded; u++) {
        int64_t tap[3];
        split_tap(s, u % s->taps, tap);
        float *channel = src + u / s->taps * s->src_elems;
        for (int64_t row = 0; row < n; row++, col += width) {
            const struct run r = row_run(s, first + row, tap);
            float *to = channel + r.src;
            if (stride == 1)
                for (int64_t x = 0; x < r.x1 - r.x0; x++)
                    to[x] += col[r.x0 + x];
            else
                for (int64_t x = 0; x < r.x1 - r.x0; x++)
                    to[x * stride] += col[r.x0 + x];
        }
    }
}

/* ---- the three sums over one strip of one group of one sample ---- */

static void strip_sum(const struct conv *s, struct sample sample, int64_t group, int64_t first, int64_t n,
                      float *weight_sum, float *scratch)
{
    const int64_t per_src = s->c.nsrc / s->c.groups, per_dst = s->c.ndst / s->c.groups, positions = n * s->dst[2],
                  U = s->unfolded;
    float *src = sample.src + group * per_src * s->src_elems;
    float *dst = sample.dst + group * per_dst * s->dst_elems + first * s->dst[2];
    const int64_t weight_at = group * per_dst * U;
    float *col = scratch, *rest = scratch + s->col_floats;
    cvy_gemm g = {0};
    if (s->sum != BACKWARD)
        unfold(s, src, first, n, col);
    switch (s->sum) {
    case FORWARD: /* dst += weight col */
        g = (cvy_gemm){.m = per_dst,
                       .n = positions,
                       .k = U,
                       .a = s->weight + weight_at,
                       .a_row = U,
                       .a_col = 1,
                       .b = col,
                       .b_row = positions,
                       .b_col = 1,
                       .c = dst,
                       .c_row = s->dst_elems,
                       .add = 1};
        break;
    case BACKWARD: /* col = weight^T dst */
        g = (cvy_gemm){.m = U,
                       .n = positions,
                       .k = per_dst,
                       .a = s->weight + weight_at,
                       .a_row = 1,
                       .a_col = U,
                       .b = dst,
                       .b_row = s->dst_elems,
                       .b_col = 1,
                       .c = col,
                       .c_row = positions};
        break;
    case WEIGHT: /* weight += dst col^T */
        g = (cvy_gemm){.m = per_dst,
                       .n = U,
                       .k = positions,
                       .a = dst,
                       .a_row = s->dst_elems,
                       .a_col = 1,
                       .b = col,
                       .b_row = 1,
                       .b_col = positions,
                       .c = weight_sum + weight_at,
                       .c_row = U,
                       .add = 1};
        break;
    }
    g.tile = s->tile;
    cvy_gemm_run(&g, rest);
    if (s->sum == BACKWARD)
        fold(s, col, first, n, src);
}

CVY_SIMD static void fill_channels(float *x, const float *bias, int64_t channels, int64_t elems)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < elems; i++)
            x[c * elems + i] = bias ? bias[c] : 0;
}

CVY_SIMD static void rectify(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
}

static void sum_sample(const struct conv *s, struct sample x, float *weight_sum, float *scratch)
{
    const int64_t rows = s->dst[0] * s->dst[1];
    if (s->sum == FORWARD)
        fill_channels(x.dst, s->bias, s->c.ndst, s->dst_elems);
    if (s->sum == BACKWARD && !s->sum_to)
        fill_channels(x.src, s->bias, s->c.nsrc, s->src_elems);
    for (int64_t group = 0; group < s->c.groups; group++)
        for (int64_t first = 0; first < rows; first += s->strip)
            strip_sum(s, x, group, first, CVY_MIN(s->strip, rows - first), weight_sum, scratch);
    if (s->relu)
        rectify(x.dst, s->dst_sample);
}

/* ---- samples in memory ---- */

/* Sample n of a tensor of f32, or its copy in f32. */
static float *sample_of(const struct conv *s, const void *tensor, int64_t elems, int64_t n, int reads, float *copy)
{
    if (!s->half)
        return (float *)(uintptr_t)tensor + n * elems;
    if (reads)
        cvy_bf16_widen(1, (const cvy_bf16 *)tensor + n * elems, elems, copy);
    return copy;
}

static void run_sample(const struct conv *s, int64_t n, float *weight_sum, float *scratch)
{
    float *side = scratch + s->col_floats + cvy_whole_lines(cvy_gemm_scratch());
    struct sample x = {0};
    x.src = sample_of(s, s->window_src, s->src_sample, n, s->sum != BACKWARD, side);
    x.dst = sample_of(s, s->window_dst, s->dst_sample, n, s->sum != FORWARD, side + s->side_floats[0]);
    if (s->sum_to && s->half)
        cvy_bf16_widen(1, (const cvy_bf16 *)s->sum_to + n * s->src_sample, s->src_sample, x.src);
    else if (s->sum_to && s->sum_to != s->window_src)
        memcpy(x.src, (const float *)s->sum_to + n * s->src_sample, (size_t)s->src_sample * sizeof *x.src);
    sum_sample(s, x, weight_sum, scratch);
    if (s->half && s->sum == FORWARD)
        cvy_bf16_narrow(1, x.dst, s->dst_sample, (cvy_bf16 *)s->window_dst + n * s->dst_sample);
    if (s->half && s->sum == BACKWARD)
        cvy_bf16_narrow(1, x.src, s->src_sample, (cvy_bf16 *)s->window_src + n * s->src_sample);
}

/* Work item: the samples of one thread, with its own scratch memory and sums. */
static void thread_range(int64_t first, int64_t end, void *arg)
{
    const struct conv *s = arg;
    const int64_t weights = s->c.ndst * s->unfolded;
    for (int64_t t = first; t < end; t++) {
        float *scratch = s->scratch + t * s->thread_floats,
              *weight_sum = t == 0 ? s->weight_sum : scratch + s->thread_floats - weights;
        if (s->sum == WEIGHT)
            memset(weight_sum, 0, (size_t)weights * sizeof *weight_sum);
        for (int64_t n = s->c.n * t / s->threads; n < s->c.n * (t + 1) / s->threads; n++)
            run_sample(s, n, weight_sum, scratch);
    }
}

CVY_SIMD static void add_thread_sums(int64_t first, int64_t end, void *arg)
{
    const struct conv *s = arg;
    const int64_t weights = s->c.ndst * s->unfolded;
    for (int t = 1; t < s->threads; t++) {
        const float *part = s->scratch + (t + 1) * s->thread_floats - weights;
        for (int64_t i = first; i < end; i++)
            s->weight_sum[i] += part[i];
    }
}

/* ---- planning ---- */

static cvy_status conv_geometry(const cvy_node *node, struct conv *s, cvy_window *w)
{
    const int deconv = node->op->transposed, grad_weight = node->op->pass == CVY_LAYER_GRAD_WEIGHT,
              forward = node->op->pass == CVY_LAYER_FORWARD;
    s->sum = grad_weight ? WEIGHT : forward == !deconv ? FORWARD : BACKWARD;
    if (deconv) {
        const cvy_deconv_grad_opts *g = node->options;
        const cvy_deconv_opts *o = forward ? node->options : &g->deconv;
        s->has_bias = o->bias;
        return cvy_deconv_window(o, forward ? &node->src[0]->shape : &g->src, w, &s->c);
    }
    const cvy_conv_grad_opts *g = node->options;
    const cvy_conv_opts *o = forward ? node->options : &g->conv;
    s->relu = forward && o->relu;
    s->has_bias = o->bias;
    return cvy_conv_window(o, forward ? &node->src[0]->shape : &g->src, w, &s->c);
}

static cvy_status fill_conv(const cvy_kernel_ask *ask, struct conv *s)
{
    cvy_window w;
    CVY_TRY(conv_geometry(ask->node, s, &w));
    s->tile = cvy_gemm_choose();
    const int shift = 3 - w.nspace;
    for (int d = 0; d < 3; d++) {
        const int from = d - shift;
        s->src[d] = from < 0 ? 1 : w.src[from];
        s->dst[d] = from < 0 ? 1 : w.dst[from];
        s->kernel[d] = from < 0 ? 1 : w.kernel[from];
        s->stride[d] = from < 0 ? 1 : w.stride[from];
        s->pad[d] = from < 0 ? 0 : w.pad[from];
        s->dilation[d] = from < 0 ? 1 : w.dilation[from];
    }
    s->src_elems = w.src_elems;
    s->dst_elems = w.dst_elems;
    s->taps = w.taps;
    s->unfolded = s->c.nsrc / s->c.groups * w.taps;
    const int64_t rows = s->dst[0] * s->dst[1],
                  fitting = (1 << 18) / CVY_MAX(1, s->unfolded * s->dst[2]); /* a strip of 1 MB */
    s->strip = CVY_MAX(1, CVY_MIN(rows, fitting));
    s->threads = (int)CVY_MAX(1, CVY_MIN(ask->threads, s->c.n));
    s->half = ask->node->src[0]->dtype == CVY_DTYPE_BF16;
    s->src_sample = s->c.nsrc * s->src_elems;
    s->dst_sample = s->c.ndst * s->dst_elems;
    s->col_floats = cvy_whole_lines(s->unfolded * s->strip * s->dst[2]);
    s->side_floats[0] = s->half ? cvy_whole_lines(s->src_sample) : 0;
    s->side_floats[1] = s->half ? cvy_whole_lines(s->dst_sample) : 0;
    s->thread_floats = s->col_floats + cvy_whole_lines(cvy_gemm_scratch()) + s->side_floats[0] + s->side_floats[1] +
                       (s->sum == WEIGHT ? cvy_whole_lines(s->c.ndst * s->unfolded) : 0);
    return CVY_OK;
}

static cvy_status conv_offer(cvy_kernel_ask *ask)
{
    struct conv s = {0};
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    CVY_TRY(fill_conv(ask, &s));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    ask->scratch_bytes = (size_t)(s.threads * s.thread_floats) * sizeof(float);
    return CVY_OK;
}

static cvy_status conv_grad_src_add_offer(cvy_kernel_ask *ask)
{
    ask->inplace[0] = 3;
    return conv_offer(ask);
}

static cvy_status conv_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct conv *s = NULL, filled = {0};
    CVY_TRY(fill_conv(ask, &filled));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = filled;
    *state_out = s;
    return CVY_OK;
}

static void conv_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* ---- running ---- */

static void run_samples(struct conv *s, void *scratch)
{
    s->scratch = scratch;
    cvy_parallel_for(s->threads, s->threads, 1, thread_range, s);
}

static cvy_status conv_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct conv *s = state;
    s->window_src = src[0];
    s->weight = src[1];
    s->bias = s->has_bias ? src[2] : NULL;
    s->window_dst = dst[0];
    run_samples(s, scratch);
    return CVY_OK;
}

static cvy_status conv_grad_src_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct conv *s = state;
    s->window_dst = src[0];
    s->weight = src[1];
    s->window_src = dst[0];
    run_samples(s, scratch);
    return CVY_OK;
}

static cvy_status conv_grad_src_add_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct conv *s = state;
    s->sum_to = src[2];
    return conv_grad_src_run(state, src, dst, scratch);
}

static cvy_status deconv_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct conv *s = state;
    s->window_dst = src[0];
    s->weight = src[1];
    s->bias = s->has_bias ? src[2] : NULL;
    s->window_src = dst[0];
    run_samples(s, scratch);
    return CVY_OK;
}

static cvy_status deconv_grad_src_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct conv *s = state;
    s->window_src = src[0];
    s->weight = src[1];
    s->window_dst = dst[0];
    run_samples(s, scratch);
    return CVY_OK;
}

CVY_INLINE float plane_sum(const int half, const void *x, int64_t at, int64_t n)
{
    float sum[16] = {0}, total = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++)
            sum[l] += cvy_float_get(half, x, at + i + l);
    for (; i < n; i++)
        sum[i % 16] += cvy_float_get(half, x, at + i);
    for (int l = 0; l < 16; l++)
        total += sum[l];
    return total;
}

/* The gradient of the bias: ddst [n, channels, elems] summed over n and elems. */
CVY_SIMD static void channel_sums(int half, const void *ddst, int64_t n, int64_t channels, int64_t elems, float *dbias)
{
    for (int64_t c = 0; dbias && c < channels; c++) {
        double total = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = (i * channels + c) * elems;
            total += half ? plane_sum(1, ddst, at, elems) : plane_sum(0, ddst, at, elems);
        }
        dbias[c] = (float)total;
    }
}

static void run_weight(struct conv *s, void *window_src, void *window_dst, float *weight, void *scratch)
{
    s->window_src = window_src;
    s->window_dst = window_dst;
    s->weight_sum = weight;
    run_samples(s, scratch);
    cvy_parallel_for(s->threads, s->c.ndst * s->unfolded, CVY_GRAIN, add_thread_sums, s);
}

static cvy_status conv_grad_weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct conv *s = state;
    run_weight(s, src[0], src[1], dst[0], scratch);
    channel_sums(s->half, src[1], s->c.n, s->c.ndst, s->dst_elems, s->has_bias ? dst[1] : NULL);
    return CVY_OK;
}

static cvy_status deconv_grad_weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct conv *s = state;
    run_weight(s, src[1], src[0], dst[0], scratch);
    channel_sums(s->half, src[1], s->c.n, s->c.nsrc, s->src_elems, s->has_bias ? dst[1] : NULL);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_conv) = {
    .name = "native.conv",
    .op = "conv",
    .preference = 50,
    .offer = conv_offer,
    .create = conv_create,
    .run = conv_run,
    .destroy = conv_destroy,
};

CVY_KERNEL_DEFINE(native_conv_grad_src) = {
    .name = "native.conv_grad_src",
    .op = "conv_grad_src",
    .preference = 50,
    .offer = conv_offer,
    .create = conv_create,
    .run = conv_grad_src_run,
    .destroy = conv_destroy,
};

CVY_KERNEL_DEFINE(native_conv_grad_src_add) = {
    .name = "native.conv_grad_src_add",
    .op = "conv_grad_src_add",
    .preference = 50,
    .offer = conv_grad_src_add_offer,
    .create = conv_create,
    .run = conv_grad_src_add_run,
    .destroy = conv_destroy,
};

CVY_KERNEL_DEFINE(native_conv_grad_weight) = {
    .name = "native.conv_grad_weight",
    .op = "conv_grad_weight",
    .preference = 50,
    .thread_dependent = 1,
    .offer = conv_offer,
    .create = conv_create,
    .run = conv_grad_weight_run,
    .destroy = conv_destroy,
};

CVY_KERNEL_DEFINE(native_deconv) = {
    .name = "native.deconv",
    .op = "deconv",
    .preference = 50,
    .offer = conv_offer,
    .create = conv_create,
    .run = deconv_run,
    .destroy = conv_destroy,
};

CVY_KERNEL_DEFINE(native_deconv_grad_src) = {
    .name = "native.deconv_grad_src",
    .op = "deconv_grad_src",
    .preference = 50,
    .offer = conv_offer,
    .create = conv_create,
    .run = deconv_grad_src_run,
    .destroy = conv_destroy,
};

CVY_KERNEL_DEFINE(native_deconv_grad_weight) = {
    .name = "native.deconv_grad_weight",
    .op = "deconv_grad_weight",
    .preference = 50,
    .thread_dependent = 1,
    .offer = conv_offer,
    .create = conv_create,
    .run = deconv_grad_weight_run,
    .destroy = conv_destroy,
};

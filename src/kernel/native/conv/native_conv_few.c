/*
 * native_conv_few.c: convolutions' gradients for a source of few channels, and deconvolutions to few channels, of f32.
 *
 * A generator ends with such a layer, and the gradient of its discriminator for a sample is another. Kernels with
 * blocks of 16 channels compute with zeros there. Here a vector holds neighbouring positions of a row of the longer
 * tensor's gradient (deconvolution: of the source), in plain layout: for one row of the result and each column of the
 * filter, the sums over channels and rows of the filter stay in registers. Then they are added to the result, at their
 * stride.
 *
 *     dst[n, c, s y + i - pad, s x + j - pad] += sum over k of src[n, k, y, x] * weight[k, c, i, j]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/conv/native_conv_few.h"

enum { LANES = CVY_FEW_LANES, COLUMNS = CVY_FEW_COLUMNS, ROWS = 7 /* of the filter */ };

struct few {
    cvy_window w;
    cvy_window_channels c;
    int threads, has_bias;
    const float *src, *weight, *bias; /* of the running call */
    float *dst;
};

/* The rows of src that reach a row of the result, each with the filter's row that does. */
struct pairs {
    const float *src[ROWS], *weight[ROWS];
    int count;
};

/* sums [kw, 2 LANES] of the positions x .. x + vectors * LANES - 1, for filters of kw columns. */
CVY_INLINE void sum_block(const int kw, const int vectors, const struct few *s, const struct pairs *p, int64_t x,
                          float *sums)
{
    const int64_t plane = s->w.dst[0] * s->w.dst[1], filter = s->c.nsrc * s->w.taps;
    cvy_few_vec sum[COLUMNS][2];
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < p->count; i++) {
        const float *src = p->src[i] + x, *weight = p->weight[i];
        for (int64_t k = 0; k < s->c.ndst; k++, src += plane, weight += filter) {
            const cvy_few_vec a = *(const cvy_few_memory_vec *)src,
                              b = *(const cvy_few_memory_vec *)(src + (vectors - 1) * LANES);
#pragma GCC unroll 7
            for (int j = 0; j < kw; j++) {
                sum[j][0] += weight[j] * a;
                if (vectors > 1)
                    sum[j][1] += weight[j] * b;
            }
        }
    }
#pragma GCC unroll 7
    for (int j = 0; j < kw; j++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            *(cvy_few_memory_vec *)(sums + (j * 2 + v) * LANES) = sum[j][v];
}

#define SUM_BLOCKS(kw)                                                                                                 \
    CVY_SIMD static void few_sums_##kw(const struct few *s, const struct pairs *p, int64_t x, int vectors,             \
                                       float *sums)                                                                    \
    {                                                                                                                  \
        if (vectors > 1)                                                                                               \
            sum_block(kw, 2, s, p, x, sums);                                                                           \
        else                                                                                                           \
            sum_block(kw, 1, s, p, x, sums);                                                                           \
    }
SUM_BLOCKS(1)
SUM_BLOCKS(2)
SUM_BLOCKS(3)
SUM_BLOCKS(4)
SUM_BLOCKS(5)
SUM_BLOCKS(6)
SUM_BLOCKS(7)
static void (*const sum_blocks[])(const struct few *s, const struct pairs *p, int64_t x, int vectors, float *sums) = {
    few_sums_1, few_sums_2, few_sums_3, few_sums_4, few_sums_5, few_sums_6, few_sums_7};

static cvy_status read_options(const cvy_node *node, struct few *s)
{
    if (node->op->transposed) {
        const cvy_deconv_opts *o = node->options;
        s->has_bias = o->bias;
        return cvy_deconv_window(o, cvy_node_src(node, 0), &s->w, &s->c);
    }
    const cvy_conv_grad_opts *g = node->options;
    return cvy_conv_window(&g->conv, &g->src, &s->w, &s->c);
}

static cvy_status few_offer(cvy_kernel_ask *ask)
{
    struct few s = {0};
    CVY_TRY(read_options(ask->node, &s));
    CVY_TRY(cvy_few_check(ask->node, &s.w, &s.c));
    CVY_CHECK(s.w.nspace == 2 && s.w.kernel[0] <= ROWS && s.w.dst[1] >= LANES, CVY_NOT_APPLICABLE,
              "this kernel needs two dimensions, up to %d rows of the filter, and rows of %d or more positions", ROWS,
              LANES);
    ask->src[0] = ask->src[1] = ask->dst[0] = cvy_layout_plain();
    if (s.has_bias)
        ask->src[2] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status few_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct few *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    const cvy_status status = read_options(ask->node, s);
    s->threads = ask->threads;
    *state_out = s;
    if (status != CVY_OK)
        cvy_mem_free(state_out);
    return status;
}

static void few_destroy(void *state)
{
    cvy_mem_free(&state);
}

static void find_pairs(const struct few *s, int64_t n, int64_t c, int64_t row, struct pairs *p)
{
    const cvy_window *w = &s->w;
    p->count = 0;
    for (int64_t i = 0; i < w->kernel[0]; i++) {
        const int64_t at = row + w->pad[0] - i, y = at / w->stride[0];
        if (at < 0 || at % w->stride[0] != 0 || y >= w->dst[0])
            continue;
        p->src[p->count] = s->src + (n * s->c.ndst * w->dst[0] + y) * w->dst[1];
        p->weight[p->count++] = s->weight + c * w->taps + i * w->kernel[1];
    }
}

/* Adds the sums of column j of the filter for source positions x .. x + count - 1 to a row of the result. */
static void spread(const struct few *s, int64_t j, int64_t x, int64_t count, const float *sum, float *row)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t to = (x + i) * s->w.stride[1] + j - s->w.pad[1];
        if (to >= 0 && to < s->w.src[1])
            row[to] += sum[i];
    }
}

/* The positions from x on, which are too few for a vector. */
static void sum_rest(const struct few *s, const struct pairs *p, int64_t x, float *row)
{
    const int64_t plane = s->w.dst[0] * s->w.dst[1], filter = s->c.nsrc * s->w.taps;
    for (; x < s->w.dst[1]; x++)
        for (int64_t j = 0; j < s->w.kernel[1]; j++) {
            float sum = 0;
            for (int i = 0; i < p->count; i++)
                for (int64_t k = 0; k < s->c.ndst; k++)
                    sum += p->src[i][k * plane + x] * p->weight[i][k * filter + j];
            spread(s, j, x, 1, &sum, row);
        }
}

/* Work item: a row of the result. */
static void few_range(int64_t first, int64_t end, void *arg)
{
    const struct few *s = arg;
    float sums[COLUMNS * 2 * LANES];
    struct pairs p;
    for (int64_t item = first; item < end; item++) {
        const int64_t y = item % s->w.src[0], c = item / s->w.src[0] % s->c.nsrc, n = item / s->w.src[0] / s->c.nsrc;
        float *row = s->dst + item * s->w.src[1];
        int64_t x = 0;
        for (int64_t i = 0; i < s->w.src[1]; i++)
            row[i] = s->has_bias ? s->bias[c] : 0;
        find_pairs(s, n, c, y, &p);
        if (p.count == 0)
            continue;
        while (s->w.dst[1] - x >= LANES) {
            const int vectors = s->w.dst[1] - x >= 2 * LANES ? 2 : 1;
            sum_blocks[s->w.kernel[1] - 1](s, &p, x, vectors, sums);
            for (int64_t j = 0; j < s->w.kernel[1]; j++)
                spread(s, j, x, vectors * LANES, sums + j * 2 * LANES, row);
            x += vectors * LANES;
        }
        sum_rest(s, &p, x, row);
    }
}

static cvy_status few_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct few *s = state;
    (void)scratch;
    s->src = src[0];
    s->weight = src[1];
    s->bias = s->has_bias ? src[2] : NULL;
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->c.n * s->c.nsrc * s->w.src[0], 4, few_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_conv_few_grad_src) = {
    .name = "native.conv_few_grad_src",
    .op = "conv_grad_src",
    .preference = 130,
    .offer = few_offer,
    .create = few_create,
    .run = few_run,
    .destroy = few_destroy,
};

CVY_KERNEL_DEFINE(native_deconv_few) = {
    .name = "native.deconv_few",
    .op = "deconv",
    .preference = 130,
    .offer = few_offer,
    .create = few_create,
    .run = few_run,
    .destroy = few_destroy,
};

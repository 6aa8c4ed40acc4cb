/*
 * native_conv_few_weight.c: the gradient of the weights of a convolution whose source is a volume or a series of few
 * channels, as the first layer of a network for volumes has; f32.
 *
 * A vector holds a block of result channels at one position. For one row of the result, the source rows that it reads
 * are copied with their padding, and the sums of a few of them for each column of the filter stay in registers. The
 * rows are divided into a fixed number of chunks with sums of their own, which are added at the end, so that the result
 * does not depend on the number of threads.
 *
 *     dweight[k, c, r] = sum over n, p of ddst[n, k, p] * src[n, c, p stride + r - pad]        dbias[k] = sum of ddst
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/conv/native_conv_few.h"

enum { LANES = CVY_FEW_LANES, SUMS = 24 /* in registers */, CHUNKS_MAX = 64 };

struct few {
    cvy_window w;
    cvy_window_channels c;
    int threads, has_bias, last; /* last: the dimension of a row */
    int64_t blocks, rows;        /* of result channels; rows of the result, of all samples */
    int64_t chunks;              /* of rows */
    int64_t src_rows, width;     /* source rows that a row of the result reads; their length with padding */
    int64_t sums_floats;         /* of a chunk: [blocks, src_rows, kernel, LANES], then [blocks, LANES] for the bias */
    const float *src, *ddst;     /* of the running call */
    float *scratch;              /* of each chunk: sums, then source rows */
    float *dweight, *dbias;
};

static int64_t chunk_floats(const struct few *s)
{
    return s->sums_floats + (s->src_rows * s->width + LANES - 1) / LANES * LANES;
}

/* Adds the products of a row of one block of ddst with `rows` source rows, for filters of kw columns, to sums [rows,
 * kw, LANES]. */
CVY_INLINE void add_products(const int kw, const int rows, const struct few *s, const float *ddst, const float *src,
                             float *sums)
{
    const int64_t stride = s->w.stride[s->last], width = s->width;
    cvy_few_vec sum[SUMS];
#pragma GCC unroll 24
    for (int i = 0; i < rows * kw; i++)
        sum[i] = *(const cvy_few_memory_vec *)(sums + i * LANES);
    for (int64_t x = 0; x < s->w.dst[s->last]; x++) {
        const cvy_few_vec d = *(const cvy_few_memory_vec *)(ddst + x * LANES);
        const float *at = src + x * stride;
#pragma GCC unroll 24
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 7
            for (int j = 0; j < kw; j++)
                sum[i * kw + j] += at[i * width + j] * d;
    }
#pragma GCC unroll 24
    for (int i = 0; i < rows * kw; i++)
        *(cvy_few_memory_vec *)(sums + i * LANES) = sum[i];
}

/* All source rows: as many at a time as there are registers, then one by one. */
#define FEW_PRODUCTS(kw)                                                                                               \
    CVY_SIMD static void few_products_##kw(const struct few *s, const float *ddst, const float *src, float *sums)      \
    {                                                                                                                  \
        int64_t row = 0;                                                                                               \
        for (; row + SUMS / kw <= s->src_rows; row += SUMS / kw)                                                       \
            add_products(kw, SUMS / kw, s, ddst, src + row * s->width, sums + row * kw * LANES);                       \
        for (; row < s->src_rows; row++)                                                                               \
            add_products(kw, 1, s, ddst, src + row * s->width, sums + row * kw * LANES);                               \
    }
FEW_PRODUCTS(1)
FEW_PRODUCTS(2)
FEW_PRODUCTS(3)
FEW_PRODUCTS(4)
FEW_PRODUCTS(5)
FEW_PRODUCTS(6)
FEW_PRODUCTS(7)
static void (*const few_products[])(const struct few *s, const float *ddst, const float *src, float *sums) = {
    few_products_1, few_products_2, few_products_3, few_products_4, few_products_5, few_products_6, few_products_7};

CVY_SIMD static void few_add_row(const float *ddst, int64_t n, float *sum)
{
    cvy_few_vec total = *(const cvy_few_memory_vec *)sum;
    for (int64_t x = 0; x < n; x++)
        total += *(const cvy_few_memory_vec *)(ddst + x * LANES);
    *(cvy_few_memory_vec *)sum = total;
}

/* ---- planning ---- */

static cvy_status fill_few(const cvy_kernel_ask *ask, struct few *s)
{
    const cvy_node *node = ask->node;
    const cvy_conv_grad_opts *g = node->options;
    CVY_TRY(cvy_conv_window(&g->conv, &g->src, &s->w, &s->c));
    s->last = s->w.nspace - 1;
    CVY_TRY(cvy_few_check(node, &s->w, &s->c));
    CVY_CHECK(s->w.nspace != 2, CVY_NOT_APPLICABLE, "this kernel needs a volume or a series; others take pictures");
    s->threads = ask->threads;
    s->has_bias = g->conv.bias;
    s->blocks = (s->c.ndst + LANES - 1) / LANES;
    s->rows = s->c.n * s->w.dst_elems / s->w.dst[s->last];
    s->chunks = CVY_MIN(s->rows, CHUNKS_MAX);
    s->src_rows = s->c.nsrc * s->w.taps / s->w.kernel[s->last];
    s->width = (s->w.dst[s->last] - 1) * s->w.stride[s->last] + s->w.kernel[s->last];
    s->sums_floats = s->blocks * (s->c.nsrc * s->w.taps + 1) * LANES;
    return CVY_OK;
}

static cvy_status few_offer(cvy_kernel_ask *ask)
{
    struct few s = {0};
    CVY_TRY(fill_few(ask, &s));
    ask->src[0] = ask->dst[0] = cvy_layout_plain();
    ask->src[1] = cvy_layout_channels(2 + s.w.nspace, LANES);
    if (s.has_bias)
        ask->dst[1] = cvy_layout_plain();
    ask->scratch_bytes = (size_t)(s.chunks * chunk_floats(&s)) * sizeof(float);
    return CVY_OK;
}

static cvy_status few_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct few *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    const cvy_status status = fill_few(ask, s);
    *state_out = s;
    if (status != CVY_OK)
        cvy_mem_free(state_out);
    return status;
}

static void few_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* ---- running ---- */

/* Copies the source rows that the row `at` (depth, height) of the result reads, for each channel and each row of the
 * filter, with zeros around the source. */
static void copy_rows(const struct few *s, int64_t n, const int64_t at[2], float *to)
{
    const cvy_window *w = &s->w;
    const int rows = s->last; /* dimensions before the last */
    const int64_t length = w->src[s->last], pad = w->pad[s->last], kz = rows > 0 ? w->kernel[0] : 1,
                  ky = rows > 1 ? w->kernel[1] : 1, depth = rows > 0 ? w->src[0] : 1, height = rows > 1 ? w->src[1] : 1;
    for (int64_t c = 0; c < s->c.nsrc; c++)
        for (int64_t i = 0; i < kz * ky; i++, to += s->width) {
            const int64_t z = rows > 0 ? at[0] * w->stride[0] + i / ky - w->pad[0] : 0,
                          y = rows > 1 ? at[1] * w->stride[1] + i % ky - w->pad[1] : 0,
                          end = CVY_MIN(s->width, length + pad);
            memset(to, 0, (size_t)s->width * sizeof *to);
            if (z >= 0 && z < depth && y >= 0 && y < height && end > pad)
                memcpy(to + pad, s->src + (((n * s->c.nsrc + c) * depth + z) * height + y) * length,
                       (size_t)(end - pad) * sizeof *to);
        }
}

/* Work item: a chunk of rows. */
static void few_range(int64_t first, int64_t end, void *arg)
{
    const struct few *s = arg;
    const int64_t length = s->w.dst[s->last], each = s->rows / s->c.n, kernel = s->w.kernel[s->last],
                  inner = s->last > 1 ? s->w.dst[1] : 1;
    for (int64_t t = first; t < end; t++) {
        float *sums = s->scratch + t * chunk_floats(s), *rows = sums + s->sums_floats,
              *bias = sums + s->blocks * s->src_rows * kernel * LANES;
        memset(sums, 0, (size_t)s->sums_floats * sizeof *sums);
        for (int64_t row = s->rows * t / s->chunks; row < s->rows * (t + 1) / s->chunks; row++) {
            const int64_t n = row / each, at[2] = {row % each / inner, row % each % inner};
            copy_rows(s, n, at, rows);
            for (int64_t b = 0; b < s->blocks; b++) {
                const float *ddst = s->ddst + ((n * s->blocks + b) * each + row % each) * length * LANES;
                few_products[kernel - 1](s, ddst, rows, sums + b * s->src_rows * kernel * LANES);
                if (s->has_bias)
                    few_add_row(ddst, length, bias + b * LANES);
            }
        }
    }
}

/* Work item: a result channel. Adds the sums of all chunks, in order. */
static void add_chunks(int64_t first, int64_t end, void *arg)
{
    const struct few *s = arg;
    const int64_t taps = s->c.nsrc * s->w.taps;
    for (int64_t k = first; k < end; k++)
        for (int64_t i = 0; i < taps + s->has_bias; i++) {
            const int64_t at = i < taps ? (k / LANES * taps + i) * LANES + k % LANES : s->blocks * taps * LANES + k;
            double sum = 0;
            for (int64_t t = 0; t < s->chunks; t++)
                sum += s->scratch[t * chunk_floats(s) + at];
            *(i < taps ? &s->dweight[k * taps + i] : &s->dbias[k]) = (float)sum;
        }
}

static cvy_status few_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct few *s = state;
    s->src = src[0];
    s->ddst = src[1];
    s->dweight = dst[0];
    s->dbias = s->has_bias ? dst[1] : NULL;
    s->scratch = scratch;
    cvy_parallel_for(s->threads, s->chunks, 1, few_range, s);
    cvy_parallel_for(s->threads, s->c.ndst, 1, add_chunks, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_conv_few_grad_weight) = {
    .name = "native.conv_few_grad_weight",
    .op = "conv_grad_weight",
    .preference = 130,
    .offer = few_offer,
    .create = few_create,
    .run = few_run,
    .destroy = few_destroy,
};

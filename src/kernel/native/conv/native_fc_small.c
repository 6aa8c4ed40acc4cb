/*
 * native_fc_small.c: the fully connected layer for few samples of few numbers, such as a closure of three small layers
 * that a simulation applies to one cell. Such a product takes less time than the call of a library.
 *
 *     dst [N, K] = src [N, I] weight [K, I]^T + bias
 *
 * Layouts are plain, so training and other kernels see the weight as it is. With several samples it is transposed in
 * panels of PANEL outputs; a tile of some samples and PANEL outputs then stays in registers. The panels are kept until
 * the weight is written again. With fewer samples each output is a sum of LANES partial sums. There are no threads:
 * starting them would take longer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/machine/base_isa.h"
#include "kernel/native/native_common.h"
#include "op/conv/op_fc.h"

#if defined(__GNUC__)

enum { LANES = 16, PANEL = 2 * LANES, ROWS_MAX = 8, FEW = 3, MULTIPLICATIONS_MAX = 1 << 20 };

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef float memory_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias)); /* at any address */

struct fc_small;
typedef void (*many_fn)(const struct fc_small *s, const float *src, const float *bias, float *dst);

struct fc_small {
    int64_t N, I, K;
    int has_bias, relu;
    many_fn many;
    float *panels;              /* [K / PANEL, I, PANEL], the transposed weight; NULL: there are few samples */
    const void *panels_of;      /* the memory from which they were made, NULL: none yet */
    const cvy_variable *weight; /* whose `written` says whether they are up to date; NULL: make them each time */
    uint64_t written;           /* its value when they were made */
};

static many_fn choose_many(void);

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_fc_opts *o = ask->node->options;
    const cvy_fc_matrix m = cvy_fc_matrix_of(o, &ask->node->src[0]->shape);
    CVY_TRY(cvy_native_f32(ask->node));
    /* Outputs count as whole vectors, which the products have. */
    CVY_CHECK(m.rows * m.width <= MULTIPLICATIONS_MAX / CVY_MAX((o->channels + LANES - 1) / LANES * LANES, 1),
              CVY_NOT_APPLICABLE, "more than %d multiplications", MULTIPLICATIONS_MAX);
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_fc_opts *o = ask->node->options;
    const cvy_fc_matrix m = cvy_fc_matrix_of(o, &ask->node->src[0]->shape);
    const cvy_value *weight = ask->node->src[1];
    struct fc_small *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct fc_small){
        .N = m.rows, .I = m.width, .K = o->channels, .has_bias = o->bias, .relu = o->relu, .many = choose_many()};
    s->weight = weight->kind == CVY_VALUE_VARIABLE ? weight->variable : NULL;
    const size_t floats = (size_t)((s->K + PANEL - 1) / PANEL * PANEL * s->I);
    const cvy_status status = s->N > FEW ? cvy_mem_alloc(floats * sizeof(float), &s->panels) : CVY_OK;
    if (status != CVY_OK)
        cvy_mem_free(&s);
    else
        *state_out = s;
    return status;
}

static void destroy(void *state)
{
    struct fc_small *s = state;
    cvy_mem_free(&s->panels);
    cvy_mem_free(&s);
}

/* NaN stays NaN. */
CVY_INLINE float finish(const struct fc_small *s, float sum, const float *bias, int64_t k)
{
    const float y = sum + (bias ? bias[k] : 0);
    return s->relu && y <= 0 ? 0 : y;
}

#if defined(__SSE__)

enum { BLOCK = 4 };

/* to [BLOCK, PANEL] = the transpose of BLOCK x BLOCK numbers, whose rows are `row` apart. */
CVY_INLINE void transpose_block(const float *from, int64_t row, float *to)
{
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + row), c = _mm_loadu_ps(from + 2 * row),
           d = _mm_loadu_ps(from + 3 * row);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + PANEL, b);
    _mm_storeu_ps(to + 2 * PANEL, c);
    _mm_storeu_ps(to + 3 * PANEL, d);
}

#else

enum { BLOCK = 1 };

CVY_INLINE void transpose_block(const float *from, int64_t row, float *to)
{
    (void)row;
    *to = *from;
}

#endif

/* panel [I, PANEL] = the transpose of the rows of the weight from k on; 0 beyond the last row. */
CVY_INLINE void transpose(const struct fc_small *s, const float *weight, int64_t k, float *panel)
{
    const int64_t n = CVY_MIN(PANEL, s->K - k), blocks = n / BLOCK * BLOCK, whole = s->I / BLOCK * BLOCK;
    if (n < PANEL)
        memset(panel, 0, (size_t)(s->I * PANEL) * sizeof *panel);
    for (int64_t i = 0; i < whole; i += BLOCK)
        for (int64_t j = 0; j < blocks; j += BLOCK)
            transpose_block(weight + (k + j) * s->I + i, s->I, panel + i * PANEL + j);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j < blocks ? whole : 0; i < s->I; i++)
            panel[i * PANEL + j] = weight[(k + j) * s->I + i];
}

/* Stores a vector of outputs, rectified if wanted; NaN stays NaN. n: how many of them exist. */
CVY_INLINE void put(const struct fc_small *s, const vec *sum, int64_t n, float *dst)
{
    const ivec cut = s->relu ? (ivec)(*sum <= 0) : (ivec){0};
    const vec y = (vec)((ivec)*sum & ~cut);
    if (n >= LANES)
        *(memory_vec *)dst = y;
    else if (n > 0)
        memcpy(dst, &y, (size_t)n * sizeof *dst);
}

/* Outputs k .. k + wide * LANES - 1 of `rows` samples. first: their biases. */
CVY_INLINE void tile(const struct fc_small *s, const int rows, const int wide, const float *src, const float *panel,
                     const float *first, int64_t k, float *dst)
{
    vec sum[ROWS_MAX][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < wide; v++)
            sum[r][v] = *(const memory_vec *)(first + v * LANES);
    for (int64_t i = 0; i < s->I; i++) {
        const float *w = panel + i * PANEL;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int v = 0; v < wide; v++)
                sum[r][v] += src[r * s->I + i] * *(const memory_vec *)(w + v * LANES);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < wide; v++)
            put(s, &sum[r][v], s->K - k - v * LANES, dst + r * s->K + k + v * LANES);
}

CVY_INLINE void all_samples(const struct fc_small *s, const int rows, const int wide, const float *src,
                            const float *panel, const float *first, int64_t k, float *dst)
{
    int64_t n = 0;
    for (; n + rows <= s->N; n += rows)
        tile(s, rows, wide, src + n * s->I, panel, first, k, dst + n * s->K);
    for (; n < s->N; n++)
        tile(s, 1, wide, src + n * s->I, panel, first, k, dst + n * s->K);
}

/* rows: as many as fit into the registers. */
CVY_INLINE void many(const struct fc_small *s, const int rows, const float *src, const float *bias, float *dst)
{
    for (int64_t k = 0; k < s->K; k += PANEL) {
        const float *panel = s->panels + k * s->I;
        float first[PANEL] = {0};
        if (bias)
            memcpy(first, bias + k, (size_t)CVY_MIN(PANEL, s->K - k) * sizeof *first);
        if (s->K - k > LANES)
            all_samples(s, rows, 2, src, panel, first, k, dst);
        else
            all_samples(s, rows, 1, src, panel, first, k, dst);
    }
}

static void many_plain(const struct fc_small *s, const float *src, const float *bias, float *dst)
{
    many(s, 2, src, bias, dst);
}

#if defined(__x86_64__)

__attribute__((target("avx512f,avx512vl,fma"))) static void many_avx512(const struct fc_small *s, const float *src,
                                                                        const float *bias, float *dst)
{
    many(s, 8, src, bias, dst);
}

__attribute__((target("avx2,fma"))) static void many_fma(const struct fc_small *s, const float *src, const float *bias,
                                                         float *dst)
{
    many(s, 3, src, bias, dst);
}

#endif

static many_fn choose_many(void)
{
#if defined(__x86_64__)
    if (cvy_isa_may_use(CVY_ISA_AVX512))
        return many_avx512;
    if (cvy_isa_may_use(CVY_ISA_AVX2))
        return many_fma;
#endif
    return many_plain;
}

CVY_INLINE float dot(const float *x, const float *w, int64_t n)
{
    vec sum = {0};
    float part[LANES], total = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sum += *(const memory_vec *)(x + i) * *(const memory_vec *)(w + i);
    memcpy(part, &sum, sizeof part);
    for (int l = 0; l < LANES / 2; l++)
        part[l] += part[l + LANES / 2];
    for (int l = 0; l < LANES / 4; l++)
        total += part[l] + part[l + LANES / 4];
    for (; i < n; i++)
        total += x[i] * w[i];
    return total;
}

CVY_SIMD static void fc_small_few(const struct fc_small *s, const float *src, const float *weight, const float *bias,
                                  float *dst)
{
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t k = 0; k < s->K; k++)
            dst[n * s->K + k] = finish(s, dot(src + n * s->I, weight + k * s->I, s->I), bias, k);
}

/* Ranks of a node may share a weight, and one of them may write it without the others. */
static int are_fresh(const struct fc_small *s, const void *weight)
{
    return s->weight && !s->weight->is_borrowed && s->panels_of == weight && s->written == s->weight->written;
}

static void make_panels(struct fc_small *s, const float *weight)
{
    for (int64_t k = 0; k < s->K; k += PANEL)
        transpose(s, weight, k, s->panels + k * s->I);
    s->panels_of = weight;
    s->written = s->weight ? s->weight->written : 0;
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct fc_small *s = state;
    const float *bias = s->has_bias ? src[2] : NULL;
    (void)scratch;
    if (s->N > FEW && !are_fresh(s, src[1]))
        make_panels(s, src[1]);
    if (s->N > FEW)
        s->many(s, src[0], bias, dst[0]);
    else
        fc_small_few(s, src[0], src[1], bias, dst[0]);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_fc_small) = {
    .name = "native.fc_small",
    .op = "fc",
    .preference = 130,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

#endif

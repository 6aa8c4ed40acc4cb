/*
 * native_spectral_norm.c: spectral_norm and its gradient on f32, as products of the weight with vectors.
 *
 * A product with rows is parallel over rows, one with columns over ranges of columns. Each result is added up in one
 * order, so it does not depend on the number of threads. The formula is in src/op/conv/op_spectral_norm.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/native/native_common.h"
#include "op/conv/op_spectral_norm.h"

enum { PIECE = 8192 };

struct spectral_norm {
    cvy_spectral_matrix m;
    int64_t runs; /* of `inner` elements: one for each block of columns and row */
    int iterates, threads;
    const float *weight, *ddst; /* of the running call, like all below */
    float *u, *v, *dst;
    const float *u_in, *v_in;
    double *sum;         /* one for each row or piece; in scratch memory */
    float factor, along; /* 1 / sigma; the sum of ddst * weight */
};

static cvy_status offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(ask->node->options);
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    ask->scratch_bytes = sizeof(double) * (size_t)CVY_MAX(m.rows, (m.rows * m.cols + PIECE - 1) / PIECE);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_spectral_norm_opts *o = ask->node->options;
    struct spectral_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->m = cvy_spectral_matrix_of(o);
    s->runs = s->m.rows * s->m.cols / s->m.inner;
    s->iterates = o->iterate;
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Rows first .. end - 1 of the weight times v. */
CVY_SIMD static void spectral_rows(int64_t first, int64_t end, void *arg)
{
    const struct spectral_norm *s = arg;
    const int64_t inner = s->m.inner, blocks = s->m.cols / inner;
    for (int64_t r = first; r < end; r++) {
        double sum = 0;
        for (int64_t b = 0; b < blocks; b++) {
            const float *w = s->weight + (b * s->m.rows + r) * inner, *v = s->v + b * inner;
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < inner; i++)
                sum += (double)w[i] * (double)v[i];
        }
        s->sum[r] = sum;
    }
}

/* Columns first .. end - 1 of the weight times u. */
CVY_SIMD static void spectral_columns(int64_t first, int64_t end, void *arg)
{
    const struct spectral_norm *s = arg;
    const int64_t inner = s->m.inner;
    memset(s->v + first, 0, sizeof *s->v * (size_t)(end - first));
    for (int64_t c = first, next; c < end; c = next) {
        const int64_t b = c / inner;
        next = CVY_MIN(end, (b + 1) * inner);
        float *v = s->v + c;
        for (int64_t r = 0; r < s->m.rows; r++) {
            const float *w = s->weight + (b * s->m.rows + r) * inner + c % inner, u = s->u[r];
#pragma omp simd
            for (int64_t i = 0; i < next - c; i++)
                v[i] += u * w[i];
        }
    }
}

static void normalise(float *x, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    const double norm = fmax(sqrt(squares), CVY_SPECTRAL_EPS);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(x[i] / norm);
}

/* Items of a loop that are worth a thread, if one item reads so many elements. */
static int64_t grain(int64_t elems)
{
    return CVY_MAX(1, CVY_GRAIN / CVY_MAX(elems, 1));
}

static void iterate(struct spectral_norm *s)
{
    cvy_parallel_for(s->threads, s->m.rows, grain(s->m.cols), spectral_rows, s);
    for (int64_t r = 0; r < s->m.rows; r++)
        s->u[r] = (float)s->sum[r];
    normalise(s->u, s->m.rows);
    cvy_parallel_for(s->threads, s->m.cols, grain(s->m.rows), spectral_columns, s);
    normalise(s->v, s->m.cols);
}

CVY_SIMD static void spectral_scale(int64_t first, int64_t end, void *arg)
{
    const struct spectral_norm *s = arg;
    const float *w = s->weight, factor = s->factor;
    float *dst = s->dst;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        dst[i] = w[i] * factor;
}

static cvy_status spectral_norm_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct spectral_norm *s = state;
    double sigma = 0;
    int is_fresh = 1;
    s->weight = src[0];
    s->u_in = src[1];
    s->v_in = src[2];
    s->dst = dst[0];
    s->u = dst[1];
    s->v = s->u + s->m.rows;
    s->sum = scratch;
    memcpy(s->u, s->u_in, sizeof *s->u * (size_t)s->m.rows);
    memcpy(s->v, s->v_in, sizeof *s->v * (size_t)s->m.cols);
    for (int64_t r = 0; r < s->m.rows; r++)
        is_fresh = is_fresh && s->u[r] == 0;
    for (int i = s->iterates + (is_fresh ? CVY_SPECTRAL_FIRST : 0); i > 0; i--)
        iterate(s);
    cvy_parallel_for(s->threads, s->m.rows, grain(s->m.cols), spectral_rows, s);
    for (int64_t r = 0; r < s->m.rows; r++)
        sigma += (double)s->u[r] * s->sum[r];
    s->v[s->m.cols] = (float)sigma;
    s->factor = (float)(1 / sigma);
    cvy_parallel_for(s->threads, s->m.rows * s->m.cols, CVY_GRAIN, spectral_scale, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_spectral_norm) = {
    .name = "native.spectral_norm",
    .op = "spectral_norm",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = spectral_norm_run,
    .destroy = destroy,
};

/* ---- the gradient ---- */

CVY_SIMD static void spectral_along(int64_t first, int64_t end, void *arg)
{
    const struct spectral_norm *s = arg;
    const int64_t elems = s->m.rows * s->m.cols;
    for (int64_t p = first; p < end; p++) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = p * PIECE; i < CVY_MIN((p + 1) * PIECE, elems); i++)
            sum += (double)s->ddst[i] * (double)s->weight[i];
        s->sum[p] = sum;
    }
}

/* A run is `inner` elements of one row. */
CVY_SIMD static void spectral_grad_runs(int64_t first, int64_t end, void *arg)
{
    const struct spectral_norm *s = arg;
    const int64_t inner = s->m.inner;
    const float factor = s->factor;
    for (int64_t k = first; k < end; k++) {
        const float *ddst = s->ddst + k * inner, *v = s->v_in + k / s->m.rows * inner;
        const float along = s->along * s->u_in[k % s->m.rows];
        float *dst = s->dst + k * inner;
#pragma omp simd
        for (int64_t i = 0; i < inner; i++)
            dst[i] = (ddst[i] - along * v[i]) * factor;
    }
}

static cvy_status spectral_norm_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct spectral_norm *s = state;
    const int64_t pieces = (s->m.rows * s->m.cols + PIECE - 1) / PIECE;
    double along = 0;
    s->ddst = src[0];
    s->weight = src[1];
    s->u_in = src[2];
    s->v_in = s->u_in + s->m.rows;
    s->dst = dst[0];
    s->sum = scratch;
    cvy_parallel_for(s->threads, pieces, CVY_GRAIN / PIECE, spectral_along, s);
    for (int64_t p = 0; p < pieces; p++)
        along += s->sum[p];
    s->along = (float)along;
    s->factor = 1 / s->v_in[s->m.cols];
    cvy_parallel_for(s->threads, s->runs, grain(s->m.inner), spectral_grad_runs, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_spectral_norm_grad) = {
    .name = "native.spectral_norm_grad",
    .op = "spectral_norm_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = spectral_norm_grad_run,
    .destroy = destroy,
};

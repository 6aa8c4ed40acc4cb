/*
 * native_softmax.c: softmax, log_softmax and their gradients, on plain layouts. They are mostly used for the output of
 * a network in prediction.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/norm/native_softmax.h"
#include "op/pointwise/op_softmax.h"

struct softmax {
    int64_t n, K, P, nstrips; /* rows of K x P elements; strips of positions in a row */
    int threads;
    const float *a, *b; /* sources of the running call */
    float *dst;
};

static cvy_status offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->dst[0] = cvy_layout_plain();
    ask->inplace[0] = 1;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_shape *shape = &ask->node->src[0]->shape;
    const int axis = (int)((const cvy_softmax_opts *)ask->node->options)->axis;
    struct softmax *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct softmax){.n = 1, .K = shape->dim[axis], .P = 1, .threads = ask->threads};
    for (int d = 0; d < axis; d++)
        s->n *= shape->dim[d];
    for (int d = axis + 1; d < shape->ndim; d++)
        s->P *= shape->dim[d];
    s->nstrips = (s->P + CVY_STRIP - 1) / CVY_STRIP;
    *state_out = s;
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

static cvy_status run(struct softmax *s, void *const *src, int nsrc, void *const *dst, cvy_range_fn range)
{
    s->a = src[0];
    s->b = nsrc > 1 ? src[1] : NULL;
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->n * s->nstrips, CVY_MAX(1, CVY_GRAIN / 8 / (s->K * CVY_MIN(s->P, CVY_STRIP))),
                     range, s);
    return CVY_OK;
}

/* Returns the element at which strip `item` begins, and its number of positions. */
static int64_t strip(const struct softmax *s, int64_t item, int64_t *count_out)
{
    const int64_t from = item % s->nstrips * CVY_STRIP;
    *count_out = CVY_MIN(CVY_STRIP, s->P - from);
    return item / s->nstrips * s->K * s->P + from;
}

/* ---- forward ---- */

CVY_INLINE void forward_row(const float *x, float *y, int64_t K, int logarithm)
{
    float top, sum;
    cvy_softmax_row(x, K, &top, &sum);
    const float factor = 1 / sum, offset = logf(sum); /* top + offset would lose digits if top is large */
#pragma omp simd
    for (int64_t k = 0; k < K; k++)
        y[k] = logarithm ? x[k] - top - offset : cvy_exp(x[k] - top) * factor;
}

CVY_INLINE void forward_strip(const float *x, float *y, int64_t K, int64_t P, int64_t n, int logarithm)
{
    float top[CVY_STRIP], sum[CVY_STRIP];
    cvy_softmax_strip(x, K, P, n, top, sum);
    for (int64_t j = 0; j < n; j++)
        sum[j] = logarithm ? logf(sum[j]) : 1 / sum[j];
    for (int64_t k = 0; k < K; k++)
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[k * P + j] = logarithm ? x[k * P + j] - top[j] - sum[j] : cvy_exp(x[k * P + j] - top[j]) * sum[j];
}

CVY_INLINE void forward(const struct softmax *s, int64_t first, int64_t end, int logarithm)
{
    for (int64_t item = first; item < end; item++) {
        int64_t n;
        const int64_t at = strip(s, item, &n);
        if (s->P == 1)
            forward_row(s->a + at, s->dst + at, s->K, logarithm);
        else
            forward_strip(s->a + at, s->dst + at, s->K, s->P, n, logarithm);
    }
}

CVY_SIMD static void softmax_range(int64_t first, int64_t end, void *arg)
{
    forward(arg, first, end, 0);
}
CVY_SIMD static void log_softmax_range(int64_t first, int64_t end, void *arg)
{
    forward(arg, first, end, 1);
}

static cvy_status softmax_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 1, dst, softmax_range);
}

static cvy_status log_softmax_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 1, dst, log_softmax_range);
}

CVY_KERNEL_DEFINE(native_softmax) = {
    .name = "native.softmax",
    .op = "softmax",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = softmax_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_log_softmax) = {
    .name = "native.log_softmax",
    .op = "log_softmax",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = log_softmax_run,
    .destroy = destroy,
};

/* ---- gradients: dsrc from ddst and dst; a tensor without positions has strips of one position ---- */

CVY_INLINE void backward(const struct softmax *s, int64_t first, int64_t end, int logarithm)
{
    const int64_t K = s->K, P = s->P;
    for (int64_t item = first; item < end; item++) {
        int64_t n;
        const int64_t at = strip(s, item, &n);
        const float *dy = s->a + at, *y = s->b + at;
        float *dx = s->dst + at, sum[CVY_STRIP] = {0};
        for (int64_t k = 0; k < K; k++)
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                sum[j] += logarithm ? dy[k * P + j] : dy[k * P + j] * y[k * P + j];
        for (int64_t k = 0; k < K; k++)
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                dx[k * P + j] = logarithm ? dy[k * P + j] - cvy_exp(y[k * P + j]) * sum[j]
                                          : y[k * P + j] * (dy[k * P + j] - sum[j]);
    }
}

CVY_SIMD static void softmax_grad_range(int64_t first, int64_t end, void *arg)
{
    backward(arg, first, end, 0);
}
CVY_SIMD static void log_softmax_grad_range(int64_t first, int64_t end, void *arg)
{
    backward(arg, first, end, 1);
}

static cvy_status softmax_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 2, dst, softmax_grad_range);
}

static cvy_status log_softmax_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, 2, dst, log_softmax_grad_range);
}

CVY_KERNEL_DEFINE(native_softmax_grad) = {
    .name = "native.softmax_grad",
    .op = "softmax_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = softmax_grad_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_log_softmax_grad) = {
    .name = "native.log_softmax_grad",
    .op = "log_softmax_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = log_softmax_grad_run,
    .destroy = destroy,
};

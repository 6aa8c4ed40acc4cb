/*
 * gpu_spectral_norm.c: spectral_norm, its gradient, and the vectors of the step, on f32.
 *
 * op/conv/op_spectral_norm.c has the formulas. A weight is a matrix W of `rows` x `cols`, in plain layout: entry (r, c)
 * is element (c / inner * rows + r) * inner + c % inner. A block computes one row of W v, or some columns of W^T u, or
 * a part of a sum over all elements; one block computes what needs a norm of a whole vector. Each sum has a fixed
 * order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct spectral {
    int rows, cols, inner;
    int elems, parts; /* of the weight; of a sum over them */
    int width;        /* columns of a block */
    int times;        /* of the first kernel: iterations until a weight is first used */
    float least;      /* a vector is divided by at least this norm */
};

#ifdef CVY_DEVICE

#define ELEMENT(a, r, c) (((c) / (a).inner * (a).rows + (r)) * (a).inner + (c) % (a).inner)

/* The vectors {u, v} for this step: those of the statistics, or if u is zero, those after more iterations by one
 * block. */
KERNEL(spectral_first)
(GLOBAL const float *weight, GLOBAL const float *u, GLOBAL const float *v, GLOBAL float *vectors, struct spectral a)
{
    SHARED double s[256];
    GLOBAL float *to = vectors + a.rows;
    double used = 0;
    for (int r = THREAD; r < a.rows; r += THREADS) {
        vectors[r] = u[r];
        used += u[r] != 0;
    }
    for (int c = THREAD; c < a.cols; c += THREADS)
        to[c] = v[c];
    BLOCK_SUM(used, s);
    if (used > 0)
        return;
    for (int i = 0; i < a.times; i++) {
        double squares = 0;
        float by;
        GLOBAL_BARRIER();
        for (int r = THREAD; r < a.rows; r += THREADS) {
            double sum = 0;
            for (int c = 0; c < a.cols; c++)
                sum += (double)weight[ELEMENT(a, r, c)] * to[c];
            vectors[r] = (float)sum;
            squares += (double)vectors[r] * vectors[r];
        }
        BLOCK_SUM(squares, s);
        by = (float)MAX(SQRT_D(squares), (double)a.least);
        for (int r = THREAD; r < a.rows; r += THREADS)
            vectors[r] /= by;
        GLOBAL_BARRIER();
        squares = 0;
        for (int c = THREAD; c < a.cols; c += THREADS) {
            double sum = 0;
            for (int r = 0; r < a.rows; r++)
                sum += (double)weight[ELEMENT(a, r, c)] * vectors[r];
            to[c] = (float)sum;
            squares += (double)to[c] * to[c];
        }
        BLOCK_SUM(squares, s);
        by = (float)MAX(SQRT_D(squares), (double)a.least);
        for (int c = THREAD; c < a.cols; c += THREADS)
            to[c] /= by;
    }
}

/* product[r]: row r of W times v. Grid: rows. */
KERNEL(spectral_rows)
(GLOBAL const float *weight, GLOBAL const float *vectors, GLOBAL double *product, struct spectral a)
{
    SHARED double s[256];
    double sum = 0;
    for (int c = THREAD; c < a.cols; c += THREADS)
        sum += (double)weight[ELEMENT(a, BLOCK, c)] * vectors[a.rows + c];
    BLOCK_SUM(sum, s);
    if (THREAD == 0)
        product[BLOCK] = sum;
}

/* product[c]: column c of W times u. Grid: columns. */
KERNEL(spectral_columns)
(GLOBAL const float *weight, GLOBAL const float *vectors, GLOBAL double *product, struct spectral a)
{
    SHARED double s[256];
    const int c = BLOCK * a.width + THREAD % a.width;
    double sum = 0;
    for (int r = THREAD / a.width; r < a.rows && c < a.cols; r += THREADS / a.width)
        sum += (double)weight[ELEMENT(a, r, c)] * vectors[r];
    COLUMN_SUM(sum, s, a.width);
    if (THREAD < a.width && c < a.cols)
        product[c] = sum;
}

/* vectors[first + i] = product[i], divided by the norm of all. One block. */
KERNEL(spectral_normalise)(GLOBAL const double *product, GLOBAL float *vectors, int first, int n, float least)
{
    SHARED double s[256];
    double squares = 0;
    for (int i = THREAD; i < n; i += THREADS) {
        const double x = (float)product[i];
        squares += x * x;
    }
    BLOCK_SUM(squares, s);
    squares = SQRT_D(squares);
    squares = MAX(squares, (double)least);
    for (int i = THREAD; i < n; i += THREADS)
        vectors[first + i] = (float)((float)product[i] / squares);
}

/* The largest singular value, u . W v, to the end of the vectors. product: W v. One block. */
KERNEL(spectral_sigma)(GLOBAL const double *product, GLOBAL float *vectors, struct spectral a)
{
    SHARED double s[256];
    double sum = 0;
    for (int r = THREAD; r < a.rows; r += THREADS)
        sum += vectors[r] * product[r];
    BLOCK_SUM(sum, s);
    if (THREAD == 0)
        vectors[a.rows + a.cols] = (float)sum;
}

KERNEL(spectral_divide)(GLOBAL const float *weight, GLOBAL const float *vectors, GLOBAL float *dst, struct spectral a)
{
    const float sigma = vectors[a.rows + a.cols];
    FOR_EACH (i, a.elems)
        dst[i] = weight[i] / sigma;
}

/* Parts of the sum of ddst * weight. Grid: parts, at most 256. */
KERNEL(spectral_along)(GLOBAL const float *ddst, GLOBAL const float *weight, GLOBAL double *part, struct spectral a)
{
    SHARED double s[256];
    double sum = 0;
    FOR_EACH (i, a.elems)
        sum += (double)ddst[i] * weight[i];
    BLOCK_SUM(sum, s);
    if (THREAD == 0)
        part[BLOCK] = sum;
}

KERNEL(spectral_grad)
(GLOBAL const float *ddst, GLOBAL const float *vectors, GLOBAL const double *part, GLOBAL float *dweight,
 struct spectral a)
{
    SHARED double s[256];
    double along = THREAD < a.parts ? part[THREAD] : 0;
    const double sigma = vectors[a.rows + a.cols];
    BLOCK_SUM(along, s);
    FOR_EACH (i, a.elems) {
        const int run = (int)i / a.inner, r = run % a.rows, c = run / a.rows * a.inner + (int)i % a.inner;
        const double outer = (double)vectors[r] * vectors[a.rows + c];
        dweight[i] = (float)((ddst[i] - along * outer) / sigma);
    }
}

KERNEL(spectral_copy)(GLOBAL const float *vectors, GLOBAL float *sum, i64 n)
{
    FOR_EACH (i, n)
        sum[i] = vectors[i];
}

/* Writes the direction of the summed vectors; u_in and v_in, which may be u and v, stay if the sum is zero. It writes
 * nothing while updates are held. One block. */
KERNEL(spectral_keep)
(GLOBAL const float *sum, GLOBAL const float *u_in, GLOBAL const float *v_in, GLOBAL float *u, GLOBAL float *v,
 GLOBAL const int *hold, struct spectral a)
{
    SHARED double s[256];
    double of_u = 0, of_v = 0, used = 0;
    if (hold[0])
        return;
    for (int i = THREAD; i < a.rows + a.cols; i += THREADS) {
        const double x = sum[i];
        used += x != 0;
        of_u += i < a.rows ? x * x : 0;
        of_v += i < a.rows ? 0 : x * x;
    }
    BLOCK_SUM(used, s);
    BLOCK_SUM(of_u, s);
    BLOCK_SUM(of_v, s);
    of_u = SQRT_D(of_u);
    of_v = SQRT_D(of_v);
    of_u = MAX(of_u, (double)a.least);
    of_v = MAX(of_v, (double)a.least);
    for (int r = THREAD; r < a.rows; r += THREADS)
        u[r] = used > 0 ? (float)(sum[r] / of_u) : u_in[r];
    for (int c = THREAD; c < a.cols; c += THREADS)
        v[c] = used > 0 ? (float)(sum[a.rows + c] / of_v) : v_in[c];
}

#else
#include <string.h>

#include "kernel/gpu/norm/gpu_norm.h"
#include "op/conv/op_spectral_norm.h"

CVY_GPU_SOURCE_DECLARE(gpu_spectral_norm);

enum { FIRST, ROWS, COLUMNS, NORMALISE, SIGMA, DIVIDE, ALONG, GRAD, COPY, KEEP, STEPS };
static const char *const step_names[STEPS] = {
    "spectral_first",  "spectral_rows",  "spectral_columns", "spectral_normalise", "spectral_sigma",
    "spectral_divide", "spectral_along", "spectral_grad",    "spectral_copy",      "spectral_keep"};

struct call {
    cvy_gpu_kernel kernel[STEPS];
    struct spectral a;
    int iterates;
    int *hold; /* of spectral_keep: cvy_gpu_hold() */
};

static unsigned steps_of(const cvy_node *node)
{
    const char *op = node->op->name;
    return strcmp(op, "spectral_norm") == 0
               ? 1u << FIRST | 1u << ROWS | 1u << COLUMNS | 1u << NORMALISE | 1u << SIGMA | 1u << DIVIDE
           : strcmp(op, "spectral_norm_grad") == 0 ? 1u << ALONG | 1u << GRAD
           : strcmp(op, "spectral_norm_sum") == 0  ? 1u << COPY
                                                   : 1u << KEEP;
}

static cvy_status make(const cvy_kernel_ask *ask, struct call *c)
{
    const cvy_spectral_norm_opts *o = ask->node->options;
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(o);
    CVY_CHECK(ask->node->src[0]->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE, "this kernel computes in f32, not %s",
              cvy_dtype_text(ask->node->src[0]->dtype));
    CVY_CHECK(m.rows * m.cols < INT32_MAX / 2, CVY_NOT_APPLICABLE,
              "this kernel counts elements in 32 bits, and the weight has %lld", (long long)(m.rows * m.cols));
    *c = (struct call){.iterates = o->iterate};
    c->a = (struct spectral){.rows = (int)m.rows,
                             .cols = (int)m.cols,
                             .inner = (int)m.inner,
                             .elems = (int)(m.rows * m.cols),
                             .parts = (int)CVY_MIN(cvy_gpu_blocks(m.rows * m.cols), CVY_GPU_THREADS),
                             .width = cvy_gpu_columns(m.cols),
                             .times = CVY_SPECTRAL_FIRST,
                             .least = (float)CVY_SPECTRAL_EPS};
    for (int i = 0; i < STEPS; i++)
        if (steps_of(ask->node) >> i & 1)
            CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_spectral_norm), step_names[i], CVY_DTYPE_F32, &c->kernel[i]));
    return CVY_OK;
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    struct call c;
    CVY_TRY(make(ask, &c));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    ask->scratch_bytes = sizeof(double) * (size_t)CVY_MAX(CVY_MAX(c.a.rows, c.a.cols), c.a.parts);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    CVY_TRY(make(ask, c));
    return cvy_gpu_hold(ask->space, &c->hold);
}

/* `first` and n: which of the vectors becomes the product in scratch memory, divided by its norm. */
static cvy_status normalise(const struct call *c, void *product, void *vectors, int first, int n)
{
    return CVY_GPU_LAUNCH(&c->kernel[NORMALISE], 1, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(product),
                          CVY_GPU_POINTER(vectors), CVY_GPU_VALUE(first), CVY_GPU_VALUE(n), CVY_GPU_VALUE(c->a.least));
}

static cvy_status norm_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const struct spectral *a = &c->a;
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[FIRST], 1, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(dst[1]),
                           CVY_GPU_VALUE(*a)));
    for (int again = c->iterates; again >= 0; again--) {
        CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[ROWS], a->rows, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                               CVY_GPU_POINTER(dst[1]), CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(*a)));
        if (!again)
            break;
        CVY_TRY(normalise(c, scratch, dst[1], 0, a->rows));
        CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[COLUMNS], cvy_gpu_tiles(a->cols, a->width), 1, 1, CVY_GPU_THREADS,
                               CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(dst[1]), CVY_GPU_POINTER(scratch),
                               CVY_GPU_VALUE(*a)));
        CVY_TRY(normalise(c, scratch, dst[1], a->rows, a->cols));
    }
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[SIGMA], 1, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(scratch),
                           CVY_GPU_POINTER(dst[1]), CVY_GPU_VALUE(*a)));
    return CVY_GPU_LAUNCH(&c->kernel[DIVIDE], cvy_gpu_blocks(a->elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(dst[1]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(*a));
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[ALONG], c->a.parts, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(c->a)));
    return CVY_GPU_LAUNCH(&c->kernel[GRAD], cvy_gpu_blocks(c->a.elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(scratch), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(c->a));
}

static cvy_status sum_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const int64_t n = c->a.rows + c->a.cols;
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel[COPY], cvy_gpu_blocks(n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(n));
}

static cvy_status keep_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel[KEEP], 1, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                          CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(dst[0]), CVY_GPU_POINTER(dst[1]),
                          CVY_GPU_POINTER(c->hold), CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_spectral_norm) = {CVY_GPU_FIELDS("spectral_norm", offer, create, norm_run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_spectral_norm_grad) = {
    CVY_GPU_FIELDS("spectral_norm_grad", offer, create, grad_run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_spectral_norm_sum) = {
    CVY_GPU_FIELDS("spectral_norm_sum", offer, create, sum_run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_spectral_norm_keep) = {
    CVY_GPU_FIELDS("spectral_norm_keep", offer, create, keep_run, cvy_gpu_free_state), .can_hold = 1};
#endif

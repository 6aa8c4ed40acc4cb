/*
 * native_grad_norm2.c: the sum of squares of gradients in any layout, for clipping by norm.
 *
 * Padding lanes are zero and add nothing. Sums over pieces of fixed size are added in order, so the result does not
 * depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"

enum { PIECE = 8192 };

struct grad_norm2 {
    int nsrc, threads;
    int64_t elems[CVY_NODE_SRC_MAX];
    int64_t first[CVY_NODE_SRC_MAX + 1]; /* first piece of each source */
    void *const *src;                    /* of the running call */
    double *sum;                         /* one for each piece */
};

static cvy_status count_pieces(const cvy_kernel_ask *ask, struct grad_norm2 *s)
{
    s->nsrc = ask->node->nsrc;
    s->threads = ask->threads;
    for (int i = 0; i < s->nsrc; i++) {
        cvy_blocking b;
        CVY_TRY(cvy_blocking_make(&ask->src[i], &ask->node->src[i]->shape, &b));
        s->elems[i] = b.elems;
        s->first[i + 1] = s->first[i] + (b.elems + PIECE - 1) / PIECE;
    }
    return CVY_OK;
}

static cvy_status grad_norm2_offer(cvy_kernel_ask *ask)
{
    struct grad_norm2 s = {0};
    for (int i = 0; i < ask->node->nsrc; i++)
        if (ask->node->src[i]->dtype != CVY_DTYPE_F32)
            return cvy_native_f32(ask->node) == CVY_OK
                       ? cvy_error_set(CVY_NOT_APPLICABLE, "this kernel needs all sources in f32")
                       : CVY_NOT_APPLICABLE;
    CVY_TRY(count_pieces(ask, &s));
    ask->scratch_bytes = sizeof(double) * (size_t)s.first[s.nsrc];
    return CVY_OK;
}

static cvy_status grad_norm2_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct grad_norm2 *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    return count_pieces(ask, s);
}

static void grad_norm2_destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_SIMD static double sum_squares(const float *x, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static void pieces(int64_t first, int64_t end, void *arg)
{
    struct grad_norm2 *s = arg;
    int i = 0;
    for (int64_t p = first; p < end; p++) {
        while (p >= s->first[i + 1])
            i++;
        const int64_t from = (p - s->first[i]) * PIECE;
        s->sum[p] = sum_squares((const float *)s->src[i] + from, CVY_MIN(PIECE, s->elems[i] - from));
    }
}

static cvy_status grad_norm2_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct grad_norm2 *s = state;
    double total = 0;
    s->src = src;
    s->sum = scratch;
    cvy_parallel_for(s->threads, s->first[s->nsrc], CVY_GRAIN / PIECE, pieces, s);
    for (int64_t p = 0; p < s->first[s->nsrc]; p++)
        total += s->sum[p];
    *(double *)dst[0] = total;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_grad_norm2) = {
    .name = "native.grad_norm2",
    .op = "grad_norm2",
    .preference = 50,
    .offer = grad_norm2_offer,
    .create = grad_norm2_create,
    .run = grad_norm2_run,
    .destroy = grad_norm2_destroy,
};

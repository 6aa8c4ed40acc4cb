/*
 * native_matmul.c: matmul and its gradients of f32 and bf16 as matrix products of native_gemm.h. Layouts are plain.
 *
 * The columns of all matrices of the result are divided among the threads. Matrices of bf16 are converted to f32 in
 * scratch memory, multiplied, and rounded once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/conv/native_gemm.h"
#include "op/tensor/op_matmul.h"

struct matmul {
    cvy_matmul m;
    cvy_gemm g;    /* complete except the pointers */
    int64_t parts; /* of the columns of a matrix */
    int threads, half;
    int64_t room;      /* floats of scratch memory of a thread */
    const void *a, *b; /* of the running call */
    void *dst;
    float *scratch;
};

static struct matmul matmul_of(const cvy_kernel_ask *ask)
{
    const cvy_matmul m = cvy_matmul_make(ask->node);
    struct matmul s = {.m = m, .threads = ask->threads, .half = ask->node->src[0]->dtype == CVY_DTYPE_BF16};
    s.g = (cvy_gemm){.tile = cvy_gemm_choose(),
                     .m = m.m,
                     .n = m.p,
                     .k = m.k,
                     .a_row = m.a_row,
                     .a_col = m.a_col,
                     .b_row = m.b_row,
                     .b_col = m.b_col,
                     .c_row = m.p};
    s.parts = m.items >= ask->threads || m.items == 0 ? 1 : CVY_MIN(m.p, (ask->threads + m.items - 1) / m.items);
    s.room = cvy_whole_lines(cvy_gemm_scratch());
    if (s.half)
        s.room += cvy_whole_lines(m.m * m.k) + cvy_whole_lines(m.k * m.p) + cvy_whole_lines(m.m * m.p);
    return s;
}

static cvy_status matmul_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    ask->src[0] = ask->src[1] = ask->dst[0] = cvy_layout_plain();
    ask->scratch_bytes = sizeof(float) * (size_t)(ask->threads * matmul_of(ask).room);
    return CVY_OK;
}

static cvy_status matmul_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct matmul *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = matmul_of(ask);
    *state_out = s;
    return CVY_OK;
}

static void matmul_destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_SIMD static void matmul_load(const void *src, int64_t at, int64_t n, float *out)
{
    cvy_floats_load(1, src, at, n, out);
}

CVY_SIMD static void matmul_store(const float *x, int64_t n, void *dst, int64_t at)
{
    cvy_floats_store(1, x, n, dst, at);
}

/* Computes part `part` of the columns of one matrix. */
static void multiply(const struct matmul *s, int64_t item, int64_t part, float *scratch)
{
    const int64_t from = s->m.p * part / s->parts, to = s->m.p * (part + 1) / s->parts, at = item * s->m.m * s->m.p;
    float *a = scratch + cvy_whole_lines(cvy_gemm_scratch()), *b = a + cvy_whole_lines(s->m.m * s->m.k),
          *c = b + cvy_whole_lines(s->m.k * s->m.p);
    cvy_gemm g = s->g;
    g.n = to - from;
    g.c = (s->half ? c : (float *)s->dst + at) + from;
    for (int64_t sum = 0; sum < s->m.sums; sum++) {
        int64_t a_at, b_at;
        cvy_matmul_at(&s->m, item, sum, &a_at, &b_at);
        if (s->half) {
            matmul_load(s->a, a_at, s->m.m * s->m.k, a);
            matmul_load(s->b, b_at, s->m.k * s->m.p, b);
        }
        g.a = s->half ? a : (const float *)s->a + a_at;
        g.b = (s->half ? b : (const float *)s->b + b_at) + from * g.b_col;
        g.add = sum > 0;
        cvy_gemm_run(&g, scratch);
    }
    for (int64_t row = 0; s->half && row < s->m.m; row++)
        matmul_store(c + row * s->m.p + from, to - from, s->dst, at + row * s->m.p + from);
}

/* Work item: the matrices, or parts of them, of one thread. */
static void threads_range(int64_t first, int64_t end, void *arg)
{
    const struct matmul *s = arg;
    const int64_t units = s->m.items * s->parts;
    for (int64_t t = first; t < end; t++)
        for (int64_t u = units * t / s->threads; u < units * (t + 1) / s->threads; u++)
            multiply(s, u / s->parts, u % s->parts, s->scratch + t * s->room);
}

static cvy_status matmul_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct matmul *s = state;
    s->a = src[0];
    s->b = src[1];
    s->dst = dst[0];
    s->scratch = scratch;
    cvy_parallel_for(s->threads, s->threads, 1, threads_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_matmul) = {
    .name = "native.matmul",
    .op = "matmul",
    .preference = 50,
    .offer = matmul_offer,
    .create = matmul_create,
    .run = matmul_run,
    .destroy = matmul_destroy,
};

CVY_KERNEL_DEFINE(native_matmul_grad) = {
    .name = "native.matmul_grad",
    .op = "matmul_grad",
    .preference = 50,
    .offer = matmul_offer,
    .create = matmul_create,
    .run = matmul_run,
    .destroy = matmul_destroy,
};

/*
 * native_fc.c: the fully connected layer and its gradients as matrix products, for builds without oneDNN. Layouts are
 * plain. bf16 activations are converted to f32 and back.
 *
 *     dst [N, K] = src [N, I] weight^T + bias      dsrc [N, I] = ddst weight      dweight [K, I] = ddst^T src
 *
 * The columns of the result (outputs or inputs, of which there are many) are divided among the threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/conv/native_gemm.h"
#include "op/conv/op_fc.h"

struct fc {
    cvy_gemm g; /* complete except the pointers */
    int threads, has_bias, relu;
    int half[3]; /* a, b, c are bf16 */
    int64_t N, I, K;
    int64_t copy_floats; /* of scratch memory: copies of these in f32 */
    const float *bias;   /* of the running call */
    float *scratch;
};

enum { A, B, C };

static int64_t matrix_elems(const struct fc *s, int which)
{
    const cvy_gemm *g = &s->g;
    return which == A ? g->m * g->k : which == B ? g->k * g->n : g->m * g->n;
}

static int64_t copy_floats(const struct fc *s, int which)
{
    return s->half[which] ? cvy_whole_lines(matrix_elems(s, which)) : 0;
}

static struct fc fc_of(const cvy_kernel_ask *ask)
{
    const cvy_layer_pass pass = ask->node->op->pass;
    const int grad_src = pass == CVY_LAYER_GRAD_SRC, grad_weight = pass == CVY_LAYER_GRAD_WEIGHT;
    const cvy_fc_grad_opts *go = ask->node->options;
    const cvy_fc_opts *o = grad_src || grad_weight ? &go->fc : ask->node->options;
    const cvy_shape *src = grad_src || grad_weight ? &go->src : &ask->node->src[0]->shape;
    const cvy_fc_matrix m = cvy_fc_matrix_of(o, src);
    struct fc s = {.threads = ask->threads,
                   .N = m.rows,
                   .I = m.width,
                   .K = o->channels,
                   .has_bias = o->bias,
                   .relu = o->relu && !grad_src && !grad_weight};
    if (grad_src)
        s.g =
            (cvy_gemm){.m = s.N, .n = s.I, .k = s.K, .a_row = s.K, .a_col = 1, .b_row = s.I, .b_col = 1, .c_row = s.I};
    else if (grad_weight)
        s.g =
            (cvy_gemm){.m = s.K, .n = s.I, .k = s.N, .a_row = 1, .a_col = s.K, .b_row = s.I, .b_col = 1, .c_row = s.I};
    else
        s.g = (cvy_gemm){
            .m = s.N, .n = s.K, .k = s.I, .a_row = s.I, .a_col = 1, .b_row = 1, .b_col = s.I, .c_row = s.K, .add = 1};
    s.g.tile = cvy_gemm_choose();
    if (ask->node->src[0]->dtype == CVY_DTYPE_BF16) {
        s.half[A] = 1;
        s.half[B] = grad_weight;
        s.half[C] = !grad_weight;
    }
    for (int i = A; i <= C; i++)
        s.copy_floats += copy_floats(&s, i);
    return s;
}

static cvy_status fc_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    ask->scratch_bytes = (size_t)(ask->threads * cvy_gemm_scratch() + fc_of(ask).copy_floats) * sizeof(float);
    return CVY_OK;
}

static cvy_status fc_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct fc *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = fc_of(ask);
    *state_out = s;
    return CVY_OK;
}

static void fc_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Work item: the columns of one thread. */
static void fc_range(int64_t first, int64_t end, void *arg)
{
    const struct fc *s = arg;
    for (int64_t t = first; t < end; t++) {
        const int64_t from = s->g.n * t / s->threads, to = s->g.n * (t + 1) / s->threads;
        cvy_gemm g = s->g;
        g.n = to - from;
        g.b += from * g.b_col;
        g.c += from;
        for (int64_t i = 0; g.add && i < g.m; i++)
            for (int64_t j = 0; j < g.n; j++)
                g.c[i * g.c_row + j] = s->bias ? s->bias[from + j] : 0;
        cvy_gemm_run(&g, s->scratch + t * cvy_gemm_scratch());
        for (int64_t i = 0; s->relu && i < g.m; i++)
            for (int64_t j = 0; j < g.n; j++)
                g.c[i * g.c_row + j] = g.c[i * g.c_row + j] > 0 ? g.c[i * g.c_row + j] : 0;
    }
}

static void run(struct fc *s, const void *a, const void *b, void *c, void *scratch)
{
    const void *matrix[] = {a, b, c};
    float *copy = scratch;
    for (int i = A; i <= C; i++) {
        if (!s->half[i])
            continue;
        if (i != C)
            cvy_bf16_widen(s->threads, matrix[i], matrix_elems(s, i), copy);
        matrix[i] = copy;
        copy += copy_floats(s, i);
    }
    s->g.a = matrix[A];
    s->g.b = matrix[B];
    s->g.c = s->half[C] ? copy - copy_floats(s, C) : c;
    s->scratch = copy;
    if (s->g.k == 0)
        memset(s->g.c, 0, (size_t)(s->g.m * s->g.n) * sizeof(float));
    cvy_parallel_for(s->threads, s->threads, 1, fc_range, s);
    if (s->half[C])
        cvy_bf16_narrow(s->threads, s->g.c, matrix_elems(s, C), c);
}

static cvy_status fc_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct fc *s = state;
    s->bias = s->has_bias ? src[2] : NULL;
    run(s, src[0], src[1], dst[0], scratch);
    return CVY_OK;
}

static cvy_status fc_grad_src_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    run(state, src[0], src[1], dst[0], scratch);
    return CVY_OK;
}

enum { SUMS = 64 }; /* columns that are summed at once */

/* dbias [first..end) = sums over n of ddst [N, K]. */
CVY_INLINE void sum_rows(const int half, int64_t N, int64_t K, int64_t first, int64_t end, const void *ddst,
                         float *dbias)
{
    for (int64_t k = first; k < end; k += SUMS) {
        const int64_t count = CVY_MIN(SUMS, end - k);
        double total[SUMS] = {0};
        for (int64_t n = 0; n < N; n++)
            for (int64_t i = 0; i < count; i++)
                total[i] += cvy_float_get(half, ddst, n * K + k + i);
        for (int64_t i = 0; i < count; i++)
            dbias[k + i] = (float)total[i];
    }
}

static cvy_status fc_grad_weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct fc *s = state;
    run(state, src[1], src[0], dst[0], scratch);
    if (s->has_bias && s->half[A])
        sum_rows(1, s->N, s->K, 0, s->K, src[1], dst[1]);
    else if (s->has_bias)
        sum_rows(0, s->N, s->K, 0, s->K, src[1], dst[1]);
    return CVY_OK;
}

/* ---- the gradient of the bias alone: that of the weight is part of fc_grad_sgd ---- */

struct bias_grad {
    int64_t N, K;
    int half, threads;
    const void *ddst; /* of the running call */
    float *dbias;
};

static cvy_status bias_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    ask->src[0] = ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

static cvy_status bias_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct bias_grad *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct bias_grad){.K = ask->node->dst[0]->shape.dim[0],
                            .half = ask->node->src[0]->dtype == CVY_DTYPE_BF16,
                            .threads = ask->threads};
    s->N = cvy_shape_elems(&ask->node->src[0]->shape) / s->K;
    *state_out = s;
    return CVY_OK;
}

/* Work item: SUMS columns. */
static void bias_range(int64_t first, int64_t end, void *arg)
{
    const struct bias_grad *s = arg;
    const int64_t from = first * SUMS, to = CVY_MIN(end * SUMS, s->K);
    if (s->half)
        sum_rows(1, s->N, s->K, from, to, s->ddst, s->dbias);
    else
        sum_rows(0, s->N, s->K, from, to, s->ddst, s->dbias);
}

static cvy_status bias_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct bias_grad *s = state;
    (void)scratch;
    s->ddst = src[0];
    s->dbias = dst[0];
    cvy_parallel_for(s->threads, (s->K + SUMS - 1) / SUMS, CVY_MAX(1, CVY_GRAIN / (SUMS * CVY_MAX(1, s->N))),
                     bias_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_fc) = {
    .name = "native.fc",
    .op = "fc",
    .preference = 50,
    .offer = fc_offer,
    .create = fc_create,
    .run = fc_run,
    .destroy = fc_destroy,
};

CVY_KERNEL_DEFINE(native_fc_grad_src) = {
    .name = "native.fc_grad_src",
    .op = "fc_grad_src",
    .preference = 50,
    .offer = fc_offer,
    .create = fc_create,
    .run = fc_grad_src_run,
    .destroy = fc_destroy,
};

CVY_KERNEL_DEFINE(native_fc_grad_weight) = {
    .name = "native.fc_grad_weight",
    .op = "fc_grad_weight",
    .preference = 50,
    .offer = fc_offer,
    .create = fc_create,
    .run = fc_grad_weight_run,
    .destroy = fc_destroy,
};

CVY_KERNEL_DEFINE(native_fc_grad_bias) = {
    .name = "native.fc_grad_bias",
    .op = "fc_grad_bias",
    .preference = 50,
    .offer = bias_offer,
    .create = bias_create,
    .run = bias_run,
    .destroy = fc_destroy,
};

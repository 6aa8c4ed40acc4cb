/* rows: clang asan onednn3 */
/*
 * test_kernel_amx_split.c: f32 convolutions on tiles (AMX), whose values are split into three parts, against plain sums
 * in double, in all passes.
 *
 * The shapes leave tiles, blocks of channels, bands of rows and planes of strides incomplete. Kernels run on one to
 * three threads. Values at the ends of the range are tested too.
 *
 * For each layer the error is measured: its root mean square over that of the result. The dropped part of a product is
 * 2^-24 of it on average. A tile rounds once for 32 summands and for each of six products of parts, whereas a plain sum
 * of S rounds S times: bound = 2^-24 (1 + sqrt(S) / 4). A plain sum in f32 of values of both signs has about 2^-24 0.3
 * sqrt(S). This is why `precise` does not switch these kernels off.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <float.h>
#include <stdio.h>

#include "base/base_mem.h"
#include "kernel/amx_check.h"

static const amx_layer layers[] = {
    {"3x64x8x8", "kernel: 1, channels: 96, relu: true"},
    {"2x33x15x15", "kernel: 1, channels: 48, bias: false"},
    {"1x32x2x2", "kernel: 1, channels: 32"},
    {"16x64x7x7", "kernel: 1, channels: 80"},
    {"1x1056x6x7", "kernel: 1, channels: 33"},
    {"1x32x6x7", "kernel: 1, channels: 1056, bias: false"},
    {"1x16x520x520", "kernel: 1, stride: 4, channels: 16, bias: false"},
    {"3x64x13x13", "kernel: 1, stride: 2, channels: 32"},
    {"2x48x14x14", "kernel: 3, stride: 2, channels: 64, pad: 1"},
    {"3x64x17x17", "kernel: [1, 7], channels: 48, pad: [0, 3], bias: false"},
    {"2x48x17x17", "kernel: [7, 1], channels: 64, pad: [3, 0]"},
    {"1x16x12x12", "kernel: 3, channels: 48, pad: 1, relu: true"},
    {"3x33x7x7", "kernel: 3, channels: 64, pad: 1"},
    {"2x48x10x9", "kernel: 5, channels: 33, pad: 2"},
    {"1x33x11x12", "kernel: [5, 3], stride: [2, 3], channels: 40, pad: [2, 0]"},
    {"1x32x13x12", "kernel: 11, stride: 4, channels: 48, pad: 2"},
    {"2x16x9x10", "kernel: 2, stride: 4, channels: 16"},
    {"1x40x12x11", "kernel: 3, dilation: 2, stride: 2, channels: 24, pad: 2"},
    {"2x32x5x5", "kernel: 1, channels: 32, pad: 2"},
    {"3x64x1x1", "kernel: 3, channels: 64, pad: 1"},
    {"1x32x40x41", "kernel: 3, channels: 32, pad: 1"},
};

static int ran[3]; /* by pass */

static int pass_of(const cvy_kernel_def *k)
{
    return strstr(k->name, "grad_src") ? 1 : strstr(k->name, "grad_weight") ? 2 : 0;
}

/* Runs a kernel once, and returns its results in plain layout and whether its padding lanes are zero. */
static cvy_status call(const cvy_eval *e, const cvy_node *node, const cvy_kernel_def *k, int threads, float **plain,
                       int *clean_out)
{
    struct memory src[CVY_NODE_SRC_MAX] = {{0}}, dst[CVY_NODE_DST_MAX] = {{0}}, scratch = {0};
    void *from[CVY_NODE_SRC_MAX] = {NULL}, *to[CVY_NODE_DST_MAX] = {NULL}, *state = NULL;
    cvy_kernel_ask ask = {.node = node, .threads = threads};
    for (int i = 0; i < node->nsrc; i++) {
        ask.src_dtype[i] = node->src[i]->dtype;
        ask.src_free[i] = i > 0 && node->src[i]->variable;
    }
    CVY_TRY(k->offer(&ask));
    for (int i = 0; i < node->nsrc; i++) {
        CVY_TRY(to_layout(node->src[i], &(cvy_memory_format){CVY_DTYPE_F32, ask.src[i]},
                          cvy_eval_of(e, node->src[i])->data, &src[i]));
        from[i] = src[i].whole + GUARD;
    }
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i]) {
            CVY_TRY(to_layout(node->dst[i], &(cvy_memory_format){CVY_DTYPE_F32, ask.dst[i]}, NULL, &dst[i]));
            to[i] = dst[i].whole + GUARD;
        }
    CVY_TRY(open_memory(ask.scratch_bytes, &scratch));
    CVY_TRY(k->create(&ask, &state));
    for (int again = 0; again < 2; again++)
        CVY_TRY(k->run(state, from, to, scratch.whole + GUARD));
    *clean_out = 1;
    for (int i = 0; i < node->ndst; i++) {
        cvy_reorder *back = NULL, *again = NULL;
        struct memory padded = {0};
        plain[i] = NULL;
        if (!to[i])
            continue;
        const cvy_memory_format format = {CVY_DTYPE_F32, ask.dst[i]}, flat = {CVY_DTYPE_F32, cvy_layout_plain()};
        CVY_TRY(cvy_mem_alloc((size_t)cvy_eval_of(e, node->dst[i])->elems * sizeof **plain, &plain[i]));
        CVY_TRY(cvy_reorder_create(NULL, &node->dst[i]->shape, &format, &flat, 1, &back));
        CVY_TRY(cvy_reorder_create(NULL, &node->dst[i]->shape, &flat, &format, 1, &again));
        cvy_reorder_run(back, to[i], plain[i]);
        CVY_TRY(open_memory(dst[i].bytes, &padded));
        cvy_reorder_run(again, plain[i], padded.whole + GUARD); /* the padding of this copy is zero */
        const float *is = to[i], *must = (const float *)(const void *)(padded.whole + GUARD);
        for (size_t b = 0; b < dst[i].bytes / sizeof *is; b++)
            *clean_out &= is[b] == must[b] || (isnan(is[b]) && isnan(must[b]));
        close_memory(&padded);
        cvy_reorder_destroy(&back);
        cvy_reorder_destroy(&again);
    }
    k->destroy(state);
    close_memory(&scratch);
    for (int i = 0; i < node->nsrc; i++)
        close_memory(&src[i]);
    for (int i = 0; i < node->ndst; i++)
        close_memory(&dst[i]);
    return CVY_OK;
}

static double relative_error(const float *got, const cvy_span *want)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < want->elems; i++) {
        const double must = cvy_get(want, i), away = (double)got[i] - must;
        error += away * away;
        size += must * must;
    }
    return sqrt(error / size);
}

static cvy_status check_error(const cvy_eval *e, const char *name, const cvy_node *node, const cvy_kernel_def *k)
{
    for (int threads = 1; threads <= THREADS_MAX; threads++) {
        float *got[CVY_NODE_DST_MAX] = {NULL};
        int clean = 0;
        node->graph->precise = threads == 2;
        CVY_TRY(call(e, node, k, threads, got, &clean));
        const double summands = (double)node->op->summands(node), bound = ldexp(1 + sqrt(summands) / 4, -24);
        for (int i = 0; i < node->ndst; i++) {
            const double error = got[i] ? relative_error(got[i], cvy_eval_of(e, node->dst[i])) : 0;
            if (!(error <= bound) || !clean)
                printf("FAILED ");
            if (got[i] && (threads == 1 || !(error <= bound) || !clean))
                printf("%-16s %-30s %d threads, %5.0f summands: %.1e, bound %.1e%s\n", name, k->name, threads, summands,
                       error, bound, clean ? "" : ", padding is not zero");
            EXPECT(error <= bound && clean);
            cvy_mem_free(&got[i]);
        }
        ran[pass_of(k)]++;
    }
    return CVY_OK;
}

/* ---- the ends of the range ---- */

static int64_t odd_element(const cvy_span *x)
{
    return x->elems / 2 + 3;
}

/* Returns whether element i of dweight is a sum over the channel that holds the odd value of the source or of ddst. */
static int is_of_odd_channel(const cvy_eval *e, const cvy_node *node, int64_t i)
{
    const cvy_span *x = cvy_eval_of(e, node->src[0]), *d = cvy_eval_of(e, node->src[1]),
                   *w = cvy_eval_of(e, node->dst[0]);
    const int64_t taps = w->dim[2] * w->dim[3], c = i / taps % w->dim[1], k = i / taps / w->dim[1];
    return c == odd_element(x) / (x->dim[2] * x->dim[3]) % x->dim[1] ||
           k == odd_element(d) / (d->dim[2] * d->dim[3]) % d->dim[1];
}

enum ends { INFINITE, NOT_A_NUMBER, LARGE, TINY, NENDS };

/* Sets one odd value of an activation among ordinary ones, or makes all values of one side as large or as small as
 * possible. */
static void fill_ends(const cvy_graph *g, cvy_eval *e, enum ends ends)
{
    uint64_t state = 7;
    for (int i = 0; i < g->nvalue; i++) {
        cvy_span *x = &e->at[i];
        if (g->value[i]->producer)
            continue;
        cvy_sample_fill(x, -1, 2, &state);
        const int weights = g->value[i]->variable && strcmp(g->value[i]->variable->name, "x") != 0;
        for (int64_t at = 0; at < x->elems; at++) {
            const double plain = cvy_get(x, at);
            if (ends == LARGE)
                cvy_set(x, at, g->value[i]->variable && !weights ? plain * (double)FLT_MAX : 1e-3 * plain);
            if (ends == TINY)
                cvy_set(x, at, weights ? plain : ldexp(plain, -120));
        }
        if (!weights && (ends == INFINITE || ends == NOT_A_NUMBER))
            cvy_set(x, odd_element(x), ends == INFINITE ? (double)-INFINITY : (double)NAN);
    }
}

/* A result must not be finite exactly where the plain sum is not finite. The exception are weights whose tap only just
 * misses the odd value, because that is multiplied by the zeros of positions outside of the picture. Finite results
 * must be as near as the parts kept by the tiles allow. */
static cvy_status check_ends(const cvy_eval *e, const cvy_node *node, const cvy_kernel_def *k, enum ends ends)
{
    float *got[CVY_NODE_DST_MAX] = {NULL};
    int clean = 0, right = 1, odd = 0;
    CVY_TRY(call(e, node, k, 1, got, &clean));
    const cvy_span *want = cvy_eval_of(e, node->dst[0]);
    double size = 0;
    for (int64_t i = 0; i < want->elems; i++)
        size = isfinite(cvy_get(want, i)) ? fmax(size, fabs(cvy_get(want, i))) : size;
    const double summands = (double)node->op->summands(node), lost = ends == TINY ? summands * ldexp(6, -126) : 0;
    for (int64_t i = 0; i < want->elems; i++) {
        const double must = cvy_get(want, i);
        odd += !isfinite(must);
        const int near = fabs((double)got[0][i] - must) <= ldexp(summands, -22) * size + lost;
        right &= isfinite(must) ? near || (pass_of(k) == 2 && ends <= NOT_A_NUMBER && is_of_odd_channel(e, node, i))
                                : !isfinite(got[0][i]);
    }
    EXPECT(right);
    EXPECT((odd > 0) == (ends == INFINITE || ends == NOT_A_NUMBER));
    for (int i = 0; i < node->ndst; i++)
        cvy_mem_free(&got[i]);
    return CVY_OK;
}

static cvy_status try_split(const amx_layer *l, int ends, cvy_vars *vars, cvy_graph **g, cvy_eval *e)
{
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    CVY_TRY(conv_graph("split", CVY_DTYPE_F32, l->src, l->options, vars, g));
    CVY_TRY(cvy_eval_create(*g, e));
    fill_ends(*g, e, (enum ends)ends);
    CVY_TRY(cvy_eval_run(e, 1));
    for (int n = 0; n < (*g)->nnode; n++)
        for (int k = 0; k < count; k++)
            if (strstr(table[k]->name, "_split") && strcmp(table[k]->op, (*g)->node[n]->op->name) == 0)
                CVY_TRY(ends < NENDS ? check_ends(e, (*g)->node[n], table[k], (enum ends)ends)
                                     : check_error(e, l->src, (*g)->node[n], table[k]));
    return CVY_OK;
}

static void try_all(const amx_layer *l, int ends)
{
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_eval e = {0};
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(try_split(l, ends, vars, &g, &e));
    if (g)
        cvy_eval_destroy(&e);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    const amx_layer at_ends = {"2x40x6x6", "kernel: 3, stride: 2, channels: 24, pad: 1, bias: false"};
    const cvy_amx *amx = NULL;
    if (cvy_amx_get(&amx) != CVY_OK) {
        printf("skipped: %s\n", cvy_error_text());
        return SKIPPED;
    }
    for (int i = 0; i < CVY_COUNT(layers); i++)
        try_all(&layers[i], NENDS);
    for (int ends = 0; ends < NENDS; ends++)
        try_all(&at_ends, ends);
    for (int pass = 0; pass < CVY_COUNT(ran); pass++)
        EXPECT_INT(ran[pass], THREADS_MAX * CVY_COUNT(layers));
    return test_end();
}

/*
 * test_amx_conv.c: the convolutions on tiles (AMX), all three passes, against plain sums, over shapes that leave tiles, blocks of channels, bands of
 * rows and planes of strides incomplete, on one to three threads. Skipped, with the reason, where tiles cannot be used.
 *
 * Sources are bf16 and products exact, so a result differs by the rounding of S sums in f32 and, where it is bf16, by one rounding of each side:
 * bound = eps (S + 2) max |result| + 2^-7 |result|.
 */
#include <stdlib.h>

#include "kernel/conv_graph.h"
#include "kernel/native/native_amx.h"

enum { GUARD = 64, SKIPPED = 77, THREADS_MAX = 3 };

struct layer {
    const char *src, *options;
};

static const struct layer layers[] = {
    {"1x3x9x9", "kernel: 3, channels: 16, pad: 1"},
    {"3x3x23x25", "kernel: 11, channels: 64, stride: 4, pad: 2, relu: true"},
    {"2x3x14x15", "kernel: 7, channels: 33, stride: 2, pad: 3, bias: false"},
    {"1x1x5x40", "kernel: 5, channels: 20, pad: 2"},
    {"3x15x6x7", "kernel: 1, channels: 17"},
    {"2x4x9x9", "kernel: 3, channels: 8, pad: 2, dilation: 2"},
    {"1x16x12x12", "kernel: 3, channels: 48, pad: 1, relu: true"},
    {"3x33x7x7", "kernel: 3, channels: 64, pad: 1"},
    {"2x48x10x9", "kernel: 5, channels: 33, pad: 2"},
    {"1x64x14x14", "kernel: 3, channels: 80, pad: 1"},
    {"3x64x17x17", "kernel: [1, 7], channels: 48, pad: [0, 3], bias: false"},
    {"2x48x17x17", "kernel: [7, 1], channels: 64, pad: [3, 0]"},
    {"3x64x8x8", "kernel: 1, channels: 96, relu: true"},
    {"2x33x15x15", "kernel: 1, channels: 48, bias: false"},
    {"1x32x2x2", "kernel: 1, channels: 32"},
    {"3x64x13x13", "kernel: 1, stride: 2, channels: 32"},
    {"2x48x14x14", "kernel: 3, stride: 2, channels: 64, pad: 1"},
    {"1x33x11x12", "kernel: [5, 3], stride: [2, 3], channels: 40, pad: [2, 0]"},
    {"2x32x18x17", "kernel: 11, stride: 4, channels: 48, pad: 2"},
    {"2x16x9x10", "kernel: 2, stride: 4, channels: 16"},
    {"1x40x12x11", "kernel: 3, dilation: 2, stride: 2, channels: 24, pad: 2"},
    {"2x32x5x5", "kernel: 1, channels: 32, pad: 2"},
    {"3x64x1x1", "kernel: 3, channels: 64, pad: 1"},
    {"1x288x4x3", "kernel: 3, channels: 288, pad: 1"},
    {"2x32x40x41", "kernel: 3, channels: 32, pad: 1"},
};

static int ran[3]; /* passes */

struct memory {
    char *whole;
    size_t bytes;
};

/* Between guard zones, filled so that what is read before it is written is not a number. */
static cvy_status open_memory(size_t bytes, struct memory *m)
{
    m->bytes = bytes;
    CVY_TRY(cvy_mem_alloc(bytes + 2 * GUARD, &m->whole));
    memset(m->whole, 0xff, bytes + 2 * GUARD);
    return CVY_OK;
}

static void close_memory(struct memory *m)
{
    for (int i = 0; m->whole && i < GUARD; i++)
        EXPECT(m->whole[i] == (char)0xff && m->whole[GUARD + m->bytes + (size_t)i] == (char)0xff);
    cvy_mem_free(&m->whole);
}

static cvy_status lay_out(const cvy_value *v, const cvy_lie *lie, const void *plain, struct memory *out)
{
    cvy_blocking b;
    cvy_reorder *reorder = NULL;
    CVY_TRY(cvy_blocking_make(&lie->layout, &v->shape, &b));
    CVY_TRY(open_memory((size_t)b.elems * cvy_dtype_bytes(lie->dtype), out));
    if (!plain)
        return CVY_OK;
    CVY_TRY(cvy_reorder_create(&v->shape, &(cvy_lie){v->dtype, cvy_layout_plain()}, lie, 1, &reorder));
    cvy_reorder_run(reorder, plain, out->whole + GUARD);
    cvy_reorder_destroy(&reorder);
    return CVY_OK;
}

/* Returns whether all of it is right, padding lanes included. */
static int is_right(const cvy_value *v, const cvy_layout *layout, const void *data, const cvy_span *want, double summands)
{
    cvy_blocking b;
    double most = 1, sum = 0, all = 0;
    if (cvy_blocking_make(layout, &v->shape, &b) != CVY_OK)
        return 0;
    const cvy_span got = {.dtype = v->dtype, .data = (void *)(uintptr_t)data};
    for (int64_t i = 0; i < want->elems; i++)
        most = fmax(most, fabs(cvy_get(want, i)));
    for (int64_t i = 0; i < want->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0}, rest = i;
        for (int d = want->ndim - 1; d >= 0; rest /= want->dim[d--])
            at[d] = rest % want->dim[d];
        const double must = cvy_get(want, i), is = cvy_get(&got, cvy_blocking_offset(&b, at));
        const double bound = 1.2e-7 * (summands + 2) * most + (v->dtype == CVY_DTYPE_BF16 ? fabs(must) / 128 : 0);
        if (!(fabs(is - must) <= bound)) {
            printf("%s: element %lld is %.9g, expected %.9g within %.1g\n", cvy_shape_text(&v->shape), (long long)i, is, must, bound);
            return 0;
        }
        sum += fabs(is);
    }
    for (int64_t i = 0; i < b.elems; i++)
        all += fabs(cvy_get(&got, i));
    return all - sum <= 1e-9 * all;
}

static cvy_status run_kernel(const eval *e, const cvy_node *node, const cvy_kernel_def *k, cvy_kernel_ask *ask, int *right_out)
{
    struct memory src[CVY_NODE_SRC_MAX] = {{0}}, dst[CVY_NODE_DST_MAX] = {{0}}, scratch = {0};
    void *from[CVY_NODE_SRC_MAX] = {NULL}, *to[CVY_NODE_DST_MAX] = {NULL}, *state = NULL;
    for (int i = 0; i < node->nsrc; i++) {
        CVY_TRY(lay_out(node->src[i], &(cvy_lie){ask->src_dtype[i], ask->src[i]}, eval_of(e, node->src[i])->data, &src[i]));
        from[i] = src[i].whole + GUARD;
    }
    for (int i = 0; i < node->ndst; i++) {
        if (!node->dst[i])
            continue;
        CVY_TRY(lay_out(node->dst[i], &(cvy_lie){node->dst[i]->dtype, ask->dst[i]}, NULL, &dst[i]));
        to[i] = dst[i].whole + GUARD;
    }
    CVY_TRY(open_memory(ask->scratch_bytes, &scratch));
    CVY_TRY(k->create(ask, &state));
    for (int again = 0; again < 2; again++)
        CVY_TRY(k->run(state, from, to, scratch.whole + GUARD));
    for (int i = 0; i < node->ndst; i++)
        if (to[i])
            *right_out &= is_right(node->dst[i], &ask->dst[i], to[i], eval_of(e, node->dst[i]), (double)node->op->summands(node));
    k->destroy(state);
    close_memory(&scratch);
    for (int i = 0; i < node->nsrc; i++)
        close_memory(&src[i]);
    for (int i = 0; i < node->ndst; i++)
        close_memory(&dst[i]);
    return CVY_OK;
}

static cvy_status try_kernel(const eval *e, const struct layer *l, const cvy_node *node, const cvy_kernel_def *k)
{
    for (int threads = 1; threads <= THREADS_MAX; threads++) {
        cvy_kernel_ask ask = {.node = node, .threads = threads};
        int right = 1;
        for (int i = 0; i < node->nsrc; i++) {
            ask.src_dtype[i] = node->src[i]->dtype;
            ask.src_free[i] = i > 0 && node->src[i]->variable;
        }
        CVY_TRY(k->offer(&ask));
        CVY_TRY(run_kernel(e, node, k, &ask, &right));
        if (!right)
            printf("FAILED %s on %s {%s}, %d threads\n", k->name, l->src, l->options, threads);
        EXPECT(right);
        ran[strstr(k->name, "grad_src") ? 1 : strstr(k->name, "grad_weight") ? 2 : 0]++;
    }
    return CVY_OK;
}

static void fill(const cvy_graph *g, const eval *e)
{
    uint64_t state = 99;
    for (int i = 0; i < g->nvalue; i++) {
        cvy_span *x = &((eval *)(uintptr_t)e)->at[i];
        if (g->value[i]->producer)
            continue;
        test_fill(x, -1, 2, &state);
        /* Kernels read weights rounded to bf16: let the plain kernel see the same ones. */
        for (int64_t k = 0; x->dtype == CVY_DTYPE_F32 && k < x->elems; k++)
            cvy_set(x, k, cvy_bf16_get(cvy_bf16_of((float)cvy_get(x, k))));
    }
}

static cvy_status try_layer(const struct layer *l, cvy_vars *vars, cvy_graph **g, eval *e)
{
    CVY_TRY(conv_graph("amx", CVY_DTYPE_BF16, l->src, l->options, vars, g));
    CVY_TRY(eval_create(*g, e));
    fill(*g, e);
    CVY_TRY(eval_run(e, 1));
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int n = 0; n < (*g)->nnode; n++)
        for (int k = 0; k < count; k++)
            if (strstr(table[k]->name, "conv_amx") && strcmp(table[k]->op, (*g)->node[n]->op->name) == 0)
                CVY_TRY(try_kernel(e, l, (*g)->node[n], table[k]));
    return CVY_OK;
}

int main(void)
{
    const cvy_amx *amx = NULL;
    if (cvy_amx_get(&amx) != CVY_OK) {
        printf("skipped: %s\n", cvy_error_text());
        return SKIPPED;
    }
    for (int i = 0; i < CVY_COUNT(layers); i++) {
        cvy_vars *vars = NULL;
        cvy_graph *g = NULL;
        eval e = {0};
        EXPECT_OK(cvy_vars_create(&vars));
        EXPECT_OK(try_layer(&layers[i], vars, &g, &e));
        if (g)
            eval_destroy(&e);
        cvy_graph_destroy(&g);
        cvy_vars_destroy(&vars);
    }
    for (int pass = 0; pass < CVY_COUNT(ran); pass++)
        EXPECT_INT(ran[pass], THREADS_MAX * CVY_COUNT(layers));
    return test_end();
}

/*
 * amx_check.h: compares kernels on tiles (AMX) with plain sums, on one to three threads, between guard zones. The test
 * is skipped, with the reason, if tiles cannot be used.
 *
 * Sources are bf16 and products are exact. A result therefore differs by the rounding of S sums in f32 and, if it is
 * bf16, by one rounding on each side: bound = eps (S + 2) max |result| + 2^-7 |result|.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_AMX_CHECK_H
#define CVY_TEST_AMX_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "kernel/conv_graph.h"
#include "kernel/native/amx/native_amx.h"

enum { GUARD = 64, SKIPPED = 77, THREADS_MAX = 3 };

typedef struct amx_layer {
    const char *src, *options;
} amx_layer;

struct memory {
    char *whole;
    size_t bytes;
};

/* Allocates memory between guard zones. It is filled so that a value read before it is written is NaN. */
static inline cvy_status open_memory(size_t bytes, struct memory *m)
{
    m->bytes = bytes;
    CVY_TRY(cvy_mem_alloc(bytes + 2 * GUARD, &m->whole));
    memset(m->whole, 0xff, bytes + 2 * GUARD);
    return CVY_OK;
}

static inline void close_memory(struct memory *m)
{
    for (int i = 0; m->whole && i < GUARD; i++)
        EXPECT(m->whole[i] == (char)0xff && m->whole[GUARD + m->bytes + (size_t)i] == (char)0xff);
    cvy_mem_free(&m->whole);
}

static inline cvy_status to_layout(const cvy_value *v, const cvy_memory_format *format, const void *plain,
                                   struct memory *out)
{
    cvy_blocking b;
    cvy_reorder *reorder = NULL;
    CVY_TRY(cvy_blocking_make(&format->layout, &v->shape, &b));
    CVY_TRY(open_memory((size_t)b.elems * cvy_dtype_bytes(format->dtype), out));
    if (!plain)
        return CVY_OK;
    CVY_TRY(
        cvy_reorder_create(NULL, &v->shape, &(cvy_memory_format){v->dtype, cvy_layout_plain()}, format, 1, &reorder));
    cvy_reorder_run(reorder, plain, out->whole + GUARD);
    cvy_reorder_destroy(&reorder);
    return CVY_OK;
}

/* Returns whether all values are right, including the padding lanes. */
static inline int is_right(const cvy_value *v, const cvy_layout *layout, const void *data, const cvy_span *want,
                           double summands)
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
            printf("%s: element %lld is %.9g, expected %.9g within %.1g\n", cvy_shape_text(&v->shape), (long long)i, is,
                   must, bound);
            return 0;
        }
        sum += fabs(is);
    }
    for (int64_t i = 0; i < b.elems; i++)
        all += fabs(cvy_get(&got, i));
    return all - sum <= 1e-9 * all;
}

static inline cvy_status run_kernel(const cvy_eval *e, const cvy_node *node, const cvy_kernel_def *k,
                                    cvy_kernel_ask *ask, int *right_out)
{
    struct memory src[CVY_NODE_SRC_MAX] = {{0}}, dst[CVY_NODE_DST_MAX] = {{0}}, scratch = {0};
    void *from[CVY_NODE_SRC_MAX] = {NULL}, *to[CVY_NODE_DST_MAX] = {NULL}, *state = NULL;
    for (int i = 0; i < node->nsrc; i++) {
        CVY_TRY(to_layout(node->src[i], &(cvy_memory_format){ask->src_dtype[i], ask->src[i]},
                          cvy_eval_of(e, node->src[i])->data, &src[i]));
        from[i] = src[i].whole + GUARD;
    }
    for (int i = 0; i < node->ndst; i++) {
        if (!node->dst[i])
            continue;
        CVY_TRY(to_layout(node->dst[i], &(cvy_memory_format){node->dst[i]->dtype, ask->dst[i]}, NULL, &dst[i]));
        to[i] = dst[i].whole + GUARD;
    }
    CVY_TRY(open_memory(ask->scratch_bytes, &scratch));
    CVY_TRY(k->create(ask, &state));
    for (int again = 0; again < 2; again++)
        CVY_TRY(k->run(state, from, to, scratch.whole + GUARD));
    for (int i = 0; i < node->ndst; i++)
        if (to[i])
            *right_out &= is_right(node->dst[i], &ask->dst[i], to[i], cvy_eval_of(e, node->dst[i]),
                                   (double)node->op->summands(node));
    k->destroy(state);
    close_memory(&scratch);
    for (int i = 0; i < node->nsrc; i++)
        close_memory(&src[i]);
    for (int i = 0; i < node->ndst; i++)
        close_memory(&dst[i]);
    return CVY_OK;
}

static inline cvy_status try_kernel(const cvy_eval *e, const amx_layer *l, const cvy_node *node,
                                    const cvy_kernel_def *k, int *ran)
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

static inline void fill(const cvy_graph *g, const cvy_eval *e)
{
    uint64_t state = 99;
    for (int i = 0; i < g->nvalue; i++) {
        cvy_span *x = &((cvy_eval *)(uintptr_t)e)->at[i];
        if (g->value[i]->producer)
            continue;
        cvy_sample_fill(x, -1, 2, &state);
        /* Kernels read weights rounded to bf16, so the reference kernel must get the same rounded values. */
        for (int64_t k = 0; x->dtype == CVY_DTYPE_F32 && k < x->elems; k++)
            cvy_set(x, k, cvy_bf16_get(cvy_bf16_of((float)cvy_get(x, k))));
    }
}

static inline cvy_status try_layer(const char *op, const amx_layer *l, cvy_vars *vars, cvy_graph **g, cvy_eval *e,
                                   int *ran)
{
    CVY_TRY(layer_graph(op, "amx", CVY_DTYPE_BF16, l->src, l->options, vars, g));
    CVY_TRY(cvy_eval_create(*g, e));
    fill(*g, e);
    CVY_TRY(cvy_eval_run(e, 1));
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int n = 0; n < (*g)->nnode; n++)
        for (int k = 0; k < count; k++)
            if (strstr(table[k]->name, "_amx") && strcmp(table[k]->op, (*g)->node[n]->op->name) == 0)
                CVY_TRY(try_kernel(e, l, (*g)->node[n], table[k], ran));
    return CVY_OK;
}

/* Tests every kernel on tiles of this operator and of its gradients, on every layer. */
static inline int amx_check(const char *op, const amx_layer *layer, int nlayer)
{
    int ran[3] = {0}; /* by pass */
    const cvy_amx *amx = NULL;
    if (cvy_amx_get(&amx) != CVY_OK) {
        printf("skipped: %s\n", cvy_error_text());
        return SKIPPED;
    }
    for (int i = 0; i < nlayer; i++) {
        cvy_vars *vars = NULL;
        cvy_graph *g = NULL;
        cvy_eval e = {0};
        EXPECT_OK(cvy_vars_create(&vars));
        EXPECT_OK(try_layer(op, &layer[i], vars, &g, &e, ran));
        if (g)
            cvy_eval_destroy(&e);
        cvy_graph_destroy(&g);
        cvy_vars_destroy(&vars);
    }
    for (int pass = 0; pass < CVY_COUNT(ran); pass++)
        EXPECT_INT(ran[pass], THREADS_MAX * nlayer);
    return test_end();
}

#endif

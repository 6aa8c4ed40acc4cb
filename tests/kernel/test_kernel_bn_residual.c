/* rows: clang asan onednn3 minimal */
/*
 * test_kernel_bn_residual.c: batch norm by running statistics that also adds a residual and rectifies: the native
 * kernels compute what the reference does, in f32 and bf16, in plain and blocked layouts and with channels last, in
 * place and in other memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/conv_graph.h"
#include "kernel/kernel_library.h"
#include "op/norm/op_batch_norm.h"
#include "pass/pass_readers.h"

static int tried;

/* src -> batch_norm; the sum with `other` and a ReLU are fused into it. */
static cvy_node *fused_graph(const char *shape_text, const char *options, cvy_dtype dtype, cvy_vars *vars,
                             cvy_graph **g)
{
    cvy_shape shape;
    cvy_value *source[2] = {NULL, NULL};
    cvy_node *node = NULL;
    EXPECT_OK(cvy_shape_parse(shape_text, &shape));
    const cvy_graph_opts opts = {.name = "bn", .batch = cvy_batch_share(shape.dim[0], 0, 1), .dtype = dtype, .seed = 1};
    EXPECT_OK(cvy_graph_create(vars, &opts, g));
    EXPECT_OK(cvy_graph_feed(*g, "x", dtype, &shape, 1, &source[0]));
    EXPECT_OK(cvy_graph_feed(*g, "other", dtype, &shape, 1, &source[1]));
    cvy_tree *tree = NULL;
    EXPECT_OK(cvy_sample_options((*g)->pool, options, &tree));
    EXPECT_OK(cvy_graph_layer(*g, "batch_norm", "norm", tree, source, 1, &source[0]));
    EXPECT_OK(cvy_graph_add(*g, "add", "sum", "sum", NULL, source, 2, &node));
    EXPECT_OK(cvy_graph_add(*g, "relu", "relu", "relu", NULL, node->dst, 1, &node));
    node->dst[0]->is_output = 1;
    EXPECT_OK(cvy_pass_fuse_relu(*g));
    EXPECT_OK(cvy_pass_fuse_batch_norm(*g));
    for (int n = 0; n < (*g)->nnode; n++)
        if (cvy_pass_is_op((*g)->node[n], "bn_infer"))
            return (*g)->node[n];
    return NULL;
}

static void try_kernel(const cvy_eval *e, const cvy_node *node, const cvy_kernel_def *k, const char *tag, int in_place)
{
    cvy_kernel_ask ask = {.node = node, .threads = 2};
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL}, *other = NULL, *state = NULL,
         *scratch = NULL;
    const cvy_dtype dtype = node->dst[0]->dtype;
    cvy_blocking b;
    ask.src[0] = cvy_layout_make(tag);
    if (k->offer(&ask) != CVY_OK)
        return;
    EXPECT(cvy_layout_equal(&ask.src[0], &ask.dst[0]));
    EXPECT(cvy_layout_equal(&ask.src[0], &ask.src[cvy_bn_infer_residual(node)]));
    for (int i = 0; i < node->nsrc; i++)
        EXPECT_OK(copy_in_layout(node->src[i], &ask.src[i], cvy_eval_of(e, node->src[i])->data, &b, &src[i]));
    EXPECT_OK(copy_in_layout(node->dst[0], &ask.dst[0], NULL, &b, &other));
    EXPECT_INT(ask.inplace[0], 1);
    dst[0] = in_place ? src[0] : other;
    EXPECT_OK(cvy_mem_alloc(ask.scratch_bytes, &scratch));
    EXPECT_OK(k->create(&ask, &state));
    EXPECT_OK(k->run(state, src, dst, scratch));
    const cvy_span *want = cvy_eval_of(e, node->dst[0]), mine = {.dtype = dtype, .data = dst[0]};
    for (int64_t i = 0; i < want->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        split_index(want->ndim, want->dim, i, at);
        const double x = cvy_get(want, i);
        EXPECT_NEAR(cvy_get(&mine, cvy_blocking_offset(&b, at)), x,
                    (dtype == CVY_DTYPE_BF16 ? 1e-2 : 1e-5) * (1 + fabs(x)));
    }
    k->destroy(state);
    cvy_mem_free(&scratch);
    cvy_mem_free(&other);
    for (int i = 0; i < node->nsrc; i++)
        cvy_mem_free(&src[i]);
    tried++;
}

static void try_layer(const char *shape, const char *options, cvy_dtype dtype)
{
    static const char *const tags[] = {"", "aBcd16b", "aBcd8b", "acdb"};
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_eval e = {0};
    uint64_t random = 5;
    int count = 0, positive = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    EXPECT_OK(cvy_vars_create(&vars));
    const cvy_node *node = fused_graph(shape, options, dtype, vars, &g);
    EXPECT(node && cvy_bn_infer_residual(node) >= 0 && ((const cvy_batch_norm_opts *)node->options)->relu);
    EXPECT_OK(cvy_eval_create(g, &e));
    for (int i = 0; i < g->nvalue; i++)
        if (!g->value[i]->producer)
            cvy_sample_fill(&e.at[i], g->value[i]->kind == CVY_VALUE_VARIABLE ? 0.2 : -1, 2, &random);
    EXPECT_OK(cvy_eval_run(&e, 1));
    const cvy_span *result = cvy_eval_of(&e, node->dst[0]);
    for (int64_t i = 0; i < result->elems; i++)
        positive += cvy_get(result, i) > 0;
    EXPECT(positive > result->elems / 8 && positive < result->elems);
    for (int k = 0; k < count; k++)
        for (int i = 0;
             i < 2 * CVY_COUNT(tags) && strcmp(table[k]->op, "bn_infer") == 0 && cvy_kernel_fits(table[k], NULL); i++)
            try_kernel(&e, node, table[k], tags[i / 2], i % 2);
    cvy_eval_destroy(&e);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    static const char *const shapes[] = {"2x32x7x5", "3x17x6x3", "1x64x4x4"};
    for (int i = 0; i < CVY_COUNT(shapes); i++) {
        try_layer(shapes[i], NULL, CVY_DTYPE_F32);
        try_layer(shapes[i], "scale_shift: false", CVY_DTYPE_F32);
        try_layer(shapes[i], NULL, CVY_DTYPE_BF16);
    }
    EXPECT(tried >= 40);
    return test_end();
}

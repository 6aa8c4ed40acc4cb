/* rows: clang asan onednn3 minimal */
/*
 * test_kernel_conv_grad_add.c: compares the kernels of conv_grad_src_add with the reference kernel: with the sum in
 * place and in other memory, and with channels that do and do not fill their blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/conv_graph.h"

static int tried;

static void compare(const cvy_span *want, void *got, const cvy_blocking *b)
{
    const cvy_span mine = {.dtype = CVY_DTYPE_F32, .data = got};
    for (int64_t i = 0; i < want->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        split_index(want->ndim, want->dim, i, at);
        EXPECT_NEAR(cvy_get(&mine, cvy_blocking_offset(b, at)), cvy_get(want, i), 1e-4);
    }
}

static void try_kernel(const cvy_eval *e, const cvy_node *node, const cvy_kernel_def *k, int in_place)
{
    cvy_kernel_ask ask = {.node = node, .threads = 2};
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL}, *state = NULL, *place[4] = {NULL},
         *scratch = NULL;
    cvy_blocking b;
    if (k->offer(&ask) != CVY_OK)
        return;
    EXPECT_INT(ask.inplace[0], 3);
    EXPECT(cvy_layout_equal(&ask.src[2], &ask.dst[0]));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(copy_in_layout(node->src[i], &ask.src[i], cvy_eval_of(e, node->src[i])->data, &b, &place[i]));
    memcpy(src, place, 3 * sizeof *src);
    EXPECT_OK(copy_in_layout(node->dst[0], &ask.dst[0], NULL, &b, &place[3]));
    dst[0] = in_place ? place[2] : place[3];
    EXPECT_OK(cvy_mem_alloc(ask.scratch_bytes, &scratch));
    EXPECT_OK(k->create(&ask, &state));
    EXPECT_OK(k->run(state, src, dst, scratch));
    compare(cvy_eval_of(e, node->dst[0]), dst[0], &b);
    k->destroy(state);
    cvy_mem_free(&scratch);
    for (int i = 0; i < 4; i++)
        cvy_mem_free(&place[i]);
    tried++;
}

static void try_layer(const char *shape, const char *options)
{
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_value *other = NULL;
    cvy_node *grad = NULL, *sum = NULL;
    cvy_eval e = {0};
    uint64_t state = 7;
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(conv_graph("layer", CVY_DTYPE_F32, shape, options, vars, &g));
    for (int n = 0; n < g->nnode; n++)
        if (strcmp(g->node[n]->op->name, "conv_grad_src") == 0)
            grad = g->node[n];
    EXPECT_OK(cvy_graph_feed(g, "other", CVY_DTYPE_F32, &grad->dst[0]->shape, 1, &other));
    cvy_value *const src[] = {grad->src[0], grad->src[1], other};
    EXPECT_OK(cvy_graph_add_parsed(g, cvy_op_find("conv_grad_src_add"), "sum", "layer", grad->options, src, 3,
                                   CVY_PHASE_MICRO, &sum));
    EXPECT_OK(cvy_eval_create(g, &e));
    for (int i = 0; i < g->nvalue; i++)
        if (!g->value[i]->producer)
            cvy_sample_fill(&e.at[i], -1, 2, &state);
    EXPECT_OK(cvy_eval_run(&e, 1));
    for (int k = 0; k < 2 * count; k++)
        if (strcmp(table[k / 2]->op, "conv_grad_src_add") == 0)
            try_kernel(&e, sum, table[k / 2], k % 2);
    cvy_eval_destroy(&e);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    try_layer("2x32x7x5", "kernel: 1, channels: 48");
    try_layer("3x17x6x6", "kernel: 1, channels: 9, bias: false");
    try_layer("1x64x14x14", "kernel: 1, channels: 16");
    EXPECT(tried >= 6);
    return test_end();
}

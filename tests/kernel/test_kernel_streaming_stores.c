/* rows: clang minimal */
/*
 * test_kernel_streaming_stores.c: results written with streaming stores have the same bits as results written through
 * the cache: batch norm and max pooling, forward and backward, f32 and bf16.
 *
 * A kernel uses streaming stores if the result is large and consists of whole cache lines. The test shifts the result
 * by some bytes to prevent them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "kernel/kernel.h"
#include "op/graph_eval.h"
#include "pass/pass.h"

enum { LINE = 64, SHIFT = 16, CHANNELS = 64 };

struct memory {
    char *whole, *data;
    size_t bytes;
};

/* shift: bytes after the start of a cache line. */
static struct memory make_memory(const cvy_value *v, const cvy_layout *layout, size_t shift)
{
    struct memory m = {0};
    cvy_blocking b;
    EXPECT_OK(cvy_blocking_make(layout, &v->shape, &b));
    m.bytes = (size_t)b.elems * cvy_dtype_bytes(v->dtype);
    EXPECT_OK(cvy_mem_alloc(m.bytes + 2 * LINE, &m.whole));
    m.data = m.whole + (LINE - (size_t)((uintptr_t)m.whole % LINE)) % LINE + shift;
    return m;
}

static void fill(const cvy_value *v, const struct memory *m)
{
    uint64_t state = 5;
    cvy_span s = {.dtype = v->dtype, .elems = (int64_t)(m->bytes / cvy_dtype_bytes(v->dtype)), .data = m->data};
    cvy_sample_fill(&s, v->dtype == CVY_DTYPE_F64 ? 1000.0 : -1, 4, &state);
}

/* Runs the node's own kernel twice on equal sources, once with results at the start of a cache line and once
 * shifted. */
static void same_at_lines(const cvy_node *node, const cvy_layout *layout)
{
    char name[64];
    snprintf(name, sizeof name, "native.%s", node->op->name);
    const cvy_kernel_def *kernel = cvy_kernel_find(name);
    cvy_kernel_ask ask = {.node = node, .threads = 2};
    struct memory src[CVY_NODE_SRC_MAX] = {{0}}, dst[2][CVY_NODE_DST_MAX] = {{{0}}}, scratch = {0};
    EXPECT(kernel != NULL);
    for (int i = 0; i < node->nsrc; i++) {
        ask.src_dtype[i] = node->src[i]->dtype;
        if (node->src[i]->shape.ndim == 4)
            ask.src[i] = *layout;
    }
    EXPECT_OK(kernel->offer(&ask));
    for (int i = 0; i < node->nsrc; i++) {
        src[i] = make_memory(node->src[i], &ask.src[i], 0);
        fill(node->src[i], &src[i]);
    }
    EXPECT_OK(cvy_mem_alloc(ask.scratch_bytes + LINE, &scratch.whole));
    for (int k = 0; k < 2; k++) {
        void *from[CVY_NODE_SRC_MAX] = {NULL}, *to[CVY_NODE_DST_MAX] = {NULL}, *state = NULL;
        for (int i = 0; i < node->nsrc; i++)
            from[i] = src[i].data;
        for (int i = 0; i < node->ndst; i++)
            if (node->dst[i]) {
                dst[k][i] = make_memory(node->dst[i], &ask.dst[i], k ? SHIFT : 0);
                to[i] = dst[k][i].data;
            }
        EXPECT_OK(kernel->create(&ask, &state));
        EXPECT_OK(kernel->run(state, from, to, scratch.whole));
        kernel->destroy(state);
    }
    EXPECT(dst[0][0].bytes >= 4 << 20);
    for (int i = 0; i < node->ndst; i++)
        EXPECT(!node->dst[i] || memcmp(dst[0][i].data, dst[1][i].data, dst[0][i].bytes) == 0);
    for (int i = 0; i < node->nsrc; i++)
        cvy_mem_free(&src[i].whole);
    for (int i = 0; i < 2 * CVY_NODE_DST_MAX; i++)
        cvy_mem_free(&dst[i / CVY_NODE_DST_MAX][i % CVY_NODE_DST_MAX].whole);
    cvy_mem_free(&scratch.whole);
}

/* Batch norm with a ReLU, then pooling, in one graph with its gradients. */
static int try_net(cvy_dtype dtype, const cvy_layout *layout, const char *pool)
{
    const cvy_shape result = {.ndim = 3, .dim = {CHANNELS, 64, 68}};
    const cvy_graph_opts opts = {.name = "past", .batch = cvy_batch_share(8, 0, 1), .training = 1, .dtype = dtype};
    const cvy_shape all = {.ndim = 4, .dim = {8, CHANNELS, 128, 136}};
    const cvy_init init = {"constant", "value: 0", 1, 1};
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_variable *x = NULL;
    cvy_value *at = NULL, *pair[2] = {NULL}, *loss = NULL;
    cvy_tree *options = NULL;
    cvy_gradients gradients;
    int tried = 0;
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(cvy_graph_create(vars, &opts, &g));
    EXPECT_OK(cvy_vars_declare(vars, "x", CVY_ROLE_WEIGHT, dtype, &all, &init, &x));
    EXPECT_OK(cvy_graph_read_variable(g, x, &at));
    EXPECT_OK(cvy_graph_layer(g, "batch_norm", "bn", NULL, &at, 1, &at));
    EXPECT_OK(cvy_graph_layer(g, "relu", "relu", NULL, &at, 1, &at));
    EXPECT_OK(cvy_sample_options(g->pool, pool, &options));
    EXPECT_OK(cvy_graph_layer(g, "max_pool", "pool", options, &at, 1, &pair[0]));
    EXPECT_OK(cvy_graph_feed(g, "target", dtype, &result, 0, &pair[1]));
    EXPECT_OK(cvy_graph_layer(g, "mse", "loss", NULL, pair, 2, &loss));
    EXPECT_OK(cvy_pass_autodiff(g, &loss, 1, NULL, NULL, &gradients));
    EXPECT_OK(cvy_pass_fuse_relu(g));
    EXPECT_OK(cvy_pass_fuse_batch_norm(g));
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (node->removed ||
            (strncmp(node->op->name, "bn_train", 8) != 0 && strncmp(node->op->name, "max_pool", 8) != 0))
            continue;
        same_at_lines(node, layout);
        tried++;
    }
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
    return tried;
}

static void same_bits(void)
{
    const cvy_layout blocked = cvy_layout_channels(4, 16), last = cvy_layout_channels_last(4);
    EXPECT_INT(try_net(CVY_DTYPE_F32, &blocked, "kernel: 2"), 4);
    EXPECT_INT(try_net(CVY_DTYPE_BF16, &last, "kernel: 3, stride: 2, pad: 1"), 4);
}

int main(void)
{
    TEST(same_bits);
    return test_end();
}

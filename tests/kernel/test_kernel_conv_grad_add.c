/* rows: clang asan onednn3 minimal */
/*
 * test_kernel_conv_grad_add.c: compares the kernels of conv_grad_src_add with the reference kernel: with the sum in
 * place and in other memory, and with channels that do and do not fill their blocks. That for GPUs runs on the emulated
 * device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/conv_graph.h"

#include "backend/emulated/emulated.h"
#include "kernel/kernel_library.h"

static cvy_space device;
static int tried, tried_there;

static void compare(const cvy_span *want, void *got, const cvy_blocking *b)
{
    const cvy_span mine = {.dtype = CVY_DTYPE_F32, .data = got};
    for (int64_t i = 0; i < want->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        split_index(want->ndim, want->dim, i, at);
        EXPECT_NEAR(cvy_get(&mine, cvy_blocking_offset(b, at)), cvy_get(want, i), 1e-4);
    }
}

/* A tensor where the kernel works. */
struct tensor {
    void *host, *there; /* there: on the device; NULL: the kernel works on `host` */
    size_t bytes;
};

static void *tensor_open(const cvy_space *space, struct tensor *t, size_t bytes)
{
    t->bytes = bytes;
    if (space) {
        EXPECT_OK(cvy_space_alloc(space, bytes, 0, &t->there));
        EXPECT_OK(cvy_space_write(space, t->there, t->host, bytes));
    }
    return space ? t->there : t->host;
}

static void tensor_close(const cvy_space *space, struct tensor *t)
{
    if (space)
        cvy_space_free(space, &t->there, t->bytes);
    cvy_mem_free(&t->host);
}

static void try_kernel(const cvy_eval *e, const cvy_node *node, const cvy_kernel_def *k, int in_place)
{
    const cvy_space *space = cvy_kernel_fits(k, NULL) ? NULL : &device;
    cvy_kernel_ask ask = {.node = node, .space = space, .threads = 2};
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL}, *state = NULL;
    struct tensor place[4] = {{.there = NULL}}, scratch = {.there = NULL};
    cvy_blocking b;
    if (k->offer(&ask) != CVY_OK)
        return;
    EXPECT_INT(ask.inplace[0], 3);
    EXPECT(cvy_layout_equal(&ask.src[2], &ask.dst[0]));
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(copy_in_layout(node->src[i], &ask.src[i], cvy_eval_of(e, node->src[i])->data, &b, &place[i].host));
        src[i] = tensor_open(space, &place[i], (size_t)b.elems * sizeof(float));
    }
    EXPECT_OK(copy_in_layout(node->dst[0], &ask.dst[0], NULL, &b, &place[3].host));
    dst[0] = tensor_open(space, &place[3], (size_t)b.elems * sizeof(float));
    struct tensor *result = in_place ? &place[2] : &place[3];
    dst[0] = in_place ? src[2] : dst[0];
    EXPECT_OK(cvy_mem_alloc(ask.scratch_bytes, &scratch.host));
    void *const work = tensor_open(space, &scratch, ask.scratch_bytes);
    EXPECT_OK(k->create(&ask, &state));
    EXPECT_OK(k->run(state, src, dst, work));
    if (space)
        EXPECT_OK(cvy_space_read(space, result->host, result->there, result->bytes));
    compare(cvy_eval_of(e, node->dst[0]), result->host, &b);
    k->destroy(state);
    tensor_close(space, &scratch);
    for (int i = 0; i < 4; i++)
        tensor_close(space, &place[i]);
    *(space ? &tried_there : &tried) += 1;
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
        if (strcmp(table[k / 2]->op, "conv_grad_src_add") == 0 &&
            (cvy_kernel_fits(table[k / 2], NULL) || cvy_kernel_fits(table[k / 2], &device)))
            try_kernel(&e, sum, table[k / 2], k % 2);
    cvy_eval_destroy(&e);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &device));
    try_layer("2x32x7x5", "kernel: 1, channels: 48");
    try_layer("3x17x6x6", "kernel: 1, channels: 9, bias: false");
    try_layer("1x64x14x14", "kernel: 1, channels: 16");
    try_layer("2x300x5x3", "kernel: 1, channels: 290, bias: false");
    EXPECT(tried >= 8);
    EXPECT_INT(tried_there, 8);
    cvy_space_close(&device);
    return test_end();
}

/* rows: clang asan onednn3 minimal */
/*
 * test_pass_fuse_deep.c: the fusion passes look at each node only a few times, however many nodes there are.
 *
 * 8000 residual blocks are a graph of about 100,000 nodes. Fusing takes half a second of processor time; a pass that
 * walks the graph for each value takes more than half a minute. The limit of the test is 15 s.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <sys/resource.h>

#include "op/graph_eval.h"
#include "pass/pass.h"

enum { BLOCKS = 8000, CPU_S = 15 };

static cvy_value *layer(cvy_graph *g, const char *op, int block, cvy_value *a, cvy_value *b)
{
    cvy_value *const src[] = {a, b};
    cvy_value *dst = NULL;
    char name[32];
    snprintf(name, sizeof name, "%s%d", op, block);
    EXPECT_OK(cvy_graph_layer(g, op, name, NULL, src, b ? 2 : 1, &dst));
    return dst;
}

static void build(cvy_graph *g)
{
    const cvy_shape sample = {.ndim = 3, .dim = {1, 2, 2}};
    cvy_value *x = NULL, *from[2] = {NULL};
    cvy_node *loss = NULL;
    cvy_gradients gradients;
    EXPECT_OK(cvy_graph_feed(g, "x", g->dtype, &sample, 0, &x));
    EXPECT_OK(cvy_graph_feed(g, "weights", g->dtype, &sample, 0, &from[1]));
    for (int i = 0; i < BLOCKS; i++)
        x = layer(g, "relu", i, layer(g, "add", i, layer(g, "batch_norm", i, layer(g, "tanh", i, x, NULL), NULL), x),
                  NULL);
    from[0] = x;
    EXPECT_OK(cvy_graph_add_parsed(g, &cvy_weighted_sum_op, "loss", "loss", NULL, from, 2, CVY_PHASE_MICRO, &loss));
    loss->dst[0]->is_output = 1;
    EXPECT_OK(cvy_pass_autodiff(g, &loss->dst[0], 1, NULL, NULL, &gradients));
    EXPECT_OK(cvy_pass_prune(g));
}

static int count(const cvy_graph *g, const char *op)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += !g->node[n]->removed && (!op || strcmp(g->node[n]->op->name, op) == 0);
    return found;
}

static void deep_graph_fuses(void)
{
    const cvy_graph_opts opts = {
        .name = "deep", .batch = cvy_batch_share(2, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(cvy_graph_create(vars, &opts, &g));
    build(g);
    EXPECT(count(g, NULL) > 10 * BLOCKS);
    EXPECT_OK(cvy_pass_fuse_relu(g));
    EXPECT_OK(cvy_pass_fuse_batch_norm(g));
    EXPECT_OK(cvy_pass_fuse_add(g));
    EXPECT_INT(count(g, "bn_train"), BLOCKS);
    EXPECT_INT(count(g, "bn_train_grad"),
               BLOCKS - 1); /* the gradient of the input is not needed: the first block makes sums only */
    EXPECT_INT(count(g, "relu_grad"), 1);
    EXPECT_INT(count(g, "relu"), 0);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    const struct rlimit limit = {CPU_S, CPU_S};
    EXPECT_INT(setrlimit(RLIMIT_CPU, &limit), 0);
    TEST(deep_graph_fuses);
    return test_end();
}

/* rows: clang asan onednn3 minimal */
/*
 * test_pass_fuse_batch_norm.c: batch norm fused to one node in each direction computes the same as the nodes it
 * replaces, in f64 to the last few bits.
 *
 * It is tested with a ReLU, with a residual that is computed before, with a residual that is normalised too, with sums
 * that other nodes read as well, and before pooling; and with frozen statistics, where the nodes are as in evaluation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_batch_norm.h"
#include "pass/fuse_net.h"
#include "pass/pass_readers.h"

enum { N = 6, GROUP = 4 };

static void open_net(int nranks, int64_t group, const char *frozen, struct net *net)
{
    const cvy_shape sample = {.ndim = 3, .dim = {3, 4, 6}};
    const cvy_graph_opts opts = {.name = "net",
                                 .batch = cvy_batch_share(N, 0, nranks),
                                 .training = 1,
                                 .dtype = CVY_DTYPE_F64,
                                 .bn_group = group,
                                 .bn_frozen = frozen};
    cvy_value *x = begin_net(net, &opts, &sample);
    x = layer(net, "relu", "relu0", NULL, layer(net, "batch_norm", "bn0", NULL, x, NULL), NULL);
    /* A residual that is computed before. */
    cvy_value *y =
        layer(net, "batch_norm", "bn1", "scale_shift: false", layer(net, "tanh", "tanh1", NULL, x, NULL), NULL);
    x = layer(net, "relu", "relu1", NULL, layer(net, "add", "add1", NULL, y, x), NULL);
    /* A residual that is normalised, and computed after the main path. */
    y = layer(net, "batch_norm", "bn2", NULL, layer(net, "tanh", "tanh2", NULL, x, NULL), NULL);
    cvy_value *z = layer(net, "batch_norm", "bn3", NULL, layer(net, "sigmoid", "sigmoid3", NULL, x, NULL), NULL);
    x = layer(net, "relu", "relu3", NULL, layer(net, "add", "add3", NULL, y, z), NULL);
    /* A sum that two nodes read, without a ReLU. */
    y = layer(net, "batch_norm", "bn4", NULL, layer(net, "tanh", "tanh4", NULL, x, NULL), NULL);
    x = layer(net, "add", "add4", NULL, x, y);
    y = layer(net, "relu", "relu5", NULL,
              layer(net, "batch_norm", "bn5", NULL, layer(net, "tanh", "tanh5", NULL, x, NULL), NULL), NULL);
    /* A result that two nodes read, both of them after the sum whose residual it is. */
    z = layer(net, "relu", "relu6", NULL,
              layer(net, "add", "add6", NULL, layer(net, "batch_norm", "bn6", NULL, y, NULL), x), NULL);
    x = layer(net, "add", "add7", NULL, z, x);
    x = layer(net, "relu", "relu8", NULL, layer(net, "batch_norm", "bn8", NULL, x, NULL), NULL);
    end_net(net, layer(net, "max_pool", "pool", "kernel: 2", x, NULL));
    EXPECT_OK(cvy_pass_prune(net->graph));
}

static int count(const cvy_graph *g, const char *op)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += !g->node[n]->removed && strcmp(g->node[n]->op->name, op) == 0;
    return found;
}

static const cvy_span *gradient_of(const struct net *net, const char *name)
{
    for (int i = 0; i < net->gradients.count; i++)
        if (strcmp(net->gradients.at[i].variable->name, name) == 0)
            return cvy_eval_of(&net->e, net->gradients.at[i].value);
    return NULL;
}

/* Runs both nets and compares loss and gradients. */
static void compare(struct net *plain, struct net *fused)
{
    run_net(plain, 0.1, 2);
    run_net(fused, 0.1, 2);
    EXPECT(fabs(cvy_get(cvy_eval_of(&plain->e, plain->loss), 0)) > 1e-3);
    EXPECT_NEAR(cvy_get(cvy_eval_of(&fused->e, fused->loss), 0), cvy_get(cvy_eval_of(&plain->e, plain->loss), 0),
                1e-12);
    for (int i = 0; i < plain->gradients.count; i++) {
        const char *name = plain->gradients.at[i].variable->name;
        const cvy_span *want = cvy_eval_of(&plain->e, plain->gradients.at[i].value), *got = gradient_of(fused, name);
        EXPECT(got != NULL);
        for (int64_t k = 0; got && k < want->elems; k++)
            EXPECT_NEAR(cvy_get(got, k), cvy_get(want, k), 1e-11 * fmax(1, fabs(cvy_get(want, k))));
    }
    close_net(plain);
    close_net(fused);
}

static void same_results(int relu_too)
{
    struct net plain, fused;
    open_net(1, GROUP, NULL, &plain);
    open_net(1, GROUP, NULL, &fused);
    if (relu_too)
        EXPECT_OK(cvy_pass_fuse_relu(fused.graph));
    EXPECT_OK(cvy_pass_fuse_batch_norm(fused.graph));
    EXPECT_INT(count(fused.graph, "bn_train"), 8);
    EXPECT_INT(count(fused.graph, "bn_train_grad"),
               7); /* the gradient of the input is not needed: the first one makes sums only */
    EXPECT_INT(count(fused.graph, "bn_grad_stats"), 1);
    EXPECT_INT(count(fused.graph, "bn_apply") + count(fused.graph, "bn_stats") + count(fused.graph, "bn_grad_apply"),
               0);
    EXPECT_INT(count(fused.graph, "relu"), relu_too ? 0 : 3);
    compare(&plain, &fused);
}

static void frozen(void)
{
    struct net plain, fused;
    int sums = 0;
    open_net(1, GROUP, "*", &plain);
    open_net(1, GROUP, "*", &fused);
    EXPECT_OK(cvy_pass_fuse_relu(fused.graph));
    EXPECT_OK(cvy_pass_fuse_batch_norm(fused.graph));
    for (int n = 0; n < fused.graph->nnode; n++)
        sums += cvy_pass_is_op(fused.graph->node[n], "bn_infer") && cvy_bn_infer_residual(fused.graph->node[n]) >= 0;
    EXPECT_INT(count(fused.graph, "bn_infer"), 8);
    EXPECT_INT(sums, 4);
    EXPECT_INT(count(fused.graph, "relu"), 0);
    compare(&plain, &fused);
}

static void with_and_without_relu(void)
{
    same_results(1);
    same_results(0);
}

/* A sum over ranks stands between statistics and normalisation, so nothing can be fused. */
static void spanning_groups_stay(void)
{
    struct net net;
    open_net(3, GROUP, NULL, &net); /* two samples each, and groups of three */
    EXPECT_INT(count(net.graph, "allreduce") > 0, 1);
    EXPECT_OK(cvy_pass_fuse_relu(net.graph));
    EXPECT_OK(cvy_pass_fuse_batch_norm(net.graph));
    EXPECT_INT(count(net.graph, "bn_train"), 0);
    EXPECT_INT(count(net.graph, "bn_apply"), 8);
    close_net(&net);
}

int main(void)
{
    TEST(with_and_without_relu);
    TEST(frozen);
    TEST(spanning_groups_stay);
    return test_end();
}

/* rows: clang asan onednn3 minimal */
/*
 * test_pass_fuse_relu.c: a ReLU after a fully connected layer, a convolution or a group norm becomes part of that node,
 * and of the gradient of group norm, and loss and gradients do not change; if another node reads that layer too, the
 * ReLU stays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/fuse_net.h"

enum { N = 5 };

/* conv, ReLU, fc, ReLU, and an fc that is read by its ReLU and by a sum. */
static void open_net(struct net *net)
{
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 3}};
    const cvy_graph_opts opts = {
        .name = "net", .batch = cvy_batch_share(N, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    cvy_value *x = begin_net(net, &opts, &sample);
    x = layer(net, "relu", "relu1", NULL, layer(net, "conv", "conv1", "kernel: 3, pad: 1, channels: 4", x, NULL), NULL);
    x = layer(net, "relu", "relu2", NULL, layer(net, "fc", "fc2", "channels: 9", x, NULL), NULL);
    x = layer(net, "fc", "fc3", "channels: 6, bias: false", x, NULL);
    end_net(net, layer(net, "add", "sum", NULL, layer(net, "relu", "relu3", NULL, x, NULL), x));
}

/* Group norm and instance norm with a ReLU after each, a group norm whose ReLU two nodes read, and one that is read by
 * its ReLU and by a sum. */
static void open_norms(struct net *net)
{
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 3}};
    const cvy_graph_opts opts = {
        .name = "net", .batch = cvy_batch_share(N, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    cvy_value *x = begin_net(net, &opts, &sample);
    x = layer(net, "conv", "conv1", "kernel: 3, pad: 1, channels: 4", x, NULL);
    x = layer(net, "relu", "relu1", NULL, layer(net, "group_norm", "norm1", "groups: 2", x, NULL), NULL);
    x = layer(net, "conv", "conv2", "kernel: 1, channels: 4", x, NULL);
    x = layer(net, "relu", "relu2", NULL, layer(net, "instance_norm", "norm2", NULL, x, NULL), NULL);
    cvy_value *y = layer(net, "conv", "conv3", "kernel: 1, channels: 4", x, NULL);
    y = layer(net, "relu", "relu3", NULL, layer(net, "group_norm", "norm3", "groups: 1", y, NULL), NULL);
    x = layer(net, "add", "sum3", NULL, layer(net, "tanh", "tanh3", NULL, y, NULL), y);
    x = layer(net, "group_norm", "norm4", "groups: 4", x, NULL);
    end_net(net, layer(net, "add", "sum4", NULL, layer(net, "relu", "relu4", NULL, x, NULL), x));
}

static int count(const cvy_graph *g, const char *op)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += !g->node[n]->removed && strcmp(g->node[n]->op->name, op) == 0;
    return found;
}

/* left, grads_left: nodes relu and relu_grad after the pass. */
static void fused_is_the_same(void (*open)(struct net *net), int left, int grads_left)
{
    struct net plain, fused;
    open(&plain);
    open(&fused);
    EXPECT_OK(cvy_pass_fuse_relu(fused.graph));
    EXPECT_INT(count(fused.graph, "relu"), left);
    EXPECT_INT(count(fused.graph, "relu_grad"), grads_left);
    run_net(&plain, -1, 1);
    run_net(&fused, -1, 1);
    EXPECT(fabs(cvy_get(cvy_eval_of(&plain.e, plain.loss), 0)) > 1e-3);
    EXPECT_NEAR(cvy_get(cvy_eval_of(&fused.e, fused.loss), 0), cvy_get(cvy_eval_of(&plain.e, plain.loss), 0), 0);
    EXPECT_INT(fused.gradients.count, plain.gradients.count);
    for (int i = 0; i < plain.gradients.count; i++) {
        const cvy_span *want = cvy_eval_of(&plain.e, plain.gradients.at[i].value),
                       *got = cvy_eval_of(&fused.e, fused.gradients.at[i].value);
        EXPECT_TEXT(fused.gradients.at[i].variable->name, plain.gradients.at[i].variable->name);
        for (int64_t k = 0; k < want->elems; k++)
            EXPECT_NEAR(cvy_get(got, k), cvy_get(want, k), 0);
    }
    close_net(&plain);
    close_net(&fused);
}

static void with_layers(void)
{
    fused_is_the_same(open_net, 1, 3);
}

static void with_norms(void)
{
    fused_is_the_same(open_norms, 1, 1);
}

int main(void)
{
    TEST(with_layers);
    TEST(with_norms);
    return test_end();
}

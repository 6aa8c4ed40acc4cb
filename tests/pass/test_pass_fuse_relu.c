/* rows: clang asan onednn3 minimal */
/*
 * test_pass_fuse_relu.c: a ReLU after a fully connected layer or a convolution becomes part of that node, and loss and
 * gradients do not change; if another node reads that layer too, the ReLU stays.
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

static int count(const cvy_graph *g, const char *op)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += !g->node[n]->removed && strcmp(g->node[n]->op->name, op) == 0;
    return found;
}

static void fused_is_the_same(void)
{
    struct net plain, fused;
    open_net(&plain);
    open_net(&fused);
    EXPECT_INT(count(fused.graph, "relu"), 3);
    EXPECT_OK(cvy_pass_fuse_relu(fused.graph));
    EXPECT_INT(count(fused.graph, "relu"), 1);
    EXPECT_INT(count(fused.graph, "relu_grad"), 3);
    run_net(&plain, -1, 1);
    run_net(&fused, -1, 1);
    EXPECT(fabs(cvy_get(eval_of(&plain.e, plain.loss), 0)) > 1e-3);
    EXPECT_NEAR(cvy_get(eval_of(&fused.e, fused.loss), 0), cvy_get(eval_of(&plain.e, plain.loss), 0), 0);
    EXPECT_INT(fused.gradients.count, plain.gradients.count);
    for (int i = 0; i < plain.gradients.count; i++) {
        const cvy_span *want = eval_of(&plain.e, plain.gradients.at[i].value),
                       *got = eval_of(&fused.e, fused.gradients.at[i].value);
        EXPECT_TEXT(fused.gradients.at[i].variable->name, plain.gradients.at[i].variable->name);
        for (int64_t k = 0; k < want->elems; k++)
            EXPECT_NEAR(cvy_get(got, k), cvy_get(want, k), 0);
    }
    close_net(&plain);
    close_net(&fused);
}

int main(void)
{
    TEST(fused_is_the_same);
    return test_end();
}

/* rows: clang asan onednn3 minimal */
/*
 * test_pass_prune.c: nodes that no output, accumulator, reduction or assignment depends on are removed, with everything
 * that only they read; the other nodes stay and keep their values.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/fuse_net.h"

enum { N = 3 };

static int is_there(const cvy_graph *g, const char *name)
{
    for (int n = 0; n < g->nnode; n++)
        if (strcmp(g->node[n]->name, name) == 0)
            return !g->node[n]->removed;
    return 0;
}

/* conv, ReLU and fc lead to the loss; a second branch of two layers is read by nothing. */
static void open_net(struct net *net, cvy_value **branch_out)
{
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 3}};
    const cvy_graph_opts opts = {
        .name = "net", .batch = cvy_batch_share(N, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    cvy_value *x = begin_net(net, &opts, &sample);
    x = layer(net, "relu", "relu1", NULL, layer(net, "conv", "conv1", "kernel: 3, pad: 1, channels: 4", x, NULL), NULL);
    cvy_value *branch = layer(net, "sigmoid", "unread1", NULL, x, NULL);
    *branch_out = layer(net, "tanh", "unread2", NULL, branch, NULL);
    end_net(net, layer(net, "fc", "fc2", "channels: 6", x, NULL));
}

static void unread_branch_goes(void)
{
    struct net plain, pruned;
    cvy_value *branch = NULL;
    open_net(&plain, &branch);
    open_net(&pruned, &branch);
    EXPECT(is_there(pruned.graph, "unread1") && is_there(pruned.graph, "unread2"));
    EXPECT_OK(cvy_pass_prune(pruned.graph));
    EXPECT(!is_there(pruned.graph, "unread1") && !is_there(pruned.graph, "unread2"));
    EXPECT(is_there(pruned.graph, "conv1") && is_there(pruned.graph, "relu1") && is_there(pruned.graph, "fc2"));
    EXPECT(is_there(pruned.graph, "loss"));
    for (int n = 0; n < pruned.graph->nnode; n++)
        for (int i = 0; i < pruned.graph->node[n]->nsrc; i++)
            EXPECT(pruned.graph->node[n]->removed || !pruned.graph->node[n]->src[i]->producer ||
                   !pruned.graph->node[n]->src[i]->producer->removed);
    for (int i = 0; i < pruned.gradients.count; i++)
        EXPECT(!pruned.gradients.at[i].value->producer->removed);
    run_net(&plain, -1, 1);
    run_net(&pruned, -1, 1);
    EXPECT_INT(pruned.gradients.count, plain.gradients.count);
    EXPECT(fabs(cvy_get(cvy_eval_of(&plain.e, plain.loss), 0)) > 1e-3);
    EXPECT_NEAR(cvy_get(cvy_eval_of(&pruned.e, pruned.loss), 0), cvy_get(cvy_eval_of(&plain.e, plain.loss), 0), 0);
    for (int i = 0; i < plain.gradients.count; i++) {
        const cvy_span *want = cvy_eval_of(&plain.e, plain.gradients.at[i].value),
                       *got = cvy_eval_of(&pruned.e, pruned.gradients.at[i].value);
        for (int64_t k = 0; k < want->elems; k++)
            EXPECT_NEAR(cvy_get(got, k), cvy_get(want, k), 0);
    }
    close_net(&plain);
    close_net(&pruned);
}

/* A value that is an output of the graph keeps its branch. */
static void output_stays(void)
{
    struct net net;
    cvy_value *branch = NULL;
    open_net(&net, &branch);
    branch->is_output = 1;
    EXPECT_OK(cvy_pass_prune(net.graph));
    EXPECT(is_there(net.graph, "unread1") && is_there(net.graph, "unread2"));
    close_net(&net);
}

/* Running the pass again removes nothing more. */
static void twice_is_once(void)
{
    struct net net;
    cvy_value *branch = NULL;
    int removed[2] = {0, 0};
    open_net(&net, &branch);
    for (int k = 0; k < 2; k++) {
        EXPECT_OK(cvy_pass_prune(net.graph));
        for (int n = 0; n < net.graph->nnode; n++)
            removed[k] += net.graph->node[n]->removed;
    }
    EXPECT(removed[0] >= 2);
    EXPECT_INT(removed[1], removed[0]);
    close_net(&net);
}

int main(void)
{
    TEST(unread_branch_goes);
    TEST(output_stays);
    TEST(twice_is_once);
    return test_end();
}

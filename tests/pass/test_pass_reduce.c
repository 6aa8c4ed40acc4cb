/* rows: clang asan onednn3 minimal */
/*
 * test_pass_reduce.c: every accumulator to be reduced is in one bucket, in the order in which they are computed.
 *
 * With several ranks, the reduction of a bucket starts after the last node that writes into it. With overlap it starts
 * at once, without overlap after the last backward node. The update phase waits for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/fuse_net.h"

enum { N = 3, BUCKETS_MAX = 16 };

static void open_net(struct net *net)
{
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 3}};
    const cvy_graph_opts opts = {
        .name = "net", .batch = cvy_batch_share(N, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    cvy_value *x = begin_net(net, &opts, &sample);
    x = layer(net, "relu", "relu1", NULL, layer(net, "conv", "conv1", "kernel: 3, pad: 1, channels: 4", x, NULL), NULL);
    x = layer(net, "relu", "relu2", NULL, layer(net, "fc", "fc2", "channels: 9", x, NULL), NULL);
    end_net(net, layer(net, "fc", "fc3", "channels: 6", x, NULL));
}

static int is_reduced(const cvy_value *v)
{
    return v && v->kind == CVY_VALUE_ACCUMULATOR && v->reduced && v->producer->phase == CVY_PHASE_MICRO;
}

static int count_reduced(const cvy_graph *g)
{
    int count = 0;
    for (int v = 0; v < g->nvalue; v++)
        count += is_reduced(g->value[v]);
    return count;
}

/* Returns the number of nodes of this operator, and the positions of the first BUCKETS_MAX of them. */
static int find(const cvy_graph *g, const char *op, int *at)
{
    int count = 0;
    for (int n = 0; n < g->nnode; n++)
        if (!g->node[n]->removed && strcmp(g->node[n]->op->name, op) == 0 && count < BUCKETS_MAX)
            at[count++] = n;
    return count;
}

static void one_rank_has_buckets_only(void)
{
    struct net net;
    int at[BUCKETS_MAX], nbucket = 0;
    open_net(&net);
    const int nodes = net.graph->nnode;
    EXPECT_OK(cvy_pass_reduce(net.graph, &(cvy_reduce_opts){.nranks = 1, .bucket_bytes = 1, .overlap = 1}, &nbucket));
    EXPECT_INT(net.graph->nnode, nodes);
    EXPECT_INT(find(net.graph, "reduce_start", at), 0);
    EXPECT(count_reduced(net.graph) >= net.gradients.count && net.gradients.count == 6);
    EXPECT_INT(nbucket, count_reduced(net.graph)); /* no accumulator is smaller than a byte */
    for (int i = 0; i < net.gradients.count; i++)
        EXPECT(net.gradients.at[i].value->bucket >= 0 && net.gradients.at[i].value->bucket < nbucket);
    close_net(&net);
}

/* Checks the order of nodes, for buckets of so many bytes on two ranks. */
static void starts_and_waits(size_t bucket_bytes, int overlap, int *nbucket_out)
{
    struct net net;
    int start[BUCKETS_MAX], wait[BUCKETS_MAX], last_backward = -1, last_made[BUCKETS_MAX];
    const cvy_reduce_opts opts = {.nranks = 2, .bucket_bytes = bucket_bytes, .overlap = overlap};
    open_net(&net);
    EXPECT_OK(cvy_pass_reduce(net.graph, &opts, nbucket_out));
    const int nbucket = *nbucket_out;
    EXPECT(nbucket > 0 && nbucket <= BUCKETS_MAX);
    EXPECT_INT(find(net.graph, "reduce_start", start), nbucket);
    EXPECT_INT(find(net.graph, "reduce_wait", wait), nbucket);
    for (int b = 0; b < BUCKETS_MAX; b++)
        last_made[b] = -1;
    for (int n = 0; n < net.graph->nnode; n++) {
        const cvy_node *node = net.graph->node[n];
        if (node->phase == CVY_PHASE_MICRO && strcmp(node->op->name, "reduce_start") != 0)
            last_backward = n;
        for (int i = 0; i < node->ndst; i++)
            if (is_reduced(node->dst[i]))
                last_made[node->dst[i]->bucket] = n;
    }
    for (int b = 0; b < nbucket; b++) { /* starts are in the order of buckets */
        const cvy_node *before = net.graph->node[start[b] - 1];
        EXPECT(last_made[b] >= 0 && start[b] > last_made[b]);
        EXPECT(overlap || start[b] > last_backward);
        EXPECT(!overlap || start[b] == last_made[b] + 1 || strcmp(before->op->name, "reduce_start") == 0);
        EXPECT(wait[b] > last_backward && wait[b] > start[b]);
        EXPECT_INT(net.graph->node[wait[b]]->phase, CVY_PHASE_UPDATE);
    }
    EXPECT(!overlap || nbucket == 1 || start[0] < last_backward);
    close_net(&net);
}

static void buckets_of_one(void)
{
    int nbucket = 0;
    starts_and_waits(1, 1, &nbucket);
    EXPECT(nbucket >= 6);
    starts_and_waits(1, 0, &nbucket);
    EXPECT(nbucket >= 6);
}

/* fc3 has 6 x 9 weights and 6 biases; fc2 and conv1 have more. A bucket of 432 bytes is full after fc3's weights. */
static void buckets_of_some(void)
{
    int nbucket = 0;
    starts_and_waits(432, 1, &nbucket);
    EXPECT(nbucket > 1 && nbucket < 6);
}

static void one_bucket(void)
{
    int nbucket = 0;
    starts_and_waits((size_t)1 << 30, 1, &nbucket);
    EXPECT_INT(nbucket, 1);
    starts_and_waits((size_t)1 << 30, 0, &nbucket);
    EXPECT_INT(nbucket, 1);
}

int main(void)
{
    TEST(one_rank_has_buckets_only);
    TEST(buckets_of_one);
    TEST(buckets_of_some);
    TEST(one_bucket);
    return test_end();
}

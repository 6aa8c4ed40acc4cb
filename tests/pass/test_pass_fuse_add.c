/* rows: clang asan onednn3 minimal */
/*
 * test_pass_fuse_add.c: a chain of sums becomes one sum with the same addends in the same order, equal to the last bit.
 *
 * A sum that other nodes read stays, and no sum gets more addends than the operator takes. The gradients of 1x1
 * convolutions are added where they are computed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "pass/fuse_net.h"
#include "pass/pass_readers.h"

enum { LEAVES = 11 };

struct sums {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *leaf[LEAVES], *result;
};

static void open_sums(struct sums *s)
{
    const cvy_shape sample = {.ndim = 1, .dim = {3}};
    const cvy_graph_opts opts = {
        .name = "sums", .batch = cvy_batch_share(2, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    char name[16];
    *s = (struct sums){0};
    EXPECT_OK(cvy_vars_create(&s->vars));
    EXPECT_OK(cvy_graph_create(s->vars, &opts, &s->graph));
    for (int i = 0; i < LEAVES; i++) {
        snprintf(name, sizeof name, "leaf%d", i);
        EXPECT_OK(cvy_graph_feed(s->graph, name, CVY_DTYPE_F32, &sample, 0, &s->leaf[i]));
    }
}

static void close_sums(struct sums *s)
{
    cvy_graph_destroy(&s->graph);
    cvy_vars_destroy(&s->vars);
}

static cvy_value *sum(struct sums *s, const char *name, cvy_value *a, cvy_value *b)
{
    cvy_value *const src[] = {a, b};
    cvy_node *node = NULL;
    EXPECT_OK(cvy_graph_add(s->graph, "add", name, name, NULL, src, 2, &node));
    return node->dst[0];
}

/* Builds ((leaf0 + leaf1) + leaf2) + ..., in which every second node has the sum as its second addend. */
static void chain(struct sums *s, int leaves)
{
    cvy_value *at = s->leaf[0];
    char name[16];
    for (int i = 1; i < leaves; i++) {
        snprintf(name, sizeof name, "sum%d", i);
        at = i % 2 ? sum(s, name, at, s->leaf[i]) : sum(s, name, s->leaf[i], at);
    }
    at->is_output = 1;
    s->result = at;
}

static int count(const cvy_graph *g)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += !g->node[n]->removed;
    return found;
}

static void values(const struct sums *s, float out[6])
{
    cvy_eval e = {0};
    uint64_t state = 1;
    EXPECT_OK(cvy_eval_create(s->graph, &e));
    for (int i = 0; i < LEAVES; i++)
        for (int k = 0; k < 6; k++)
            cvy_set(cvy_eval_of(&e, s->leaf[i]), k,
                    (double)(int64_t)(cvy_sample_random(&state) % 2048) /
                        64); /* exact sums in any order and precision */
    EXPECT_OK(cvy_eval_run(&e, 1));
    for (int k = 0; k < 6; k++)
        out[k] = (float)cvy_get(cvy_eval_of(&e, s->result), k);
    cvy_eval_destroy(&e);
}

static void chains(void)
{
    for (int leaves = 2; leaves <= LEAVES; leaves++) {
        struct sums s;
        float before[6], after[6];
        open_sums(&s);
        chain(&s, leaves);
        values(&s, before);
        EXPECT_OK(cvy_pass_fuse_add(s.graph));
        EXPECT_INT(count(s.graph), leaves <= 8 ? 1 : 2);
        values(&s, after);
        for (int k = 0; k < 6; k++)
            EXPECT(before[k] == after[k]);
        for (int i = 0; i < CVY_MIN(leaves, 8) && leaves <= 8; i++) /* the chain's order */
            EXPECT(s.result->producer->src[i] == s.leaf[i]);
        close_sums(&s);
    }
}

static void read_by_others(void)
{
    struct sums s;
    open_sums(&s);
    cvy_value *inner = sum(&s, "inner", s.leaf[0], s.leaf[1]);
    sum(&s, "one", inner, s.leaf[2])->is_output = 1;
    sum(&s, "two", inner, s.leaf[3])->is_output = 1;
    cvy_value *kept = sum(&s, "kept", s.leaf[4], s.leaf[5]);
    kept->is_output = 1;
    sum(&s, "three", kept, s.leaf[6])->is_output = 1;
    EXPECT_OK(cvy_pass_fuse_add(s.graph));
    EXPECT_INT(count(s.graph), 5);
    close_sums(&s);
}

/* One source and three convolutions: two are 1x1, and add their gradients to that of the third. */
static void open_branches(struct net *net, const char *stride)
{
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 4}};
    const cvy_graph_opts opts = {
        .name = "branches", .batch = cvy_batch_share(3, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    char wide[64], point[64];
    snprintf(wide, sizeof wide, "kernel: 3, channels: 5, pad: 1, stride: %s", stride);
    snprintf(point, sizeof point, "kernel: 1, channels: 5, stride: %s", stride);
    cvy_value *x = begin_net(net, &opts, &sample),
              *stem = layer(net, "conv", "stem", "kernel: 3, channels: 3, pad: 1", x, NULL);
    cvy_value *a = layer(net, "conv", "a", point, stem, NULL), *b = layer(net, "conv", "b", point, stem, NULL);
    cvy_value *c = layer(net, "conv", "c", wide, stem, NULL);
    end_net(net, layer(net, "add", "all", NULL, layer(net, "add", "some", NULL, a, b), c));
}

static int count_op(const cvy_graph *g, const char *op)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += cvy_pass_is_op(g->node[n], op);
    return found;
}

static void same_gradients(const struct net *a, const struct net *b)
{
    EXPECT_INT(a->gradients.count, b->gradients.count);
    for (int i = 0; i < a->gradients.count; i++) {
        const cvy_span *x = cvy_eval_of(&a->e, a->gradients.at[i].value),
                       *y = cvy_eval_of(&b->e, b->gradients.at[i].value);
        for (int64_t k = 0; k < x->elems; k++)
            EXPECT(fabs(cvy_get(x, k) - cvy_get(y, k)) <= 1e-12 * (1 + fabs(cvy_get(x, k))));
    }
}

static void behind_one_position(void)
{
    for (int stride = 1; stride <= 2; stride++) {
        struct net plain, fused;
        open_branches(&plain, stride == 1 ? "1" : "2");
        open_branches(&fused, stride == 1 ? "1" : "2");
        EXPECT_OK(cvy_pass_fuse_add(fused.graph));
        /* The forward sums become one. With a stride, the gradient of a 1x1 convolution reaches only some positions, so
         * a sum stays. */
        EXPECT_INT(count_op(fused.graph, "conv_grad_src_add"), stride == 1 ? 2 : 0);
        EXPECT_INT(count_op(fused.graph, "add"), stride == 1 ? 1 : 2);
        run_net(&plain, -1, 4);
        run_net(&fused, -1, 4);
        same_gradients(&plain, &fused);
        close_net(&plain);
        close_net(&fused);
    }
}

int main(void)
{
    TEST(chains);
    TEST(read_by_others);
    TEST(behind_one_position);
    return test_end();
}

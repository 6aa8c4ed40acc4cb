/*
 * fuse_net.h: a small network in f64 with a weighted sum as its loss, its gradients and their values; the tests of the
 * fusing passes compare it with and without the pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_FUSE_NET_H
#define CVY_TEST_FUSE_NET_H

#include "op/graph_eval.h"
#include "pass/pass.h"

struct net {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_gradients gradients;
    cvy_value *loss;
    cvy_eval e;
};

static inline cvy_value *layer(struct net *net, const char *op, const char *name, const char *text, cvy_value *a,
                               cvy_value *b)
{
    cvy_value *const src[] = {a, b};
    cvy_value *dst = NULL;
    cvy_tree *options = NULL;
    EXPECT_OK(cvy_sample_options(net->graph->pool, text, &options));
    EXPECT_OK(cvy_graph_layer(net->graph, op, name, options, src, b ? 2 : 1, &dst));
    return dst;
}

/* Begins a network without layers and returns its input. */
static inline cvy_value *begin_net(struct net *net, const cvy_graph_opts *opts, const cvy_shape *sample)
{
    cvy_value *x = NULL;
    *net = (struct net){0};
    EXPECT_OK(cvy_vars_create(&net->vars));
    EXPECT_OK(cvy_graph_create(net->vars, opts, &net->graph));
    EXPECT_OK(cvy_graph_feed(net->graph, "x", CVY_DTYPE_F64, sample, 0, &x));
    return x;
}

/* Adds the loss, a sum of the result with weights that are fed, and all gradients. */
static inline void end_net(struct net *net, cvy_value *result)
{
    cvy_value *from[2] = {result, NULL};
    cvy_node *loss = NULL;
    const cvy_shape target = cvy_shape_make(result->shape.ndim - 1, result->shape.dim + 1);
    EXPECT_OK(cvy_graph_feed(net->graph, "weights", CVY_DTYPE_F64, &target, 0, &from[1]));
    EXPECT_OK(
        cvy_graph_add_parsed(net->graph, &cvy_weighted_sum_op, "loss", "loss", NULL, from, 2, CVY_PHASE_MICRO, &loss));
    net->loss = loss->dst[0];
    net->loss->is_output = 1;
    EXPECT_OK(cvy_pass_autodiff(net->graph, &net->loss, 1, NULL, NULL, &net->gradients));
}

static inline void close_net(struct net *net)
{
    cvy_eval_destroy(&net->e);
    cvy_graph_destroy(&net->graph);
    cvy_vars_destroy(&net->vars);
}

/* Fills feeds with values from -1 on and variables with values from `low` on, both by cvy_sample_fill with `bound`, and
 * runs the network. */
static inline void run_net(struct net *net, double low, int64_t bound)
{
    EXPECT_OK(cvy_eval_create(net->graph, &net->e));
    for (int v = 0; v < net->graph->nvalue; v++) {
        const cvy_value *value = net->graph->value[v];
        uint64_t state = 1;
        for (const char *at = value->name; *at; at++) /* a name gets the same values in both graphs */
            state = state * 31 + (uint64_t)*at;
        if (!value->producer)
            cvy_sample_fill(cvy_eval_of(&net->e, value), value->kind == CVY_VALUE_VARIABLE ? low : -1, bound, &state);
    }
    EXPECT_OK(cvy_eval_run(&net->e, 1));
}

#endif

/* rows: clang asan onednn3 minimal */
/*
 * test_pass_optimise.c: the update phase has one node for each gradient, which applies the optimiser's rule with the
 * variable's own rate and weight decay; clipping by value bounds each element, clipping by the norm scales all of
 * them, and an L1 norm adds the sign of each weight.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/fuse_net.h"

enum { N = 3, ELEMS_MAX = 4096 };

static void open_net(struct net *net)
{
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 3}};
    const cvy_graph_opts opts = {
        .name = "net", .batch = cvy_batch_share(N, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    cvy_value *x = begin_net(net, &opts, &sample);
    x = layer(net, "relu", "relu1", NULL, layer(net, "conv", "conv1", "kernel: 3, pad: 1, channels: 4", x, NULL), NULL);
    end_net(net, layer(net, "fc", "fc2", "channels: 6", x, NULL));
    for (int i = 0; i < net->gradients.count; i++) {
        cvy_variable *v = net->gradients.at[i].variable;
        v->decay = 1, v->decay_mult = 1 + i, v->lr_mult = 0.5 * (1 + i);
    }
}

static int count(const cvy_graph *g, const char *op)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += !g->node[n]->removed && strcmp(g->node[n]->op->name, op) == 0;
    return found;
}

static const cvy_node *update_of(const cvy_graph *g, const char *op, const cvy_variable *v)
{
    for (int n = 0; n < g->nnode; n++)
        if (strcmp(g->node[n]->op->name, op) == 0 && g->node[n]->src[0]->variable == v)
            return g->node[n];
    return NULL;
}

/* Runs the net and compares every new weight with the rule of sgd without momentum. Gradients are clipped as opts says:
 * each element by clip_value, or all of them by clip_norm, the largest norm of all gradients together. */
static void follows_the_rule(const cvy_optimise_opts *opts)
{
    struct net net;
    cvy_optimise_opts plain = *opts;
    cvy_pool *pool = NULL;
    cvy_tree *options = NULL;
    double squares = 0;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "options", "{momentum: 0}", 13, &options));
    plain.options = options;
    open_net(&net);
    EXPECT_OK(cvy_pass_optimise(net.graph, &net.gradients, &plain));
    EXPECT_INT(count(net.graph, "sgd"), net.gradients.count);
    EXPECT_INT(count(net.graph, "clip_value"), opts->clip_value > 0 ? net.gradients.count : 0);
    EXPECT_INT(count(net.graph, "clip_scale"), opts->clip_norm > 0);
    run_net(&net, -1, 1);
    for (int i = 0; i < net.gradients.count; i++) {
        const cvy_span *g = cvy_eval_of(&net.e, net.gradients.at[i].value);
        for (int64_t k = 0; k < g->elems; k++)
            squares += cvy_get(g, k) * cvy_get(g, k);
    }
    EXPECT(sqrt(squares) > 1); /* otherwise clipping to a norm of 1 would do nothing */
    const double scale = opts->clip_norm > 0 ? fmin(1, opts->clip_norm / sqrt(squares)) : 1;
    for (int i = 0; i < net.gradients.count; i++) {
        const cvy_variable *v = net.gradients.at[i].variable;
        const cvy_node *node = update_of(net.graph, "sgd", v);
        EXPECT(node != NULL && node->phase == CVY_PHASE_UPDATE);
        if (!node)
            continue;
        const cvy_span *w = cvy_eval_of(&net.e, node->src[0]), *g = cvy_eval_of(&net.e, net.gradients.at[i].value),
                       *now = cvy_eval_of(&net.e, node->dst[0]);
        const double lr = v->lr_mult * cvy_get(cvy_eval_of(&net.e, node->src[2]), 0);
        int clipped = 0;
        EXPECT(fabs(lr) > 0.01 && w->elems == now->elems && node->src[0] != node->dst[0]);
        for (int64_t k = 0; k < w->elems; k++) {
            const double limit = opts->clip_value > 0 ? opts->clip_value : HUGE_VAL,
                         gradient = fmax(-limit, fmin(limit, cvy_get(g, k)));
            const double weight = cvy_get(w, k), decay = opts->weight_decay * v->decay_mult,
                         l1 = opts->l1 * v->decay_mult * ((weight > 0) - (weight < 0));
            clipped += gradient != cvy_get(g, k);
            EXPECT_NEAR(cvy_get(now, k), weight - lr * (scale * gradient + l1 + decay * weight),
                        1e-14 * (1 + fabs(cvy_get(g, k))));
        }
        EXPECT(opts->clip_value <= 0 || clipped > 0);
    }
    close_net(&net);
    cvy_pool_destroy(&pool);
}

static void every_variable_by_its_own_rate(void)
{
    follows_the_rule(&(cvy_optimise_opts){.op = "sgd"});
    follows_the_rule(&(cvy_optimise_opts){.op = "sgd", .weight_decay = 0.25});
}

static void clipping(void)
{
    follows_the_rule(&(cvy_optimise_opts){.op = "sgd", .clip_norm = 1});
    follows_the_rule(&(cvy_optimise_opts){.op = "sgd", .clip_norm = 1e6});
    follows_the_rule(&(cvy_optimise_opts){.op = "sgd", .clip_value = 0.05, .weight_decay = 0.25});
}

static void norm_of_the_weights(void)
{
    follows_the_rule(&(cvy_optimise_opts){.op = "sgd", .l1 = 0.3});
    follows_the_rule(&(cvy_optimise_opts){.op = "sgd", .l1 = 0.3, .clip_norm = 1, .clip_value = 0.5});
}

static void what_is_no_optimiser_is_refused(void)
{
    struct net net;
    open_net(&net);
    EXPECT_FAULT(cvy_pass_optimise(net.graph, &net.gradients, &(cvy_optimise_opts){.op = "sdg"}), CVY_E_CONFIG, "sdg");
    EXPECT_FAULT(cvy_pass_optimise(net.graph, &net.gradients, &(cvy_optimise_opts){.op = "relu"}), CVY_E_CONFIG,
                 "relu");
    close_net(&net);
}

int main(void)
{
    TEST(every_variable_by_its_own_rate);
    TEST(clipping);
    TEST(norm_of_the_weights);
    TEST(what_is_no_optimiser_is_refused);
    return test_end();
}

/* minimal */
/*
 * test_fuse_relu.c: a ReLU behind a fully connected layer or a convolution becomes part of that node, and loss and gradients stay what they were;
 * one whose layer somebody else reads too stays.
 */
#include "graph_eval.h"
#include "pass/pass.h"

enum { N = 5 };

struct net {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_gradients gradients;
    cvy_value *loss;
    eval e;
};

static cvy_value *layer(struct net *net, const char *op, const char *name, const char *text, cvy_value *a, cvy_value *b)
{
    cvy_value *const src[] = {a, b};
    cvy_value *dst = NULL;
    cvy_tree *options = NULL;
    EXPECT_OK(test_options(net->graph->pool, text, &options));
    EXPECT_OK(cvy_graph_layer(net->graph, op, name, options, src, b ? 2 : 1, &dst));
    return dst;
}

/* conv, ReLU, fc, ReLU, fc read by its ReLU and by a sum. */
static void open_net(struct net *net)
{
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 3}};
    const cvy_graph_opts opts = {.name = "net", .batch = cvy_batch_share(N, 0, 1), .training = 1, .dtype = CVY_DTYPE_F64};
    cvy_value *x = NULL, *from[2] = {NULL};
    cvy_node *loss = NULL;
    *net = (struct net){0};
    EXPECT_OK(cvy_vars_create(&net->vars));
    EXPECT_OK(cvy_graph_create(net->vars, &opts, &net->graph));
    EXPECT_OK(cvy_graph_feed(net->graph, "x", CVY_DTYPE_F64, &sample, 0, &x));
    x = layer(net, "relu", "relu1", NULL, layer(net, "conv", "conv1", "kernel: 3, pad: 1, channels: 4", x, NULL), NULL);
    x = layer(net, "relu", "relu2", NULL, layer(net, "fc", "fc2", "channels: 9", x, NULL), NULL);
    x = layer(net, "fc", "fc3", "channels: 6, bias: false", x, NULL);
    from[0] = layer(net, "add", "sum", NULL, layer(net, "relu", "relu3", NULL, x, NULL), x);
    const cvy_shape target = cvy_shape_make(1, from[0]->shape.dim + 1);
    EXPECT_OK(cvy_graph_feed(net->graph, "weights", CVY_DTYPE_F64, &target, 0, &from[1]));
    EXPECT_OK(cvy_graph_add_parsed(net->graph, &weighted_sum_op, "loss", "loss", NULL, from, 2, CVY_PHASE_MICRO, &loss));
    net->loss = loss->dst[0];
    net->loss->is_output = 1;
    EXPECT_OK(cvy_pass_autodiff(net->graph, &net->loss, 1, NULL, NULL, &net->gradients));
}

static void close_net(struct net *net)
{
    eval_destroy(&net->e);
    cvy_graph_destroy(&net->graph);
    cvy_vars_destroy(&net->vars);
}

static void run(struct net *net)
{
    EXPECT_OK(eval_create(net->graph, &net->e));
    for (int v = 0; v < net->graph->nvalue; v++) {
        const cvy_value *value = net->graph->value[v];
        uint64_t state = 1;
        for (const char *at = value->name; *at; at++) /* the same for the same name in both graphs */
            state = state * 31 + (uint64_t)*at;
        if (!value->producer)
            test_fill(eval_of(&net->e, value), -1, 1, &state);
    }
    EXPECT_OK(eval_run(&net->e, 1));
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
    run(&plain);
    run(&fused);
    EXPECT(fabs(cvy_get(eval_of(&plain.e, plain.loss), 0)) > 1e-3);
    EXPECT_NEAR(cvy_get(eval_of(&fused.e, fused.loss), 0), cvy_get(eval_of(&plain.e, plain.loss), 0), 0);
    EXPECT_INT(fused.gradients.count, plain.gradients.count);
    for (int i = 0; i < plain.gradients.count; i++) {
        const cvy_span *want = eval_of(&plain.e, plain.gradients.at[i].value), *got = eval_of(&fused.e, fused.gradients.at[i].value);
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

/*
 * pass_fuse_relu.c: a ReLU behind a convolution, fully connected layer or batch norm becomes part of that node, where its operator has the
 * option `relu`. Legal in training because ReLU's gradient is taken from its destination.
 *
 * Max pooling with that option keeps no winner where its maximum is not above zero, so its gradient is that of a ReLU before it or behind it as
 * well: that ReLU's own gradient goes, and with it the need to keep the ReLU's result, often the largest tensor of the network, until backward.
 */
#include <string.h>

#include "pass/pass.h"

static int *relu_option(const cvy_node *node)
{
    for (const cvy_option *row = node->op->options; row && row->name; row++)
        if (strcmp(row->name, "relu") == 0 && row->type == CVY_TYPE_BOOL)
            return (int *)((char *)node->options + row->offset);
    return NULL;
}

static int count_readers(const cvy_graph *g, const cvy_value *v)
{
    int readers = 0;
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            readers += g->node[n]->src[i] == v;
    return readers;
}

static int is_op(const cvy_node *node, const char *name)
{
    return node && !node->removed && strcmp(node->op->name, name) == 0;
}

static int is_between(const cvy_graph *g, const cvy_value *v)
{
    return v->kind == CVY_VALUE_TEMP && !v->is_output && count_readers(g, v) == 1;
}

static cvy_node *only_reader(const cvy_graph *g, const cvy_value *v)
{
    for (int n = 0; is_between(g, v) && n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            if (g->node[n]->src[i] == v)
                return g->node[n];
    return NULL;
}

/* The pooling whose winners a max_pool_grad goes by. */
static cvy_node *pool_of(const cvy_node *pool_grad)
{
    cvy_node *pool = pool_grad->src[1]->producer;
    return is_op(pool, "max_pool") ? pool : NULL;
}

/* y = relu(..), pool(y): the ReLU's gradient follows the pooling's. */
static void drop_behind_pool_grad(cvy_graph *g, cvy_node *relu_grad)
{
    cvy_value *between = relu_grad->src[0];
    cvy_node *pool_grad = between->producer, *pool = is_op(pool_grad, "max_pool_grad") ? pool_of(pool_grad) : NULL;
    if (!pool || pool->src[0] != relu_grad->src[1] || !is_between(g, between))
        return;
    *relu_option(pool) = 1;
    pool_grad->dst[0] = relu_grad->dst[0];
    pool_grad->dst[0]->producer = pool_grad;
    relu_grad->removed = 1;
    relu_grad->dst[0] = NULL;
}

/* y = pool(x) with the ReLU in it: the ReLU's gradient comes before the pooling's. */
static void drop_before_pool_grad(cvy_graph *g, cvy_node *relu_grad)
{
    cvy_node *pool_grad = only_reader(g, relu_grad->dst[0]), *pool = is_op(pool_grad, "max_pool_grad") ? pool_of(pool_grad) : NULL;
    if (!pool || pool->dst[0] != relu_grad->src[1] || !*relu_option(pool) || pool_grad->src[0] != relu_grad->dst[0])
        return;
    pool_grad->src[0] = relu_grad->src[0];
    relu_grad->removed = 1;
    relu_grad->dst[0] = NULL;
}

static void drop_relu_grads(cvy_graph *g)
{
    for (int n = 0; n < g->nnode; n++) {
        if (is_op(g->node[n], "relu_grad"))
            drop_behind_pool_grad(g, g->node[n]);
        if (is_op(g->node[n], "relu_grad"))
            drop_before_pool_grad(g, g->node[n]);
    }
}

cvy_status cvy_pass_fuse_relu(cvy_graph *g)
{
    for (int n = 0; n < g->nnode; n++) {
        cvy_node *relu = g->node[n];
        if (relu->removed || strcmp(relu->op->name, "relu") != 0)
            continue;
        cvy_value *between = relu->src[0];
        cvy_node *before = between->producer;
        int *option = before && before->dst[0] == between ? relu_option(before) : NULL;
        if (!option || *option || between->is_output || between->kind != CVY_VALUE_TEMP || count_readers(g, between) != 1)
            continue;
        *option = 1;
        before->dst[0] = relu->dst[0];
        before->dst[0]->producer = before;
        relu->removed = 1;
        relu->dst[0] = NULL;
    }
    drop_relu_grads(g);
    return cvy_graph_verify(g);
}

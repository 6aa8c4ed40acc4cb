/*
 * pass_fuse_relu.c: fuses a ReLU into the convolution, fully connected layer or normalisation before it, if that
 * operator has the option `relu`. This is legal in training, because the gradient of ReLU reads its destination, not
 * its source.
 *
 * Max pooling with this option marks windows whose maximum is not above zero as having no maximum position. Its
 * gradient then includes the gradient of a ReLU before or after it. The node of the ReLU's gradient is removed, and the
 * ReLU's result, often the largest tensor of the network, need not be kept until backward. The gradient of group norm
 * includes that of the ReLU after it in the same way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "pass/pass_readers.h"

static int *relu_option(const cvy_node *node)
{
    for (const cvy_option *row = node->op->options; row && row->name; row++)
        if (strcmp(row->name, "relu") == 0 && row->type == CVY_TYPE_BOOL)
            return (int *)((char *)node->options + row->offset);
    return NULL;
}

static void remove_node(cvy_readers *r, cvy_node *node)
{
    cvy_readers_remove(r, node);
    node->dst[0] = NULL;
}

/* The max_pool that made the index of a max_pool_grad. */
static cvy_node *pool_of(const cvy_node *pool_grad)
{
    cvy_node *pool = pool_grad->src[1]->producer;
    return cvy_pass_is_op(pool, "max_pool") ? pool : NULL;
}

/* y = relu(..), pool(y): the ReLU's gradient is computed after the pooling's. */
static void drop_after_pool_grad(cvy_readers *r, cvy_node *relu_grad)
{
    cvy_value *between = relu_grad->src[0];
    cvy_node *pool_grad = between->producer,
             *pool = cvy_pass_is_op(pool_grad, "max_pool_grad") ? pool_of(pool_grad) : NULL;
    if (!pool || pool->src[0] != relu_grad->src[1] || !cvy_readers_is_between(r, between))
        return;
    *relu_option(pool) = 1;
    pool_grad->dst[0] = relu_grad->dst[0];
    pool_grad->dst[0]->producer = pool_grad;
    remove_node(r, relu_grad);
}

/* y = pool(x) with a fused ReLU: the ReLU's gradient is computed before the pooling's. */
static void drop_before_pool_grad(cvy_readers *r, cvy_node *relu_grad)
{
    cvy_node *pool_grad = cvy_readers_only(r, relu_grad->dst[0]),
             *pool = cvy_pass_is_op(pool_grad, "max_pool_grad") ? pool_of(pool_grad) : NULL;
    if (!pool || pool->dst[0] != relu_grad->src[1] || !*relu_option(pool) || pool_grad->src[0] != relu_grad->dst[0])
        return;
    cvy_readers_forget(r, pool_grad);
    pool_grad->src[0] = relu_grad->src[0];
    remove_node(r, relu_grad);
    cvy_readers_note(r, pool_grad);
}

/* y = group_norm(x) with a fused ReLU: the gradient of group_norm finds from x where y is positive. */
static void drop_before_norm_grad(cvy_readers *r, cvy_node *relu_grad)
{
    cvy_node *norm = relu_grad->src[1]->producer, *grad = cvy_readers_only(r, relu_grad->dst[0]);
    if (!cvy_pass_is_op(norm, "group_norm") || !cvy_pass_is_op(grad, "group_norm_grad") || !*relu_option(norm) ||
        grad->src[1] != relu_grad->dst[0] || grad->src[2] != norm->dst[1])
        return;
    *relu_option(grad) = 1;
    cvy_readers_forget(r, grad);
    grad->src[1] = relu_grad->src[0];
    if (norm->nsrc == 3)
        grad->src[grad->nsrc++] = norm->src[2];
    remove_node(r, relu_grad);
    cvy_readers_note(r, grad);
}

static void drop_relu_grads(cvy_readers *r)
{
    for (int n = 0; n < r->graph->nnode; n++) {
        if (cvy_pass_is_op(r->graph->node[n], "relu_grad"))
            drop_after_pool_grad(r, r->graph->node[n]);
        if (cvy_pass_is_op(r->graph->node[n], "relu_grad"))
            drop_before_pool_grad(r, r->graph->node[n]);
        if (cvy_pass_is_op(r->graph->node[n], "relu_grad"))
            drop_before_norm_grad(r, r->graph->node[n]);
    }
}

static void fuse_relus(cvy_readers *r)
{
    for (int n = 0; n < r->graph->nnode; n++) {
        cvy_node *relu = r->graph->node[n];
        if (!cvy_pass_is_op(relu, "relu"))
            continue;
        cvy_value *between = relu->src[0];
        cvy_node *before = between->producer;
        int *option = before && before->dst[0] == between ? relu_option(before) : NULL;
        if (!option || *option || !cvy_readers_is_between(r, between))
            continue;
        *option = 1;
        before->dst[0] = relu->dst[0];
        before->dst[0]->producer = before;
        remove_node(r, relu);
    }
}

cvy_status cvy_pass_fuse_relu(cvy_graph *g)
{
    cvy_readers r;
    CVY_TRY(cvy_readers_create(g, &r));
    fuse_relus(&r);
    drop_relu_grads(&r);
    cvy_readers_free(&r);
    return cvy_graph_verify(g);
}

static cvy_status run(cvy_pass_run *r)
{
    return cvy_pass_fuse_relu(r->graph);
}

CVY_PASS_DEFINE(fuse_relu) = {
    .name = "fuse-relu", .help = "fuses a ReLU into the node before it", .order = 70, .can_be_off = 1, .run = run};

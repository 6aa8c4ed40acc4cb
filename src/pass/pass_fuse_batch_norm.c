/*
 * pass_fuse_batch_norm.c: batch norm in training becomes one node each way, with the addition of a residual and the ReLU behind it.
 *
 *     bn_stats, bn_apply [, add [, relu]]                -> bn_train           the sum's last addend, read by nobody else
 *     [relu_grad,] bn_grad_stats, bn_grad_apply          -> bn_train_grad
 *
 * Runs behind fuse-relu, which has put a ReLU into bn_apply already where no addition stands between. Where groups span ranks a sum over ranks
 * stands between statistics and normalisation, and all stays as it is.
 */
#include <string.h>

#include "op/op_batch_norm.h"
#include "pass/pass.h"

static int is_op(const cvy_node *node, const char *name)
{
    return node && !node->removed && strcmp(node->op->name, name) == 0;
}

static int count_readers(const cvy_graph *g, const cvy_value *v)
{
    int readers = 0;
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            readers += g->node[n]->src[i] == v;
    return readers;
}

/* A value that only one node reads: that node; else NULL. */
static cvy_node *only_reader(const cvy_graph *g, const cvy_value *v)
{
    if (v->kind != CVY_VALUE_TEMP || v->is_output || count_readers(g, v) != 1)
        return NULL;
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            if (g->node[n]->src[i] == v)
                return g->node[n];
    return NULL;
}

static cvy_value *take_dst(cvy_node *from, int i)
{
    cvy_value *v = from->dst[i];
    from->dst[i] = NULL;
    return v;
}

static void give_dst(cvy_node *to, int i, cvy_value *v)
{
    to->dst[i] = v;
    if (v)
        v->producer = to;
}

/* ---- forward ---- */

/* The sum that a normalisation may be computed with: its other addend must be there before. NULL: none. */
static cvy_node *sum_behind(const cvy_graph *g, const cvy_node *apply)
{
    cvy_node *sum = only_reader(g, apply->dst[0]);
    if (!is_op(sum, "add") || sum->nsrc != 2 || ((const cvy_batch_norm_opts *)apply->options)->relu)
        return NULL;
    const cvy_value *other = sum->src[sum->src[0] == apply->dst[0]];
    return other->producer && other->producer->index > apply->index ? NULL : sum;
}

static void fuse_sum(cvy_graph *g, cvy_node *train)
{
    cvy_batch_norm_opts *o = train->options;
    cvy_node *sum = sum_behind(g, train), *relu;
    if (!sum)
        return;
    for (int i = train->nsrc++; i > 1; i--)
        train->src[i] = train->src[i - 1];
    train->src[1] = sum->src[sum->src[0] == train->dst[0]];
    give_dst(train, 0, take_dst(sum, 0));
    sum->removed = 1;
    relu = only_reader(g, train->dst[0]);
    /* In a graph with gradients relu_grad reads the ReLU's result, and nobody that of the sum. */
    if (!is_op(relu, "relu"))
        return;
    o->relu = 1;
    give_dst(train, 0, take_dst(relu, 0));
    relu->removed = 1;
}

static void fuse_forward(cvy_graph *g, cvy_node *apply)
{
    cvy_node *stats = apply->src[1]->producer;
    /* Activations in bf16 have fast kernels for the separate nodes only. */
    if (apply->src[0]->dtype == CVY_DTYPE_BF16)
        return;
    if (!is_op(stats, "bn_stats") || stats->src[0] != apply->src[0] || apply->src[0]->shape.ndim < 3)
        return;
    apply->op = cvy_op_find("bn_train");
    apply->ndst = apply->op->ndst;
    for (int i = 1; i + 1 < apply->nsrc; i++)
        apply->src[i] = apply->src[i + 1];
    apply->src[--apply->nsrc] = NULL;
    cvy_node *train = apply;
    fuse_sum(g, train);
    give_dst(train, 1, take_dst(stats, 0));
    stats->removed = 1;
}

/* ---- backward ---- */

/* The bn_grad_apply that goes with a bn_grad_stats; NULL if there is none, or a sum over ranks stands between. */
static cvy_node *apply_of(const cvy_graph *g, const cvy_node *sums)
{
    cvy_node *apply = only_reader(g, sums->dst[0]);
    return is_op(apply, "bn_grad_apply") && apply->src[3] == sums->src[2] ? apply : NULL;
}

static int first_reader(const cvy_graph *g, const cvy_value *v)
{
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            if (g->node[n]->src[i] == v)
                return n;
    return g->nnode;
}

/* relu_grad in front of it. Others read what it makes only if a residual was added (it is the residual's gradient), and behind this node. */
static void fuse_relu_grad(cvy_graph *g, cvy_node *grad, const cvy_node *train)
{
    cvy_node *relu_grad = grad->src[2]->producer;
    const int residual = cvy_bn_train_has_residual(train), readers = count_readers(g, grad->src[2]);
    if (!is_op(relu_grad, "relu_grad") || relu_grad->src[1] != train->dst[0] || grad->src[2]->is_output || (!residual && readers > 1) ||
        first_reader(g, grad->src[2]) < grad->index)
        return;
    cvy_value *passed = take_dst(relu_grad, 0);
    ((cvy_batch_norm_opts *)grad->options)->relu = 1;
    grad->src[2] = relu_grad->src[0];
    if (residual) {
        grad->src[grad->nsrc++] = relu_grad->src[1];
        give_dst(grad, 3, passed);
    }
    relu_grad->removed = 1;
}

static void fuse_backward(cvy_graph *g, cvy_node *sums)
{
    const cvy_node *train = sums->src[1]->producer;
    const cvy_batch_norm_opts *o = sums->options;
    cvy_node *apply = apply_of(g, sums);
    if (!is_op(train, "bn_train") || !apply)
        return;
    cvy_node *grad = sums;
    grad->op = cvy_op_find("bn_train_grad");
    grad->ndst = grad->op->ndst;
    for (int i = 0; i < 2 && o->scale_shift; i++)
        grad->src[grad->nsrc++] = train->src[train->nsrc - 2 + i];
    ((cvy_batch_norm_opts *)grad->options)->relu = 0;
    give_dst(grad, 0, take_dst(apply, 0));
    apply->removed = 1;
    fuse_relu_grad(g, grad, train);
}

cvy_status cvy_pass_fuse_batch_norm(cvy_graph *g)
{
    for (int n = 0; n < g->nnode; n++)
        if (is_op(g->node[n], "bn_apply"))
            fuse_forward(g, g->node[n]);
    for (int n = 0; n < g->nnode; n++)
        if (is_op(g->node[n], "bn_grad_stats"))
            fuse_backward(g, g->node[n]);
    return cvy_graph_verify(g);
}

/*
 * pass_fuse_batch_norm.c: fuses batch norm in training into one forward and one backward node, with the addition of
 * a residual and the ReLU after it. In evaluation batch norm is one node already, and the addition and the ReLU are
 * fused into it.
 *
 *     bn_stats, bn_apply [, add [, relu]]             -> bn_train         if bn_apply is the add's last addend
 *     [relu_grad,] bn_grad_stats, bn_grad_apply       -> bn_train_grad
 *     bn_infer, add [, relu]                          -> bn_infer         in evaluation, and with frozen statistics
 *
 * It runs after fuse-relu, which has already fused a ReLU into bn_apply if there is no addition between them. If groups
 * span ranks, there is an all-reduce between statistics and normalisation, and the nodes stay as they are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_batch_norm.h"
#include "pass/pass_readers.h"

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

/* The sum that can be fused into a normalisation, because its other addend is ready before it. NULL: none. */
static cvy_node *sum_after(const cvy_readers *r, const cvy_node *apply)
{
    cvy_node *sum = cvy_readers_only(r, apply->dst[0]);
    if (!cvy_pass_is_op(sum, "add") || sum->nsrc != 2 || ((const cvy_batch_norm_opts *)apply->options)->relu)
        return NULL;
    const cvy_value *other = sum->src[sum->src[0] == apply->dst[0]];
    return other->producer && other->producer->index > apply->index ? NULL : sum;
}

/* The residual becomes source `at` of the normalisation. */
static void fuse_sum(cvy_readers *r, cvy_node *norm, int at)
{
    cvy_batch_norm_opts *o = norm->options;
    cvy_node *sum = sum_after(r, norm), *relu;
    if (!sum)
        return;
    cvy_readers_forget(r, norm);
    for (int i = norm->nsrc++; i > at; i--)
        norm->src[i] = norm->src[i - 1];
    norm->src[at] = sum->src[sum->src[0] == norm->dst[0]];
    cvy_readers_note(r, norm);
    give_dst(norm, 0, take_dst(sum, 0));
    cvy_readers_remove(r, sum);
    relu = cvy_readers_only(r, norm->dst[0]);
    /* In a graph with gradients relu_grad reads the ReLU's result, so only the ReLU reads the sum. */
    if (!cvy_pass_is_op(relu, "relu"))
        return;
    o->relu = 1;
    give_dst(norm, 0, take_dst(relu, 0));
    cvy_readers_remove(r, relu);
}

static void fuse_forward(cvy_readers *r, cvy_node *apply)
{
    cvy_node *stats = apply->src[1]->producer;
    if (!cvy_pass_is_op(stats, "bn_stats") || stats->src[0] != apply->src[0] || apply->src[0]->shape.ndim < 3)
        return;
    apply->op = cvy_op_find("bn_train");
    apply->ndst = apply->op->ndst;
    cvy_readers_forget(r, apply);
    for (int i = 1; i + 1 < apply->nsrc; i++)
        apply->src[i] = apply->src[i + 1];
    apply->src[--apply->nsrc] = NULL;
    cvy_readers_note(r, apply);
    cvy_node *train = apply;
    fuse_sum(r, train, 1);
    give_dst(train, 1, take_dst(stats, 0));
    cvy_readers_remove(r, stats);
}

/* ---- backward ---- */

/* The bn_grad_apply that belongs to a bn_grad_stats; NULL if there is none, or an all-reduce is between them. */
static cvy_node *apply_of(const cvy_readers *r, const cvy_node *sums)
{
    cvy_node *apply = cvy_readers_only(r, sums->dst[0]);
    return cvy_pass_is_op(apply, "bn_grad_apply") && apply->src[3] == sums->src[2] ? apply : NULL;
}

/* Fuses the relu_grad before it. If a residual was added, the result of relu_grad is also the residual's gradient; then
 * other nodes may read it, but only after this node. Otherwise there must be no other reader. */
static void fuse_relu_grad(cvy_readers *r, cvy_node *grad, const cvy_node *train)
{
    cvy_node *relu_grad = grad->src[2]->producer;
    const int residual = cvy_bn_train_has_residual(train), readers = cvy_readers_count(r, grad->src[2]);
    if (!cvy_pass_is_op(relu_grad, "relu_grad") || relu_grad->src[1] != train->dst[0] || grad->src[2]->is_output ||
        (!residual && readers > 1) || cvy_readers_first(r, grad->src[2]) < grad->index)
        return;
    cvy_value *passed = take_dst(relu_grad, 0);
    ((cvy_batch_norm_opts *)grad->options)->relu = 1;
    cvy_readers_forget(r, grad);
    grad->src[2] = relu_grad->src[0];
    if (residual) {
        grad->src[grad->nsrc++] = relu_grad->src[1];
        give_dst(grad, 3, passed);
    }
    cvy_readers_note(r, grad);
    cvy_readers_remove(r, relu_grad);
}

static void fuse_backward(cvy_readers *r, cvy_node *sums)
{
    const cvy_node *train = sums->src[1]->producer;
    const cvy_batch_norm_opts *o = sums->options;
    cvy_node *apply = apply_of(r, sums);
    if (!cvy_pass_is_op(train, "bn_train") || !apply)
        return;
    cvy_node *grad = sums;
    grad->op = cvy_op_find("bn_train_grad");
    grad->ndst = grad->op->ndst;
    cvy_readers_forget(r, grad);
    for (int i = 0; i < 2 && o->scale_shift; i++)
        grad->src[grad->nsrc++] = train->src[train->nsrc - 2 + i];
    cvy_readers_note(r, grad);
    ((cvy_batch_norm_opts *)grad->options)->relu = 0;
    give_dst(grad, 0, take_dst(apply, 0));
    cvy_readers_remove(r, apply);
    fuse_relu_grad(r, grad, train);
}

cvy_status cvy_pass_fuse_batch_norm(cvy_graph *g)
{
    cvy_readers r;
    CVY_TRY(cvy_readers_create(g, &r));
    for (int n = 0; n < g->nnode; n++)
        if (cvy_pass_is_op(g->node[n], "bn_apply"))
            fuse_forward(&r, g->node[n]);
        else if (cvy_pass_is_op(g->node[n], "bn_infer"))
            fuse_sum(&r, g->node[n], g->node[n]->nsrc);
    for (int n = 0; n < g->nnode; n++)
        if (cvy_pass_is_op(g->node[n], "bn_grad_stats"))
            fuse_backward(&r, g->node[n]);
    cvy_readers_free(&r);
    return cvy_graph_verify(g);
}

static cvy_status run(cvy_pass_run *r)
{
    return cvy_pass_fuse_batch_norm(r->graph);
}

CVY_PASS_DEFINE(fuse_batch_norm) = {
    .name = "fuse-batch-norm",
    .help = "makes batch norm, the sum and the ReLU after it one node in each direction",
    .order = 80,
    .can_be_off = 1,
    .run = run};

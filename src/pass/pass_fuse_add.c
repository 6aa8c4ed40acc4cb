/*
 * pass_fuse_add.c: lets a convolution add its gradient to another one, and fuses a sum of sums into one node.
 *
 * If several nodes read a value (the input of an inception module, a shortcut), its gradient is a chain of sums of two,
 * in the order in which backward makes them. One fused sum reads each addend once and writes once: with four addends it
 * passes over memory 5 times instead of 9 times. It adds in the chain's order, so the result is the same to the last
 * bit. If an addend is the gradient of a convolution with a filter of one position (the 1x1 layers of those modules),
 * the convolution also reads the other addend and writes the sum, so no extra pass over memory is left.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "op/conv/op_conv.h"
#include "pass/pass_readers.h"

/* The index of an addend that is itself a sum and can be fused into this one; -1: none. Only one addend is fused,
 * because a chain has its sum in one addend; if both are sums, the other one stays. */
static int inner_sum(const cvy_readers *r, const cvy_node *sum)
{
    for (int i = 0; i < sum->nsrc; i++) {
        const cvy_value *v = sum->src[i];
        if (cvy_pass_is_op(v->producer, "add") && v->producer->phase == sum->phase && cvy_readers_is_between(r, v) &&
            v->producer->nsrc + sum->nsrc - 1 <= sum->op->nsrc_max && (i == 0 || sum->nsrc == 2))
            return i;
    }
    return -1;
}

/* Fuses the inner sum into the outer one. Its addends come first, because it was computed before the others were
 * added. */
static void take_in(cvy_readers *r, cvy_node *sum, int at)
{
    cvy_node *inner = sum->src[at]->producer;
    cvy_value *src[CVY_NODE_SRC_MAX];
    int nsrc = 0;
    for (int i = 0; i < inner->nsrc; i++)
        src[nsrc++] = inner->src[i];
    for (int i = 0; i < sum->nsrc; i++)
        if (i != at)
            src[nsrc++] = sum->src[i];
    cvy_readers_remove(r, inner);
    cvy_readers_forget(r, sum);
    memcpy(sum->src, src, sizeof *src * (size_t)nsrc);
    sum->nsrc = nsrc;
    cvy_readers_note(r, sum);
}

static int all_are(const cvy_ints *list, int64_t x)
{
    for (int i = 0; i < list->count; i++)
        if (list->at[i] != x)
            return 0;
    return 1;
}

static int is_pointwise(const cvy_conv_opts *o)
{
    return o->groups == 1 && all_are(&o->kernel, 1) && all_are(&o->stride, 1) && all_are(&o->pad, 0);
}

/* The index of the addend that such a convolution makes; the second addend is tried first; -1: none. */
static int conv_addend(const cvy_readers *r, const cvy_node *sum)
{
    for (int i = 1; i >= 0 && sum->nsrc == 2; i--) {
        const cvy_value *v = sum->src[i];
        if (cvy_pass_is_op(v->producer, "conv_grad_src") && v->producer->phase == sum->phase &&
            v->dtype != CVY_DTYPE_BF16 && cvy_readers_is_between(r, v) &&
            is_pointwise(&((const cvy_conv_grad_opts *)v->producer->options)->conv))
            return i;
    }
    return -1;
}

/* The convolution moves to the place of the sum, because the other addend is ready there. */
static void add_in_conv(cvy_readers *r, cvy_node *sum, int at)
{
    cvy_node *conv = sum->src[at]->producer;
    cvy_value *other = sum->src[1 - at];
    cvy_readers_forget(r, sum);
    cvy_readers_remove(r, conv);
    sum->op = cvy_op_find("conv_grad_src_add");
    sum->options = conv->options;
    sum->layer = conv->layer;
    sum->src[0] = conv->src[0];
    sum->src[1] = conv->src[1];
    sum->src[2] = other;
    sum->nsrc = 3;
    cvy_readers_note(r, sum);
}

cvy_status cvy_pass_fuse_add(cvy_graph *g)
{
    cvy_readers r;
    CVY_TRY(cvy_readers_create(g, &r));
    for (int n = 0, at; n < g->nnode; n++)
        if (cvy_pass_is_op(g->node[n], "add") && (at = conv_addend(&r, g->node[n])) >= 0)
            add_in_conv(&r, g->node[n], at);
    for (int n = 0; n < g->nnode; n++)
        for (int at; cvy_pass_is_op(g->node[n], "add") && (at = inner_sum(&r, g->node[n])) >= 0;)
            take_in(&r, g->node[n], at);
    cvy_readers_free(&r);
    return cvy_graph_verify(g);
}

static cvy_status run(cvy_pass_run *r)
{
    return cvy_pass_fuse_add(r->graph);
}

CVY_PASS_DEFINE(fuse_add) = {.name = "fuse-add",
                             .help = "merges nested sums into one, and adds gradients inside a convolution",
                             .order = 60,
                             .can_be_off = 1,
                             .run = run};

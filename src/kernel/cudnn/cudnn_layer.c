/*
 * cudnn_layer.c: makes problems of cuDNN from nodes. Called at planning time only.
 *
 * A deconvolution is the gradient of a convolution for its source. A fully connected layer is a convolution with one
 * position: cuDNN compiles its products of matrices at run time, about a second for each, and has convolutions ready.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/cudnn/cudnn_layer.h"

#include <string.h>

#include "op/conv/op_conv.h"
#include "op/conv/op_fc.h"

/* Dense, with the channels last. */
static cvy_cudnn_tensor tensor_of(cvy_dtype dtype, int64_t n, int64_t channels, int nspace, const int64_t *positions)
{
    cvy_cudnn_tensor t = {.dtype = dtype};
    int64_t stride = channels;
    t.dim[0] = n;
    t.dim[1] = channels;
    t.stride[1] = 1;
    for (int d = nspace - 1; d >= 0; d--) {
        t.dim[2 + d] = positions[d];
        t.stride[2 + d] = stride;
        stride *= positions[d];
    }
    t.stride[0] = stride;
    return t;
}

static void set_problem(cvy_cudnn_layer *l, const cvy_window *w, const cvy_window_channels *c, cvy_dtype act)
{
    cvy_cudnn_problem *p = &l->problem;
    const int n = CVY_MAX(w->nspace, 2); /* what has one dimension gets a second one */
    p->nspace = n;
    for (int d = 0; d < n; d++) {
        p->stride[d] = w->stride[d];
        p->pad[d] = w->pad[d];
        p->dilation[d] = w->dilation[d];
    }
    p->src = tensor_of(act, c->n, c->nsrc, n, w->src);
    p->dst = tensor_of(act, c->n, c->ndst, n, w->dst);
    p->weight = tensor_of(act, c->ndst, c->nsrc / c->groups, n, w->kernel);
}

static cvy_status conv_of(const cvy_node *node, cvy_cudnn_layer *l)
{
    const int forward = l->pass == CVY_LAYER_FORWARD;
    cvy_window w;
    cvy_window_channels c;
    if (node->op->transposed) {
        const cvy_deconv_grad_opts *g = node->options;
        const cvy_deconv_opts *o = forward ? node->options : &g->deconv;
        CVY_TRY(cvy_deconv_window(o, forward ? &node->src[0]->shape : &g->src, &w, &c));
        l->bias = o->bias && l->pass != CVY_LAYER_GRAD_SRC;
        l->channels = c.nsrc;
    } else {
        const cvy_conv_grad_opts *g = node->options;
        const cvy_conv_opts *o = forward ? node->options : &g->conv;
        CVY_TRY(cvy_conv_window(o, forward ? &node->src[0]->shape : &g->src, &w, &c));
        l->bias = o->bias && l->pass != CVY_LAYER_GRAD_SRC;
        l->relu = forward && o->relu;
        l->channels = c.ndst;
    }
    set_problem(l, &w, &c, node->src[0]->dtype);
    return CVY_OK;
}

static void fc_of(const cvy_node *node, cvy_cudnn_layer *l)
{
    const int forward = l->pass == CVY_LAYER_FORWARD;
    const cvy_fc_grad_opts *g = node->options;
    const cvy_fc_opts *o = forward ? node->options : &g->fc;
    const cvy_fc_matrix m = cvy_fc_matrix_of(o, forward ? &node->src[0]->shape : &g->src);
    const cvy_window w = {.nspace = 2,
                          .src = {1, 1, 1},
                          .dst = {1, 1, 1},
                          .kernel = {1, 1, 1},
                          .stride = {1, 1, 1},
                          .dilation = {1, 1, 1}};
    const cvy_window_channels c = {.n = m.rows, .nsrc = m.width, .ndst = o->channels, .groups = 1};
    l->bias = o->bias && l->pass != CVY_LAYER_GRAD_SRC;
    l->relu = forward && o->relu;
    l->channels = o->channels;
    set_problem(l, &w, &c, node->src[0]->dtype);
}

cvy_status cvy_cudnn_layer_of(const cvy_kernel_ask *ask, cvy_cudnn_way way, cvy_cudnn_layer *out)
{
    const cvy_node *node = ask->node;
    const cvy_dtype act = node->src[0]->dtype;
    const int transposed = node->op->transposed;
    cvy_cudnn_layer *l = out;
    memset(l, 0, sizeof *l);
    l->pass = node->op->pass;
    l->is_fc = strncmp(node->op->name, "fc", 2) == 0;
    CVY_CHECK(act == CVY_DTYPE_F32 || act == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "this kernel computes in f32 and bf16; the source is %s", cvy_dtype_text(act));
    if (l->is_fc)
        fc_of(node, l);
    else
        CVY_TRY(conv_of(node, l));
    CVY_CHECK(l->problem.src.dim[0] > 0, CVY_NOT_APPLICABLE, "there are no samples");
    l->problem.deterministic = ask->deterministic;
    l->problem.tf32 = ask->tf32 && act == CVY_DTYPE_F32;
    l->problem.sum = l->pass == CVY_LAYER_GRAD_SRC && node->nsrc == 3;
    l->problem.pass = l->pass;
    if (way == CVY_CUDNN_FUSED) {
        CVY_CHECK(!transposed && l->pass == CVY_LAYER_FORWARD && (l->bias || l->relu), CVY_NOT_APPLICABLE,
                  "there is no bias and no relu to fuse");
        l->problem.bias = l->bias;
        l->problem.relu = l->relu;
        l->bias = l->relu = 0;
    }
    if (l->pass == CVY_LAYER_GRAD_WEIGHT) {
        l->src = transposed ? 1 : 0;
        l->dst = transposed ? 0 : 1;
        l->weight = CVY_CUDNN_RESULT;
        l->narrow = way == CVY_CUDNN_ROUNDED && act == CVY_DTYPE_BF16;
        l->problem.widen = !l->narrow && act == CVY_DTYPE_BF16;
        l->problem.weight.dtype = l->narrow ? CVY_DTYPE_BF16 : CVY_DTYPE_F32;
        return CVY_OK;
    }
    const int backward = (l->pass == CVY_LAYER_GRAD_SRC) != transposed;
    l->problem.pass = backward ? CVY_LAYER_GRAD_SRC : CVY_LAYER_FORWARD;
    l->weight = 1;
    l->src = backward ? CVY_CUDNN_RESULT : 0;
    l->dst = backward ? 0 : CVY_CUDNN_RESULT;
    return CVY_OK;
}

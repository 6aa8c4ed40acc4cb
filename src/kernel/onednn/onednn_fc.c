/*
 * onednn_fc.c: the fully connected layer and its gradients by oneDNN's inner product.
 *
 * These layers have little arithmetic and many weights: AlexNet's three layers read 234 MB in each pass. So no pass
 * should need a reorder of the weights. A source [N, C, positions...] is taken in plain layout, where it is the matrix
 * [N, C * positions].
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/onednn/onednn_layer.h"
#include "op/conv/op_fc.h"

struct layer {
    cvy_layer_pass pass;
    int64_t n, width, channels;
    int64_t typical_n; /* the n for which a layout is chosen */
    cvy_dtype dtype;   /* in which oneDNN computes with the activations */
    int bias, relu, upcast;
};

static struct layer layer_of(const cvy_node *node)
{
    struct layer l = {0};
    l.pass = node->op->pass;
    const cvy_fc_grad_opts *g = node->options;
    const cvy_fc_opts *o = l.pass == CVY_LAYER_FORWARD ? node->options : &g->fc;
    const cvy_shape *src = l.pass == CVY_LAYER_FORWARD ? &node->src[0]->shape : &g->src;
    const cvy_fc_matrix m = cvy_fc_matrix_of(o, src);
    l.n = m.rows;
    l.typical_n = cvy_onednn_typical_n(node) * m.per_sample;
    l.dtype = cvy_onednn_compute_dtype(node);
    l.upcast = l.dtype != node->src[0]->dtype;
    l.width = m.width;
    l.channels = o->channels;
    l.bias = o->bias && l.pass != CVY_LAYER_GRAD_SRC;
    l.relu = o->relu && l.pass == CVY_LAYER_FORWARD;
    return l;
}

static cvy_onednn_problem problem_of(const struct layer *l, int threads)
{
    cvy_onednn_problem p = {
        .family = CVY_ONEDNN_FC, .pass = l->pass, .threads = threads, .relu = l->relu, .upcast = l->upcast};
    p.tensor[CVY_ONEDNN_SRC] = (cvy_onednn_tensor){.ndim = 2, .dim = {l->n, l->width}};
    p.tensor[CVY_ONEDNN_WEIGHT] = (cvy_onednn_tensor){.ndim = 2, .dim = {l->channels, l->width}};
    p.tensor[CVY_ONEDNN_DST] = (cvy_onednn_tensor){.ndim = 2, .dim = {l->n, l->channels}};
    if (l->bias)
        p.tensor[CVY_ONEDNN_BIAS] = (cvy_onednn_tensor){.ndim = 1, .dim = {l->channels}};
    cvy_onednn_set_dtypes(&p, l->dtype);
    return p;
}

/* The forward pass chooses the layout of the weights. The other passes keep it, even if they are slower with it,
 * because moving so much memory costs more. */
static cvy_status choose_weight_layout(const cvy_kernel_ask *ask, const struct layer *l, const cvy_layout *now,
                                       cvy_onednn_problem *p)
{
    cvy_onednn_tensor *weight = &p->tensor[CVY_ONEDNN_WEIGHT];
    if (l->pass == CVY_LAYER_FORWARD && ask->src_free[1])
        return cvy_onednn_choose_weight(p, l->typical_n, &weight->layout);
    weight->any = l->pass == CVY_LAYER_GRAD_WEIGHT && !ask->dst_fixed[0];
    weight->layout = *now;
    return CVY_OK;
}

/* In bf16, the forward pass and the gradient of the source read a copy in the layout that they prefer. The variable has
 * the layout in which its gradient is written. */
static cvy_status choose_bf16_layout(cvy_kernel_ask *ask, const struct layer *l, cvy_onednn_problem *p)
{
    struct layer grad = *l;
    cvy_onednn_call *call = NULL;
    p->tensor[CVY_ONEDNN_WEIGHT].any = 1;
    ask->src_dtype[1] = CVY_DTYPE_BF16;
    ask->src_canonical[1] = cvy_layout_plain();
    if (!ask->src_free[1])
        return CVY_OK;
    grad.pass = CVY_LAYER_GRAD_WEIGHT;
    grad.relu = 0;
    grad.n = l->typical_n;
    cvy_onednn_problem of_grad = problem_of(&grad, ask->threads);
    of_grad.tensor[CVY_ONEDNN_WEIGHT].any = 1;
    cvy_status status = cvy_onednn_describe(&of_grad, &call);
    if (status == CVY_OK)
        status = cvy_onednn_layout(call, CVY_ONEDNN_WEIGHT, &ask->src_canonical[1]);
    cvy_onednn_destroy(call);
    return status < 0 ? status : CVY_OK;
}

static cvy_status describe(cvy_onednn_problem *p, cvy_onednn_call **out)
{
    cvy_status status = cvy_onednn_describe(p, out);
    if (status == CVY_NOT_APPLICABLE && !p->tensor[CVY_ONEDNN_WEIGHT].any) {
        p->tensor[CVY_ONEDNN_WEIGHT].any = 1;
        status = cvy_onednn_describe(p, out);
    }
    return status;
}

static cvy_status fc_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_onednn_check_dtype(ask->node));
    const struct layer l = layer_of(ask->node);
    cvy_onednn_problem p = problem_of(&l, ask->threads);
    cvy_onednn_call *call = NULL;
    cvy_layout *weight = cvy_onednn_ask_layout(ask, l.pass, CVY_ONEDNN_WEIGHT), chosen;
    if (l.dtype == CVY_DTYPE_BF16 && l.pass != CVY_LAYER_GRAD_WEIGHT)
        CVY_TRY(choose_bf16_layout(ask, &l, &p));
    else
        CVY_TRY(choose_weight_layout(ask, &l, weight, &p));
    CVY_TRY(describe(&p, &call));
    const cvy_status status = cvy_onednn_layout(call, CVY_ONEDNN_WEIGHT, &chosen);
    ask->scratch_bytes = cvy_onednn_scratch_bytes(call);
    ask->algorithm_id = cvy_onednn_algorithm_id(call);
    cvy_onednn_destroy(call);
    CVY_TRY(status);
    CVY_TRY(cvy_onednn_ask_upcast(&p, ask));
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        if (p.tensor[role].ndim)
            *cvy_onednn_ask_layout(ask, l.pass, role) = cvy_layout_plain();
    *weight = chosen;
    return CVY_OK;
}

static cvy_status fc_create(const cvy_kernel_ask *ask, void **state_out)
{
    const struct layer l = layer_of(ask->node);
    cvy_onednn_problem p = problem_of(&l, ask->threads);
    cvy_kernel_ask chosen = *ask;
    p.tensor[CVY_ONEDNN_WEIGHT].layout = *cvy_onednn_ask_layout(&chosen, l.pass, CVY_ONEDNN_WEIGHT);
    return cvy_onednn_layer_create(&p, state_out);
}

CVY_KERNEL_DEFINE(onednn_fc) = {
    .name = "onednn.fc",
    .op = "fc",
    .preference = 100,
    .thread_dependent = 1,
    .offer = fc_offer,
    .create = fc_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_fc_grad_src) = {
    .name = "onednn.fc_grad_src",
    .op = "fc_grad_src",
    .preference = 100,
    .thread_dependent = 1,
    .offer = fc_offer,
    .create = fc_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_fc_grad_weight) = {
    .name = "onednn.fc_grad_weight",
    .op = "fc_grad_weight",
    .preference = 100,
    .thread_dependent = 1,
    .offer = fc_offer,
    .create = fc_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

/*
 * gpu_fc.c: the fully connected layer and its gradients on a GPU, as windows of gpu_product.h that do not slide.
 *
 * A source with positions is used in plain layout or channels last, as it is. Channels last, its positions are the taps
 * of the filter, as a row of the weight follows the logical sample [C, positions]. The gradient of such a source is a
 * product for each position: a group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/conv/gpu_product.h"
#include "op/conv/op_fc.h"

struct layer {
    cvy_layer_pass pass;
    const cvy_fc_opts *o;
    cvy_shape src; /* of the forward source */
    cvy_fc_matrix m;
    int64_t positions; /* of the forward source, if it is channels last; else 1 */
    cvy_blocking weight;
};

static struct layer layer_of(const cvy_node *node)
{
    const cvy_fc_grad_opts *g = node->options;
    struct layer l = {.pass = node->op->pass, .positions = 1};
    l.o = l.pass == CVY_LAYER_FORWARD ? node->options : &g->fc;
    l.src = l.pass == CVY_LAYER_FORWARD ? node->src[0]->shape : g->src;
    l.m = cvy_fc_matrix_of(l.o, &l.src);
    return l;
}

static cvy_gpu_axis one_position(void)
{
    const cvy_gpu_divider one = cvy_gpu_divider_make(1);
    return (cvy_gpu_axis){.rows = one, .taps = one, .from = 1, .stride = 1, .step = 1};
}

/* dst = src weight^T + bias, and the gradient of the weight. */
static cvy_status forward_window(const struct layer *l, cvy_gpu_window *out)
{
    const int64_t P = l->positions, C = l->m.width / P;
    const int forward = l->pass == CVY_LAYER_FORWARD;
    cvy_gpu_window g = {.groups = 1,
                        .from_sample = l->m.width,
                        .to_sample = l->o->channels,
                        .weight_column = (int)l->weight.stride[0],
                        .weight_channel = (int)(P * l->weight.stride[1]),
                        .ending = {.bias = forward && l->o->bias, .relu = forward && l->o->relu},
                        .channels = cvy_gpu_divider_make(C),
                        .axis = {one_position(), one_position(), one_position()}};
    g.axis[2].taps = cvy_gpu_divider_make(P);
    g.axis[2].from = (int)P;
    g.axis[2].from_by = (int)C;
    g.axis[2].weight_by = (int)l->weight.stride[1];
    *out = g;
    return cvy_gpu_window_count(out, l->m.rows, l->o->channels);
}

/* dsrc = ddst weight, for each position. */
static cvy_status backward_window(const struct layer *l, cvy_gpu_window *out)
{
    const int64_t P = l->positions, C = l->m.width / P;
    *out = (cvy_gpu_window){.groups = (int)P,
                            .from_sample = l->o->channels,
                            .to_sample = l->m.width,
                            .to_group = (int)C,
                            .weight_group = (int)l->weight.stride[1],
                            .weight_column = (int)(P * l->weight.stride[1]),
                            .weight_channel = (int)l->weight.stride[0],
                            .channels = cvy_gpu_divider_make(l->o->channels),
                            .axis = {one_position(), one_position(), one_position()}};
    return cvy_gpu_window_count(out, l->m.rows, C);
}

static cvy_status window_of(const struct layer *l, cvy_gpu_window *out)
{
    return l->pass == CVY_LAYER_GRAD_SRC ? backward_window(l, out) : forward_window(l, out);
}

static cvy_layout *layout_of_src(const struct layer *l, cvy_kernel_ask *ask)
{
    return l->pass == CVY_LAYER_GRAD_SRC ? &ask->dst[0] : &ask->src[0];
}

static cvy_layout *layout_of_weight(const struct layer *l, cvy_kernel_ask *ask)
{
    return l->pass == CVY_LAYER_GRAD_WEIGHT ? &ask->dst[0] : &ask->src[1];
}

/* The layouts that the layer needs, where it has the choice. */
static cvy_status take_layouts(struct layer *l, cvy_kernel_ask *ask)
{
    const cvy_layout last = cvy_layout_channels_last(l->src.ndim);
    cvy_layout *src = layout_of_src(l, ask), *weight = layout_of_weight(l, ask);
    const int is_last =
        l->o->flatten && l->src.ndim > 2 && (l->pass == CVY_LAYER_GRAD_SRC || cvy_layout_equal(src, &last));
    const int given = l->pass == CVY_LAYER_GRAD_WEIGHT ? ask->dst_fixed[0] : !ask->src_free[1];
    const cvy_shape shape = {.ndim = 2, .dim = {l->o->channels, l->m.width}};
    cvy_layout of_weight = *weight;
    CVY_TRY(cvy_gpu_weight_strides(&shape, given, &of_weight, &l->weight));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    *weight = of_weight;
    if (is_last)
        *src = last;
    l->positions = is_last ? cvy_shape_positions(&l->src) : 1;
    return CVY_OK;
}

static cvy_status fc_offer(cvy_kernel_ask *ask)
{
    struct layer l = layer_of(ask->node);
    cvy_gpu_window w;
    CVY_TRY(take_layouts(&l, ask));
    CVY_TRY(window_of(&l, &w));
    return l.pass == CVY_LAYER_GRAD_WEIGHT ? cvy_gpu_filter_offer(ask, &w, ask->node->src[1]->shape.ndim - 1)
                                           : cvy_gpu_window_offer(ask, &w, 1);
}

static cvy_status fc_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct layer l = layer_of(ask->node);
    cvy_kernel_ask chosen = *ask;
    cvy_gpu_window w;
    const cvy_shape shape = {.ndim = 2, .dim = {l.o->channels, l.m.width}};
    l.positions = cvy_layout_is_plain(layout_of_src(&l, &chosen)) ? 1 : cvy_shape_positions(&l.src);
    CVY_TRY(cvy_blocking_make(layout_of_weight(&l, &chosen), &shape, &l.weight));
    CVY_TRY(window_of(&l, &w));
    return l.pass == CVY_LAYER_GRAD_WEIGHT
               ? cvy_gpu_filter_create(ask, &w, 0, ask->node->src[1]->shape.ndim - 1, state_out)
               : cvy_gpu_window_create(ask, &w, 1, state_out);
}

CVY_KERNEL_DEFINE(gpu_fc) = {CVY_GPU_FIELDS("fc", fc_offer, fc_create, cvy_gpu_window_run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_fc_grad_src) = {
    CVY_GPU_FIELDS("fc_grad_src", fc_offer, fc_create, cvy_gpu_window_run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_fc_grad_weight) = {
    CVY_GPU_FIELDS("fc_grad_weight", fc_offer, fc_create, cvy_gpu_filter_run, cvy_gpu_filter_destroy)};

/* ---- the gradient of the bias alone ---- */

static cvy_status bias_offer(cvy_kernel_ask *ask)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    ask->src[0] = ask->dst[0] = cvy_layout_plain();
    const cvy_gpu_sum_def def = cvy_gpu_bias_sum(ask, 0, ask->node->src[0]->shape.ndim - 1);
    return cvy_gpu_sum_offer(ask, &def, &ask->scratch_bytes);
}

static cvy_status bias_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_gpu_sum_def def = cvy_gpu_bias_sum(ask, 0, ask->node->src[0]->shape.ndim - 1);
    cvy_gpu_sum *sum = NULL;
    CVY_TRY(cvy_gpu_sum_create(ask, &def, &sum));
    *state_out = sum;
    return CVY_OK;
}

static cvy_status bias_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    return cvy_gpu_sum_run(state, src[0], NULL, dst[0], scratch);
}

static void bias_destroy(void *state)
{
    cvy_gpu_sum *sum = state;
    cvy_gpu_sum_destroy(&sum);
}

CVY_KERNEL_DEFINE(gpu_fc_grad_bias) = {CVY_GPU_FIELDS("fc_grad_bias", bias_offer, bias_create, bias_run, bias_destroy)};

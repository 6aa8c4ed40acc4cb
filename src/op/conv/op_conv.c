/*
 * conv: convolution in one to three spatial dimensions, with stride, padding, dilation, groups and bias.
 * It does most of the arithmetic of most networks. The fusion pass can fuse the ReLU after it.
 * Source: LeCun et al. 1989; groups: Krizhevsky, Sutskever and Hinton 2012; dilation: Yu and Koltun 2016.
 *
 *     dst[n,k,y]  = bias[k] + sum over r and the c in the group of k
 *                             of src[n, c, y stride - pad + r dilation] * weight[k,c,r]
 *     dsrc[n,c,x] = sum of ddst[n,k,y] * weight[k,c,r]     over the k, y, r that touch (c, x)
 *     dweight     = sum of src * ddst over n and y         dbias[k] = sum of ddst[n,k,y] over n and y
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "op/conv/op_conv.h"

#include "graph/graph_grad.h"

static const cvy_option conv_rows[] = {
    {"kernel", CVY_TYPE_INTS, CVY_FIELD(cvy_conv_opts, kernel), NULL, "1..", "",
     "positions of the filter, one number or one for each dimension"},
    {"channels", CVY_TYPE_INT, CVY_FIELD(cvy_conv_opts, channels), NULL, "1..", "channels",
     "number of filters, channels of the output"},
    {"stride", CVY_TYPE_INTS, CVY_FIELD(cvy_conv_opts, stride), "1", "1..", "", "step of the filter"},
    {"pad", CVY_TYPE_INTS, CVY_FIELD(cvy_conv_opts, pad), "0", "0..", "", "zeros around the source, on each side"},
    {"dilation", CVY_TYPE_INTS, CVY_FIELD(cvy_conv_opts, dilation), "1", "1..", "",
     "distance between neighbouring filter positions"},
    {"groups", CVY_TYPE_INT, CVY_FIELD(cvy_conv_opts, groups), "1", "1..", "",
     "number of groups of channels that are convolved separately"},
    {"bias", CVY_TYPE_BOOL, CVY_FIELD(cvy_conv_opts, bias), "true", "", "",
     "add a learned number to each output channel"},
    {"init", CVY_TYPE_STRING, CVY_FIELD(cvy_conv_opts, init), "he", "", "", "initialiser of the weight"},
    {"init_options", CVY_TYPE_STRING, CVY_FIELD(cvy_conv_opts, init_options), "", "", "",
     "options of the initialiser, as `std: 0.01`"},
    {"bias_init", CVY_TYPE_REAL, CVY_FIELD(cvy_conv_opts, bias_init), "0", "", "", "the bias at the start"},
    {"relu", CVY_TYPE_BOOL, CVY_FIELD(cvy_conv_opts, relu), "false", "", "",
     "rectify the result; set if the relu that follows is fused in"},
    CVY_SPECTRAL_NORM_ROW(cvy_conv_opts),
    {0},
};

cvy_status cvy_conv_window(const cvy_conv_opts *o, const cvy_shape *src, cvy_window *window_out,
                           cvy_window_channels *channels_out)
{
    const cvy_window_lists lists = {&o->kernel, &o->stride, &o->pad, &o->dilation, NULL};
    CVY_TRY(cvy_window_make("conv", src, &lists, 0, window_out));
    CVY_CHECK(src->dim[1] % o->groups == 0 && o->channels % o->groups == 0, CVY_E_SHAPE,
              "conv: `groups` %lld must divide the source's %lld channels and the `channels` %lld",
              (long long)o->groups, (long long)src->dim[1], (long long)o->channels);
    *channels_out =
        (cvy_window_channels){.n = src->dim[0], .nsrc = src->dim[1], .ndst = o->channels, .groups = o->groups};
    return CVY_OK;
}

static cvy_shape conv_weight_shape(const cvy_window *w, const cvy_window_channels *c)
{
    cvy_shape s = {.ndim = 2 + w->nspace, .dim = {c->ndst, c->nsrc / c->groups}};
    for (int d = 0; d < w->nspace; d++)
        s.dim[2 + d] = w->kernel[d];
    return s;
}

static cvy_status conv_weight(const void *options, const cvy_shape *src, cvy_layer_weight *out)
{
    const cvy_conv_opts *o = options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_conv_window(o, src, &w, &c));
    *out =
        (cvy_layer_weight){.shape = conv_weight_shape(&w, &c),
                           .init = {o->init, o->init_options, c.nsrc / c.groups * w.taps, c.ndst / c.groups * w.taps}};
    return CVY_OK;
}

static cvy_status conv_infer(cvy_node *node)
{
    const cvy_conv_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    cvy_layer_weight weight;
    CVY_TRY(cvy_conv_window(o, cvy_node_src(node, 0), &w, &c));
    CVY_TRY(conv_weight(o, cvy_node_src(node, 0), &weight));
    const cvy_shape bias = {.ndim = 1, .dim = {o->channels}}, dst = cvy_window_dst_shape(&w, c.n, c.ndst);
    CVY_TRY(cvy_layer_take_weight(node, &weight));
    if (o->bias) {
        char value[48];
        snprintf(value, sizeof value, "value: %.17g", o->bias_init);
        const cvy_init bias_init = {"constant", value, weight.init.fan_in, weight.init.fan_out};
        CVY_TRY(cvy_node_param(node, "bias", &bias, &bias_init, 0));
    }
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status conv_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                             cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_conv_opts o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_layer_build(g, op, name, &o, o.spectral_norm ? conv_weight : NULL, src, nsrc, dst_out);
}

cvy_status cvy_conv_add_grads(cvy_grad *g, const cvy_node *fwd, cvy_value *ddst, const char *weight_op,
                              const char *src_op, const void *opts)
{
    const int nparam = fwd->nsrc - 1; /* without a bias 1 */
    if (cvy_grad_wanted(g, fwd->src[1]) || (nparam == 2 && cvy_grad_wanted(g, fwd->src[2]))) {
        cvy_value *const from[] = {fwd->src[0], ddst};
        cvy_value *d[2] = {NULL, NULL};
        CVY_TRY(cvy_grad_emit(g, fwd, weight_op, opts, from, 2, d, nparam));
        for (int i = 0; i < nparam; i++)
            if (cvy_grad_wanted(g, fwd->src[1 + i]))
                CVY_TRY(cvy_grad_add(g, fwd->src[1 + i], d[i]));
    }
    if (cvy_grad_wanted(g, fwd->src[0])) {
        cvy_value *const from[] = {ddst, fwd->src[1]};
        cvy_value *dsrc = NULL;
        CVY_TRY(cvy_grad_emit(g, fwd, src_op, opts, from, 2, &dsrc, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[0], dsrc));
    }
    return CVY_OK;
}

static cvy_status conv_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_conv_opts *o = fwd->options;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    if (!ddst)
        return CVY_OK;
    if (o->relu) {
        cvy_value *const from[] = {ddst, fwd->dst[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, "relu_grad", NULL, from, 2, &ddst, 1));
    }
    const cvy_conv_grad_opts opts = {*o, *cvy_node_src(fwd, 0)};
    return cvy_conv_add_grads(g, fwd, ddst, "conv_grad_weight", "conv_grad_src", &opts);
}

/* The number of multiplications of one convolution; forward and both gradients have the same number. Padding counts, as
 * is usual. */
static int64_t conv_macs(const cvy_window *w, const cvy_window_channels *c)
{
    return c->n * c->ndst * w->dst_elems * (c->nsrc / c->groups) * w->taps;
}

static void conv_cost_from(const cvy_conv_opts *o, const cvy_shape *src, cvy_cost *cost_out)
{
    cvy_window w;
    cvy_window_channels c;
    if (cvy_conv_window(o, src, &w, &c) != CVY_OK)
        return;
    const int64_t weight = c.ndst * (c.nsrc / c.groups) * w.taps;
    *cost_out = (cvy_cost){.flop = 2 * conv_macs(&w, &c),
                           .read_elems = cvy_shape_elems(src) + weight,
                           .write_elems = c.n * c.ndst * w.dst_elems};
}

static void conv_cost(const cvy_node *node, cvy_cost *cost_out)
{
    conv_cost_from(node->options, cvy_node_src(node, 0), cost_out);
}

static int64_t conv_summands(const cvy_node *node)
{
    const cvy_shape *weight = cvy_node_src(node, 1);
    return cvy_shape_elems(weight) / weight->dim[0] + 1;
}

static cvy_status conv_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_conv_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_conv_window(o, cvy_node_src(node, 0), &w, &c));
    cvy_window_forward(&w, &c, &src[0], &src[1], o->bias ? &src[2] : NULL, dst);
    for (int64_t i = 0; o->relu && i < dst->elems; i++)
        cvy_set(dst, i, CVY_MAX(cvy_get(dst, i), 0));
    return CVY_OK;
}

static const cvy_sample conv_samples[] = {
    {.src = "2x3x7x5", .options = "kernel: 3, channels: 4, pad: 1"},
    {.src = "1x1x1x1", .options = "kernel: 1, channels: 1"},
    {.src = "4x1x12x12", .options = "kernel: 5, channels: 20"},
    {.src = "2x16x9x8", .options = "kernel: [3, 2], channels: 32, stride: 2, pad: [1, 0]"},
    {.src = "2x6x9x10", .options = "kernel: 3, channels: 4, groups: 2, dilation: 2, pad: 2, bias: false"},
    {.src = "12x2x9x6", .options = "kernel: 3, channels: 2, pad: [1, 0], bias: false"},
    {.src = "1x8x6x6", .options = "kernel: 3, channels: 8, groups: 8, pad: 1"},
    {.src = "2x20x9x8", .options = "kernel: 3, channels: 20, groups: 20, pad: 1, stride: 2, bias: false"},
    {.src = "3x16x5x12", .options = "kernel: 5, channels: 16, groups: 16, pad: 2"},
    {.src = "2x33x3x4", .options = "kernel: 7, channels: 33, groups: 33, pad: 3"},
    {.src = "2x16x9x11", .options = "kernel: [2, 3], channels: 16, groups: 16, dilation: 2, pad: 1, bias: false"},
    {.src = "2x5x6x6", .options = "kernel: 3, channels: 17, relu: true"},
    {.src = "2x32x9x7", .options = "kernel: 3, channels: 48, pad: 1"},
    {.src = "2x32x6x5", .options = "kernel: 3, channels: 64, groups: 2, pad: 1"},
    {.src = "2x17x5x6", .options = "kernel: 5, channels: 16, pad: 2"},
    {.src = "1x16x7x9", .options = "kernel: 3, channels: 33, relu: true"},
    {.src = "3x16x6x5", .options = "kernel: 5, channels: 18, pad: 1, bias: false, relu: true"},
    {.src = "1x18x5x4", .options = "kernel: 3, channels: 50, pad: 2"},
    {.src = "3x4x11", .options = "kernel: 3, channels: 5, stride: 3, pad: 2"},
    {.src = "2x4x5x6x7", .options = "kernel: 3, channels: 18, pad: 1"},
    {.src = "1x2x7x6x9", .options = "kernel: [2, 3, 5], channels: 16, stride: [1, 2, 2], pad: [0, 1, 2], bias: false"},
    {.src = "3x1x40", .options = "kernel: 7, channels: 32, stride: 2, pad: 3"},
    {.src = "2x5x4x3", .options = "kernel: 1, channels: 6"},
    {.src = "1x3x4x5x6", .options = "kernel: [2, 3, 3], channels: 2, stride: [1, 2, 1], pad: [0, 1, 1]"},
    {.src = "64x64x27x27", .options = "kernel: 5, channels: 192, pad: 2", .flags = CVY_SAMPLE_TIMING},
    {0},
};

static int all_equal(const cvy_ints *list, int64_t value)
{
    int equal = 1;
    for (int i = 0; i < list->count; i++)
        equal = equal && list->at[i] == value;
    return equal;
}

/* With groups, output features depend on their own input features only, so neither is split. A filter of one position
 * needs no neighbours. */
static unsigned splits_of(const cvy_conv_opts *o)
{
    const int one_position = all_equal(&o->kernel, 1) && all_equal(&o->stride, 1) && all_equal(&o->pad, 0);
    return (o->groups == 1 ? CVY_SPLIT_OUTPUTS | CVY_SPLIT_INPUTS : 0) | (one_position ? CVY_SPLIT_SPACE : 0);
}

/* With a fused ReLU inputs cannot be split, because the ReLU comes after the sum over the inputs. A weight that is made
 * of the whole variable is split by its outputs only. */
static unsigned conv_splits(const cvy_node *node)
{
    const cvy_conv_opts *o = node->options;
    return splits_of(o) & ~(o->relu || o->spectral_norm ? CVY_SPLIT_INPUTS : 0u);
}

cvy_status cvy_conv_part_channels(const cvy_node_part *part, int64_t *channels, int64_t *groups, int *bias)
{
    switch (part->split) {
    case CVY_SPLIT_CHANNELS:
        if (*groups == 1 || *groups % part->parts != 0)
            return CVY_NOT_APPLICABLE;
        *groups /= part->parts;
        *channels = part->count;
        break;
    case CVY_SPLIT_OUTPUTS: *channels = part->count; break;
    case CVY_SPLIT_INPUTS: *bias = *bias && part->number == 0; break;
    default: break;
    }
    return CVY_OK;
}

static cvy_status conv_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    cvy_conv_opts *o = options;
    const cvy_window_lists lists = {&o->kernel, &o->stride, &o->pad, &o->dilation, NULL};
    cvy_layer_part_weight(node, part, 0);
    return part->split == CVY_SPLIT_SPACE ? cvy_window_part(cvy_node_src(node, 0)->ndim, &lists, &o->pad, part)
                                          : cvy_conv_part_channels(part, &o->channels, &o->groups, &o->bias);
}

CVY_OP_DEFINE(conv) = {
    .name = "conv",
    .summary = "convolution in one to three spatial dimensions",
    .options = conv_rows,
    .options_size = sizeof(cvy_conv_opts),
    .nsrc_min = 1,
    .nsrc_max = 2, /* the second: a weight that other nodes make */
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = conv_splits,
    .part_splits = CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .part = conv_part,
    .infer = conv_infer,
    .build = conv_build,
    .grad = conv_grad,
    .cost = conv_cost,
    .reference = conv_reference,
    .summands = conv_summands,
    .samples = conv_samples,
};

/* conv_grad_src: ddst, weight -> dsrc. It is tested with the samples of conv, through its gradient; so are the
 * operators below. */
static void conv_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_conv_grad_opts *o = node->options;
    conv_cost_from(&o->conv, &o->src, cost_out);
}

static cvy_status conv_grad_src_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_conv_grad_opts *)node->options)->src);
}

static int64_t conv_grad_src_summands(const cvy_node *node)
{
    const cvy_shape *weight = cvy_node_src(node, 1);
    return cvy_shape_elems(weight) / weight->dim[1];
}

static cvy_status conv_grad_src_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_conv_grad_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_conv_window(&o->conv, &o->src, &w, &c));
    cvy_window_backward(&w, &c, &src[0], &src[1], NULL, dst);
    return CVY_OK;
}

static unsigned conv_grad_src_splits(const cvy_node *node)
{
    return splits_of(&((const cvy_conv_grad_opts *)node->options)->conv);
}

static cvy_status conv_grad_src_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_conv_grad_opts o = *(const cvy_conv_grad_opts *)fwd->options;
    o.conv.bias = 0;
    return cvy_layer_grad_again(g, fwd, "conv", &o.conv, "conv_grad_weight", &o);
}

CVY_OP_DEFINE(conv_grad_src) = {
    .name = "conv_grad_src",
    .pass = CVY_LAYER_GRAD_SRC,
    .summary = "gradient of conv for its source",
    .options = conv_rows,
    .options_size = sizeof(cvy_conv_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = conv_grad_src_splits,
    .infer = conv_grad_src_infer,
    .grad = conv_grad_src_grad,
    .cost = conv_grad_cost,
    .reference = conv_grad_src_reference,
    .summands = conv_grad_src_summands,
};

/* conv_grad_src_add: ddst, weight, sum -> sum + dsrc: conv_grad_src fused with the add after it. */
static cvy_status conv_grad_src_add_infer(cvy_node *node)
{
    const cvy_shape *src = &((const cvy_conv_grad_opts *)node->options)->src;
    CVY_CHECK(cvy_shape_equal(src, cvy_node_src(node, 2)), CVY_E_SHAPE,
              "conv_grad_src_add: a gradient of %s cannot be added to %s", cvy_shape_text(src),
              cvy_shape_text(cvy_node_src(node, 2)));
    return conv_grad_src_infer(node);
}

static int64_t conv_grad_src_add_summands(const cvy_node *node)
{
    return conv_grad_src_summands(node) + 1;
}

static cvy_status conv_grad_src_add_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    CVY_TRY(conv_grad_src_reference(node, src, dst));
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(dst, i) + cvy_get(&src[2], i));
    return CVY_OK;
}

CVY_OP_DEFINE(conv_grad_src_add) = {
    .name = "conv_grad_src_add",
    .pass = CVY_LAYER_GRAD_SRC,
    .summary = "gradient of conv for its source, added to another gradient",
    .options = conv_rows,
    .options_size = sizeof(cvy_conv_grad_opts),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = conv_grad_src_add_infer,
    .cost = conv_grad_cost,
    .reference = conv_grad_src_add_reference,
    .summands = conv_grad_src_add_summands,
};

/* conv_grad_weight: src, ddst -> dweight, and dbias if there is a bias. */
static cvy_status conv_grad_weight_infer(cvy_node *node)
{
    const cvy_conv_grad_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_conv_window(&o->conv, &o->src, &w, &c));
    const cvy_shape weight = conv_weight_shape(&w, &c), bias = {.ndim = 1, .dim = {c.ndst}};
    CVY_TRY(cvy_node_set_dst(node, 0, cvy_graph_weight_dtype(node->graph), &weight));
    return o->conv.bias ? cvy_node_set_dst(node, 1, cvy_graph_weight_dtype(node->graph), &bias) : CVY_OK;
}

static int64_t conv_grad_weight_summands(const cvy_node *node)
{
    const cvy_shape *ddst = cvy_node_src(node, 1);
    return ddst->dim[1] == 0 ? 1 : cvy_shape_elems(ddst) / ddst->dim[1];
}

static cvy_status conv_grad_weight_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_conv_grad_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_conv_window(&o->conv, &o->src, &w, &c));
    cvy_window_weight(&w, &c, &src[0], &src[1], &dst[0]);
    if (o->conv.bias)
        cvy_window_channel_sums(&src[1], &dst[1]);
    return CVY_OK;
}

/* With dbias inputs cannot be split: each part would have all of dbias. */
static unsigned conv_grad_weight_splits(const cvy_node *node)
{
    const cvy_conv_opts *o = &((const cvy_conv_grad_opts *)node->options)->conv;
    return splits_of(o) & ~(o->bias ? CVY_SPLIT_INPUTS : 0u);
}

CVY_OP_DEFINE(conv_grad_weight) = {
    .name = "conv_grad_weight",
    .pass = CVY_LAYER_GRAD_WEIGHT,
    .summary = "gradient of conv for its weight and bias",
    .options = conv_rows,
    .options_size = sizeof(cvy_conv_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = conv_grad_weight_splits,
    .infer = conv_grad_weight_infer,
    .cost = conv_grad_cost,
    .reference = conv_grad_weight_reference,
    .summands = conv_grad_weight_summands,
};

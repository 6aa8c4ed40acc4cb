/*
 * deconv: transposed convolution in one to three spatial dimensions. It is a learned way to increase the resolution,
 * for decoders and generators. It computes the gradient of a convolution with respect to its source, and its own
 * gradient is a convolution; so both use the sums of op_window.c, with the sides swapped. Source: Zeiler et al. 2010;
 * sizes, output_pad and the order of the weight's dimensions as in PyTorch.
 *
 *     dst[n,k,x]  = bias[k] + sum of src[n,c,y] * weight[c,k,r]    over c, y, r with x = y stride - pad + r dilation
 *     dsrc[n,c,y] = sum over k, r of ddst[n,k,x] * weight[c,k,r]
 *     dweight     = sum of src * ddst over n and y                 dbias[k] = sum of ddst[n,k,x] over n and x
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "graph/graph_grad.h"
#include "op/conv/op_conv.h"

static const cvy_option deconv_rows[] = {
    {"kernel", CVY_TYPE_INTS, CVY_FIELD(cvy_deconv_opts, kernel), NULL, "1..", "",
     "positions of the filter, one number or one for each dimension"},
    {"channels", CVY_TYPE_INT, CVY_FIELD(cvy_deconv_opts, channels), NULL, "1..", "channels", "channels of the output"},
    {"stride", CVY_TYPE_INTS, CVY_FIELD(cvy_deconv_opts, stride), "1", "1..", "",
     "distance between the results of neighbouring source positions"},
    {"pad", CVY_TYPE_INTS, CVY_FIELD(cvy_deconv_opts, pad), "0", "0..", "",
     "positions cut from the result, on each side"},
    {"output_pad", CVY_TYPE_INTS, CVY_FIELD(cvy_deconv_opts, output_pad), "0", "0..", "",
     "extra positions at the high end of the result"},
    {"dilation", CVY_TYPE_INTS, CVY_FIELD(cvy_deconv_opts, dilation), "1", "1..", "",
     "distance between neighbouring filter positions"},
    {"groups", CVY_TYPE_INT, CVY_FIELD(cvy_deconv_opts, groups), "1", "1..", "",
     "number of groups of channels that are convolved separately"},
    {"bias", CVY_TYPE_BOOL, CVY_FIELD(cvy_deconv_opts, bias), "true", "", "",
     "add a learned number to each output channel"},
    {"init", CVY_TYPE_STRING, CVY_FIELD(cvy_deconv_opts, init), "he", "", "", "initialiser of the weight"},
    {"init_options", CVY_TYPE_STRING, CVY_FIELD(cvy_deconv_opts, init_options), "", "", "",
     "options of the initialiser, as `std: 0.01`"},
    {"bias_init", CVY_TYPE_REAL, CVY_FIELD(cvy_deconv_opts, bias_init), "0", "", "", "the bias at the start"},
    CVY_SPECTRAL_NORM_ROW(cvy_deconv_opts),
    {0},
};

cvy_status cvy_deconv_window(const cvy_deconv_opts *o, const cvy_shape *src, cvy_window *window_out,
                             cvy_window_channels *channels_out)
{
    const cvy_window_lists lists = {&o->kernel, &o->stride, &o->pad, &o->dilation, NULL};
    CVY_TRY(cvy_window_make_transposed("deconv", src, &lists, &o->output_pad, window_out));
    CVY_CHECK(src->dim[1] % o->groups == 0 && o->channels % o->groups == 0, CVY_E_SHAPE,
              "deconv: `groups` %lld must divide the source's %lld channels and the `channels` %lld",
              (long long)o->groups, (long long)src->dim[1], (long long)o->channels);
    *channels_out =
        (cvy_window_channels){.n = src->dim[0], .nsrc = o->channels, .ndst = src->dim[1], .groups = o->groups};
    return CVY_OK;
}

static cvy_shape deconv_weight_shape(const cvy_window *w, const cvy_window_channels *c)
{
    cvy_shape s = {.ndim = 2 + w->nspace, .dim = {c->ndst, c->nsrc / c->groups}};
    for (int d = 0; d < w->nspace; d++)
        s.dim[2 + d] = w->kernel[d];
    return s;
}

static cvy_status deconv_weight(const void *options, const cvy_shape *src, cvy_layer_weight *out)
{
    const cvy_deconv_opts *o = options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_deconv_window(o, src, &w, &c));
    *out =
        (cvy_layer_weight){.shape = deconv_weight_shape(&w, &c),
                           .init = {o->init, o->init_options, c.ndst / c.groups * w.taps, c.nsrc / c.groups * w.taps},
                           .axis = 1};
    return CVY_OK;
}

static cvy_status deconv_infer(cvy_node *node)
{
    const cvy_deconv_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    cvy_layer_weight weight;
    CVY_TRY(cvy_deconv_window(o, cvy_node_src(node, 0), &w, &c));
    CVY_TRY(deconv_weight(o, cvy_node_src(node, 0), &weight));
    const cvy_shape bias = {.ndim = 1, .dim = {o->channels}}, dst = cvy_window_src_shape(&w, c.n, c.nsrc);
    CVY_TRY(cvy_layer_take_weight(node, &weight));
    if (o->bias) {
        char value[48];
        snprintf(value, sizeof value, "value: %.17g", o->bias_init);
        const cvy_init bias_init = {"constant", value, weight.init.fan_in, weight.init.fan_out};
        CVY_TRY(cvy_node_param(node, "bias", &bias, &bias_init, 0));
    }
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status deconv_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                               cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_deconv_opts o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_layer_build(g, op, name, &o, o.spectral_norm ? deconv_weight : NULL, src, nsrc, dst_out);
}

static cvy_status deconv_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    if (!ddst)
        return CVY_OK;
    const cvy_deconv_grad_opts opts = {*(const cvy_deconv_opts *)fwd->options, *cvy_node_src(fwd, 0)};
    return cvy_conv_add_grads(g, fwd, ddst, "deconv_grad_weight", "deconv_grad_src", &opts);
}

static void deconv_cost_from(const cvy_deconv_opts *o, const cvy_shape *src, cvy_cost *cost_out)
{
    cvy_window w;
    cvy_window_channels c;
    if (cvy_deconv_window(o, src, &w, &c) != CVY_OK)
        return;
    const int64_t filter = c.nsrc / c.groups * w.taps, elems = cvy_shape_elems(src);
    *cost_out = (cvy_cost){
        .flop = 2 * elems * filter, .read_elems = elems + c.ndst * filter, .write_elems = c.n * c.nsrc * w.src_elems};
}

static void deconv_cost(const cvy_node *node, cvy_cost *cost_out)
{
    deconv_cost_from(node->options, cvy_node_src(node, 0), cost_out);
}

static int64_t deconv_summands(const cvy_node *node)
{
    const cvy_deconv_opts *o = node->options;
    const cvy_shape *weight = cvy_node_src(node, 1);
    return cvy_shape_elems(weight) / weight->dim[1] / o->groups + 1;
}

static cvy_status deconv_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_deconv_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_deconv_window(o, cvy_node_src(node, 0), &w, &c));
    cvy_window_backward(&w, &c, &src[0], &src[1], o->bias ? &src[2] : NULL, dst);
    return CVY_OK;
}

static const cvy_sample deconv_samples[] = {
    {.src = "2x3x4x5", .options = "kernel: 3, channels: 4, stride: 2, pad: 1, output_pad: 1"},
    {.src = "1x1x1x1", .options = "kernel: 1, channels: 1"},
    {.src = "2x16x4x3", .options = "kernel: 4, channels: 32, stride: 2, pad: 1, bias: false"},
    {.src = "2x5x6x37", .options = "kernel: 5, channels: 1, stride: 2, pad: 2, output_pad: 1"},
    {.src = "2x3x4x48", .options = "kernel: [3, 6], channels: 3, stride: [1, 2], pad: [1, 2]"},
    {.src = "2x32x5x6", .options = "kernel: 5, channels: 16, stride: 2, pad: 2, output_pad: 1, bias: false"},
    {.src = "2x16x7x6", .options = "kernel: 4, channels: 24, stride: 2"},
    {.src = "2x16x9x8", .options = "kernel: 3, channels: 16, pad: 1"},
    {.src = "2x6x4x4", .options = "kernel: [3, 2], channels: 4, groups: 2, dilation: 2, pad: [2, 1]"},
    {.src = "3x4x5", .options = "kernel: 3, channels: 5, stride: 3, output_pad: 2"},
    {.src = "1x3x2x3x2", .options = "kernel: 2, channels: 2, stride: [1, 2, 1]"},
    {.src = "2x6x7x8", .options = "kernel: 3, channels: 1, pad: 1"},
    {.src = "64x128x14x14", .options = "kernel: 4, channels: 64, stride: 2, pad: 1", .flags = CVY_SAMPLE_TIMING},
    {0},
};

/* With groups, output features depend on their own input features only, so neither is split. A weight that is made of
 * the whole variable is split by its outputs only. */
static unsigned deconv_splits(const cvy_node *node)
{
    const cvy_deconv_opts *o = node->options;
    return o->groups != 1 ? 0 : CVY_SPLIT_OUTPUTS | (o->spectral_norm ? 0 : CVY_SPLIT_INPUTS);
}

/* As conv_part; the part of a result ends between the positions that its last source position touches, so it is cut
 * out. */
static cvy_status deconv_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    cvy_deconv_opts *o = options;
    const cvy_window_lists lists = {&o->kernel, &o->stride, &o->pad, &o->dilation, NULL},
                           extra = {&o->kernel, &o->stride, &o->output_pad, NULL, NULL};
    cvy_node_part unused = *part;
    cvy_layer_part_weight(node, part, 1);
    if (part->split != CVY_SPLIT_SPACE)
        return cvy_conv_part_channels(part, &o->channels, &o->groups, &o->bias);
    part->transposed = 1;
    CVY_TRY(cvy_window_part(cvy_node_src(node, 0)->ndim, &extra, &o->output_pad, &unused));
    return cvy_window_part(cvy_node_src(node, 0)->ndim, &lists, &o->pad, part);
}

CVY_OP_DEFINE(deconv) = {
    .name = "deconv",
    .transposed = 1,
    .summary = "transposed convolution in one to three spatial dimensions",
    .options = deconv_rows,
    .options_size = sizeof(cvy_deconv_opts),
    .nsrc_min = 1,
    .nsrc_max = 2, /* the second: a weight that other nodes make */
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = deconv_splits,
    .part_splits = CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .part = deconv_part,
    .infer = deconv_infer,
    .build = deconv_build,
    .grad = deconv_grad,
    .cost = deconv_cost,
    .reference = deconv_reference,
    .summands = deconv_summands,
    .samples = deconv_samples,
};

/* deconv_grad_src: ddst, weight -> dsrc. It is tested with the samples of deconv, through its gradient; so is the
 * operator below. */
static void deconv_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_deconv_grad_opts *o = node->options;
    deconv_cost_from(&o->deconv, &o->src, cost_out);
}

static cvy_status deconv_grad_src_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_deconv_grad_opts *)node->options)->src);
}

static int64_t deconv_grad_src_summands(const cvy_node *node)
{
    const cvy_shape *weight = cvy_node_src(node, 1);
    return cvy_shape_elems(weight) / weight->dim[0];
}

static cvy_status deconv_grad_src_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_deconv_grad_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_deconv_window(&o->deconv, &o->src, &w, &c));
    cvy_window_forward(&w, &c, &src[0], &src[1], NULL, dst);
    return CVY_OK;
}

static unsigned deconv_grad_src_splits(const cvy_node *node)
{
    const cvy_deconv_opts *o = &((const cvy_deconv_grad_opts *)node->options)->deconv;
    return o->groups == 1 ? CVY_SPLIT_OUTPUTS | CVY_SPLIT_INPUTS : 0;
}

static cvy_status deconv_grad_src_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_deconv_grad_opts o = *(const cvy_deconv_grad_opts *)fwd->options;
    o.deconv.bias = 0;
    return cvy_layer_grad_again(g, fwd, "deconv", &o.deconv, "deconv_grad_weight", &o);
}

CVY_OP_DEFINE(deconv_grad_src) = {
    .name = "deconv_grad_src",
    .pass = CVY_LAYER_GRAD_SRC,
    .transposed = 1,
    .summary = "gradient of deconv for its source",
    .options = deconv_rows,
    .options_size = sizeof(cvy_deconv_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = deconv_grad_src_splits,
    .infer = deconv_grad_src_infer,
    .grad = deconv_grad_src_grad,
    .cost = deconv_grad_cost,
    .reference = deconv_grad_src_reference,
    .summands = deconv_grad_src_summands,
};

/* deconv_grad_weight: src, ddst -> dweight, and dbias if there is a bias. */
static cvy_status deconv_grad_weight_infer(cvy_node *node)
{
    const cvy_deconv_grad_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_deconv_window(&o->deconv, &o->src, &w, &c));
    const cvy_shape weight = deconv_weight_shape(&w, &c), bias = {.ndim = 1, .dim = {c.nsrc}};
    CVY_TRY(cvy_node_set_dst(node, 0, cvy_graph_weight_dtype(node->graph), &weight));
    return o->deconv.bias ? cvy_node_set_dst(node, 1, cvy_graph_weight_dtype(node->graph), &bias) : CVY_OK;
}

static int64_t deconv_grad_weight_summands(const cvy_node *node)
{
    const cvy_shape *ddst = cvy_node_src(node, 1);
    return CVY_MAX(cvy_shape_elems(ddst) / ddst->dim[1], 1);
}

static cvy_status deconv_grad_weight_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_deconv_grad_opts *o = node->options;
    cvy_window w;
    cvy_window_channels c;
    CVY_TRY(cvy_deconv_window(&o->deconv, &o->src, &w, &c));
    cvy_window_weight(&w, &c, &src[1], &src[0], &dst[0]);
    if (o->deconv.bias)
        cvy_window_channel_sums(&src[1], &dst[1]);
    return CVY_OK;
}

/* With dbias inputs cannot be split: each part would have all of dbias. */
static unsigned deconv_grad_weight_splits(const cvy_node *node)
{
    const cvy_deconv_opts *o = &((const cvy_deconv_grad_opts *)node->options)->deconv;
    return o->groups > 1 ? 0 : o->bias ? CVY_SPLIT_OUTPUTS : CVY_SPLIT_OUTPUTS | CVY_SPLIT_INPUTS;
}

CVY_OP_DEFINE(deconv_grad_weight) = {
    .name = "deconv_grad_weight",
    .pass = CVY_LAYER_GRAD_WEIGHT,
    .transposed = 1,
    .summary = "gradient of deconv for its weight and bias",
    .options = deconv_rows,
    .options_size = sizeof(cvy_deconv_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = deconv_grad_weight_splits,
    .infer = deconv_grad_weight_infer,
    .cost = deconv_grad_cost,
    .reference = deconv_grad_weight_reference,
    .summands = deconv_grad_weight_summands,
};

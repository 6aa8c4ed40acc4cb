/*
 * fc: fully connected layer; the source is flattened implicitly. It is the end of most networks, and all of a linear
 * model. The fusion pass can fuse the ReLU after it. Without flatten it works on the last axis, as PyTorch's Linear
 * does: then n below counts all other axes.
 *
 *     dst[n,k]  = bias[k] + sum over i of src[n,i] * weight[k,i]          i: row-major within the logical sample
 *     dsrc[n,i] = sum over k of ddst[n,k] * weight[k,i]
 *     dweight   = sum over n of ddst[n,k] * src[n,i]                      dbias[k] = sum over n of ddst[n,k]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "op/conv/op_fc.h"

#include "graph/graph_grad.h"

static const cvy_option fc_rows[] = {
    {"channels", CVY_TYPE_INT, CVY_FIELD(cvy_fc_opts, channels), NULL, "1..", "channels", "number of outputs"},
    {"bias", CVY_TYPE_BOOL, CVY_FIELD(cvy_fc_opts, bias), "true", "", "", "add a learned number to each output"},
    {"init", CVY_TYPE_STRING, CVY_FIELD(cvy_fc_opts, init), "he", "", "", "initialiser of the weight"},
    {"init_options", CVY_TYPE_STRING, CVY_FIELD(cvy_fc_opts, init_options), "", "", "",
     "options of the initialiser, as `std: 0.01`"},
    {"bias_init", CVY_TYPE_REAL, CVY_FIELD(cvy_fc_opts, bias_init), "0", "", "", "the bias at the start"},
    {"relu", CVY_TYPE_BOOL, CVY_FIELD(cvy_fc_opts, relu), "false", "", "",
     "rectify the result; set if the relu that follows is fused in"},
    {"flatten", CVY_TYPE_BOOL, CVY_FIELD(cvy_fc_opts, flatten), "true", "", "",
     "the inputs are all elements of a sample; false: those of the last axis, for each place of the others"},
    CVY_SPECTRAL_NORM_ROW(cvy_fc_opts),
    {0},
};

static cvy_status fc_weight(const void *options, const cvy_shape *src, cvy_layer_weight *out)
{
    const cvy_fc_opts *o = options;
    CVY_CHECK(src->ndim >= (o->flatten ? 1 : 2), CVY_E_SHAPE, "fc needs a source [N, ...%s], got %s",
              o->flatten ? "" : ", inputs", cvy_shape_text(src));
    const int64_t width = cvy_fc_matrix_of(o, src).width;
    *out = (cvy_layer_weight){.shape = {.ndim = 2, .dim = {o->channels, width}},
                              .init = {o->init, o->init_options, width, o->channels}};
    return CVY_OK;
}

static cvy_status fc_infer(cvy_node *node)
{
    const cvy_fc_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0), bias = {.ndim = 1, .dim = {o->channels}};
    cvy_layer_weight weight;
    CVY_TRY(fc_weight(o, src, &weight));
    cvy_shape dst = {.ndim = 2, .dim = {src->dim[0], o->channels}};
    if (!o->flatten) {
        dst = *src;
        dst.dim[dst.ndim - 1] = o->channels;
    }
    CVY_TRY(cvy_layer_take_weight(node, &weight));
    if (o->bias) {
        char value[48];
        snprintf(value, sizeof value, "value: %.17g", o->bias_init);
        const cvy_init bias_init = {"constant", value, weight.init.fan_in, o->channels};
        CVY_TRY(cvy_node_param(node, "bias", &bias, &bias_init, 0));
    }
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status fc_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                           cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_fc_opts o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_layer_build(g, op, name, &o, o.spectral_norm ? fc_weight : NULL, src, nsrc, dst_out);
}

static cvy_status fc_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_fc_opts *o = fwd->options;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    if (!ddst)
        return CVY_OK;
    if (o->relu) {
        cvy_value *const from[] = {ddst, fwd->dst[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, "relu_grad", NULL, from, 2, &ddst, 1));
    }
    const cvy_fc_grad_opts opts = {*o, *cvy_node_src(fwd, 0)};
    if (cvy_grad_wanted(g, fwd->src[1]) || (o->bias && cvy_grad_wanted(g, fwd->src[2]))) {
        cvy_value *const from[] = {fwd->src[0], ddst};
        cvy_value *d[2] = {NULL, NULL};
        CVY_TRY(cvy_grad_emit(g, fwd, "fc_grad_weight", &opts, from, 2, d, o->bias ? 2 : 1));
        for (int i = 0; i < 2; i++)
            if (d[i] && cvy_grad_wanted(g, fwd->src[1 + i]))
                CVY_TRY(cvy_grad_add(g, fwd->src[1 + i], d[i]));
    }
    if (cvy_grad_wanted(g, fwd->src[0])) {
        cvy_value *const from[] = {ddst, fwd->src[1]};
        cvy_value *dsrc = NULL;
        CVY_TRY(cvy_grad_emit(g, fwd, "fc_grad_src", &opts, from, 2, &dsrc, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[0], dsrc));
    }
    return CVY_OK;
}

static void fc_cost_from(const cvy_fc_opts *o, const cvy_shape *src, cvy_cost *cost_out)
{
    const cvy_fc_matrix m = cvy_fc_matrix_of(o, src);
    const int64_t K = o->channels;
    *cost_out =
        (cvy_cost){.flop = 2 * m.rows * K * m.width, .read_elems = (m.rows + K) * m.width, .write_elems = m.rows * K};
}

static void fc_cost(const cvy_node *node, cvy_cost *cost_out)
{
    fc_cost_from(node->options, cvy_node_src(node, 0), cost_out);
}

static int64_t fc_summands(const cvy_node *node)
{
    return cvy_node_src(node, 1)->dim[1] + 1;
}

static cvy_status fc_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_fc_opts *o = node->options;
    const int64_t width = src[1].dim[1];
    for (int64_t e = 0; e < dst->elems; e++) {
        const int64_t n = e / o->channels, k = e % o->channels;
        double sum = o->bias ? cvy_get(&src[2], k) : 0;
        for (int64_t i = 0; i < width; i++)
            sum += cvy_get(&src[0], n * width + i) * cvy_get(&src[1], k * width + i);
        cvy_set(dst, e, o->relu && sum < 0 ? 0 : sum);
    }
    return CVY_OK;
}

static const cvy_sample fc_samples[] = {
    {.src = "3x7", .options = "channels: 5"},
    {.src = "1x1", .options = "channels: 1, bias: false"},
    {.src = "2x3x4x5", .options = "channels: 17"},
    {.src = "4x16x2x3", .options = "channels: 32"},
    {.src = "3x2x5", .options = "channels: 4, bias: false"},
    {.src = "5x16", .options = "channels: 10"},
    {.src = "6x32", .options = "channels: 24, relu: true"},
    {.src = "4x3x2", .options = "channels: 7, bias: false, relu: true"},
    {.src = "2x3x5x6", .options = "channels: 7, flatten: false"},
    {.src = "3x4x32", .options = "channels: 48, bias: false, flatten: false"},
    {.src = "5x9", .options = "channels: 3, flatten: false, relu: true"},
    {.src = "64x4096", .options = "channels: 4096", .flags = CVY_SAMPLE_TIMING},
    {.src = "16x56x56x96", .options = "channels: 384, flatten: false", .flags = CVY_SAMPLE_TIMING},
    {0},
};

/* With a fused ReLU inputs cannot be split, because the ReLU comes after the sum over the inputs. Without flatten axis
 * 1 is not that of the features. */
static unsigned fc_splits(const cvy_node *node)
{
    const cvy_fc_opts *o = node->options;
    return !o->flatten ? 0 : CVY_SPLIT_OUTPUTS | (o->relu || o->spectral_norm ? 0 : CVY_SPLIT_INPUTS);
}

/* Of split inputs, the first part adds the bias. */
static cvy_status fc_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    cvy_fc_opts *o = options;
    cvy_layer_part_weight(node, part, 0);
    if (part->split == CVY_SPLIT_OUTPUTS)
        o->channels = part->count;
    if (part->split == CVY_SPLIT_INPUTS)
        o->bias = o->bias && part->number == 0;
    return CVY_OK;
}

CVY_OP_DEFINE(fc) = {
    .name = "fc",
    .summary = "fully connected layer",
    .options = fc_rows,
    .options_size = sizeof(cvy_fc_opts),
    .nsrc_min = 1,
    .nsrc_max = 2, /* the second: a weight that other nodes make */
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = fc_splits,
    .part = fc_part,
    .infer = fc_infer,
    .build = fc_build,
    .grad = fc_grad,
    .cost = fc_cost,
    .reference = fc_reference,
    .summands = fc_summands,
    .samples = fc_samples,
};

/* fc_grad_src: ddst, weight -> dsrc. It is tested with the samples of fc, through its gradient; so are the operators
 * below. */
static void fc_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_fc_grad_opts *o = node->options;
    fc_cost_from(&o->fc, &o->src, cost_out);
}

static cvy_status fc_grad_src_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_fc_grad_opts *)node->options)->src);
}

static unsigned fc_grad_src_splits(const cvy_node *node)
{
    return ((const cvy_fc_grad_opts *)node->options)->fc.flatten ? CVY_SPLIT_OUTPUTS | CVY_SPLIT_INPUTS : 0;
}

static int64_t fc_grad_src_summands(const cvy_node *node)
{
    return cvy_node_src(node, 1)->dim[0];
}

static cvy_status fc_grad_src_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    const int64_t K = src[1].dim[0], width = src[1].dim[1];
    for (int64_t e = 0; e < dst->elems; e++) {
        const int64_t n = e / width, i = e % width;
        double sum = 0;
        for (int64_t k = 0; k < K; k++)
            sum += cvy_get(&src[0], n * K + k) * cvy_get(&src[1], k * width + i);
        cvy_set(dst, e, sum);
    }
    return CVY_OK;
}

static cvy_status fc_grad_src_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_fc_grad_opts o = *(const cvy_fc_grad_opts *)fwd->options;
    o.fc.bias = 0;
    return cvy_layer_grad_again(g, fwd, "fc", &o.fc, "fc_grad_weight", &o);
}

CVY_OP_DEFINE(fc_grad_src) = {
    .name = "fc_grad_src",
    .pass = CVY_LAYER_GRAD_SRC,
    .summary = "gradient of fc for its source",
    .options = fc_rows,
    .options_size = sizeof(cvy_fc_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = fc_grad_src_splits,
    .infer = fc_grad_src_infer,
    .grad = fc_grad_src_grad,
    .cost = fc_grad_cost,
    .reference = fc_grad_src_reference,
    .summands = fc_grad_src_summands,
};

/* fc_grad_weight: src, ddst -> dweight, and dbias if there is a bias. */
static cvy_status fc_grad_weight_infer(cvy_node *node)
{
    const cvy_fc_grad_opts *o = node->options;
    const cvy_shape weight = {.ndim = 2, .dim = {o->fc.channels, cvy_fc_matrix_of(&o->fc, &o->src).width}},
                    bias = {.ndim = 1, .dim = {o->fc.channels}};
    CVY_TRY(cvy_node_set_dst(node, 0, cvy_graph_weight_dtype(node->graph), &weight));
    return o->fc.bias ? cvy_node_set_dst(node, 1, cvy_graph_weight_dtype(node->graph), &bias) : CVY_OK;
}

static int64_t fc_grad_weight_summands(const cvy_node *node)
{
    const cvy_fc_grad_opts *o = node->options;
    return cvy_fc_matrix_of(&o->fc, &o->src).rows;
}

static void sum_rows(const cvy_span *ddst, const cvy_span *dbias)
{
    const int64_t K = dbias->elems;
    for (int64_t k = 0; k < K; k++) {
        double sum = 0;
        for (int64_t e = k; e < ddst->elems; e += K)
            sum += cvy_get(ddst, e);
        cvy_set(dbias, k, sum);
    }
}

static cvy_status fc_grad_weight_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_fc_grad_opts *o = node->options;
    const int64_t K = o->fc.channels, N = src[1].elems / K, width = dst[0].dim[1];
    for (int64_t e = 0; e < dst[0].elems; e++) {
        const int64_t k = e / width, i = e % width;
        double sum = 0;
        for (int64_t n = 0; n < N; n++)
            sum += cvy_get(&src[0], n * width + i) * cvy_get(&src[1], n * K + k);
        cvy_set(&dst[0], e, sum);
    }
    if (o->fc.bias)
        sum_rows(&src[1], &dst[1]);
    return CVY_OK;
}

/* With dbias inputs cannot be split: each part would have all of dbias. */
static unsigned fc_grad_weight_splits(const cvy_node *node)
{
    const cvy_fc_opts *o = &((const cvy_fc_grad_opts *)node->options)->fc;
    return !o->flatten ? 0 : CVY_SPLIT_OUTPUTS | (o->bias ? 0 : CVY_SPLIT_INPUTS);
}

CVY_OP_DEFINE(fc_grad_weight) = {
    .name = "fc_grad_weight",
    .pass = CVY_LAYER_GRAD_WEIGHT,
    .summary = "gradient of fc for its weight and bias",
    .options = fc_rows,
    .options_size = sizeof(cvy_fc_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = fc_grad_weight_splits,
    .infer = fc_grad_weight_infer,
    .cost = fc_grad_cost,
    .reference = fc_grad_weight_reference,
    .summands = fc_grad_weight_summands,
};

/* fc_grad_bias: ddst -> dbias, for a layer whose update computes the gradient of the weight (pass_fuse_update.c). */
static cvy_status fc_grad_bias_infer(cvy_node *node)
{
    const cvy_shape *ddst = cvy_node_src(node, 0), bias = {.ndim = 1, .dim = {ddst->dim[ddst->ndim - 1]}};
    return cvy_node_set_dst(node, 0, cvy_graph_weight_dtype(node->graph), &bias);
}

static void fc_grad_bias_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t elems = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = elems, .read_elems = elems, .write_elems = cvy_node_dst(node, 0)->dim[0]};
}

static int64_t fc_grad_bias_summands(const cvy_node *node)
{
    const cvy_shape *ddst = cvy_node_src(node, 0);
    return cvy_shape_elems(ddst) / ddst->dim[ddst->ndim - 1];
}

static cvy_status fc_grad_bias_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    sum_rows(src, dst);
    return CVY_OK;
}

CVY_OP_DEFINE(fc_grad_bias) = {
    .name = "fc_grad_bias",
    .summary = "gradient of fc for its bias alone",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = fc_grad_bias_infer,
    .cost = fc_grad_bias_cost,
    .reference = fc_grad_bias_reference,
    .summands = fc_grad_bias_summands,
};

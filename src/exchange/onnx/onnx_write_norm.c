/*
 * onnx_write_norm.c: normalisation as ONNX nodes. Operator sets that lack LayerNormalization or GroupNormalization get
 * the formulas.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx_write.h"
#include "op/norm/op_batch_norm.h"
#include "op/norm/op_lrn.h"
#include "op/norm/op_sample_norm.h"

/* ---- batch norm ---- */

static cvy_status write_bn_infer(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_batch_norm_opts *o = node->options;
    const char *src = NULL, *scale = NULL, *shift = NULL, *mean = NULL, *variance = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    if (o->scale_shift) {
        CVY_TRY(cvy_onnxw_src(w, node, 1, &scale));
        CVY_TRY(cvy_onnxw_src(w, node, 2, &shift));
    } else {
        CVY_TRY(cvy_onnxw_uniform(w, "ones", node->src[0]->shape.dim[1], 1, &scale));
        CVY_TRY(cvy_onnxw_uniform(w, "zeros", node->src[0]->shape.dim[1], 0, &shift));
    }
    CVY_EXPECT(cvy_bn_infer_residual(node) < 0 && !o->relu);
    CVY_TRY(cvy_onnxw_src(w, node, cvy_bn_infer_mean(node), &mean));
    CVY_TRY(cvy_onnxw_src(w, node, cvy_bn_infer_mean(node) + 1, &variance));
    CVY_TRY(CVY_ONNXW_NODE(w, "BatchNormalization", cvy_onnxw_dst(w, node), src, scale, shift, mean, variance));
    CVY_TRY(cvy_onnxw_set_real(w, "epsilon", o->eps));
    return cvy_onnxw_set_real(w, "momentum", 1 - o->momentum); /* ONNX weighs the old statistics, ours the new ones */
}
CVY_ONNXOP_DEFINE(bn_infer) = {"bn_infer", .write = write_bn_infer};

/* ---- within samples ---- */

/* y * scale + shift, with scale and shift in a shape that is repeated over the other axes. */
static cvy_status scale_and_shift(cvy_onnx_writer *w, const cvy_node *node, const char *y, const cvy_shape *shape)
{
    const char *scale = NULL, *shift = NULL, *scaled = NULL;
    CVY_TRY(cvy_onnxw_shaped(w, node, 1, shape, &scale));
    CVY_TRY(cvy_onnxw_shaped(w, node, 2, shape, &shift));
    CVY_TRY(cvy_onnxw_name(w, "scaled", &scaled));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", scaled, y, scale));
    return CVY_ONNXW_NODE(w, "Add", cvy_onnxw_dst(w, node), scaled, shift);
}

/* One node that has scale and shift of n numbers. */
static cvy_status with_params(cvy_onnx_writer *w, const cvy_node *node, const char *op, int64_t n)
{
    const cvy_sample_norm_opts *o = node->options;
    const char *src = NULL, *scale = NULL, *shift = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    if (o->scale_shift) {
        CVY_TRY(cvy_onnxw_src(w, node, 1, &scale));
        CVY_TRY(cvy_onnxw_src(w, node, 2, &shift));
    } else {
        CVY_TRY(cvy_onnxw_uniform(w, "ones", n, 1, &scale));
        CVY_TRY(cvy_onnxw_uniform(w, "zeros", n, 0, &shift));
    }
    CVY_TRY(CVY_ONNXW_NODE(w, op, cvy_onnxw_dst(w, node), src, scale, shift));
    return cvy_onnxw_set_real(w, "epsilon", o->eps);
}

/* Each group as a channel of a source [N, groups, elements]. */
static cvy_status groups_as_channels(cvy_onnx_writer *w, const cvy_node *node, int64_t groups)
{
    const cvy_sample_norm_opts *o = node->options;
    const cvy_shape *shape = &node->src[0]->shape, grouped = {.ndim = 3, .dim = {0, groups, -1}};
    cvy_shape channels = {.ndim = shape->ndim - 1, .dim = {shape->dim[1]}};
    const char *src = NULL, *sets = NULL, *ones = NULL, *zeros = NULL, *normal = NULL, *back = NULL;
    for (int d = 1; d < channels.ndim; d++)
        channels.dim[d] = 1;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_name(w, "grouped", &sets));
    CVY_TRY(cvy_onnxw_name(w, "normalised", &normal));
    CVY_TRY(cvy_onnxw_uniform(w, "ones", groups, 1, &ones));
    CVY_TRY(cvy_onnxw_uniform(w, "zeros", groups, 0, &zeros));
    CVY_TRY(cvy_onnxw_reshape(w, src, &grouped, sets));
    CVY_TRY(CVY_ONNXW_NODE(w, "InstanceNormalization", normal, sets, ones, zeros));
    CVY_TRY(cvy_onnxw_set_real(w, "epsilon", o->eps));
    if (!o->scale_shift)
        return cvy_onnxw_reshape(w, normal, shape, cvy_onnxw_dst(w, node));
    CVY_TRY(cvy_onnxw_name(w, "channels", &back));
    CVY_TRY(cvy_onnxw_reshape(w, normal, shape, back));
    return scale_and_shift(w, node, back, &channels);
}

static cvy_status write_group_norm(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_sample_norm_opts *o = node->options;
    const int64_t channels = node->src[0]->shape.dim[1], groups = o->groups > 0 ? o->groups : channels;
    if (groups == channels && node->src[0]->shape.ndim > 2)
        return with_params(w, node, "InstanceNormalization", channels);
    if (w->opset < 21 || node->src[0]->shape.ndim < 3)
        return groups_as_channels(w, node, groups);
    CVY_TRY(with_params(w, node, "GroupNormalization", channels));
    return cvy_onnxw_set_int(w, "num_groups", groups);
}
CVY_ONNXOP_DEFINE(group_norm) = {"group_norm", .write = write_group_norm};

/* (x - mean) / sqrt(mean of squares + eps), over any axes. */
static cvy_status normalise(cvy_onnx_writer *w, const cvy_node *node, const int64_t *axes, int n, const char *dst)
{
    const cvy_sample_norm_opts *o = node->options;
    const char *src = NULL, *mean = NULL, *centred = NULL, *square = NULL, *variance = NULL, *eps = NULL, *sum = NULL,
               *root = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_name(w, "mean", &mean));
    CVY_TRY(cvy_onnxw_name(w, "centred", &centred));
    CVY_TRY(cvy_onnxw_name(w, "square", &square));
    CVY_TRY(cvy_onnxw_name(w, "variance", &variance));
    CVY_TRY(cvy_onnxw_name(w, "sum", &sum));
    CVY_TRY(cvy_onnxw_name(w, "root", &root));
    CVY_TRY(cvy_onnxw_real(w, "eps", o->eps, &eps));
    CVY_TRY(cvy_onnxw_reduce(w, "ReduceMean", src, axes, n, 1, mean));
    CVY_TRY(CVY_ONNXW_NODE(w, "Sub", centred, src, mean));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", square, centred, centred));
    CVY_TRY(cvy_onnxw_reduce(w, "ReduceMean", square, axes, n, 1, variance));
    CVY_TRY(CVY_ONNXW_NODE(w, "Add", sum, variance, eps));
    CVY_TRY(CVY_ONNXW_NODE(w, "Sqrt", root, sum));
    return CVY_ONNXW_NODE(w, "Div", dst, centred, root);
}

static cvy_status write_layer_norm(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_sample_norm_opts *o = node->options;
    const cvy_shape *src = &node->src[0]->shape;
    int64_t axes[CVY_NDIM_MAX], first = src->ndim;
    const char *normal = cvy_onnxw_dst(w, node);
    for (int i = 0; i < o->axes.count; i++)
        first = CVY_MIN(first, o->axes.at[i] < 0 ? o->axes.at[i] + src->ndim : o->axes.at[i]);
    for (int i = 0; i < o->axes.count; i++) /* they are next to each other */
        axes[i] = first + i;
    if (w->opset >= 17 && first + o->axes.count == src->ndim && o->scale_shift) {
        CVY_TRY(with_params(w, node, "LayerNormalization", 0));
        return cvy_onnxw_set_int(w, "axis", first);
    }
    if (!o->scale_shift)
        return normalise(w, node, axes, o->axes.count, normal);
    cvy_shape params = {.ndim = src->ndim - (int)first};
    for (int d = 0; d < params.ndim; d++)
        params.dim[d] = d < o->axes.count ? src->dim[first + d] : 1;
    CVY_TRY(cvy_onnxw_name(w, "normalised", &normal));
    CVY_TRY(normalise(w, node, axes, o->axes.count, normal));
    return scale_and_shift(w, node, normal, &params);
}
CVY_ONNXOP_DEFINE(layer_norm) = {"layer_norm", .write = write_layer_norm};

/* ---- local response ---- */

static cvy_status write_lrn(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_lrn_opts *o = node->options;
    CVY_TRY(cvy_onnxw_simple(w, node, "LRN"));
    CVY_TRY(cvy_onnxw_set_int(w, "size", o->size));
    CVY_TRY(cvy_onnxw_set_real(w, "alpha", o->alpha));
    CVY_TRY(cvy_onnxw_set_real(w, "beta", o->beta));
    return cvy_onnxw_set_real(w, "bias", o->k);
}
CVY_ONNXOP_DEFINE(lrn) = {"lrn", .write = write_lrn};

/* x / (k + alpha * mean of squares in the window)^beta; the mean counts positions outside the channel as zeros. */
static cvy_status write_lrn_within(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_lrn_opts *o = node->options;
    const int n = node->src[0]->shape.ndim - 2;
    int64_t size[CVY_NDIM_MAX], pads[2 * CVY_NDIM_MAX];
    const char *src = NULL, *square = NULL, *mean = NULL, *alpha = NULL, *weighted = NULL, *k = NULL, *sum = NULL,
               *beta = NULL, *power = NULL;
    for (int i = 0; i < n; i++) {
        size[i] = o->size;
        pads[i] = pads[n + i] = o->size / 2;
    }
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_name(w, "square", &square));
    CVY_TRY(cvy_onnxw_name(w, "mean", &mean));
    CVY_TRY(cvy_onnxw_name(w, "weighted", &weighted));
    CVY_TRY(cvy_onnxw_name(w, "sum", &sum));
    CVY_TRY(cvy_onnxw_name(w, "power", &power));
    CVY_TRY(cvy_onnxw_real(w, "alpha", o->alpha, &alpha));
    CVY_TRY(cvy_onnxw_real(w, "k", o->k, &k));
    CVY_TRY(cvy_onnxw_real(w, "beta", o->beta, &beta));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", square, src, src));
    CVY_TRY(CVY_ONNXW_NODE(w, "AveragePool", mean, square));
    CVY_TRY(cvy_onnxw_set_ints(w, "kernel_shape", size, n));
    CVY_TRY(cvy_onnxw_set_ints(w, "pads", pads, 2 * n));
    CVY_TRY(cvy_onnxw_set_int(w, "count_include_pad", 1));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", weighted, mean, alpha));
    CVY_TRY(CVY_ONNXW_NODE(w, "Add", sum, weighted, k));
    CVY_TRY(CVY_ONNXW_NODE(w, "Pow", power, sum, beta));
    return CVY_ONNXW_NODE(w, "Div", cvy_onnxw_dst(w, node), src, power);
}
CVY_ONNXOP_DEFINE(lrn_within) = {"lrn_within", .write = write_lrn_within};

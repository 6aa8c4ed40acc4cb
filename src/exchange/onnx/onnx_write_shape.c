/*
 * onnx_write_shape.c: reshaping, parts, padding and resizing, as ONNX nodes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx_write.h"
#include "op/tensor/op_concat.h"
#include "op/tensor/op_constant.h"
#include "op/tensor/op_expand.h"
#include "op/tensor/op_pad.h"
#include "op/tensor/op_reduction.h"
#include "op/tensor/op_resize.h"
#include "op/tensor/op_transpose.h"

static cvy_status write_reshape(cvy_onnx_writer *w, const cvy_node *node)
{
    const char *src = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    return cvy_onnxw_reshape(w, src, &node->dst[0]->shape, cvy_onnxw_dst(w, node));
}
CVY_ONNXOP_DEFINE(reshape) = {"reshape", .write = write_reshape};

static cvy_status write_flatten(cvy_onnx_writer *w, const cvy_node *node)
{
    CVY_TRY(cvy_onnxw_simple(w, node, "Flatten"));
    return cvy_onnxw_set_int(w, "axis", 1);
}
CVY_ONNXOP_DEFINE(flatten) = {"flatten", .write = write_flatten};

static cvy_status write_transpose(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_ints *order = &((const cvy_transpose_opts *)node->options)->order;
    int64_t axes[CVY_NDIM_MAX] = {0}; /* the samples stay first */
    for (int i = 0; i < order->count; i++)
        axes[i + 1] = order->at[i];
    CVY_TRY(cvy_onnxw_simple(w, node, "Transpose"));
    return cvy_onnxw_set_ints(w, "perm", axes, order->count + 1);
}
CVY_ONNXOP_DEFINE(transpose) = {"transpose", .write = write_transpose};

/* If the result has more axes than the source, these are the first ones of a sample. */
static cvy_status write_expand(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_shape *from = &node->src[0]->shape, *to = &node->dst[0]->shape;
    int64_t shape[CVY_NDIM_MAX] = {1};
    const char *src = NULL, *wide = NULL, *list = NULL;
    cvy_shape with_axes = {.ndim = to->ndim};
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    for (int d = 1; d < to->ndim; d++) {
        const int at = d - to->ndim + from->ndim;
        with_axes.dim[d] = at >= 1 ? from->dim[at] : 1;
        shape[d] = to->dim[d];
    }
    if (from->ndim < to->ndim) {
        CVY_TRY(cvy_onnxw_name(w, "wide", &wide));
        CVY_TRY(cvy_onnxw_reshape(w, src, &with_axes, wide));
        src = wide;
    }
    CVY_TRY(cvy_onnxw_ints(w, "shape", shape, to->ndim, &list));
    return CVY_ONNXW_NODE(w, "Expand", cvy_onnxw_dst(w, node), src, list);
}
CVY_ONNXOP_DEFINE(expand) = {"expand", .write = write_expand};

static cvy_status write_reduction(cvy_onnx_writer *w, const cvy_node *node)
{
    static const char *const op[] = {
        [CVY_REDUCTION_MEAN] = "ReduceMean", [CVY_REDUCTION_SUM] = "ReduceSum", [CVY_REDUCTION_MAX] = "ReduceMax"};
    const cvy_reduction_opts *o = node->options;
    const char *src = NULL;
    int64_t axes[CVY_NDIM_MAX];
    for (int i = 0; i < o->axes.count; i++)
        axes[i] = o->axes.at[i] < 0 ? o->axes.at[i] + node->src[0]->shape.ndim : o->axes.at[i];
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    return cvy_onnxw_reduce(w, op[o->method], src, axes, o->axes.count, o->keep, cvy_onnxw_dst(w, node));
}
CVY_ONNXOP_DEFINE(reduction) = {"reduction", .write = write_reduction};

/* ---- parts ---- */

static cvy_status write_concat(cvy_onnx_writer *w, const cvy_node *node)
{
    const char *src[CVY_NODE_SRC_MAX + 1] = {NULL};
    for (int i = 0; i < node->nsrc; i++)
        CVY_TRY(cvy_onnxw_src(w, node, i, &src[i]));
    CVY_TRY(cvy_onnxw_node(w, "Concat", src, cvy_onnxw_dst(w, node)));
    return cvy_onnxw_set_int(w, "axis", ((const cvy_concat_opts *)node->options)->axis);
}
CVY_ONNXOP_DEFINE(concat) = {"concat", .write = write_concat};

static cvy_status slice(cvy_onnx_writer *w, const cvy_node *node, const int64_t *axes, const int64_t *first,
                        const int64_t *end, int n)
{
    const char *src = NULL, *starts = NULL, *ends = NULL, *along = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_ints(w, "starts", first, n, &starts));
    CVY_TRY(cvy_onnxw_ints(w, "ends", end, n, &ends));
    CVY_TRY(cvy_onnxw_ints(w, "axes", axes, n, &along));
    return CVY_ONNXW_NODE(w, "Slice", cvy_onnxw_dst(w, node), src, starts, ends, along);
}

static cvy_status write_slice(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_slice_opts *o = node->options;
    const int64_t end = o->first + o->count;
    return slice(w, node, &o->axis, &o->first, &end, 1);
}
CVY_ONNXOP_DEFINE(slice) = {"slice", .write = write_slice};

static cvy_status write_crop(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_pad_opts *o = node->options;
    const cvy_shape *src = &node->src[0]->shape;
    int64_t axes[CVY_NDIM_MAX], first[CVY_NDIM_MAX], end[CVY_NDIM_MAX];
    const int n = src->ndim - 2;
    for (int d = 0; d < n; d++) {
        axes[d] = 2 + d;
        first[d] = cvy_ints_at(&o->before, d, 0);
        end[d] = src->dim[2 + d] - cvy_ints_at(&o->after, d, 0);
    }
    return slice(w, node, axes, first, end, n);
}
CVY_ONNXOP_DEFINE(crop) = {"crop", .write = write_crop};

/* ---- padding ---- */

static cvy_status pad(cvy_onnx_writer *w, const cvy_node *node, const int64_t *pads)
{
    const char *src = NULL, *list = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_ints(w, "pads", pads, 2 * node->src[0]->shape.ndim, &list));
    return CVY_ONNXW_NODE(w, "Pad", cvy_onnxw_dst(w, node), src, list);
}

static cvy_status write_pad(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_pad_opts *o = node->options;
    const int ndim = node->src[0]->shape.ndim;
    int64_t pads[2 * CVY_NDIM_MAX] = {0};
    for (int d = 2; d < ndim; d++) {
        pads[d] = cvy_ints_at(&o->before, d - 2, 0);
        pads[ndim + d] = cvy_ints_at(&o->after, d - 2, 0);
    }
    return pad(w, node, pads);
}
CVY_ONNXOP_DEFINE(pad) = {"pad", .write = write_pad};

static cvy_status write_pad_slice(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_pad_slice_opts *o = node->options;
    const cvy_shape *src = &node->src[0]->shape;
    int64_t pads[2 * CVY_NDIM_MAX] = {0};
    pads[o->axis] = o->first;
    pads[src->ndim + o->axis] = o->whole - o->first - src->dim[o->axis];
    return pad(w, node, pads);
}
CVY_ONNXOP_DEFINE(pad_slice) = {"pad_slice", .write = write_pad_slice};

/* ---- resizing ---- */

/* The new size. Before operator set 18 it has the number of samples, too, which is free: it is taken from the source.
 */
static cvy_status size_of(cvy_onnx_writer *w, const cvy_node *node, const char *src, const char **out)
{
    static const int64_t zero = 0, one = 1;
    const int64_t *dim = node->dst[0]->shape.dim;
    const char *shape = NULL, *first = NULL, *end = NULL, *samples = NULL, *rest = NULL;
    if (w->opset >= 18)
        return cvy_onnxw_ints(w, "size", dim + 2, 2, out);
    CVY_TRY(cvy_onnxw_name(w, "shape", &shape));
    CVY_TRY(cvy_onnxw_name(w, "samples", &samples));
    CVY_TRY(cvy_onnxw_name(w, "size", out));
    CVY_TRY(cvy_onnxw_ints(w, "first", &zero, 1, &first));
    CVY_TRY(cvy_onnxw_ints(w, "end", &one, 1, &end));
    CVY_TRY(cvy_onnxw_ints(w, "sample", dim + 1, 3, &rest));
    CVY_TRY(CVY_ONNXW_NODE(w, "Shape", shape, src));
    CVY_TRY(CVY_ONNXW_NODE(w, "Slice", samples, shape, first, end));
    CVY_TRY(CVY_ONNXW_NODE(w, "Concat", *out, samples, rest));
    return cvy_onnxw_set_int(w, "axis", 0);
}

static cvy_status write_resize(cvy_onnx_writer *w, const cvy_node *node)
{
    static const int64_t axes[] = {2, 3};
    const cvy_resize_opts *o = node->options;
    const char *src = NULL, *size = NULL, *scales = NULL;
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const roundings[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};
    const int nearest = o->mode == CVY_RESIZE_NEAREST;
    const int halves = o->coordinates == CVY_RESIZE_HALF_PIXEL || (o->coordinates == CVY_RESIZE_USUAL && !nearest);
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    if (o->scale.count > 0 && !o->align_corners) {
        const double by[] = {1, 1, o->scale.at[0], o->scale.at[o->scale.count - 1]};
        CVY_TRY(cvy_onnxw_reals(w, "scales", &(cvy_shape){.ndim = 1, .dim = {4}}, by, &scales));
        CVY_TRY(CVY_ONNXW_NODE(w, "Resize", cvy_onnxw_dst(w, node), src, "", scales));
    } else {
        CVY_TRY(size_of(w, node, src, &size));
        CVY_TRY(CVY_ONNXW_NODE(w, "Resize", cvy_onnxw_dst(w, node), src, "", "", size));
        if (w->opset >= 18)
            CVY_TRY(cvy_onnxw_set_ints(w, "axes", axes, 2));
    }
    CVY_TRY(cvy_onnxw_set_text(w, "mode", modes[o->mode]));
    CVY_TRY(cvy_onnxw_set_text(w, "coordinate_transformation_mode",
                               o->align_corners ? "align_corners"
                               : halves         ? "half_pixel"
                                                : "asymmetric"));
    if (o->mode == CVY_RESIZE_BICUBIC) {
        CVY_TRY(cvy_onnxw_set_real(w, "cubic_coeff_a", o->cubic_a));
        CVY_TRY(cvy_onnxw_set_int(w, "exclude_outside", o->only_inside));
    }
    return nearest ? cvy_onnxw_set_text(w, "nearest_mode", roundings[o->rounding]) : CVY_OK;
}
CVY_ONNXOP_DEFINE(resize) = {"resize", .write = write_resize};

/* As many rows as the first input has samples. */
static cvy_status write_constant(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_constant_opts *o = node->options;
    const cvy_shape *dst = &node->dst[0]->shape;
    const int64_t first = 0;
    const char *input = w->from->model->input[0].name, *whole = NULL, *zero = NULL, *rows = NULL, *sample = NULL,
               *shape = NULL, *zeros = cvy_onnxw_dst(w, node), *value = NULL;
    CVY_TRY(cvy_onnxw_name(w, "whole", &whole));
    CVY_TRY(cvy_onnxw_name(w, "rows", &rows));
    CVY_TRY(cvy_onnxw_name(w, "shape", &shape));
    CVY_TRY(cvy_onnxw_ints(w, "first", &first, 1, &zero));
    CVY_TRY(cvy_onnxw_ints(w, "sample", dst->dim + 1, dst->ndim - 1, &sample));
    CVY_TRY(CVY_ONNXW_NODE(w, "Shape", whole, input));
    CVY_TRY(CVY_ONNXW_NODE(w, "Gather", rows, whole, zero));
    CVY_TRY(CVY_ONNXW_NODE(w, "Concat", shape, rows, sample));
    CVY_TRY(cvy_onnxw_set_int(w, "axis", 0));
    if (o->value == 0)
        return CVY_ONNXW_NODE(w, "ConstantOfShape", zeros, shape);
    CVY_TRY(cvy_onnxw_name(w, "zeros", &zeros));
    CVY_TRY(cvy_onnxw_real(w, "value", o->value, &value));
    CVY_TRY(CVY_ONNXW_NODE(w, "ConstantOfShape", zeros, shape));
    return CVY_ONNXW_NODE(w, "Add", cvy_onnxw_dst(w, node), zeros, value);
}
CVY_ONNXOP_DEFINE(constant) = {"constant", .write = write_constant};

/*
 * onnx_quantize.c: DequantizeLinear: (x - zero point) * scale, of weights that are stored as integers and become real
 * constants, and of activations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx.h"

struct quantization {
    const cvy_onnx_tensor *scale, *zero; /* zero NULL: 0 */
    int axis;                            /* along which scale and zero have their numbers, if there are several */
};

static cvy_status read_quantization(const cvy_onnx_node *node, const cvy_shape *shape, struct quantization *out)
{
    const int64_t given = cvy_onnx_int(node, "axis", 1), axis = given < 0 ? given + shape->ndim : given;
    CVY_TRY(cvy_onnx_constant(node, 1, &out->scale));
    CVY_TRY(cvy_onnx_constant(node, 2, &out->zero));
    CVY_ONNX_CHECK(out->scale && cvy_onnx_is_real(out->scale), node, "%s", "it has no scale of real numbers");
    CVY_ONNX_CHECK(cvy_onnx_int(node, "block_size", 0) == 0, node, "block_size %lld is not supported",
                   (long long)cvy_onnx_int(node, "block_size", 0));
    CVY_ONNX_CHECK(!out->zero || out->zero->elems == out->scale->elems, node, "%lld scales and %lld zero points",
                   (long long)out->scale->elems, (long long)(out->zero ? out->zero->elems : 0));
    CVY_ONNX_CHECK(out->scale->elems == 1 || (out->scale->shape.ndim == 1 && axis >= 0 && axis < shape->ndim &&
                                              shape->dim[axis] == out->scale->elems),
                   node, "scales %s for axis %lld of %s", cvy_shape_text(&out->scale->shape), (long long)given,
                   cvy_shape_text(shape));
    out->axis = out->scale->elems == 1 ? 0 : (int)axis;
    return CVY_OK;
}

static cvy_status dequantize_constant(const cvy_onnx_node *node, const cvy_onnx_tensor *from)
{
    struct quantization q;
    cvy_onnx_tensor *t = NULL;
    int64_t inner = 1;
    CVY_TRY(read_quantization(node, &from->shape, &q));
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &from->shape, &t));
    for (int d = q.axis + 1; d < from->shape.ndim; d++)
        inner *= from->shape.dim[d];
    for (int64_t i = 0; i < t->elems; i++) {
        const int64_t k = q.scale->elems == 1 ? 0 : i / inner % q.scale->elems;
        const double zero = q.zero ? cvy_onnx_number(q.zero, k) : 0;
        ((float *)t->data)[i] = (float)((cvy_onnx_number(from, i) - zero) * cvy_onnx_number(q.scale, k));
    }
    t->name = from->name;
    return cvy_onnx_done_constant(node, 0, t);
}

static cvy_status translate_dequantize(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = cvy_onnx_source(node, 0);
    struct quantization q;
    const char *output = NULL;
    CVY_ONNX_CHECK(src, node, "%s", "it has no source");
    if (src->constant)
        return dequantize_constant(node, src->constant);
    CVY_TRY(read_quantization(node, &src->shape, &q));
    CVY_ONNX_CHECK(q.scale->elems == 1, node, "%lld scales for a source that depends on the input; one is supported",
                   (long long)q.scale->elems);
    output = src->layer;
    if (q.zero && cvy_onnx_number(q.zero, 0) != 0)
        CVY_TRY(cvy_onnx_step_real(node, "offset", "by", -cvy_onnx_number(q.zero, 0), output, &output));
    CVY_TRY(cvy_onnx_step_real(node, "scale", "by", cvy_onnx_number(q.scale, 0), output, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(dequantize_linear) = {"DequantizeLinear", .attributes = "axis block_size output_dtype",
                                      .translate = translate_dequantize};

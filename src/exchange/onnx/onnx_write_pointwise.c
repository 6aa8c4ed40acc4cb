/*
 * onnx_write_pointwise.c: activations, and sums and products of tensors, as ONNX nodes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "exchange/onnx/onnx_write.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_scale.h"
#include "op/pointwise/op_softmax.h"

/* ---- activations ---- */

CVY_ONNXOP_DEFINE(relu) = {"relu", .same = "Relu"};
CVY_ONNXOP_DEFINE(sigmoid) = {"sigmoid", .same = "Sigmoid"};
CVY_ONNXOP_DEFINE(tanh) = {"tanh", .same = "Tanh"};

static cvy_status write_leaky_relu(cvy_onnx_writer *w, const cvy_node *node)
{
    CVY_TRY(cvy_onnxw_simple(w, node, "LeakyRelu"));
    return cvy_onnxw_set_real(w, "alpha", ((const struct cvy_leaky_relu *)node->options)->slope);
}
CVY_ONNXOP_DEFINE(leaky_relu) = {"leaky_relu", .write = write_leaky_relu};

static cvy_status write_elu(cvy_onnx_writer *w, const cvy_node *node)
{
    CVY_TRY(cvy_onnxw_simple(w, node, "Elu"));
    return cvy_onnxw_set_real(w, "alpha", ((const struct cvy_elu *)node->options)->alpha);
}
CVY_ONNXOP_DEFINE(elu) = {"elu", .write = write_elu};

/* The slopes of channels have the shape [C, 1, ...], which ONNX repeats over the positions. */
static cvy_status write_prelu(cvy_onnx_writer *w, const cvy_node *node)
{
    cvy_shape shape = node->src[1]->shape;
    const char *src = NULL, *slope = NULL;
    while (shape.dim[0] > 1 && shape.ndim < node->src[0]->shape.ndim - 1)
        shape.dim[shape.ndim++] = 1;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_shaped(w, node, 1, &shape, &slope));
    return CVY_ONNXW_NODE(w, "PRelu", cvy_onnxw_dst(w, node), src, slope);
}
CVY_ONNXOP_DEFINE(prelu) = {"prelu", .write = write_prelu};

/* The source times a factor for each of its elements, which the first node makes. */
static cvy_status gated(cvy_onnx_writer *w, const cvy_node *node, const char *op)
{
    const char *src = NULL, *gate = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_name(w, "gate", &gate));
    CVY_TRY(CVY_ONNXW_NODE(w, op, gate, src));
    return CVY_ONNXW_NODE(w, "Mul", cvy_onnxw_dst(w, node), src, gate);
}

static cvy_status write_silu(cvy_onnx_writer *w, const cvy_node *node)
{
    return gated(w, node, "Sigmoid");
}
CVY_ONNXOP_DEFINE(silu) = {"silu", .write = write_silu};

static cvy_status write_hard_swish(cvy_onnx_writer *w, const cvy_node *node)
{
    if (w->opset >= 14)
        return cvy_onnxw_simple(w, node, "HardSwish");
    CVY_TRY(gated(w, node, "HardSigmoid"));
    Cvy__Onnx__NodeProto *product = w->node[--w->nnode]; /* the attributes belong to the node before it */
    CVY_TRY(cvy_onnxw_set_real(w, "alpha", 1.0 / 6));
    CVY_TRY(cvy_onnxw_set_real(w, "beta", 0.5));
    w->node[w->nnode++] = product;
    return CVY_OK;
}
CVY_ONNXOP_DEFINE(hard_swish) = {"hard_swish", .write = write_hard_swish};

/* log(1 + exp(beta x)) / beta. Above the threshold of ours, both are x within the precision of f32. */
static cvy_status write_softplus(cvy_onnx_writer *w, const cvy_node *node)
{
    const struct cvy_softplus *o = node->options;
    const char *src = NULL, *beta = NULL, *factor = NULL, *sharp = NULL, *plus = NULL;
    if (o->beta == 1)
        return cvy_onnxw_simple(w, node, "Softplus");
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_name(w, "sharp", &sharp));
    CVY_TRY(cvy_onnxw_name(w, "plus", &plus));
    CVY_TRY(cvy_onnxw_real(w, "beta", o->beta, &beta));
    CVY_TRY(cvy_onnxw_real(w, "factor", 1 / o->beta, &factor));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", sharp, src, beta));
    CVY_TRY(CVY_ONNXW_NODE(w, "Softplus", plus, sharp));
    return CVY_ONNXW_NODE(w, "Mul", cvy_onnxw_dst(w, node), plus, factor);
}
CVY_ONNXOP_DEFINE(softplus) = {"softplus", .write = write_softplus};

/* The part of GELU that Erf or Tanh takes: x / sqrt(2), or sqrt(2 / pi) (x + 0.044715 x^3). */
static cvy_status gelu_inside(cvy_onnx_writer *w, const char *src, int tanh, const char **out)
{
    const char *factor = NULL, *cubic = NULL, *square = NULL, *cube = NULL, *third = NULL, *sum = NULL;
    CVY_TRY(cvy_onnxw_name(w, "inside", out));
    CVY_TRY(cvy_onnxw_real(w, "factor", sqrt(tanh ? 2 / 3.14159265358979323846 : 0.5), &factor));
    if (!tanh)
        return CVY_ONNXW_NODE(w, "Mul", *out, src, factor);
    CVY_TRY(cvy_onnxw_name(w, "square", &square));
    CVY_TRY(cvy_onnxw_name(w, "cube", &cube));
    CVY_TRY(cvy_onnxw_name(w, "third", &third));
    CVY_TRY(cvy_onnxw_name(w, "sum", &sum));
    CVY_TRY(cvy_onnxw_real(w, "cubic", 0.044715, &cubic));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", square, src, src));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", cube, square, src));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", third, cube, cubic));
    CVY_TRY(CVY_ONNXW_NODE(w, "Add", sum, src, third));
    return CVY_ONNXW_NODE(w, "Mul", *out, sum, factor);
}

static cvy_status write_gelu(cvy_onnx_writer *w, const cvy_node *node)
{
    const int tanh = ((const struct cvy_gelu *)node->options)->tanh;
    const char *src = NULL, *inside = NULL, *curve = NULL, *one = NULL, *half = NULL, *gate = NULL, *product = NULL;
    if (w->opset >= 20) {
        CVY_TRY(cvy_onnxw_simple(w, node, "Gelu"));
        return tanh ? cvy_onnxw_set_text(w, "approximate", "tanh") : CVY_OK;
    }
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(gelu_inside(w, src, tanh, &inside));
    CVY_TRY(cvy_onnxw_name(w, "curve", &curve));
    CVY_TRY(cvy_onnxw_name(w, "gate", &gate));
    CVY_TRY(cvy_onnxw_name(w, "product", &product));
    CVY_TRY(cvy_onnxw_real(w, "one", 1, &one));
    CVY_TRY(cvy_onnxw_real(w, "half", 0.5, &half));
    CVY_TRY(CVY_ONNXW_NODE(w, tanh ? "Tanh" : "Erf", curve, inside));
    CVY_TRY(CVY_ONNXW_NODE(w, "Add", gate, curve, one));
    CVY_TRY(CVY_ONNXW_NODE(w, "Mul", product, src, gate));
    return CVY_ONNXW_NODE(w, "Mul", cvy_onnxw_dst(w, node), product, half);
}
CVY_ONNXOP_DEFINE(gelu) = {"gelu", .write = write_gelu};

static cvy_status write_softmax(cvy_onnx_writer *w, const cvy_node *node)
{
    CVY_TRY(cvy_onnxw_simple(w, node, "Softmax"));
    return cvy_onnxw_set_int(w, "axis", ((const cvy_softmax_opts *)node->options)->axis);
}
CVY_ONNXOP_DEFINE(softmax) = {"softmax", .write = write_softmax};

static cvy_status write_log_softmax(cvy_onnx_writer *w, const cvy_node *node)
{
    CVY_TRY(cvy_onnxw_simple(w, node, "LogSoftmax"));
    return cvy_onnxw_set_int(w, "axis", ((const cvy_softmax_opts *)node->options)->axis);
}
CVY_ONNXOP_DEFINE(log_softmax) = {"log_softmax", .write = write_log_softmax};

static cvy_status write_scale(cvy_onnx_writer *w, const cvy_node *node)
{
    const char *src = NULL, *by = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_real(w, "by", ((const cvy_scale_opts *)node->options)->by, &by));
    return CVY_ONNXW_NODE(w, "Mul", cvy_onnxw_dst(w, node), src, by);
}
CVY_ONNXOP_DEFINE(scale) = {"scale", .write = write_scale};

/* ---- several tensors ---- */

static cvy_status several(cvy_onnx_writer *w, const cvy_node *node, const char *op)
{
    const char *src[CVY_NODE_SRC_MAX + 1] = {NULL};
    for (int i = 0; i < node->nsrc; i++)
        CVY_TRY(cvy_onnxw_src(w, node, i, &src[i]));
    return cvy_onnxw_node(w, op, src, cvy_onnxw_dst(w, node));
}

static cvy_status write_add(cvy_onnx_writer *w, const cvy_node *node)
{
    return several(w, node, node->nsrc == 2 ? "Add" : "Sum");
}
CVY_ONNXOP_DEFINE(add) = {"add", .write = write_add};

static cvy_status write_subtract(cvy_onnx_writer *w, const cvy_node *node)
{
    return several(w, node, "Sub");
}
CVY_ONNXOP_DEFINE(subtract) = {"subtract", .write = write_subtract};

static cvy_status write_divide(cvy_onnx_writer *w, const cvy_node *node)
{
    return several(w, node, "Div");
}
CVY_ONNXOP_DEFINE(divide) = {"divide", .write = write_divide};

static cvy_status write_maximum(cvy_onnx_writer *w, const cvy_node *node)
{
    return several(w, node, "Max");
}
CVY_ONNXOP_DEFINE(maximum) = {"maximum", .write = write_maximum};

/* Mul has two sources. */
static cvy_status write_multiply(cvy_onnx_writer *w, const cvy_node *node)
{
    const char *product = NULL, *next = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &product));
    for (int i = 1; i < node->nsrc; i++) {
        const char *dst = cvy_onnxw_dst(w, node);
        char what[24];
        snprintf(what, sizeof what, "product%d", i);
        CVY_TRY(cvy_onnxw_src(w, node, i, &next));
        if (i < node->nsrc - 1)
            CVY_TRY(cvy_onnxw_name(w, what, &dst));
        CVY_TRY(CVY_ONNXW_NODE(w, "Mul", dst, product, next));
        product = dst;
    }
    return CVY_OK;
}
CVY_ONNXOP_DEFINE(multiply) = {"multiply", .write = write_multiply};

/* The factors [N, C] get positions of length 1. */
static cvy_status write_multiply_channels(cvy_onnx_writer *w, const cvy_node *node)
{
    cvy_shape shape = node->src[1]->shape;
    const char *src = NULL, *factor = NULL, *shaped = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_src(w, node, 1, &factor));
    if (shape.ndim < node->src[0]->shape.ndim) {
        while (shape.ndim < node->src[0]->shape.ndim)
            shape.dim[shape.ndim++] = 1;
        CVY_TRY(cvy_onnxw_name(w, "factor", &shaped));
        CVY_TRY(cvy_onnxw_reshape(w, factor, &shape, shaped));
        factor = shaped;
    }
    return CVY_ONNXW_NODE(w, "Mul", cvy_onnxw_dst(w, node), src, factor);
}
CVY_ONNXOP_DEFINE(multiply_channels) = {"multiply_channels", .write = write_multiply_channels};

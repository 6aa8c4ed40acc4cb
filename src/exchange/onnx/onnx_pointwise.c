/*
 * onnx_pointwise.c: activations and dropout. onnx_arithmetic.c has sums and products.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

/* ---- activations ---- */

CVY_ONNX_DEFINE(relu) = {"Relu", .same = "relu"};
CVY_ONNX_DEFINE(tanh) = {"Tanh", .same = "tanh"};
CVY_ONNX_DEFINE(softplus) = {"Softplus", .same = "softplus"};
CVY_ONNX_DEFINE(hard_swish) = {"HardSwish", .same = "hard_swish"};

/* A layer on source 0 with one option, which is an attribute of the node. */
static cvy_status with_option(const cvy_onnx_node *node, const char *op, const char *option, const char *attribute,
                              double fallback)
{
    char *options = NULL;
    CVY_TRY(
        cvy_pool_printf(node->x->out->pool, &options, "%s: %.9g", option, cvy_onnx_real(node, attribute, fallback)));
    return cvy_onnx_simple(node, op, options);
}

/* x * gate(x), if the next node computes this and no other one reads the gate; else the gate alone. */
static cvy_status gate(const cvy_onnx_node *node, const char *product, const char *alone, const char *options)
{
    const char *other = NULL, *output = NULL;
    const cvy_onnx_value *src = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    const Cvy__Onnx__NodeProto *mul =
        product ? cvy_onnx_reader_of_two(node->x, node->proto->output[0], "Mul", &other) : NULL;
    if (!mul || strcmp(other, src->name) != 0)
        return cvy_onnx_simple(node, alone, options);
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = product, .from = {src->layer}, .nfrom = 1}, NULL, &output));
    return cvy_onnx_absorb(node, mul, output);
}

static cvy_status translate_sigmoid(const cvy_onnx_node *node)
{
    return gate(node, "silu", "sigmoid", NULL);
}
CVY_ONNX_DEFINE(sigmoid) = {"Sigmoid", .translate = translate_sigmoid};

static cvy_status translate_hard_sigmoid(const cvy_onnx_node *node)
{
    const double alpha = cvy_onnx_real(node, "alpha", 0.2), beta = cvy_onnx_real(node, "beta", 0.5);
    const int is_usual = fabs(alpha - 1. / 6) < 1e-7 && beta == 0.5;
    char *options = NULL;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "alpha: %.9g, beta: %.9g", alpha, beta));
    return gate(node, is_usual ? "hard_swish" : NULL, "hard_sigmoid", is_usual ? NULL : options);
}
CVY_ONNX_DEFINE(hard_sigmoid) = {"HardSigmoid", .translate = translate_hard_sigmoid};

/* A bound: an attribute, or from operator set 11 on a constant source. */
static cvy_status read_bound(const cvy_onnx_node *node, const char *attribute, int source, double *bound)
{
    const cvy_onnx_tensor *t = NULL;
    if (cvy_onnx_attribute(node, attribute))
        *bound = cvy_onnx_real(node, attribute, 0);
    CVY_TRY(cvy_onnx_constant(node, source, &t));
    CVY_ONNX_CHECK(!t || t->elems == 1, node, "source %d has %lld numbers, expected 1", source,
                   (long long)(t ? t->elems : 0));
    if (t)
        *bound = cvy_onnx_number(t, 0);
    return CVY_OK;
}

static cvy_status translate_clip(const cvy_onnx_node *node)
{
    const double none = 1e38;
    const cvy_onnx_value *src = NULL;
    double min = -none, max = none;
    char *options = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(read_bound(node, "min", 1, &min));
    CVY_TRY(read_bound(node, "max", 2, &max));
    if (min <= -none && max >= none)
        return cvy_onnx_done(node, 0, src->layer);
    if (min == 0 && (max >= none || max == 6))
        return cvy_onnx_simple(node, max == 6 ? "relu6" : "relu", NULL);
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "min: %.9g, max: %.9g", fmax(min, -none), fmin(max, none)));
    return cvy_onnx_simple(node, "clamp", options);
}
CVY_ONNX_DEFINE(clip) = {"Clip", .translate = translate_clip};

static cvy_status translate_leaky_relu(const cvy_onnx_node *node)
{
    return with_option(node, "leaky_relu", "slope", "alpha", 0.01);
}
CVY_ONNX_DEFINE(leaky_relu) = {"LeakyRelu", .translate = translate_leaky_relu};

static cvy_status translate_elu(const cvy_onnx_node *node)
{
    return with_option(node, "elu", "alpha", "alpha", 1);
}
CVY_ONNX_DEFINE(elu) = {"Elu", .translate = translate_elu};

static cvy_status translate_prelu(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *slope = NULL;
    const char *name = NULL, *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_constant(node, 1, &slope));
    CVY_ONNX_CHECK(slope && (slope->elems == 1 || slope->elems == src->shape.dim[1]), node,
                   "%lld slopes, expected one, or one for each of %lld channels", (long long)(slope ? slope->elems : 0),
                   (long long)src->shape.dim[1]);
    CVY_TRY(cvy_onnx_add(node,
                         &(cvy_onnx_layer){.op = "prelu",
                                           .options = slope->elems == 1 ? NULL : "per_channel: true",
                                           .weight = slope,
                                           .from = {src->layer},
                                           .nfrom = 1},
                         &name, &output));
    CVY_TRY(cvy_onnx_set(node, name, "weight", slope));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(prelu) = {"PRelu", .translate = translate_prelu};

static cvy_status translate_gelu(const cvy_onnx_node *node)
{
    const char *approximate = NULL;
    CVY_TRY(cvy_onnx_string(node, "approximate", &approximate));
    return cvy_onnx_simple(node, "gelu", strcmp(approximate, "tanh") == 0 ? "approximate: tanh" : NULL);
}
CVY_ONNX_DEFINE(gelu) = {"Gelu", .translate = translate_gelu};

/* The softmax of ours is over the channels; on a matrix that is the last axis. */
static cvy_status softmax(const cvy_onnx_node *node, const char *op)
{
    const cvy_onnx_value *src = NULL;
    int axis = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", node->x->opset < 13 ? 1 : -1), src->shape.ndim, &axis));
    CVY_ONNX_CHECK(axis == 1, node, "axis %d of %s; only axis 1 is supported", axis, cvy_shape_text(&src->shape));
    CVY_ONNX_CHECK(node->x->opset >= 13 || src->shape.ndim == 2, node, "%s",
                   "before operator set 13 it is taken over all further axes, too");
    return cvy_onnx_simple(node, op, NULL);
}

static cvy_status translate_softmax(const cvy_onnx_node *node)
{
    return softmax(node, "softmax");
}
CVY_ONNX_DEFINE(softmax) = {"Softmax", .translate = translate_softmax};

static cvy_status translate_log_softmax(const cvy_onnx_node *node)
{
    return softmax(node, "log_softmax");
}
CVY_ONNX_DEFINE(log_softmax) = {"LogSoftmax", .translate = translate_log_softmax};

static cvy_status translate_dropout(const cvy_onnx_node *node)
{
    const cvy_onnx_tensor *ratio = NULL;
    char *options = NULL;
    CVY_TRY(cvy_onnx_constant(node, 1, &ratio));
    CVY_TRY(
        cvy_pool_printf(node->x->out->pool, &options, "p: %.9g",
                        ratio && ratio->elems == 1 ? cvy_onnx_number(ratio, 0) : cvy_onnx_real(node, "ratio", 0.5)));
    return cvy_onnx_simple(node, "dropout", options);
}
CVY_ONNX_DEFINE(dropout) = {"Dropout", .translate = translate_dropout};

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

CVY_ONNX_DEFINE(abs) = {"Abs", .same = "abs"};
CVY_ONNX_DEFINE(exp) = {"Exp", .same = "exp"};
CVY_ONNX_DEFINE(log) = {"Log", .same = "log"};
CVY_ONNX_DEFINE(sqrt) = {"Sqrt", .same = "sqrt"};
CVY_ONNX_DEFINE(reciprocal) = {"Reciprocal", .same = "reciprocal"};
CVY_ONNX_DEFINE(erf) = {"Erf", .same = "erf"};
CVY_ONNX_DEFINE(softsign) = {"Softsign", .same = "softsign"};
CVY_ONNX_DEFINE(sin) = {"Sin", .same = "sin"};
CVY_ONNX_DEFINE(cos) = {"Cos", .same = "cos"};

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
CVY_ONNX_DEFINE(hard_sigmoid) = {"HardSigmoid", .attributes = "alpha beta", .translate = translate_hard_sigmoid};

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
CVY_ONNX_DEFINE(clip) = {"Clip", .attributes = "max min", .translate = translate_clip};

static cvy_status translate_leaky_relu(const cvy_onnx_node *node)
{
    return with_option(node, "leaky_relu", "slope", "alpha", 0.01);
}
CVY_ONNX_DEFINE(leaky_relu) = {"LeakyRelu", .attributes = "alpha", .translate = translate_leaky_relu};

static cvy_status translate_elu(const cvy_onnx_node *node)
{
    return with_option(node, "elu", "alpha", "alpha", 1);
}
CVY_ONNX_DEFINE(elu) = {"Elu", .attributes = "alpha", .translate = translate_elu};

/* before * source, then elu, then times after: selu and celu are elu with factors. */
static cvy_status scaled_elu(const cvy_onnx_node *node, double before, double alpha, double after)
{
    const cvy_onnx_value *src = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    output = src->layer;
    if (before != 1)
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", before, output, &output));
    CVY_TRY(cvy_onnx_step_real(node, "elu", "alpha", alpha, output, &output));
    if (after != 1)
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", after, output, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status translate_selu(const cvy_onnx_node *node)
{
    return scaled_elu(node, 1, cvy_onnx_real(node, "alpha", 1.67326319), cvy_onnx_real(node, "gamma", 1.05070102));
}
CVY_ONNX_DEFINE(selu) = {"Selu", .attributes = "alpha gamma", .translate = translate_selu};

static cvy_status translate_celu(const cvy_onnx_node *node)
{
    const double alpha = cvy_onnx_real(node, "alpha", 1);
    CVY_ONNX_CHECK(alpha > 0, node, "alpha is %g, expected a positive number", alpha);
    return scaled_elu(node, 1 / alpha, 1, alpha);
}
CVY_ONNX_DEFINE(celu) = {"Celu", .attributes = "alpha", .translate = translate_celu};

static cvy_status translate_neg(const cvy_onnx_node *node)
{
    return cvy_onnx_simple(node, "scale", "by: -1");
}
CVY_ONNX_DEFINE(neg) = {"Neg", .translate = translate_neg};

/* x * tanh(softplus(x)) */
static cvy_status translate_mish(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_step(node, "softplus", NULL, src->layer, &output));
    CVY_TRY(cvy_onnx_step(node, "tanh", NULL, output, &output));
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = "multiply", .from = {src->layer, output}, .nfrom = 2}, NULL,
                         &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(mish) = {"Mish", .translate = translate_mish};

/* relu(x) + slope * min(x, 0), with slopes that differ between positions. */
static cvy_status prelu_of_elements(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_onnx_tensor *slope)
{
    const char *above = NULL, *below = NULL, *output = NULL;
    CVY_TRY(cvy_onnx_step(node, "relu", NULL, src->layer, &above));
    CVY_TRY(cvy_onnx_step_real(node, "clamp", "max", 0, src->layer, &below));
    CVY_TRY(cvy_onnx_affine(node, below, slope, "scale", &below));
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = "add", .from = {above, below}, .nfrom = 2}, NULL, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status translate_prelu(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *slope = NULL;
    const char *name = NULL, *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_constant(node, 1, &slope));
    /* [C, 1, ...], aligned at the last axis as all that ONNX broadcasts; in old operator sets [C] */
    const int at = slope ? slope->shape.ndim - src->shape.ndim + 1 : -1;
    const int per_channel = slope && src->shape.ndim >= 2 && slope->elems == src->shape.dim[1] &&
                            (node->x->opset < 7 || (at >= 0 && at < 2 && slope->shape.dim[at] == slope->elems));
    CVY_ONNX_CHECK(slope, node, "%s", "it has no slopes");
    if (slope->elems != 1 && !per_channel)
        return prelu_of_elements(node, src, slope);
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
CVY_ONNX_DEFINE(gelu) = {"Gelu", .attributes = "approximate", .translate = translate_gelu};

/* Before operator set 13 all axes from the given one on are taken together: they become one axis. */
static cvy_status joint_softmax(const cvy_onnx_node *node, const cvy_onnx_value *src, int axis, const char *op)
{
    const int ndim = src->shape.ndim;
    const char *output = NULL;
    char *options = NULL;
    int64_t sample[CVY_NDIM_MAX], joint = 1;
    for (int d = 1; d < axis; d++)
        sample[d - 1] = src->shape.dim[d];
    for (int d = axis; d < ndim; d++)
        joint *= src->shape.dim[d];
    sample[axis - 1] = joint;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d", axis));
    CVY_TRY(cvy_onnx_reshape(node, src->layer, sample, axis, &output));
    CVY_TRY(cvy_onnx_step(node, op, axis == 1 ? NULL : options, output, &output));
    CVY_TRY(cvy_onnx_reshape(node, output, src->shape.dim + 1, ndim - 1, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status softmax(const cvy_onnx_node *node, const char *op)
{
    const cvy_onnx_value *src = NULL;
    char *options = NULL;
    int axis = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", node->x->opset < 13 ? 1 : -1), src->shape.ndim, &axis));
    if (node->x->opset < 13)
        return joint_softmax(node, src, axis, op);
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d", axis));
    return cvy_onnx_simple(node, op, axis == 1 ? NULL : options);
}

static cvy_status translate_softmax(const cvy_onnx_node *node)
{
    return softmax(node, "softmax");
}
CVY_ONNX_DEFINE(softmax) = {"Softmax", .attributes = "axis", .translate = translate_softmax};

static cvy_status translate_log_softmax(const cvy_onnx_node *node)
{
    return softmax(node, "log_softmax");
}
CVY_ONNX_DEFINE(log_softmax) = {"LogSoftmax", .attributes = "axis", .translate = translate_log_softmax};

static cvy_status translate_dropout(const cvy_onnx_node *node)
{
    const cvy_onnx_tensor *ratio = NULL;
    char *options = NULL;
    CVY_TRY(cvy_onnx_constant(node, 1, &ratio));
    for (int i = 1; i < node->nout; i++)
        CVY_ONNX_CHECK(!cvy_onnx_is_read(node, i), node, "%s", "its mask is read, which is not supported");
    CVY_TRY(
        cvy_pool_printf(node->x->out->pool, &options, "p: %.9g",
                        ratio && ratio->elems == 1 ? cvy_onnx_number(ratio, 0) : cvy_onnx_real(node, "ratio", 0.5)));
    return cvy_onnx_simple(node, "dropout", options);
}
CVY_ONNX_DEFINE(dropout) = {"Dropout", .attributes = "is_test ratio seed", .translate = translate_dropout};

/*
 * onnx_pointwise.c: activations, dropout, and sums and products of two tensors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

/* ---- activations ---- */

CVY_ONNX_DEFINE(relu) = {"Relu", .same = "relu"};
CVY_ONNX_DEFINE(sigmoid) = {"Sigmoid", .same = "sigmoid"};
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
                                           .named = {slope},
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

/* ---- two tensors ---- */

/* The only number of a constant that is the same everywhere. Returns 0 if there are several. */
static int is_uniform(const cvy_onnx_tensor *t, double *out)
{
    *out = t->elems > 0 ? cvy_onnx_number(t, 0) : 0;
    for (int64_t i = 1; i < t->elems; i++)
        if (cvy_onnx_number(t, i) != *out)
            return 0;
    return t->elems > 0;
}

static cvy_status two_layers(const cvy_onnx_node *node, const char *op)
{
    const cvy_onnx_value *a = NULL, *b = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &a));
    CVY_TRY(cvy_onnx_activation(node, 1, &b));
    CVY_ONNX_CHECK(strcmp(op, "multiply") == 0 || cvy_shape_equal(&a->shape, &b->shape), node,
                   "tensors of different shapes, %s and %s, are not supported", cvy_shape_text(&a->shape),
                   cvy_shape_text(&b->shape));
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = op, .from = {a->layer, b->layer}, .nfrom = 2}, NULL, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status scale(const cvy_onnx_node *node, const cvy_onnx_value *src, double by)
{
    char *options = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "by: %.9g", by));
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = "scale", .options = options, .from = {src->layer}, .nfrom = 1},
                         NULL, &output));
    return cvy_onnx_done(node, 0, output);
}

/* The source that is constant, and the other one; *constant NULL: both depend on the input. */
static void sort_sources(const cvy_onnx_node *node, const cvy_onnx_value **src, const cvy_onnx_tensor **constant,
                         int *is_first)
{
    const cvy_onnx_value *a = cvy_onnx_source(node, 0), *b = cvy_onnx_source(node, 1);
    *is_first = a && a->constant;
    *src = *is_first ? b : a;
    *constant = *is_first ? a->constant : b ? b->constant : NULL;
}

static cvy_status translate_mul(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    int is_first = 0;
    double by = 0;
    sort_sources(node, &src, &constant, &is_first);
    if (!constant)
        return two_layers(node, "multiply");
    CVY_ONNX_CHECK(is_uniform(constant, &by), node, "a constant factor of shape %s is not supported",
                   cvy_shape_text(&constant->shape));
    return scale(node, src, by);
}
CVY_ONNX_DEFINE(mul) = {"Mul", .translate = translate_mul};

static cvy_status translate_div(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    int is_first = 0;
    double by = 0;
    const cvy_status status = cvy_onnx_translate_lrn(node);
    if (status != CVY_NOT_APPLICABLE)
        return status;
    sort_sources(node, &src, &constant, &is_first);
    CVY_ONNX_CHECK(constant && !is_first && is_uniform(constant, &by) && by != 0, node, "%s",
                   "only a division by one constant number is supported");
    return scale(node, src, 1 / by);
}
CVY_ONNX_DEFINE(div) = {"Div", .translate = translate_div};

static cvy_status translate_add(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    int is_first = 0;
    double zero = 0;
    sort_sources(node, &src, &constant, &is_first);
    if (!constant)
        return two_layers(node, "add");
    CVY_ONNX_CHECK(is_uniform(constant, &zero) && zero == 0, node, "a constant summand of shape %s is not supported",
                   cvy_shape_text(&constant->shape));
    return cvy_onnx_done(node, 0, src->layer);
}
CVY_ONNX_DEFINE(add) = {"Add", .translate = translate_add};

static cvy_status translate_sub(const cvy_onnx_node *node)
{
    return two_layers(node, "subtract");
}
CVY_ONNX_DEFINE(sub) = {"Sub", .translate = translate_sub};

/* A chain of layers of two or more sources, of which ours has a limit. */
static cvy_status many(const cvy_onnx_node *node, const char *op, const char *options)
{
    const int limit = CVY_MIN(cvy_op_find(op)->nsrc_max, CVY_NODE_SRC_MAX);
    const char *sum = NULL;
    for (int i = 0; i < node->nin;) {
        cvy_onnx_layer layer = {.op = op, .options = options};
        if (sum)
            layer.from[layer.nfrom++] = sum;
        for (; i < node->nin && layer.nfrom < limit; i++) {
            const cvy_onnx_value *v = NULL;
            CVY_TRY(cvy_onnx_activation(node, i, &v));
            layer.from[layer.nfrom++] = v->layer;
        }
        if (layer.nfrom == 1)
            sum = layer.from[0];
        else
            CVY_TRY(cvy_onnx_add(node, &layer, NULL, &sum));
    }
    CVY_ONNX_CHECK(sum, node, "%s", "it has no source");
    return cvy_onnx_done(node, 0, sum);
}

static cvy_status translate_sum(const cvy_onnx_node *node)
{
    return many(node, "add", NULL);
}
CVY_ONNX_DEFINE(sum) = {"Sum", .translate = translate_sum};

static cvy_status translate_max(const cvy_onnx_node *node)
{
    return many(node, "maximum", NULL);
}
CVY_ONNX_DEFINE(max) = {"Max", .translate = translate_max};

static cvy_status translate_concat(const cvy_onnx_node *node)
{
    const cvy_onnx_value *first = NULL;
    char *options = NULL;
    int axis = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &first));
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", 1), first->shape.ndim, &axis));
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d", axis));
    return many(node, "concat", axis == 1 ? NULL : options);
}
CVY_ONNX_DEFINE(concat) = {"Concat", .translate = translate_concat};

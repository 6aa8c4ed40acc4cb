/*
 * onnx_matmul.c: Gemm and MatMul with a constant matrix are fully connected layers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* A matrix as ours has it, [outputs, inputs]. */
static cvy_status turn(const cvy_onnx_node *node, const cvy_onnx_tensor *t, const void **out)
{
    const int64_t rows = t->shape.dim[0], columns = t->shape.dim[1];
    const size_t width = cvy_dtype_bytes(t->dtype);
    char *to = NULL;
    CVY_TRY(cvy_onnx_take_memory(node->x, (size_t)t->elems * width));
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, (size_t)CVY_MAX(t->elems, 1) * width, &to));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(to + (size_t)(c * rows + r) * width, (const char *)t->data + (size_t)(r * columns + c) * width,
                   width);
    *out = to;
    return CVY_OK;
}

cvy_status cvy_onnx_fc(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *weight, int is_turned,
                       const cvy_onnx_tensor *bias, const char **output)
{
    const int64_t outputs = weight->shape.dim[is_turned ? 0 : 1], inputs = weight->shape.dim[is_turned ? 1 : 0];
    const char *name = NULL;
    const void *data = weight->data;
    const cvy_shape shape = *cvy_onnx_shape(node->x, from);
    const int last = shape.ndim - 1;
    char *options = NULL;
    CVY_ONNX_CHECK(last >= 1 && shape.dim[last] == inputs, node, "a source %s for a matrix %s", cvy_shape_text(&shape),
                   cvy_shape_text(&weight->shape));
    CVY_ONNX_CHECK(!bias || bias->elems == outputs, node, "%lld biases for %lld outputs",
                   (long long)(bias ? bias->elems : 0), (long long)outputs);
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "channels: %lld%s%s", (long long)outputs,
                            bias ? "" : ", bias: false", last > 1 ? ", flatten: false" : ""));
    CVY_TRY(cvy_onnx_add(node,
                         &(cvy_onnx_layer){.op = "fc",
                                           .options = options,
                                           .weight = weight,
                                           .more = {bias},
                                           .is_changed = !is_turned,
                                           .from = {from},
                                           .nfrom = 1},
                         &name, output));
    if (!is_turned)
        CVY_TRY(turn(node, weight, &data));
    CVY_TRY(cvy_onnx_settle(node, name, "weight", weight));
    CVY_TRY(cvy_onnx_set_values(node, name, "weight", weight->dtype, data, weight->elems));
    return bias ? cvy_onnx_set(node, name, "bias", bias) : CVY_OK;
}

static cvy_status add_fc(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_onnx_tensor *weight,
                         int is_turned, const cvy_onnx_tensor *bias, const char **output)
{
    CVY_TRY(cvy_onnx_fc(node, src->layer, weight, is_turned, bias, output));
    return cvy_onnx_done(node, 0, *output);
}

/* The constant times a number; *out stays as it is if the number is 1. */
static cvy_status times(const cvy_onnx_node *node, double by, const cvy_onnx_tensor **out)
{
    cvy_onnx_tensor *t = NULL;
    if (by == 1 || !*out)
        return CVY_OK;
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &(*out)->shape, &t));
    t->name = (*out)->name;
    for (int64_t i = 0; i < t->elems; i++)
        ((float *)t->data)[i] = (float)(by * cvy_onnx_number(*out, i));
    *out = t;
    return CVY_OK;
}

/* The bias as one number for each output: a single number is repeated. */
static cvy_status read_bias(const cvy_onnx_node *node, int64_t outputs, const cvy_onnx_tensor **bias)
{
    const cvy_onnx_tensor *from = *bias;
    cvy_onnx_tensor *t = NULL;
    if (!from)
        return CVY_OK;
    const int last = from->shape.ndim - 1;
    CVY_ONNX_CHECK(cvy_onnx_is_real(from) &&
                       (from->elems == 1 || (from->elems == outputs && from->shape.dim[last] == outputs)),
                   node, "a bias of shape %s for %lld outputs; it must be the same for all samples",
                   cvy_shape_text(&from->shape), (long long)outputs);
    if (from->elems == outputs)
        return CVY_OK;
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &(cvy_shape){1, {outputs}}, &t));
    for (int64_t i = 0; i < outputs; i++)
        ((float *)t->data)[i] = (float)cvy_onnx_number(from, 0);
    t->name = from->name;
    *bias = t;
    return CVY_OK;
}

static cvy_status translate_gemm(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *weight = NULL, *bias = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_constant(node, 1, &weight));
    CVY_TRY(cvy_onnx_constant(node, 2, &bias));
    CVY_ONNX_CHECK(weight && weight->shape.ndim == 2 && cvy_dtype_is_real(weight->dtype) &&
                       (src->shape.ndim == 2 || node->source.before > 1 || node->source.after > 1),
                   node, "a source %s; it should have two axes, and the second source should be a constant matrix",
                   cvy_shape_text(&src->shape));
    CVY_ONNX_CHECK(cvy_onnx_int(node, "transA", 0) == 0, node, "%s", "transA would mix samples");
    const int is_turned = cvy_onnx_int(node, "transB", 0) != 0;
    CVY_TRY(read_bias(node, weight->shape.dim[!is_turned], &bias));
    CVY_TRY(times(node, cvy_onnx_real(node, "alpha", 1), &weight));
    CVY_TRY(times(node, cvy_onnx_real(node, "beta", 1), &bias));
    return add_fc(node, src, weight, is_turned, bias, &output);
}
CVY_ONNX_DEFINE(gemm) = {"Gemm", .attributes = "alpha beta broadcast transA transB", .translate = translate_gemm};

/* Whether a sum of operator sets 1 to 6 puts its second source at another axis than the last one of ndim. */
static int is_at_other_axis(const cvy_onnx *x, const Cvy__Onnx__NodeProto *adds, int ndim)
{
    for (size_t i = 0; i < adds->n_attribute && x->opset < 7; i++)
        if (strcmp(adds->attribute[i]->name, "axis") == 0)
            return adds->attribute[i]->i != -1 && adds->attribute[i]->i != ndim - 1;
    return 0;
}

/* The only node that reads the output, if it adds a constant row; else NULL. */
static const Cvy__Onnx__NodeProto *find_bias(const cvy_onnx_node *node, int64_t outputs, const cvy_onnx_tensor **bias)
{
    const char *other = NULL;
    const Cvy__Onnx__NodeProto *adds = cvy_onnx_reader_of_two(node->x, node->proto->output[0], "Add", &other);
    *bias = adds ? cvy_onnx_find_constant(node->x, other) : NULL;
    return *bias && (*bias)->elems == outputs && (*bias)->shape.ndim == 1 && cvy_dtype_is_real((*bias)->dtype) &&
                   cvy_onnx_may_be_bias(*bias) && !is_at_other_axis(node->x, adds, node->in[0]->shape.ndim)
               ? adds
               : NULL;
}

static cvy_status two_activations(const cvy_onnx_node *node)
{
    const cvy_onnx_value *a = NULL, *b = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &a));
    CVY_TRY(cvy_onnx_activation(node, 1, &b));
    CVY_TRY(cvy_onnx_aligned(node, a, b));
    CVY_TRY(
        cvy_onnx_add(node, &(cvy_onnx_layer){.op = "matmul", .from = {a->layer, b->layer}, .nfrom = 2}, NULL, &output));
    return cvy_onnx_done(node, 0, output);
}

/* A bias that is added by the next node becomes one of the layer: that node then adds nothing (x->absorbed). */
static cvy_status translate_matmul(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL, *second = cvy_onnx_source(node, 1);
    const cvy_onnx_tensor *bias = NULL;
    const char *output = NULL;
    if (second && !second->constant)
        return two_activations(node);
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_ONNX_CHECK(second && second->constant->shape.ndim == 2 && cvy_dtype_is_real(second->constant->dtype), node,
                   "%s", "the second source should be a matrix");
    const Cvy__Onnx__NodeProto *adds = find_bias(node, second->constant->shape.dim[1], &bias);
    CVY_TRY(add_fc(node, src, second->constant, 0, adds ? bias : NULL, &output));
    return adds ? cvy_onnx_absorb(node, adds, output) : CVY_OK;
}
CVY_ONNX_DEFINE(matmul) = {"MatMul", .translate = translate_matmul};

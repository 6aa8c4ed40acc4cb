/*
 * onnx_arithmetic.c: sums and products of two or more tensors, one of which may be constant, and joined tensors.
 *
 * A constant of one number is an option of a layer. A constant of several numbers becomes a trained tensor, because
 * ONNX does not say which of its constants are trained.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

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

/* ---- one number ---- */

/* A layer that multiplies by a number ("scale"), or adds one ("offset"). */
static cvy_status by_number(const cvy_onnx_node *node, const char *op, const char *from, double by, const char **output)
{
    char *options = NULL;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "by: %.9g", by));
    return cvy_onnx_add(node, &(cvy_onnx_layer){.op = op, .options = options, .from = {from}, .nfrom = 1}, NULL,
                        output);
}

/* src * scale + shift. */
static cvy_status line(const cvy_onnx_node *node, const cvy_onnx_value *src, double scale, double shift)
{
    const char *output = src->layer;
    if (scale != 1)
        CVY_TRY(by_number(node, "scale", output, scale, &output));
    if (shift != 0)
        CVY_TRY(by_number(node, "offset", output, shift, &output));
    return cvy_onnx_done(node, 0, output);
}

/* ---- a tensor ---- */

/* The shape of a constant as option of affine: aligned to the last axes of the source, as in NumPy. */
static cvy_status affine_shape(const cvy_onnx_node *node, const cvy_shape *src, const cvy_shape *t, cvy_text *out)
{
    int fits = src->ndim >= 2;
    for (int d = 0; d < t->ndim - src->ndim; d++)
        fits &= t->dim[d] == 1;
    for (int d = 0; d < src->ndim; d++) {
        const int at = d - src->ndim + t->ndim;
        const int64_t dim = at >= 0 ? t->dim[at] : 1;
        fits &= dim == 1 || (d > 0 && dim == src->dim[d]);
        if (d > 0)
            cvy_text_add(out, "%s%lld", d > 1 ? ", " : "shape: [", (long long)dim);
    }
    cvy_text_add(out, "]");
    CVY_ONNX_CHECK(fits, node,
                   "a constant of shape %s for a source %s; it may differ in axes of length 1 only, and "
                   "must be the same for all samples",
                   cvy_shape_text(t), cvy_shape_text(src));
    return out->status;
}

/* name: "scale" or "shift". data: the values, instead of those of t; may be NULL. */
static cvy_status add_affine(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *t, const char *name,
                             const float *data)
{
    const int is_scale = strcmp(name, "scale") == 0;
    const char *layer = NULL, *output = NULL;
    cvy_text options = {0};
    CVY_ONNX_CHECK(cvy_dtype_is_real(t->dtype), node, "%s should hold real numbers", t->name);
    cvy_status status = affine_shape(node, cvy_onnx_shape(node->x, from), &t->shape, &options);
    cvy_text_add(&options, is_scale ? ", shift: false" : ", scale: false");
    if (status == CVY_OK)
        status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_add(
            node, &(cvy_onnx_layer){.op = "affine", .options = options.data, .weight = t, .from = {from}, .nfrom = 1},
            &layer, &output);
    cvy_text_free(&options);
    CVY_TRY(status);
    CVY_TRY(data ? cvy_onnx_set_values(node, layer, name, CVY_DTYPE_F32, data, t->elems)
                 : cvy_onnx_set(node, layer, name, t));
    return cvy_onnx_done(node, 0, output);
}

/* The constant with another sign (power 1), or inverted (power -1). */
static cvy_status changed(const cvy_onnx_node *node, const cvy_onnx_tensor *t, double sign, int power,
                          const float **out)
{
    float *to = NULL;
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *to * (size_t)CVY_MAX(t->elems, 1), &to));
    for (int64_t i = 0; i < t->elems; i++)
        to[i] = (float)(sign * (power < 0 ? 1 / cvy_onnx_number(t, i) : cvy_onnx_number(t, i)));
    *out = to;
    return CVY_OK;
}

/* ---- the operators ---- */

/* The source that is constant, and the other one; *constant NULL: both depend on the input. */
static void sort_sources(const cvy_onnx_node *node, const cvy_onnx_value **src, const cvy_onnx_tensor **constant,
                         int *is_first)
{
    const cvy_onnx_value *a = cvy_onnx_source(node, 0), *b = cvy_onnx_source(node, 1);
    *is_first = a && a->constant;
    *src = *is_first ? b : a;
    *constant = *is_first ? a->constant : b ? b->constant : NULL;
}

/* gelu by the error function: x / sqrt(2) goes into Erf, Add 1, and the products with x and 1/2 in either order.
 * Returns CVY_NOT_APPLICABLE if the nodes are others. by: the factor of this node. */
static cvy_status translate_erf_gelu(const cvy_onnx_node *node, const cvy_onnx_value *src, double by)
{
    const cvy_onnx *x = node->x;
    const Cvy__Onnx__NodeProto *part[4] = {NULL};
    const char *other[4] = {NULL}, *output = NULL;
    int products = 0;
    double number = 0;
    part[0] = fabs(by - sqrt(0.5)) < 1e-6 ? cvy_onnx_reader(x, node->proto->output[0]) : NULL;
    if (!part[0] || strcmp(part[0]->op_type, "Erf") != 0)
        return CVY_NOT_APPLICABLE;
    for (int i = 1; i < 4; i++) {
        part[i] = cvy_onnx_reader_of_two(x, part[i - 1]->output[0], i == 1 ? "Add" : "Mul", &other[i]);
        if (!part[i])
            return CVY_NOT_APPLICABLE;
        const cvy_onnx_tensor *t = cvy_onnx_find_constant(x, other[i]);
        const int is_number = t && cvy_onnx_is_uniform(t, &number);
        if (i == 1 && (!is_number || number != 1))
            return CVY_NOT_APPLICABLE;
        if (i > 1)
            products |= is_number && number == 0.5 ? 1 : strcmp(other[i], src->name) == 0 ? 2 : 0;
    }
    if (products != 3)
        return CVY_NOT_APPLICABLE;
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = "gelu", .from = {src->layer}, .nfrom = 1}, NULL, &output));
    for (int i = 0; i < 4; i++)
        CVY_TRY(cvy_onnx_absorb(node, part[i], i == 3 ? output : NULL));
    return CVY_OK;
}

static cvy_status scale(const cvy_onnx_node *node, const cvy_onnx_value *src, double by)
{
    const cvy_status status = translate_erf_gelu(node, src, by);
    return status == CVY_NOT_APPLICABLE ? line(node, src, by, 0) : status;
}

static cvy_status translate_erf(const cvy_onnx_node *node)
{
    CVY_ONNX_FAIL(node, "%s", "it is supported as a part of gelu only: x / sqrt(2), Erf, + 1, * x, * 0.5");
}
CVY_ONNX_DEFINE(erf) = {"Erf", .translate = translate_erf};

static cvy_status translate_mul(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    int is_first = 0;
    sort_sources(node, &src, &constant, &is_first);
    if (!constant)
        return two_layers(node, "multiply");
    return constant->elems == 1 ? scale(node, src, cvy_onnx_number(constant, 0))
                                : add_affine(node, src->layer, constant, "scale", NULL);
}
CVY_ONNX_DEFINE(mul) = {"Mul", .translate = translate_mul};

static cvy_status translate_div(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    const float *inverse = NULL;
    int is_first = 0;
    const cvy_status status = cvy_onnx_translate_lrn(node);
    if (status != CVY_NOT_APPLICABLE)
        return status;
    sort_sources(node, &src, &constant, &is_first);
    CVY_ONNX_CHECK(constant && !is_first, node, "%s", "only a division by a constant is supported");
    for (int64_t i = 0; i < constant->elems; i++)
        CVY_ONNX_CHECK(cvy_onnx_number(constant, i) != 0, node, "element %lld of the divisor is 0", (long long)i);
    if (constant->elems == 1)
        return scale(node, src, 1 / cvy_onnx_number(constant, 0));
    CVY_TRY(changed(node, constant, 1, -1, &inverse));
    return add_affine(node, src->layer, constant, "scale", inverse);
}
CVY_ONNX_DEFINE(div) = {"Div", .translate = translate_div};

static cvy_status translate_add(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    int is_first = 0;
    sort_sources(node, &src, &constant, &is_first);
    if (!constant)
        return two_layers(node, "add");
    return constant->elems == 1 ? line(node, src, 1, cvy_onnx_number(constant, 0))
                                : add_affine(node, src->layer, constant, "shift", NULL);
}
CVY_ONNX_DEFINE(add) = {"Add", .translate = translate_add};

static cvy_status translate_sub(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    const float *negative = NULL;
    const char *from = NULL;
    int is_first = 0;
    sort_sources(node, &src, &constant, &is_first);
    if (!constant)
        return two_layers(node, "subtract");
    const double sign = is_first ? 1 : -1;
    if (constant->elems == 1)
        return line(node, src, -sign, sign * cvy_onnx_number(constant, 0));
    from = src->layer;
    if (is_first)
        CVY_TRY(by_number(node, "scale", from, -1, &from));
    else
        CVY_TRY(changed(node, constant, -1, 1, &negative));
    return add_affine(node, from, constant, "shift", negative);
}
CVY_ONNX_DEFINE(sub) = {"Sub", .translate = translate_sub};

/* A chain of layers of two or more sources, of which ours has a limit. */
static cvy_status many(const cvy_onnx_node *node, const char *op, const char *options)
{
    const char *sum = NULL;
    const int limit = cvy_op_find(op)->nsrc_max;
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

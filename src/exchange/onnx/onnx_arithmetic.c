/*
 * onnx_arithmetic.c: sums, differences, products and quotients of two tensors, one of which may be constant.
 *
 * A constant of one number is an option of a layer. A constant of several numbers becomes the tensor of a layer affine;
 * onnx_constant.c decides whether it is trained.
 *
 * ONNX aligns the last axes of two tensors. Ours have the samples first, so both must have the same number of axes:
 * else the samples of one would meet another axis of the other one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

cvy_status cvy_onnx_aligned(const cvy_onnx_node *node, const cvy_onnx_value *a, const cvy_onnx_value *b)
{
    CVY_ONNX_CHECK(a->shape.ndim == b->shape.ndim, node,
                   "sources of %d and %d axes: the samples of one would meet another axis of the other one",
                   a->shape.ndim, b->shape.ndim);
    return CVY_OK;
}

/* ---- operator sets 1 to 6 ---- */

int cvy_onnx_has_old_axis(const cvy_onnx_node *node)
{
    return node->x->opset < 7 && cvy_onnx_int(node, "broadcast", 0) && cvy_onnx_attribute(node, "axis");
}

cvy_status cvy_onnx_old_shape(const cvy_onnx_node *node, const cvy_shape *a, const cvy_shape *b, cvy_shape *out)
{
    const int64_t given = cvy_onnx_int(node, "axis", 0), axis = given < 0 ? given + a->ndim : given;
    CVY_ONNX_CHECK(axis >= 0 && axis <= a->ndim - b->ndim, node,
                   "axis %lld with sources of %d and %d axes (operator set %lld: the axes of the second source lie at "
                   "those of the first from `axis` on)",
                   (long long)given, a->ndim, b->ndim, (long long)node->x->opset);
    *out = *b;
    out->ndim = a->ndim - (int)axis;
    for (int d = b->ndim; d < out->ndim; d++)
        out->dim[d] = 1;
    return CVY_OK;
}

/* The second source, which depends on the input, with axes of length 1 at its end. Its samples must meet those of the
 * first. */
static cvy_status align_old(const cvy_onnx_node *node, const cvy_onnx_value *a, const cvy_onnx_value *b,
                            const char **layer)
{
    cvy_shape shape;
    CVY_TRY(cvy_onnx_old_shape(node, &a->shape, &b->shape, &shape));
    CVY_ONNX_CHECK(shape.ndim == a->shape.ndim, node,
                   "axis %lld: the samples of the second source would meet another axis of the first one",
                   (long long)cvy_onnx_int(node, "axis", 0));
    return cvy_onnx_reshape(node, b->layer, shape.dim + 1, shape.ndim - 1, layer);
}

static cvy_status two_layers(const cvy_onnx_node *node, const char *op)
{
    const cvy_onnx_value *a = NULL, *b = NULL;
    const char *output = NULL, *second = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &a));
    CVY_TRY(cvy_onnx_activation(node, 1, &b));
    second = b->layer;
    if (cvy_onnx_has_old_axis(node))
        CVY_TRY(align_old(node, a, b, &second));
    else
        CVY_TRY(cvy_onnx_aligned(node, a, b));
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = op, .from = {a->layer, second}, .nfrom = 2}, NULL, &output));
    return cvy_onnx_done(node, 0, output);
}

/* ---- a number ---- */

/* src * scale + shift. */
static cvy_status line(const cvy_onnx_node *node, const cvy_onnx_value *src, double scale, double shift)
{
    const char *output = src->layer;
    if (scale != 1)
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", scale, output, &output));
    if (shift != 0)
        CVY_TRY(cvy_onnx_step_real(node, "offset", "by", shift, output, &output));
    return cvy_onnx_done(node, 0, output);
}

/* One number, in a shape that does not give the result more axes. */
static int is_number(const cvy_onnx_value *src, const cvy_onnx_tensor *t)
{
    return t->elems == 1 && t->shape.ndim <= src->shape.ndim;
}

/* ---- a tensor ---- */

/* The sample of the source is repeated to the shape that it has with the constant, by NumPy's rules. *options: the
 * shape of the constant, for affine. */
static cvy_status fit(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *t, cvy_text *options,
                      const char **output)
{
    const cvy_shape src = *cvy_onnx_shape(node->x, from), *c = &t->shape;
    int64_t sample[CVY_NDIM_MAX], shape[CVY_NDIM_MAX];
    int fits = src.ndim >= 2 && c->ndim <= src.ndim && (c->ndim < src.ndim || c->dim[0] == 1);
    for (int d = 1; fits && d < src.ndim; d++) {
        const int at = d - src.ndim + c->ndim;
        shape[d - 1] = at >= 0 ? c->dim[at] : 1;
        fits = shape[d - 1] == src.dim[d] || shape[d - 1] == 1 || src.dim[d] == 1;
        sample[d - 1] = src.dim[d] == 1 ? shape[d - 1] : src.dim[d];
    }
    CVY_ONNX_CHECK(
        fits && t->elems > 0, node,
        "a constant of shape %s for a source %s; lengths must be equal or 1, seen from the last axis, and the "
        "constant must be the same for all samples",
        cvy_shape_text(c), cvy_shape_text(&src));
    cvy_onnx_list(options, "shape", shape, src.ndim - 1);
    CVY_TRY(options->status);
    return cvy_onnx_expand(node, from, sample, src.ndim - 1, output);
}

/* name: "scale" or "shift". data: the values, instead of those of t; may be NULL. */
static cvy_status add_affine(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *t, const char *name,
                             const float *data, const char **output)
{
    const int is_scale = strcmp(name, "scale") == 0;
    const char *layer = NULL;
    cvy_text options = {0};
    CVY_ONNX_CHECK(cvy_dtype_is_real(t->dtype), node, "%s should hold real numbers", t->name);
    cvy_status status = fit(node, from, t, &options, &from);
    cvy_text_add(&options, is_scale ? ", shift: false" : ", scale: false");
    if (status == CVY_OK)
        status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_add(node,
                              &(cvy_onnx_layer){.op = "affine",
                                                .options = options.data,
                                                .weight = t,
                                                .is_changed = data != NULL,
                                                .is_bare = !data && (t->stored ? t->stored : &t->shape)->ndim > 0,
                                                .from = {from},
                                                .nfrom = 1},
                              &layer, output);
    cvy_text_free(&options);
    CVY_TRY(status);
    if (data) {
        CVY_TRY(cvy_onnx_settle(node, layer, name, t));
        return cvy_onnx_set_values(node, layer, name, CVY_DTYPE_F32, data, t->elems);
    }
    return cvy_onnx_set(node, layer, cvy_vars_find(node->x->build.vars, layer) ? "" : name, t);
}

cvy_status cvy_onnx_affine(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *t, const char *name,
                           const char **output)
{
    return add_affine(node, from, t, name, NULL, output);
}

static cvy_status affine(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *t, const char *name,
                         const float *data)
{
    const char *output = NULL;
    CVY_TRY(add_affine(node, from, t, name, data, &output));
    return cvy_onnx_done(node, 0, output);
}

/* The node after a product with "NAME.scale", if it adds "NAME.shift" of the same shape: our writer makes both of one
 * layer affine. */
static const Cvy__Onnx__NodeProto *find_shift(const cvy_onnx_node *node, const cvy_onnx_tensor *scale,
                                              const cvy_onnx_tensor **shift)
{
    const char *other = NULL;
    const size_t n = strlen(scale->name);
    const Cvy__Onnx__NodeProto *adds = cvy_onnx_reader_of_two(node->x, node->proto->output[0], "Add", &other);
    *shift = adds ? cvy_onnx_find_constant(node->x, other) : NULL;
    return *shift && n > 6 && strcmp(scale->name + n - 6, ".scale") == 0 && strlen((*shift)->name) == n &&
                   strncmp(scale->name, (*shift)->name, n - 6) == 0 && strcmp((*shift)->name + n - 6, ".shift") == 0 &&
                   cvy_shape_equal(&scale->shape, &(*shift)->shape) && cvy_dtype_is_real((*shift)->dtype)
               ? adds
               : NULL;
}

static cvy_status add_scale_and_shift(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *scale,
                                      const cvy_onnx_tensor *shift, const Cvy__Onnx__NodeProto *adds)
{
    const char *layer = NULL, *output = NULL;
    cvy_text options = {0};
    CVY_ONNX_CHECK(cvy_dtype_is_real(scale->dtype), node, "%s should hold real numbers", scale->name);
    cvy_status status = fit(node, from, scale, &options, &from);
    if (status == CVY_OK)
        status = cvy_onnx_add(
            node,
            &(cvy_onnx_layer){
                .op = "affine", .options = options.data, .weight = scale, .more = {shift}, .from = {from}, .nfrom = 1},
            &layer, &output);
    cvy_text_free(&options);
    CVY_TRY(status);
    CVY_TRY(cvy_onnx_set(node, layer, "scale", scale));
    CVY_TRY(cvy_onnx_set(node, layer, "shift", shift));
    return cvy_onnx_absorb(node, adds, output);
}

/* The constant with another sign (power 1), or inverted (power -1). */
static cvy_status changed(const cvy_onnx_node *node, const cvy_onnx_tensor *t, double sign, int power,
                          const float **out)
{
    float *to = NULL;
    CVY_TRY(cvy_onnx_take_memory(node->x, sizeof *to * (size_t)t->elems));
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

/* A constant as the second source of an older operator set, with axes of length 1 at its end. */
static cvy_status align_old_constant(const cvy_onnx_node *node, const cvy_onnx_value *src,
                                     const cvy_onnx_tensor **constant)
{
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *t, &t));
    *t = **constant;
    CVY_TRY(cvy_onnx_old_shape(node, &src->shape, &(*constant)->shape, &t->shape));
    *constant = t;
    return CVY_OK;
}

/* What the operators have in common: whose source is constant, and what the older operator sets had. */
static cvy_status read_sources(const cvy_onnx_node *node, const cvy_onnx_value **src, const cvy_onnx_tensor **constant,
                               int *is_first)
{
    CVY_ONNX_CHECK(node->nin == 2 && node->in[0] && node->in[1], node, "%d sources, expected 2", node->nin);
    sort_sources(node, src, constant, is_first);
    if (*constant && *src && is_number(*src, *constant))
        CVY_TRY(cvy_onnx_settle_number(node->x, *constant));
    if (!*constant || !cvy_onnx_has_old_axis(node))
        return CVY_OK;
    CVY_ONNX_CHECK(!*is_first, node,
                   "the first source is the constant %s, and the second one is broadcast from axis %lld on "
                   "(operator set %lld); only the other order is supported",
                   (*constant)->name, (long long)cvy_onnx_int(node, "axis", 0), (long long)node->x->opset);
    return align_old_constant(node, *src, constant);
}

static cvy_status translate_mul(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL, *shift = NULL;
    int is_first = 0;
    CVY_TRY(read_sources(node, &src, &constant, &is_first));
    if (!constant)
        return two_layers(node, "multiply");
    const Cvy__Onnx__NodeProto *adds = find_shift(node, constant, &shift);
    if (adds)
        return add_scale_and_shift(node, src->layer, constant, shift, adds);
    return is_number(src, constant) ? scale(node, src, cvy_onnx_number(constant, 0))
                                    : affine(node, src->layer, constant, "scale", NULL);
}
CVY_ONNX_DEFINE(mul) = {"Mul", .attributes = "axis broadcast", .translate = translate_mul};

static cvy_status translate_div(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    const float *inverse = NULL;
    const char *output = NULL;
    int is_first = 0;
    const cvy_status status = cvy_onnx_translate_lrn(node);
    if (status != CVY_NOT_APPLICABLE)
        return status;
    CVY_TRY(read_sources(node, &src, &constant, &is_first));
    if (!constant)
        return two_layers(node, "divide");
    if (is_first) {
        CVY_TRY(cvy_onnx_step(node, "reciprocal", NULL, src->layer, &output));
        if (!is_number(src, constant))
            return affine(node, output, constant, "scale", NULL);
        if (cvy_onnx_number(constant, 0) != 1)
            CVY_TRY(cvy_onnx_step_real(node, "scale", "by", cvy_onnx_number(constant, 0), output, &output));
        return cvy_onnx_done(node, 0, output);
    }
    for (int64_t i = 0; i < constant->elems; i++)
        CVY_ONNX_CHECK(cvy_onnx_number(constant, i) != 0, node, "element %lld of the divisor is 0", (long long)i);
    if (is_number(src, constant))
        return scale(node, src, 1 / cvy_onnx_number(constant, 0));
    CVY_TRY(changed(node, constant, 1, -1, &inverse));
    return affine(node, src->layer, constant, "scale", inverse);
}
CVY_ONNX_DEFINE(div) = {"Div", .attributes = "axis broadcast", .translate = translate_div};

static cvy_status translate_add(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    int is_first = 0;
    CVY_TRY(read_sources(node, &src, &constant, &is_first));
    if (!constant)
        return two_layers(node, "add");
    return is_number(src, constant) ? line(node, src, 1, cvy_onnx_number(constant, 0))
                                    : affine(node, src->layer, constant, "shift", NULL);
}
CVY_ONNX_DEFINE(add) = {"Add", .attributes = "axis broadcast", .translate = translate_add};

static cvy_status translate_sub(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    const float *negative = NULL;
    const char *from = NULL;
    int is_first = 0;
    CVY_TRY(read_sources(node, &src, &constant, &is_first));
    if (!constant)
        return two_layers(node, "subtract");
    const double sign = is_first ? 1 : -1;
    if (is_number(src, constant))
        return line(node, src, -sign, sign * cvy_onnx_number(constant, 0));
    from = src->layer;
    if (!is_first && constant->kind == CVY_ONNX_COMPUTED) {
        CVY_TRY(changed(node, constant, -1, 1, &negative));
        return affine(node, from, constant, "shift", negative);
    }
    /* the variable has the values and the name of the file, so the source changes its sign */
    CVY_TRY(cvy_onnx_step_real(node, "scale", "by", -1, from, &from));
    CVY_TRY(add_affine(node, from, constant, "shift", NULL, &from));
    if (!is_first)
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", -1, from, &from));
    return cvy_onnx_done(node, 0, from);
}
CVY_ONNX_DEFINE(sub) = {"Sub", .attributes = "axis broadcast", .translate = translate_sub};

/* x to the power of a constant, or a positive constant to the power of x. */
static cvy_status translate_pow(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *constant = NULL;
    const char *output = NULL;
    int is_first = 0;
    CVY_TRY(read_sources(node, &src, &constant, &is_first));
    CVY_ONNX_CHECK(constant && is_number(src, constant), node, "%s",
                   "one of its sources should be a constant number, and the other one depend on the input");
    const double number = cvy_onnx_number(constant, 0);
    output = src->layer;
    if (is_first) {
        CVY_ONNX_CHECK(number > 0, node, "%g to the power of a source is not supported", number);
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", log(number), output, &output));
        CVY_TRY(cvy_onnx_step(node, "exp", NULL, output, &output));
    } else if (number == 2 || number == 0.5 || number == -1) {
        CVY_TRY(cvy_onnx_step(node,
                              number == 2     ? "square"
                              : number == 0.5 ? "sqrt"
                                              : "reciprocal",
                              NULL, output, &output));
    } else if (number != 1) {
        CVY_TRY(cvy_onnx_step_real(node, "power", "exponent", number, output, &output));
    }
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(pow) = {"Pow", .attributes = "axis broadcast", .translate = translate_pow};

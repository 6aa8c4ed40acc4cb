/*
 * onnx_fold.c: computes nodes whose sources are all constant: the shapes that exporters compute in the graph, and
 * weights that they transpose or convert.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx_fold.h"

void cvy_onnx_set_number(const cvy_onnx_tensor *t, int64_t i, double value)
{
    if (t->dtype == CVY_DTYPE_F32)
        ((float *)t->data)[i] = (float)value;
    else if (t->dtype == CVY_DTYPE_F64)
        ((double *)t->data)[i] = value;
    else /* INT64_MAX, the end of many a slice, stays as it is */
        ((int64_t *)t->data)[i] = value >= 9223372036854775807.0    ? INT64_MAX
                                  : value <= -9223372036854775807.0 ? INT64_MIN
                                  : isnan(value)                    ? 0
                                                                    : (int64_t)value;
}

/* ---- constants and shapes ---- */

static cvy_status list_of(const cvy_onnx_node *node, const Cvy__Onnx__AttributeProto *a, cvy_onnx_tensor **out)
{
    const int is_list = a->type == CVY_ONNX_ATTRIBUTE_FLOATS || a->type == CVY_ONNX_ATTRIBUTE_INTS;
    const int is_real = a->type == CVY_ONNX_ATTRIBUTE_FLOATS || a->type == CVY_ONNX_ATTRIBUTE_FLOAT;
    const cvy_shape shape = {.ndim = is_list, .dim = {(int64_t)(is_real ? a->n_floats : a->n_ints)}};
    CVY_TRY(cvy_onnx_new(node->x, is_real ? CVY_DTYPE_F32 : CVY_DTYPE_I64, &shape, out));
    for (int64_t i = 0; i < (*out)->elems; i++)
        if (is_real)
            ((float *)(*out)->data)[i] = is_list ? a->floats[i] : a->f;
        else
            ((int64_t *)(*out)->data)[i] = is_list ? a->ints[i] : a->i;
    return CVY_OK;
}

static cvy_status fold_constant(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    static const char *const names[] = {"value_float", "value_floats", "value_int", "value_ints"};
    const Cvy__Onnx__AttributeProto *a = cvy_onnx_attribute(node, "value");
    cvy_onnx_tensor *t = NULL;
    (void)src;
    if (a && a->t) {
        CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *t, &t));
        CVY_TRY(cvy_onnx_tensor_read(node->x->out->pool, node->x->folder, a->t, t));
        return cvy_onnx_done_constant(node, 0, t);
    }
    a = cvy_onnx_attribute(node, "sparse_value");
    if (a && a->sparse_tensor) {
        CVY_TRY(cvy_onnx_take_sparse(node->x, a->sparse_tensor, &t));
        return cvy_onnx_done_constant(node, 0, t);
    }
    for (int i = 0; i < CVY_COUNT(names); i++)
        if ((a = cvy_onnx_attribute(node, names[i])) != NULL) {
            CVY_TRY(list_of(node, a, &t));
            return cvy_onnx_done_constant(node, 0, t);
        }
    CVY_ONNX_FAIL(node, "%s", "it has no value that is a tensor or numbers");
}

enum { MOST_TIMES = 1 << 13 }; /* so that the products are exact in double */

int64_t cvy_onnx_batch_times(int64_t number)
{
    const int64_t times = number / CVY_ONNX_BATCH;
    return number % CVY_ONNX_BATCH == 0 && times > 0 && times <= MOST_TIMES ? times : 0;
}

cvy_status cvy_onnx_shape_from(const cvy_onnx_node *node, const cvy_onnx_tensor *t, cvy_shape *out)
{
    CVY_ONNX_CHECK(t->elems <= CVY_NDIM_MAX && t->dtype == CVY_DTYPE_I64, node, "%lld dimensions", (long long)t->elems);
    out->ndim = (int)t->elems;
    for (int i = 0; i < out->ndim; i++)
        out->dim[i] = cvy_onnx_batch_times(cvy_onnx_i64(t)[i]) == 1 ? 1 : cvy_onnx_i64(t)[i];
    return CVY_OK; /* cvy_onnx_new() checks it */
}

static cvy_status fold_constant_of_shape(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const Cvy__Onnx__AttributeProto *a = cvy_onnx_attribute(node, "value");
    cvy_onnx_tensor *t = NULL, value = {.dtype = CVY_DTYPE_F32};
    cvy_shape shape = {0};
    if (a && a->t)
        CVY_TRY(cvy_onnx_tensor_read(node->x->out->pool, node->x->folder, a->t, &value));
    CVY_ONNX_CHECK(!value.data || value.elems == 1, node, "its value has %lld numbers, expected 1",
                   (long long)value.elems);
    CVY_TRY(cvy_onnx_shape_from(node, src[0], &shape));
    CVY_TRY(cvy_onnx_new(node->x, value.dtype, &shape, &t));
    for (int64_t i = 0; i < t->elems && value.data; i++)
        cvy_onnx_copy_elem(t, i, &value, 0);
    return cvy_onnx_done_constant(node, 0, t);
}

static cvy_status shape_of(const cvy_onnx_node *node)
{
    const cvy_onnx_value *v = cvy_onnx_source(node, 0);
    cvy_onnx_tensor *t = NULL;
    CVY_ONNX_CHECK(v, node, "%s", "it has no source");
    const cvy_shape *shape = v->constant ? &v->constant->shape : &v->shape;
    int64_t first = cvy_onnx_int(node, "start", 0), end = cvy_onnx_int(node, "end", shape->ndim);
    first = CVY_MIN(CVY_MAX(first < 0 ? first + shape->ndim : first, (int64_t)0), (int64_t)shape->ndim);
    end = CVY_MIN(CVY_MAX(end < 0 ? end + shape->ndim : end, first), (int64_t)shape->ndim);
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_I64, &(cvy_shape){1, {end - first}}, &t));
    for (int64_t i = first; i < end; i++)
        ((int64_t *)t->data)[i - first] =
            i == v->batch.at && !v->constant ? CVY_ONNX_BATCH * cvy_onnx_batch_dim(&v->batch) : shape->dim[i];
    return cvy_onnx_done_constant(node, 0, t);
}

/* ---- moving elements ---- */

static cvy_status with_shape(const cvy_onnx_node *node, const cvy_onnx_tensor *from, const cvy_shape *shape)
{
    cvy_onnx_tensor *t = NULL;
    int64_t elems = 1;
    for (int d = 0; d < shape->ndim; d++) {
        CVY_ONNX_CHECK(shape->dim[d] >= 0 && shape->dim[d] <= CVY_ONNX_ELEMS / CVY_MAX(elems, (int64_t)1), node,
                       "dimension %d becomes %lld", d, (long long)shape->dim[d]);
        elems *= shape->dim[d];
    }
    CVY_ONNX_CHECK(elems == from->elems, node, "%s cannot become %s", cvy_shape_text(&from->shape),
                   cvy_shape_text(shape));
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *t, &t));
    *t = *from;
    t->shape = *shape;
    return cvy_onnx_done_constant(node, 0, t);
}

static cvy_status fold_identity(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *t, &t));
    *t = *src[0];
    t->name = node->proto->output[0]; /* with it exporters give back its own name to a weight that they have merged with
                                         an equal one */
    return cvy_onnx_done_constant(node, 0, t);
}

static cvy_status fold_squeeze(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const int64_t *axes = NULL;
    int n = 0;
    cvy_shape shape = {0};
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    for (int d = 0; d < src[0]->shape.ndim; d++) {
        int goes = n == 0 && src[0]->shape.dim[d] == 1;
        for (int i = 0; i < n; i++)
            goes |= (axes[i] < 0 ? axes[i] + src[0]->shape.ndim : axes[i]) == d;
        if (!goes)
            shape.dim[shape.ndim++] = src[0]->shape.dim[d];
    }
    return with_shape(node, src[0], &shape);
}

static cvy_status fold_unsqueeze(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const int64_t *axes = NULL;
    int n = 0, from = 0;
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    CVY_ONNX_CHECK(n <= CVY_NDIM_MAX - src[0]->shape.ndim, node, "%d dimensions", src[0]->shape.ndim + n);
    cvy_shape shape = {.ndim = src[0]->shape.ndim + n};
    for (int d = 0; d < shape.ndim; d++) {
        int is_new = 0;
        for (int i = 0; i < n; i++)
            is_new |= (axes[i] < 0 ? axes[i] + shape.ndim : axes[i]) == d;
        CVY_ONNX_CHECK(is_new || from < src[0]->shape.ndim, node, "axis %d is named twice", d);
        shape.dim[d] = is_new ? 1 : src[0]->shape.dim[from++];
    }
    return with_shape(node, src[0], &shape);
}

static cvy_status fold_reshape(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const int64_t *to = NULL;
    cvy_shape shape = {0};
    int64_t known = 1;
    int open = -1;
    CVY_TRY(cvy_onnx_ints(node, "shape", 1, &to, &shape.ndim));
    CVY_ONNX_CHECK(shape.ndim <= CVY_NDIM_MAX, node, "%d dimensions", shape.ndim);
    for (int i = 0; i < shape.ndim; i++) {
        const int64_t dim = to[i];
        shape.dim[i] = dim == 0 && i < src[0]->shape.ndim ? src[0]->shape.dim[i] : dim;
        CVY_ONNX_CHECK(dim >= -1 && (dim >= 0 || open < 0), node, "dimension %d becomes %lld", i, (long long)dim);
        if (dim == -1)
            open = i;
        else if (shape.dim[i] <= CVY_ONNX_ELEMS / CVY_MAX(known, (int64_t)1)) /* else with_shape() refuses it */
            known *= shape.dim[i];
    }
    if (open >= 0)
        shape.dim[open] = known > 0 ? src[0]->elems / known : 0;
    return with_shape(node, src[0], &shape);
}

static cvy_status fold_transpose(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *from = src[0];
    const int64_t *order = NULL;
    const int ndim = from->shape.ndim;
    int n = 0, axis[CVY_NDIM_MAX];
    cvy_shape shape = {.ndim = ndim};
    unsigned seen = 0;
    cvy_onnx_tensor *to = NULL;
    CVY_TRY(cvy_onnx_ints(node, "perm", -1, &order, &n));
    CVY_ONNX_CHECK(n == 0 || n == ndim, node, "%d axes for %s", n, cvy_shape_text(&from->shape));
    for (int d = 0; d < ndim; d++) {
        const int64_t at = n ? order[d] : ndim - 1 - d;
        CVY_ONNX_CHECK(at >= 0 && at < ndim && !(seen >> at & 1), node, "entry %d of perm is %lld for %s", d,
                       (long long)at, cvy_shape_text(&from->shape));
        seen |= 1U << at;
        axis[d] = (int)at;
        shape.dim[d] = from->shape.dim[at];
    }
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, &shape, &to));
    to->name = from->name;
    for (int64_t i = 0; i < to->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0}, rest = i, k = 0;
        for (int d = ndim - 1; d >= 0; d--) {
            at[axis[d]] = rest % shape.dim[d];
            rest /= shape.dim[d];
        }
        for (int d = 0; d < ndim; d++)
            k = k * from->shape.dim[d] + at[d];
        cvy_onnx_copy_elem(to, i, from, k);
    }
    return cvy_onnx_done_constant(node, 0, to);
}

/* ---- arithmetic ---- */

static cvy_status fold_cast(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    int64_t to = 0;
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_onnx_cast_type(node, &to));
    const cvy_dtype dtype = to == CVY_ONNX_DOUBLE       ? CVY_DTYPE_F64
                            : cvy_onnx_type_is_real(to) ? CVY_DTYPE_F32
                                                        : CVY_DTYPE_I64;
    CVY_ONNX_CHECK(src[0]->elems != 1 || src[0]->dtype != CVY_DTYPE_I64 || dtype == CVY_DTYPE_I64 ||
                       !cvy_onnx_batch_times(cvy_onnx_i64(src[0])[0]),
                   node, "%s", "it computes with the number of samples, which must stay free");
    CVY_TRY(cvy_onnx_new(node->x, dtype, &src[0]->shape, &t));
    for (int64_t i = 0; i < t->elems; i++) {
        const double number = cvy_onnx_number(src[0], i);
        CVY_ONNX_CHECK(cvy_onnx_type_holds(to, number), node, "a cast of the constant %g to %s, which cannot hold it",
                       number, cvy_onnx_type_name(to));
        cvy_onnx_set_number(t, i, to == CVY_ONNX_BOOL ? number != 0 : number);
    }
    return cvy_onnx_done_constant(node, 0, t);
}

/* The dtype is that of the second source. */
static cvy_status fold_cast_like(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_onnx_new(node->x, src[1]->dtype, &src[0]->shape, &t));
    for (int64_t i = 0; i < t->elems; i++)
        cvy_onnx_set_number(t, i, cvy_onnx_number(src[0], i));
    return cvy_onnx_done_constant(node, 0, t);
}

/* The remainder has the sign of the divisor, or with fmod that of a. */
static double remainder_of(double a, double b, int is_fmod)
{
    const double r = fmod(a, b);
    return !is_fmod && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double compute(const cvy_onnx_node *node, double a, double b, int is_whole)
{
    const char *op = node->op;
    switch (*op) {
    case 'A': return a + b;
    case 'S': return a - b;
    case 'P': return pow(a, b);
    case 'D': return is_whole ? trunc(a / b) : a / b;
    default: break;
    }
    if (strcmp(op, "Mod") == 0)
        return remainder_of(a, b, cvy_onnx_int(node, "fmod", 0) != 0);
    return op[1] == 'u' ? a * b : op[1] == 'a' ? fmax(a, b) : fmin(a, b);
}

/* What is computed with the number of samples N: products with whole numbers, and quotients that stay multiples of N.
 */
static cvy_status compute_whole(const cvy_onnx_node *node, int64_t a, int64_t b, double *out)
{
    const int64_t m = cvy_onnx_batch_times(a), n = cvy_onnx_batch_times(b);
    const int is_product = strcmp(node->op, "Mul") == 0, is_quotient = strcmp(node->op, "Div") == 0;
    CVY_ONNX_CHECK(b != 0 || (!is_quotient && strcmp(node->op, "Mod") != 0), node, "%s", "it divides by 0");
    *out = compute(node, (double)a, (double)b, 1);
    if (m == 0 && n == 0)
        return CVY_OK;
    *out = is_product && (m == 0) != (n == 0)                             ? (double)a * (double)b
           : is_quotient && m > 0 && n > 0 && m % n == 0                  ? (double)(m / n)
           : is_quotient && m > 0 && n == 0 && b > 0 && m % b == 0        ? (double)(m / b) * (double)CVY_ONNX_BATCH
           : strcmp(node->op, "Max") == 0 && (a == 1 || b == 1 || a == b) ? fmax((double)a, (double)b)
                                                                          : -1;
    CVY_ONNX_CHECK(*out > 0 && *out < (double)CVY_ONNX_BATCH * (MOST_TIMES + 1), node, "%s",
                   "it computes with the number of samples, which must stay free");
    return CVY_OK;
}

cvy_status cvy_onnx_common_shape(const cvy_onnx_node *node, const cvy_shape *a, const cvy_shape *b, cvy_shape *out)
{
    *out = (cvy_shape){.ndim = CVY_MAX(a->ndim, b->ndim)};
    for (int d = 0; d < out->ndim; d++) {
        const int at = d - out->ndim + a->ndim, bt = d - out->ndim + b->ndim;
        const int64_t m = at >= 0 ? a->dim[at] : 1, n = bt >= 0 ? b->dim[bt] : 1;
        CVY_ONNX_CHECK(m == n || m == 1 || n == 1, node, "of constants of shapes %s and %s", cvy_shape_text(a),
                       cvy_shape_text(b));
        out->dim[d] = m == 1 ? n : m;
    }
    return CVY_OK;
}

int64_t cvy_onnx_repeated(const cvy_shape *src, const cvy_shape *dst, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = dst->ndim - 1; d >= dst->ndim - src->ndim; d--) {
        const int64_t n = src->dim[d - dst->ndim + src->ndim];
        at += (n == 1 ? 0 : i % dst->dim[d]) * step;
        i /= dst->dim[d];
        step *= n;
    }
    return at;
}

static cvy_status fold_arithmetic(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *a = src[0], *b = node->nin == 2 ? src[1] : NULL;
    const int is_whole = a->dtype == CVY_DTYPE_I64;
    cvy_onnx_tensor *t = NULL;
    cvy_shape shape, second;
    double result = 0;
    CVY_ONNX_CHECK(b && (a->dtype == CVY_DTYPE_I64) == (b->dtype == CVY_DTYPE_I64), node,
                   "of %d constants, expected two that are both whole, or both real", node->nin);
    second = b->shape;
    if (cvy_onnx_has_old_axis(node))
        CVY_TRY(cvy_onnx_old_shape(node, &a->shape, &b->shape, &second));
    CVY_TRY(cvy_onnx_common_shape(node, &a->shape, &second, &shape));
    CVY_TRY(cvy_onnx_new(node->x, a->dtype, &shape, &t));
    for (int64_t i = 0; i < t->elems; i++) {
        const int64_t k = cvy_onnx_repeated(&a->shape, &shape, i), m = cvy_onnx_repeated(&second, &shape, i);
        if (is_whole)
            CVY_TRY(compute_whole(node, cvy_onnx_i64(a)[k], cvy_onnx_i64(b)[m], &result));
        else
            result = compute(node, cvy_onnx_number(a, k), cvy_onnx_number(b, m), 0);
        cvy_onnx_set_number(t, i, result);
    }
    return cvy_onnx_done_constant(node, 0, t);
}

static int decide(const char *op, double a, double b)
{
    const int is_equal = a == b;
    switch (*op) {
    case 'E': return is_equal;
    case 'A': return a != 0 && b != 0;
    case 'O': return a != 0 || b != 0;
    case 'X': return (a != 0) != (b != 0);
    case 'L': return a < b || (is_equal && strcmp(op, "LessOrEqual") == 0);
    default: return a > b || (is_equal && strcmp(op, "GreaterOrEqual") == 0);
    }
}

/* Comparisons, And, Or and Xor. The number of samples is larger than 0, and no more is known of it. */
static cvy_status fold_decision(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *a = src[0], *b = src[1];
    cvy_onnx_tensor *t = NULL;
    cvy_shape shape;
    CVY_TRY(cvy_onnx_common_shape(node, &a->shape, &b->shape, &shape));
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_I64, &shape, &t));
    for (int64_t i = 0; i < t->elems; i++) {
        const double x = cvy_onnx_number(a, cvy_onnx_repeated(&a->shape, &shape, i)),
                     y = cvy_onnx_number(b, cvy_onnx_repeated(&b->shape, &shape, i));
        const int has_batch = (a->dtype == CVY_DTYPE_I64 && cvy_onnx_batch_times((int64_t)x)) ||
                              (b->dtype == CVY_DTYPE_I64 && cvy_onnx_batch_times((int64_t)y));
        CVY_ONNX_CHECK(!has_batch || x <= 0 || y <= 0 || x == y, node, "%s",
                       "it compares the number of samples, which must stay free");
        cvy_onnx_set_number(t, i, decide(node->op, x, y));
    }
    return cvy_onnx_done_constant(node, 0, t);
}

static double negative(double x)
{
    return -x;
}

static double inverse(double x)
{
    return 1 / x;
}

static double sign(double x)
{
    return (x > 0) - (x < 0);
}

static double is_zero(double x)
{
    return x == 0;
}

static double is_nan(double x)
{
    return isnan(x) != 0;
}

static cvy_status fold_function(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    static const struct {
        const char *op;
        double (*of)(double x);
    } functions[] = {{"Neg", negative}, {"Abs", fabs},  {"Sqrt", sqrt},   {"Reciprocal", inverse}, {"Exp", exp},
                     {"Log", log},      {"Sin", sin},   {"Cos", cos},     {"Floor", floor},        {"Ceil", ceil},
                     {"Round", rint},   {"Sign", sign}, {"Not", is_zero}, {"IsNaN", is_nan},       {"Tanh", tanh}};
    cvy_onnx_tensor *t = NULL;
    int f = 0;
    while (strcmp(functions[f].op, node->op) != 0)
        f++;
    const cvy_dtype dtype = strcmp(node->op, "IsNaN") == 0 ? CVY_DTYPE_I64 : src[0]->dtype;
    CVY_TRY(cvy_onnx_new(node->x, dtype, &src[0]->shape, &t));
    for (int64_t i = 0; i < t->elems; i++) {
        CVY_ONNX_CHECK(src[0]->dtype != CVY_DTYPE_I64 || !cvy_onnx_batch_times(cvy_onnx_i64(src[0])[i]), node, "%s",
                       "it computes with the number of samples, which must stay free");
        cvy_onnx_set_number(t, i, functions[f].of(cvy_onnx_number(src[0], i)));
    }
    return cvy_onnx_done_constant(node, 0, t);
}

/* ---- the table ---- */

static const struct {
    const char *op;
    cvy_onnx_fold_fn fold;
    int nsrc; /* sources that must be there */
} folds[] = {
    {"Constant", fold_constant, 0},
    {"ConstantOfShape", fold_constant_of_shape, 1},
    {"Shape", NULL, 0},
    {"Identity", fold_identity, 1},
    {"Squeeze", fold_squeeze, 1},
    {"Unsqueeze", fold_unsqueeze, 1},
    {"Reshape", fold_reshape, 1},
    {"Transpose", fold_transpose, 1},
    {"Gather", cvy_onnx_fold_gather, 2},
    {"Slice", cvy_onnx_fold_slice, 1},
    {"Concat", cvy_onnx_fold_concat, 1},
    {"Cast", fold_cast, 1},
    {"CastLike", fold_cast_like, 2},
    {"Expand", cvy_onnx_fold_expand, 2},
    {"Tile", cvy_onnx_fold_tile, 2},
    {"Range", cvy_onnx_fold_range, 3},
    {"Trilu", cvy_onnx_fold_trilu, 1},
    {"Einsum", cvy_onnx_fold_einsum, 1},
    {"ScatterND", cvy_onnx_fold_scatter_nd, 3},
    {"CumSum", cvy_onnx_fold_cumsum, 2},
    {"Where", cvy_onnx_fold_where, 3},
    {"ReduceSum", cvy_onnx_fold_reduce, 1},
    {"ReduceProd", cvy_onnx_fold_reduce, 1},
    {"ReduceMin", cvy_onnx_fold_reduce, 1},
    {"ReduceMax", cvy_onnx_fold_reduce, 1},
    {"ReduceMean", cvy_onnx_fold_reduce, 1},
    {"Add", fold_arithmetic, 2},
    {"Sub", fold_arithmetic, 2},
    {"Mul", fold_arithmetic, 2},
    {"Div", fold_arithmetic, 2},
    {"Pow", fold_arithmetic, 2},
    {"Max", fold_arithmetic, 1},
    {"Min", fold_arithmetic, 1},
    {"Mod", fold_arithmetic, 2},
    {"Equal", fold_decision, 2},
    {"Less", fold_decision, 2},
    {"LessOrEqual", fold_decision, 2},
    {"Greater", fold_decision, 2},
    {"GreaterOrEqual", fold_decision, 2},
    {"And", fold_decision, 2},
    {"Or", fold_decision, 2},
    {"Xor", fold_decision, 2},
    {"Neg", fold_function, 1},
    {"Abs", fold_function, 1},
    {"Sqrt", fold_function, 1},
    {"Reciprocal", fold_function, 1},
    {"Exp", fold_function, 1},
    {"Log", fold_function, 1},
    {"Sin", fold_function, 1},
    {"Cos", fold_function, 1},
    {"Tanh", fold_function, 1},
    {"Floor", fold_function, 1},
    {"Ceil", fold_function, 1},
    {"Round", fold_function, 1},
    {"Sign", fold_function, 1},
    {"Not", fold_function, 1},
    {"IsNaN", fold_function, 1},
};

static int find_fold(const char *op)
{
    for (int i = 0; i < CVY_COUNT(folds); i++)
        if (strcmp(folds[i].op, op) == 0)
            return i;
    return -1;
}

int cvy_onnx_folds(const char *op)
{
    return find_fold(op) >= 0;
}

cvy_status cvy_onnx_fold(const cvy_onnx_node *node)
{
    const int at = find_fold(node->op);
    const cvy_onnx_tensor **src = NULL;
    if (strcmp(node->op, "Shape") == 0)
        return shape_of(node);
    for (int i = 0; i < folds[at].nsrc; i++)
        CVY_ONNX_CHECK(i < node->nin && *node->proto->input[i], node, "source %d is left out", i);
    for (int i = 0; i < node->nin; i++)
        if (*node->proto->input[i] && (!node->in[i] || !node->in[i]->constant))
            return CVY_NOT_APPLICABLE;
    CVY_TRY(cvy_mem_alloc(sizeof *src * ((size_t)node->nin + 1), &src));
    for (int i = 0; i < node->nin; i++)
        src[i] = node->in[i] ? node->in[i]->constant : NULL;
    const cvy_status status = folds[at].fold(node, src);
    cvy_mem_free(&src);
    return status;
}

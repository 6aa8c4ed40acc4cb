/*
 * onnx_fold.c: computes nodes whose sources are all constant: the shapes that exporters compute in the graph, and
 * weights that they transpose or convert.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

typedef cvy_status (*fold_fn)(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);

static size_t width(const cvy_onnx_tensor *t)
{
    return cvy_dtype_bytes(t->dtype);
}

static void copy_elem(const cvy_onnx_tensor *to, int64_t i, const cvy_onnx_tensor *from, int64_t k)
{
    memcpy((char *)to->data + (size_t)i * width(to), (const char *)from->data + (size_t)k * width(from), width(from));
}

static void set_number(const cvy_onnx_tensor *t, int64_t i, double value)
{
    if (t->dtype == CVY_DTYPE_F32)
        ((float *)t->data)[i] = (float)value;
    else if (t->dtype == CVY_DTYPE_F64)
        ((double *)t->data)[i] = value;
    else /* what is not finite or too large has no whole number */
        ((int64_t *)t->data)[i] = value > -9e18 && value < 9e18 ? (int64_t)value : 0;
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
    for (int i = 0; i < CVY_COUNT(names); i++)
        if ((a = cvy_onnx_attribute(node, names[i])) != NULL) {
            CVY_TRY(list_of(node, a, &t));
            return cvy_onnx_done_constant(node, 0, t);
        }
    CVY_ONNX_FAIL(node, "%s", "it has no value that is a tensor or numbers");
}

/* A shape that a constant has; cvy_onnx_new() checks it. */
static cvy_status shape_from(const cvy_onnx_node *node, const cvy_onnx_tensor *t, cvy_shape *out)
{
    CVY_ONNX_CHECK(t->elems <= CVY_NDIM_MAX && t->dtype == CVY_DTYPE_I64, node, "%lld dimensions", (long long)t->elems);
    out->ndim = (int)t->elems;
    for (int i = 0; i < out->ndim; i++)
        out->dim[i] = cvy_onnx_i64(t)[i];
    return CVY_OK;
}

/* Of a constant with one number. */
static cvy_status fold_expand(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_shape shape = {0};
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(shape_from(node, src[1], &shape));
    CVY_ONNX_CHECK(src[0]->elems == 1 && src[0]->shape.ndim <= shape.ndim, node, "a constant of shape %s becomes %s",
                   cvy_shape_text(&src[0]->shape), cvy_shape_text(&shape));
    CVY_TRY(cvy_onnx_new(node->x, src[0]->dtype, &shape, &t));
    for (int64_t i = 0; i < t->elems; i++)
        copy_elem(t, i, src[0], 0);
    return cvy_onnx_done_constant(node, 0, t);
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
    CVY_TRY(shape_from(node, src[0], &shape));
    CVY_TRY(cvy_onnx_new(node->x, value.dtype, &shape, &t));
    for (int64_t i = 0; i < t->elems && value.data; i++)
        copy_elem(t, i, &value, 0);
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
        ((int64_t *)t->data)[i - first] = i == 0 && !v->constant ? CVY_ONNX_BATCH : shape->dim[i];
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
        copy_elem(to, i, from, k);
    }
    return cvy_onnx_done_constant(node, 0, to);
}

/* Of lists, as graphs compute shapes with them: entries of dimension 0. */
static cvy_status fold_gather(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *from = src[0], *index = src[1];
    cvy_onnx_tensor *to = NULL;
    CVY_ONNX_CHECK(from->shape.ndim == 1 && cvy_onnx_int(node, "axis", 0) == 0 && index->dtype == CVY_DTYPE_I64, node,
                   "from a constant of shape %s", cvy_shape_text(&from->shape));
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, &index->shape, &to));
    for (int64_t i = 0; i < to->elems; i++) {
        const int64_t k = cvy_onnx_i64(index)[i], at = k < 0 ? k + from->elems : k;
        CVY_ONNX_CHECK(at >= 0 && at < from->elems, node, "entry %lld of %lld", (long long)k, (long long)from->elems);
        copy_elem(to, i, from, at);
    }
    return cvy_onnx_done_constant(node, 0, to);
}

static cvy_status fold_slice(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const int64_t *starts = NULL, *ends = NULL, *steps = NULL;
    int n = 0, nends = 0, nsteps = 0;
    cvy_onnx_tensor *to = NULL;
    CVY_TRY(cvy_onnx_ints(node, "starts", 1, &starts, &n));
    CVY_TRY(cvy_onnx_ints(node, "ends", 2, &ends, &nends));
    CVY_TRY(cvy_onnx_ints(node, NULL, 4, &steps, &nsteps));
    CVY_ONNX_CHECK(src[0]->shape.ndim == 1 && n == 1 && nends == 1 && (nsteps == 0 || steps[0] == 1), node,
                   "from a constant of shape %s", cvy_shape_text(&src[0]->shape));
    const int64_t all = src[0]->elems;
    const int64_t first = CVY_MIN(CVY_MAX(starts[0] < 0 ? starts[0] + all : starts[0], (int64_t)0), all),
                  end = CVY_MIN(CVY_MAX(ends[0] < 0 ? ends[0] + all : ends[0], first), all);
    CVY_TRY(cvy_onnx_new(node->x, src[0]->dtype, &(cvy_shape){1, {end - first}}, &to));
    for (int64_t i = first; i < end; i++)
        copy_elem(to, i - first, src[0], i);
    return cvy_onnx_done_constant(node, 0, to);
}

static cvy_status fold_concat(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_onnx_tensor *to = NULL;
    int64_t elems = 0, at = 0;
    for (int s = 0; s < node->nin; s++) {
        CVY_ONNX_CHECK(src[s], node, "source %d is left out", s);
        CVY_ONNX_CHECK(src[s]->shape.ndim == 1 && src[s]->dtype == src[0]->dtype, node, "of constants of shape %s",
                       cvy_shape_text(&src[s]->shape));
        elems += src[s]->elems;
    }
    CVY_TRY(cvy_onnx_new(node->x, src[0]->dtype, &(cvy_shape){1, {elems}}, &to));
    for (int s = 0; s < node->nin; s++)
        for (int64_t i = 0; i < src[s]->elems; i++)
            copy_elem(to, at++, src[s], i);
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
    CVY_TRY(cvy_onnx_new(node->x, dtype, &src[0]->shape, &t));
    for (int64_t i = 0; i < t->elems; i++)
        set_number(t, i, cvy_onnx_number(src[0], i));
    return cvy_onnx_done_constant(node, 0, t);
}

/* The dtype is that of the second source. */
static cvy_status fold_cast_like(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_onnx_new(node->x, src[1]->dtype, &src[0]->shape, &t));
    for (int64_t i = 0; i < t->elems; i++)
        set_number(t, i, cvy_onnx_number(src[0], i));
    return cvy_onnx_done_constant(node, 0, t);
}

static double compute(const char *op, double a, double b, int is_whole)
{
    switch (*op) {
    case 'A': return a + b;
    case 'S': return a - b;
    case 'P': return pow(a, b);
    case 'D': return is_whole ? trunc(a / b) : a / b;
    default: return op[1] == 'u' ? a * b : op[1] == 'a' ? fmax(a, b) : fmin(a, b);
    }
}

/* The shape of both by NumPy's rules. */
static cvy_status common_shape(const cvy_onnx_node *node, const cvy_shape *a, const cvy_shape *b, cvy_shape *out)
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

/* The element of a source that belongs to element i of the result. */
static int64_t repeated(const cvy_shape *src, const cvy_shape *dst, int64_t i)
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

/* The batch in a shape is no number to compute with. */
static cvy_status fold_arithmetic(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *a = src[0], *b = node->nin == 2 ? src[1] : NULL;
    const int is_whole = a->dtype == CVY_DTYPE_I64;
    cvy_onnx_tensor *t = NULL;
    cvy_shape shape, second;
    CVY_ONNX_CHECK(b && (a->dtype == CVY_DTYPE_I64) == (b->dtype == CVY_DTYPE_I64), node,
                   "of %d constants, expected two that are both whole, or both real", node->nin);
    second = b->shape;
    if (cvy_onnx_has_old_axis(node))
        CVY_TRY(cvy_onnx_old_shape(node, &a->shape, &b->shape, &second));
    CVY_TRY(common_shape(node, &a->shape, &second, &shape));
    CVY_TRY(cvy_onnx_new(node->x, a->dtype, &shape, &t));
    for (int64_t i = 0; i < t->elems; i++) {
        const double x = cvy_onnx_number(a, repeated(&a->shape, &shape, i)),
                     y = cvy_onnx_number(b, repeated(&second, &shape, i));
        CVY_ONNX_CHECK(!is_whole || (x != (double)CVY_ONNX_BATCH && y != (double)CVY_ONNX_BATCH &&
                                     (y != 0 || strcmp(node->op, "Div") != 0)),
                       node, "%s", "it computes with the number of samples, which must stay free");
        set_number(t, i, compute(node->op, x, y, is_whole));
    }
    return cvy_onnx_done_constant(node, 0, t);
}

static double apply(const char *op, double x)
{
    switch (*op) {
    case 'N': return -x;
    case 'S': return sqrt(x);
    case 'R': return 1 / x;
    case 'E': return exp(x);
    case 'L': return log(x);
    default: return fabs(x);
    }
}

static cvy_status fold_function(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_onnx_new(node->x, src[0]->dtype, &src[0]->shape, &t));
    for (int64_t i = 0; i < t->elems; i++)
        set_number(t, i, apply(node->op, cvy_onnx_number(src[0], i)));
    return cvy_onnx_done_constant(node, 0, t);
}

/* ---- the table ---- */

static const struct {
    const char *op;
    fold_fn fold;
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
    {"Gather", fold_gather, 2},
    {"Slice", fold_slice, 1},
    {"Concat", fold_concat, 1},
    {"Cast", fold_cast, 1},
    {"CastLike", fold_cast_like, 2},
    {"Expand", fold_expand, 2},
    {"Add", fold_arithmetic, 2},
    {"Sub", fold_arithmetic, 2},
    {"Mul", fold_arithmetic, 2},
    {"Div", fold_arithmetic, 2},
    {"Pow", fold_arithmetic, 2},
    {"Max", fold_arithmetic, 1},
    {"Min", fold_arithmetic, 1},
    {"Neg", fold_function, 1},
    {"Abs", fold_function, 1},
    {"Sqrt", fold_function, 1},
    {"Reciprocal", fold_function, 1},
    {"Exp", fold_function, 1},
    {"Log", fold_function, 1},
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

/*
 * onnx_batch.c: values whose samples are not on the first axis, or share an axis with others, as in attention:
 * [T, N, C], [N * heads, T, C]. Our layers have the samples first always. So such a value is a view of a layer's
 * output:
 *
 *     of the file   [A.., before * N * after, B..]
 *     of the layer  [N, A.., before, after, B..]      (before and after only if they are not 1)
 *
 * Both have the same order of the elements of a sample, so reshapes move nothing, and a transposition that moves the
 * samples only is none of ours. Other operators work on the layer's output, with their axes renumbered
 * (cvy_onnx_enter_moved(), cvy_onnx_axis()), and their results are views again (cvy_onnx_done()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"
#include "exchange/onnx/onnx_fold.h"

static int64_t part(int64_t n)
{
    return CVY_MAX(n, (int64_t)1);
}

static int extra_axes(const cvy_onnx_batch *b)
{
    return (b->before > 1) + (b->after > 1);
}

int cvy_onnx_is_moved(const cvy_onnx_value *v)
{
    return v && v->layer && (v->batch.at > 0 || extra_axes(&v->batch) > 0);
}

int64_t cvy_onnx_batch_dim(const cvy_onnx_batch *b)
{
    return part(b->before) * part(b->after);
}

int cvy_onnx_shares_alike(const cvy_onnx_batch *a, const cvy_onnx_batch *b)
{
    return part(a->before) == part(b->before) && part(a->after) == part(b->after);
}

int cvy_onnx_layer_axis(const cvy_onnx_batch *b, int axis)
{
    return axis < b->at ? axis + 1 : axis + extra_axes(b);
}

/* The shape of the layer's output, of a value with this shape in the file. */
static cvy_shape layer_shape(const cvy_onnx_batch *b, const cvy_shape *shape)
{
    cvy_shape to = {.ndim = 1, .dim = {1}};
    for (int i = 0; i < shape->ndim; i++) {
        if (i != b->at) {
            to.dim[to.ndim++] = shape->dim[i];
            continue;
        }
        if (b->before > 1)
            to.dim[to.ndim++] = b->before;
        if (b->after > 1)
            to.dim[to.ndim++] = b->after;
    }
    return to;
}

void cvy_onnx_move(cvy_onnx_value *v, const cvy_onnx_batch *b)
{
    const cvy_shape from = v->shape;
    v->batch = *b;
    v->shape.ndim = from.ndim - extra_axes(b);
    for (int i = 0; i < v->shape.ndim; i++)
        v->shape.dim[i] = i == b->at ? cvy_onnx_batch_dim(b) : from.dim[cvy_onnx_layer_axis(b, i)];
}

/* ---- reshapes ---- */

/* The elements of a sample that lie within one step of the samples. */
static int64_t stride_of(const cvy_onnx_value *v)
{
    int64_t stride = part(v->batch.after);
    for (int i = v->batch.at + 1; i < v->shape.ndim; i++)
        stride *= v->shape.dim[i];
    return stride;
}

/* Puts the samples on axis `at` of a shape whose axis has n elements of one sample. Returns 0: they are not there. */
static int place(const cvy_onnx_value *src, const int64_t *to, int n, int at, int64_t each, cvy_onnx_batch *out)
{
    int64_t within = 1;
    for (int i = at + 1; i < n; i++)
        within *= to[i];
    const int64_t stride = stride_of(src), after = within > 0 ? stride / within : 0;
    if (after < 1 || stride % within != 0 || each % after != 0 || each < 1)
        return 0;
    *out = (cvy_onnx_batch){.at = at, .before = each / after, .after = after};
    return 1;
}

/* The best place in a shape of plain numbers, of a file with a fixed batch. With a batch of 1 there may be several: an
 * axis of the samples alone comes first, features (the last axis) stay apart, and heads are merged with the samples
 * before positions are. Each choice gives a sample what the file gives a batch of one: others are refused later. */
static int find_place(const cvy_onnx_value *src, const int64_t *to, int n, int64_t batch, cvy_onnx_batch *out)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        cvy_onnx_batch b;
        if (to[i] % batch != 0 || !place(src, to, n, i, to[i] / batch, &b))
            continue;
        const int is_alone = cvy_onnx_batch_dim(&b) == 1;
        const int score = 8 * is_alone + 4 * (is_alone || i < n - 1) + 2 * (b.before == 1) + (i == src->batch.at);
        if (score > best) {
            best = score;
            *out = b;
        }
    }
    return best >= 0;
}

cvy_status cvy_onnx_view(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_shape *shape,
                         const cvy_onnx_batch *b)
{
    const cvy_shape to = layer_shape(b, shape);
    const char *output = NULL;
    CVY_ONNX_CHECK(to.ndim <= CVY_NDIM_MAX &&
                       cvy_shape_elems(&to) == cvy_onnx_sample_elems(cvy_onnx_shape(node->x, src->layer)),
                   node, "%s cannot become %s", cvy_shape_text(&src->shape), cvy_shape_text(shape));
    CVY_TRY(cvy_onnx_reshape(node, src->layer, to.dim + 1, to.ndim - 1, &output));
    return cvy_onnx_done_moved(node, 0, output, b);
}

/* to: as the node has it, with 0 for "as before" and one -1; CVY_NOT_APPLICABLE: the samples are on no axis of it. */
cvy_status cvy_onnx_reshape_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *to, int n)
{
    const int64_t elems = cvy_onnx_sample_elems(cvy_onnx_shape(node->x, src->layer));
    int64_t dim[CVY_NDIM_MAX], known = 1, each = 0;
    int at = -1, open = -1, found = 0;
    cvy_onnx_batch b = {0};
    cvy_shape shape = {.ndim = n};
    for (int i = 0; i < n; i++) {
        const int keeps = to[i] == 0 && i < src->shape.ndim;
        const int64_t times =
            keeps && i == src->batch.at ? cvy_onnx_batch_dim(&src->batch) : cvy_onnx_batch_times(to[i]);
        dim[i] = times > 0 ? times : keeps ? src->shape.dim[i] : to[i];
        if ((times > 0 && at >= 0) || (dim[i] == -1 && open >= 0) || dim[i] < -1 || dim[i] == 0 ||
            dim[i] > CVY_ONNX_ELEMS / known)
            return CVY_NOT_APPLICABLE;
        at = times > 0 ? i : at;
        open = dim[i] == -1 ? i : open;
        known *= CVY_MAX(dim[i], (int64_t)1);
    }
    const int64_t batch = node->x->batch > 0 && at < 0 ? node->x->batch : 1;
    if (open >= 0) {
        if (elems * batch % known != 0)
            return CVY_NOT_APPLICABLE;
        dim[open] = elems * batch / known;
        at = at < 0 && node->x->batch == 0 ? open : at; /* a free batch */
    }
    each = at >= 0 ? dim[at] : 0;
    found = at >= 0 ? place(src, dim, n, at, each, &b) : node->x->batch > 0 && find_place(src, dim, n, batch, &b);
    if (!found)
        return CVY_NOT_APPLICABLE;
    for (int i = 0; i < n; i++)
        shape.dim[i] = i == b.at ? cvy_onnx_batch_dim(&b) : dim[i];
    return cvy_onnx_view(node, src, &shape, &b);
}

cvy_status cvy_onnx_flatten_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, int axis)
{
    cvy_shape shape = {.ndim = 2, .dim = {1, 1}};
    cvy_onnx_batch b;
    const int at = src->batch.at >= axis;
    for (int i = 0; i < src->shape.ndim; i++)
        shape.dim[i >= axis] *= src->shape.dim[i];
    CVY_ONNX_CHECK(place(src, shape.dim, 2, at, shape.dim[at], &b), node, "%s", "its samples cannot be followed");
    return cvy_onnx_view(node, src, &shape, &b);
}

cvy_status cvy_onnx_unsqueeze_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *axes, int n)
{
    cvy_shape shape = {.ndim = src->shape.ndim + n};
    cvy_onnx_batch b = src->batch;
    unsigned named = 0;
    int from = 0;
    CVY_ONNX_CHECK(shape.ndim <= CVY_NDIM_MAX, node, "%d new axes for %s", n, cvy_shape_text(&src->shape));
    for (int i = 0; i < n; i++) {
        const int64_t at = axes[i] < 0 ? axes[i] + shape.ndim : axes[i];
        CVY_ONNX_CHECK(at >= 0 && at < shape.ndim && !(named >> at & 1), node, "axis %lld of %d", (long long)axes[i],
                       shape.ndim);
        named |= 1U << at;
    }
    for (int d = 0; d < shape.ndim; d++) {
        if (!(named >> d & 1) && from == src->batch.at)
            b.at = d;
        shape.dim[d] = named >> d & 1 ? 1 : src->shape.dim[from++];
    }
    return cvy_onnx_view(node, src, &shape, &b);
}

cvy_status cvy_onnx_squeeze_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *axes, int n)
{
    cvy_shape shape = {0};
    cvy_onnx_batch b = src->batch;
    unsigned named = 0;
    for (int i = 0; i < n; i++) {
        const int64_t at = axes[i] < 0 ? axes[i] + src->shape.ndim : axes[i];
        CVY_ONNX_CHECK(at >= 0 && at < src->shape.ndim && at != src->batch.at && src->shape.dim[at] == 1, node,
                       "axis %lld of %s, which has the samples on axis %d", (long long)axes[i],
                       cvy_shape_text(&src->shape), src->batch.at);
        named |= 1U << at;
    }
    for (int d = 0; d < src->shape.ndim; d++) {
        const int goes = n > 0 ? (int)(named >> d & 1) : d != src->batch.at && src->shape.dim[d] == 1;
        if (d == src->batch.at)
            b.at = shape.ndim;
        if (!goes)
            shape.dim[shape.ndim++] = src->shape.dim[d];
    }
    return cvy_onnx_view(node, src, &shape, &b);
}

/* ---- transpositions ---- */

/* order: of the file's axes; the elements of a sample are put into their new order. */
cvy_status cvy_onnx_transpose_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *order)
{
    const cvy_onnx_batch *from = &src->batch;
    const int first = from->at + 1; /* of the layer's axes: before and after */
    int64_t ours[CVY_NDIM_MAX + 1];
    int n = 0, moves = 0;
    cvy_onnx_batch b = *from;
    const char *output = src->layer;
    cvy_text options = {0};
    for (int i = 0; i < src->shape.ndim; i++) {
        if (order[i] != from->at) {
            const int axis = src->turned ? (int)src->turned[order[i]] : cvy_onnx_layer_axis(from, (int)order[i]);
            ours[n++] = axis;
            continue;
        }
        b.at = i;
        if (from->before > 1)
            ours[n++] = first;
        if (from->after > 1)
            ours[n++] = first + (from->before > 1);
    }
    for (int i = 0; i < n; i++)
        moves |= ours[i] != i + 1;
    cvy_onnx_list(&options, "order", ours, n);
    cvy_status status = options.status;
    if (status == CVY_OK && moves)
        status = cvy_onnx_step(node, "transpose", options.data, output, &output);
    cvy_text_free(&options);
    CVY_TRY(status);
    return cvy_onnx_done_moved(node, 0, output, &b);
}

/* ---- operators on the layer's output ---- */

cvy_status cvy_onnx_one_sample(const cvy_onnx_node *node, const cvy_onnx_tensor *t, cvy_onnx_tensor *out)
{
    const int64_t n = t->shape.ndim > 0 ? t->shape.dim[0] : 0;
    CVY_ONNX_CHECK(n == 1 || (n > 1 && n == node->x->batch), node,
                   "a constant of shape %s: it must be the same for all samples", cvy_shape_text(&t->shape));
    const size_t row = (size_t)(t->elems / n) * cvy_dtype_bytes(t->dtype);
    for (int64_t i = 1; i < n; i++)
        CVY_ONNX_CHECK(memcmp(t->data, (const char *)t->data + (size_t)i * row, row) == 0, node, "%s",
                       "its constant differs between samples");
    *out = *t;
    out->elems = t->elems / n;
    out->shape.dim[0] = 1;
    return CVY_OK;
}

cvy_status cvy_onnx_repeat_constant(const cvy_onnx_node *node, const cvy_onnx_tensor *t, const char **output)
{
    cvy_onnx_tensor *one = NULL;
    cvy_text options = {0};
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *one, &one));
    CVY_TRY(cvy_onnx_one_sample(node, t, one));
    CVY_ONNX_CHECK(one->shape.ndim >= 2 && one->elems > 0, node, "a constant of shape %s", cvy_shape_text(&t->shape));
    cvy_text_add(&options, "value: 0");
    cvy_onnx_list(&options, "shape", one->shape.dim + 1, one->shape.ndim - 1);
    const cvy_status status = options.status == CVY_OK ? cvy_onnx_step(node, "constant", options.data,
                                                                       node->x->out->model->input[0].name, output)
                                                       : options.status;
    cvy_text_free(&options);
    CVY_TRY(status);
    return cvy_onnx_affine(node, *output, one, "shift", output);
}

/* A constant that is added to or multiplied with the value, with its axes as the layer's output has them. It must be
 * the same for all samples, so only an axis of length 1 moves. */
static cvy_status move_constant(const cvy_onnx_node *node, const cvy_onnx_value *like, const cvy_onnx_value **in)
{
    const cvy_onnx_tensor *t = (*in)->constant;
    const cvy_onnx_batch *b = &like->batch;
    const int ndim = like->shape.ndim, missing = ndim - t->shape.ndim;
    cvy_onnx_value *copy = NULL;
    cvy_onnx_tensor *to = NULL;
    cvy_shape whole = {.ndim = ndim};
    const int64_t at = b->at - missing;
    CVY_ONNX_CHECK(missing >= 0, node, "a constant of shape %s for a source %s", cvy_shape_text(&t->shape),
                   cvy_shape_text(&like->shape));
    if (at < 0)
        return CVY_OK; /* it ends behind the samples */
    const int64_t length = t->shape.dim[at];
    if (length == 1 && !cvy_onnx_is_moved(like))
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *copy, &copy));
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *to, &to));
    *copy = **in;
    *to = *t;
    copy->constant = to;
    if (length > 1 && at == 0 && extra_axes(b) == 0 && length == node->x->batch)
        CVY_TRY(cvy_onnx_one_sample(node, t, to));
    CVY_ONNX_CHECK(to->shape.dim[at] == 1, node,
                   "a constant of shape %s for a source %s, which has the samples on axis %d: it must be the same for "
                   "all of them",
                   cvy_shape_text(&t->shape), cvy_shape_text(&like->shape), b->at);
    for (int d = 0; d < ndim; d++)
        whole.dim[d] = d >= missing ? to->shape.dim[d - missing] : 1;
    const cvy_onnx_batch ones = {b->at, b->before > 1 ? 2 : 0, b->after > 1 ? 2 : 0};
    cvy_shape shape = layer_shape(&ones, &whole);
    for (int k = 0; k < extra_axes(b); k++)
        shape.dim[b->at + 1 + k] = 1;
    if (!to->stored && to->elems == t->elems)
        to->stored = &t->shape;
    to->shape = shape;
    *in = copy;
    return CVY_OK;
}

/* Operators that follow the samples themselves. */
static const char *const followers[] = {"Reshape", "Transpose", "Squeeze", "Unsqueeze",
                                        "Flatten", "Shape",     "Einsum",  "ScatterND"};
/* Operators that work on elements, with constants that are repeated by NumPy's rules. */
static const char *const pointwise[] = {
    "Add",      "Sub",       "Mul",         "Div",        "Pow",     "Max",  "Min",     "Sum",  "Mean",     "Where",
    "Identity", "Cast",      "Dropout",     "Relu",       "Sigmoid", "Tanh", "Gelu",    "Erf",  "Exp",      "Log",
    "Sqrt",     "Neg",       "Abs",         "Reciprocal", "Clip",    "Elu",  "Celu",    "Selu", "Softplus", "Softsign",
    "Mish",     "HardSwish", "HardSigmoid", "LeakyRelu",  "Sin",     "Cos",  "CastLike"};
/* Operators with axes, and matrices. */
static const char *const others[] = {"Softmax",         "LogSoftmax",   "LayerNormalization",
                                     "Concat",          "Split",        "Slice",
                                     "Gather",          "MatMul",       "Gemm",
                                     "ReduceMean",      "ReduceSum",    "ReduceMax",
                                     "ReduceMin",       "ReduceL1",     "ReduceL2",
                                     "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};

/* Where the samples are in the result: axes before them may go. */
static cvy_status place_of_result(cvy_onnx_node *node, const cvy_onnx_value *src)
{
    const int ndim = src->shape.ndim, is_reduction = strncmp(node->op, "Reduce", 6) == 0;
    const int64_t *axes = NULL, axis = cvy_onnx_int(node, "axis", 0);
    int n = 0;
    if (strcmp(node->op, "Gather") == 0 && node->in[1] && node->in[1]->constant) {
        CVY_ONNX_CHECK(node->in[1]->constant->shape.ndim < 2, node, "entries of shape %s",
                       cvy_shape_text(&node->in[1]->constant->shape));
        node->moved.at -= node->in[1]->constant->shape.ndim == 0 && (axis < 0 ? axis + ndim : axis) < src->batch.at;
    }
    if (!is_reduction || cvy_onnx_int(node, "keepdims", 1))
        return CVY_OK;
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    for (int i = 0; i < n; i++)
        node->moved.at -= (axes[i] < 0 ? axes[i] + ndim : axes[i]) < src->batch.at;
    return CVY_OK;
}

cvy_status cvy_onnx_enter_moved(cvy_onnx_node *node)
{
    const cvy_onnx_value *first = NULL;
    const int works_on_elements = cvy_onnx_is_one_of(node, pointwise, CVY_COUNT(pointwise));
    int any = 0;
    for (int i = 0; i < node->nin; i++)
        if (node->in[i] && node->in[i]->layer) {
            first = first && (cvy_onnx_is_moved(first) || !cvy_onnx_is_moved(node->in[i])) ? first : node->in[i];
            any |= cvy_onnx_is_moved(node->in[i]);
        }
    if (!first || cvy_onnx_is_one_of(node, followers, CVY_COUNT(followers)))
        return CVY_OK;
    for (int i = 0; i < node->nin && works_on_elements; i++)
        if (node->in[i] && node->in[i]->constant && node->in[i]->constant->elems > 1 &&
            node->in[i]->constant->shape.ndim <= first->shape.ndim)
            CVY_TRY(move_constant(node, first, &node->in[i]));
    if (!any)
        return CVY_OK;
    CVY_ONNX_CHECK(works_on_elements || cvy_onnx_is_one_of(node, others, CVY_COUNT(others)), node,
                   "its source %s has the samples on axis %d%s, which this operator is not supported with",
                   cvy_shape_text(&first->shape), first->batch.at, extra_axes(&first->batch) ? " with others" : "");
    node->moved = node->source = first->batch;
    CVY_TRY(place_of_result(node, first));
    for (int i = 0; i < node->nin; i++) {
        cvy_onnx_value *copy = NULL;
        const cvy_onnx_value *v = node->in[i];
        if (!v || !v->layer)
            continue;
        CVY_ONNX_CHECK(v->batch.at == first->batch.at && cvy_onnx_shares_alike(&v->batch, &first->batch), node,
                       "its sources %s and %s have the samples on axes %d and %d%s", cvy_shape_text(&first->shape),
                       cvy_shape_text(&v->shape), first->batch.at, v->batch.at,
                       extra_axes(&first->batch) || extra_axes(&v->batch) ? ", with others" : "");
        CVY_ONNX_CHECK(strcmp(node->op, "MatMul") != 0 ||
                           v->batch.at < v->shape.ndim - 1 - (node->in[1]->layer != NULL),
                       node, "the samples are on axis %d of a source %s, which is one of a matrix", v->batch.at,
                       cvy_shape_text(&v->shape));
        CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *copy, &copy));
        *copy = *v;
        copy->shape = *cvy_onnx_shape(node->x, v->layer);
        copy->batch = (cvy_onnx_batch){0};
        node->in[i] = copy;
    }
    return CVY_OK;
}

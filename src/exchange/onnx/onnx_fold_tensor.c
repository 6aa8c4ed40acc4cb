/*
 * onnx_fold_tensor.c: the operators on constants that move, choose or collect elements along axes: positions, masks and
 * tables, as exporters compute them in the graph.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx_fold.h"

/* An axis of a constant: the batch is no exception. */
static cvy_status axis_of(const cvy_onnx_node *node, int64_t axis, const cvy_shape *shape, int *out)
{
    const int64_t at = axis < 0 ? axis + shape->ndim : axis;
    CVY_ONNX_CHECK(at >= 0 && at < shape->ndim, node, "axis %lld of a constant of shape %s", (long long)axis,
                   cvy_shape_text(shape));
    *out = (int)at;
    return CVY_OK;
}

/* A constant is [before, n, after] round an axis. */
struct round_axis {
    int64_t before, n, after;
};

static struct round_axis split_at(const cvy_shape *shape, int axis)
{
    struct round_axis r = {1, shape->dim[axis], 1};
    for (int d = 0; d < shape->ndim; d++)
        if (d != axis)
            *(d < axis ? &r.before : &r.after) *= shape->dim[d];
    return r;
}

cvy_status cvy_onnx_fold_gather(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *from = src[0], *index = src[1];
    cvy_onnx_tensor *to = NULL;
    cvy_shape shape = {0};
    int axis = 0;
    CVY_TRY(axis_of(node, cvy_onnx_int(node, "axis", 0), &from->shape, &axis));
    CVY_ONNX_CHECK(index->dtype == CVY_DTYPE_I64 && from->shape.ndim + index->shape.ndim - 1 <= CVY_NDIM_MAX, node,
                   "entries of shape %s from a constant of shape %s", cvy_shape_text(&index->shape),
                   cvy_shape_text(&from->shape));
    for (int d = 0; d < axis; d++)
        shape.dim[shape.ndim++] = from->shape.dim[d];
    for (int d = 0; d < index->shape.ndim; d++)
        shape.dim[shape.ndim++] = index->shape.dim[d];
    for (int d = axis + 1; d < from->shape.ndim; d++)
        shape.dim[shape.ndim++] = from->shape.dim[d];
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, &shape, &to));
    const struct round_axis r = split_at(&from->shape, axis);
    for (int64_t i = 0; i < to->elems; i++) {
        const int64_t k = cvy_onnx_i64(index)[i / r.after % index->elems], at = k < 0 ? k + r.n : k;
        CVY_ONNX_CHECK(at >= 0 && at < r.n, node, "entry %lld of %lld", (long long)k, (long long)r.n);
        cvy_onnx_copy_elem(to, i, from, (i / r.after / index->elems * r.n + at) * r.after + i % r.after);
    }
    return cvy_onnx_done_constant(node, 0, to);
}

/* Entries first, first + step, .. of an axis. */
static cvy_status take(const cvy_onnx_node *node, const cvy_onnx_tensor *from, int axis, int64_t first, int64_t count,
                       int64_t step, cvy_onnx_tensor **out)
{
    cvy_shape shape = from->shape;
    const struct round_axis r = split_at(&from->shape, axis);
    shape.dim[axis] = count;
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, &shape, out));
    (*out)->kind = from->kind;
    for (int64_t i = 0; i < (*out)->elems; i++) {
        const int64_t at = first + i / r.after % count * step;
        cvy_onnx_copy_elem(*out, i, from, (i / r.after / count * r.n + at) * r.after + i % r.after);
    }
    return CVY_OK;
}

/* The first entry and the number of entries of a slice, by the rules of ONNX. */
static int64_t slice_range(int64_t n, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    *first = CVY_MIN(CVY_MAX(start < 0 ? start + n : start, low), high);
    const int64_t last = CVY_MIN(CVY_MAX(end < 0 ? end + n : end, low), high);
    const int64_t way = step > 0 ? last - *first : *first - last, size = step > 0 ? step : -step;
    return way <= 0 ? 0 : (way - 1) / size + 1;
}

cvy_status cvy_onnx_fold_slice(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const int64_t *starts = NULL, *ends = NULL, *axes = NULL, *steps = NULL;
    int n = 0, nends = 0, naxes = 0, nsteps = 0;
    const cvy_onnx_tensor *from = src[0];
    cvy_onnx_tensor *to = NULL;
    int in_order = 1;
    CVY_TRY(cvy_onnx_ints(node, "starts", 1, &starts, &n));
    CVY_TRY(cvy_onnx_ints(node, "ends", 2, &ends, &nends));
    CVY_TRY(cvy_onnx_ints(node, "axes", 3, &axes, &naxes));
    CVY_TRY(cvy_onnx_ints(node, NULL, 4, &steps, &nsteps));
    CVY_ONNX_CHECK(n > 0 && nends == n && (!naxes || naxes == n) && (!nsteps || nsteps == n), node,
                   "%d starts, %d ends, %d axes, %d steps", n, nends, naxes, nsteps);
    for (int i = 0; i < n; i++) {
        const int64_t step = nsteps ? steps[i] : 1;
        int64_t first = 0;
        int axis = 0;
        CVY_TRY(axis_of(node, naxes ? axes[i] : i, &from->shape, &axis));
        CVY_ONNX_CHECK(step != 0 && step > -CVY_ONNX_SIZE, node, "a step of %lld", (long long)step);
        CVY_ONNX_CHECK(from->shape.dim[axis] == 1 ||
                           !(cvy_onnx_batch_times(starts[i]) || cvy_onnx_batch_times(ends[i])),
                       node, "%s", "it counts the samples, which are independent of each other");
        in_order &= step == 1;
        const int64_t count = slice_range(from->shape.dim[axis], starts[i], ends[i], step, &first);
        if (count == from->shape.dim[axis] && step == 1 && i < n - 1)
            continue;
        CVY_TRY(take(node, from, axis, first, count, step, &to));
        if (to->elems == src[0]->elems && in_order)
            to->name = src[0]->name; /* it is the whole */
        from = to;
    }
    return cvy_onnx_done_constant(node, 0, to);
}

cvy_status cvy_onnx_fold_concat(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_onnx_tensor *to = NULL;
    int axis = 0;
    for (int s = 0; s < node->nin; s++)
        CVY_ONNX_CHECK(src[s], node, "source %d is left out", s);
    cvy_shape shape = src[0]->shape;
    CVY_TRY(axis_of(node, cvy_onnx_int(node, "axis", 1), &shape, &axis));
    shape.dim[axis] = 0;
    for (int s = 0; s < node->nin; s++) {
        const cvy_shape *one = &src[s]->shape;
        CVY_ONNX_CHECK(one->ndim == shape.ndim && src[s]->dtype == src[0]->dtype, node,
                       "of constants of shapes %s and %s", cvy_shape_text(&src[0]->shape), cvy_shape_text(one));
        for (int d = 0; d < shape.ndim; d++)
            CVY_ONNX_CHECK(d == axis || one->dim[d] == shape.dim[d], node, "of constants of shapes %s and %s",
                           cvy_shape_text(&src[0]->shape), cvy_shape_text(one));
        shape.dim[axis] += one->dim[axis];
    }
    CVY_TRY(cvy_onnx_new(node->x, src[0]->dtype, &shape, &to));
    const struct round_axis whole = split_at(&shape, axis);
    int64_t first = 0;
    for (int s = 0; s < node->nin; s++) {
        const int64_t row = src[s]->shape.dim[axis] * whole.after;
        for (int64_t i = 0; i < src[s]->elems; i++)
            cvy_onnx_copy_elem(to, i / row * whole.n * whole.after + first + i % row, src[s], i);
        first += row;
    }
    return cvy_onnx_done_constant(node, 0, to);
}

static cvy_status repeat(const cvy_onnx_node *node, const cvy_onnx_tensor *from, const cvy_shape *shape)
{
    cvy_onnx_tensor *to = NULL;
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, shape, &to));
    to->name = from->name; /* and its shape, for the case that it is repeated for each sample only */
    to->stored = from->stored ? from->stored : &from->shape;
    for (int64_t i = 0; i < to->elems; i++)
        cvy_onnx_copy_elem(to, i, from, cvy_onnx_repeated(&from->shape, shape, i));
    return cvy_onnx_done_constant(node, 0, to);
}

cvy_status cvy_onnx_fold_expand(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_shape asked = {0}, shape = {0};
    CVY_TRY(cvy_onnx_shape_from(node, src[1], &asked));
    CVY_TRY(cvy_onnx_common_shape(node, &src[0]->shape, &asked, &shape));
    return repeat(node, src[0], &shape);
}

cvy_status cvy_onnx_fold_tile(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *from = src[0], *times = src[1];
    cvy_onnx_tensor *to = NULL;
    cvy_shape shape = from->shape;
    CVY_ONNX_CHECK(times->dtype == CVY_DTYPE_I64 && times->elems == shape.ndim, node,
                   "%lld repetitions of a constant of shape %s", (long long)times->elems, cvy_shape_text(&shape));
    for (int d = 0; d < shape.ndim; d++) {
        const int64_t n = cvy_onnx_batch_times(cvy_onnx_i64(times)[d]) == 1 ? 1 : cvy_onnx_i64(times)[d];
        CVY_ONNX_CHECK(n >= 0 && n <= CVY_ONNX_ELEMS / CVY_MAX(shape.dim[d], (int64_t)1), node, "%lld repetitions",
                       (long long)n);
        shape.dim[d] *= n;
    }
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, &shape, &to));
    for (int64_t i = 0; i < to->elems; i++) {
        int64_t at = 0, step = 1, rest = i;
        for (int d = shape.ndim - 1; d >= 0; d--) {
            at += rest % shape.dim[d] % from->shape.dim[d] * step;
            rest /= shape.dim[d];
            step *= from->shape.dim[d];
        }
        cvy_onnx_copy_elem(to, i, from, at);
    }
    return cvy_onnx_done_constant(node, 0, to);
}

cvy_status cvy_onnx_fold_range(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_onnx_tensor *to = NULL;
    for (int s = 0; s < 3; s++) {
        CVY_ONNX_CHECK(src[s]->elems == 1, node, "source %d has %lld numbers, expected 1", s, (long long)src[s]->elems);
        CVY_ONNX_CHECK(src[s]->dtype != CVY_DTYPE_I64 || !cvy_onnx_batch_times(cvy_onnx_i64(src[s])[0]), node, "%s",
                       "it counts the samples, which are independent of each other");
    }
    const double start = cvy_onnx_number(src[0], 0), end = cvy_onnx_number(src[1], 0),
                 step = cvy_onnx_number(src[2], 0);
    const double count = (end - start) / step;
    CVY_ONNX_CHECK(step != 0 && count < (double)CVY_ONNX_ELEMS, node, "from %g to %g in steps of %g", start, end, step);
    int64_t n = count > 0 ? (int64_t)count : 0;
    n += (double)n < count;
    CVY_TRY(cvy_onnx_new(node->x, src[0]->dtype, &(cvy_shape){1, {n}}, &to));
    for (int64_t i = 0; i < n; i++)
        cvy_onnx_set_number(to, i, start + (double)i * step);
    return cvy_onnx_done_constant(node, 0, to);
}

/* The elements on one side of a diagonal of the last two axes; the others become 0. */
cvy_status cvy_onnx_fold_trilu(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *from = src[0];
    const cvy_shape *shape = &from->shape;
    const int64_t diagonal = node->nin > 1 && src[1] && src[1]->elems == 1 ? (int64_t)cvy_onnx_number(src[1], 0) : 0;
    const int is_upper = cvy_onnx_int(node, "upper", 1) != 0;
    cvy_onnx_tensor *to = NULL;
    CVY_ONNX_CHECK(shape->ndim >= 2 && diagonal > -CVY_ONNX_SIZE && diagonal < CVY_ONNX_SIZE, node,
                   "diagonal %lld of a constant of shape %s", (long long)diagonal, cvy_shape_text(shape));
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, shape, &to));
    const int64_t columns = shape->dim[shape->ndim - 1], rows = shape->dim[shape->ndim - 2];
    for (int64_t i = 0; i < to->elems; i++) {
        const int64_t way = i % columns - i / columns % rows;
        if (is_upper ? way >= diagonal : way <= diagonal)
            cvy_onnx_copy_elem(to, i, from, i);
    }
    return cvy_onnx_done_constant(node, 0, to);
}

cvy_status cvy_onnx_fold_cumsum(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *from = src[0];
    cvy_onnx_tensor *to = NULL;
    int axis = 0;
    CVY_ONNX_CHECK(src[1]->elems == 1 && !cvy_onnx_int(node, "exclusive", 0) && !cvy_onnx_int(node, "reverse", 0), node,
                   "%s", "only sums along one axis, forward and with the element itself, are supported");
    CVY_TRY(axis_of(node, (int64_t)cvy_onnx_number(src[1], 0), &from->shape, &axis));
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, &from->shape, &to));
    const struct round_axis r = split_at(&from->shape, axis);
    for (int64_t i = 0; i < to->elems; i++)
        cvy_onnx_set_number(to, i,
                            cvy_onnx_number(from, i) + (i / r.after % r.n ? cvy_onnx_number(to, i - r.after) : 0));
    return cvy_onnx_done_constant(node, 0, to);
}

cvy_status cvy_onnx_fold_where(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_shape shape = {0}, both = {0};
    cvy_onnx_tensor *to = NULL;
    CVY_TRY(cvy_onnx_common_shape(node, &src[1]->shape, &src[2]->shape, &both));
    CVY_TRY(cvy_onnx_common_shape(node, &src[0]->shape, &both, &shape));
    CVY_ONNX_CHECK(src[1]->dtype == src[2]->dtype, node, "of %s and %s", cvy_dtype_text(src[1]->dtype),
                   cvy_dtype_text(src[2]->dtype));
    CVY_TRY(cvy_onnx_new(node->x, src[1]->dtype, &shape, &to));
    for (int64_t i = 0; i < to->elems; i++) {
        const int is_first = cvy_onnx_number(src[0], cvy_onnx_repeated(&src[0]->shape, &shape, i)) != 0;
        const cvy_onnx_tensor *from = src[is_first ? 1 : 2];
        cvy_onnx_copy_elem(to, i, from, cvy_onnx_repeated(&from->shape, &shape, i));
    }
    return cvy_onnx_done_constant(node, 0, to);
}

static double collect(const char *op, double all, double one)
{
    switch (op[strlen("Reduce") + 1]) {
    case 'r': return all * one;
    case 'i': return one < all ? one : all;
    case 'a': return one > all ? one : all;
    default: return all + one;
    }
}

/* ReduceSum, ReduceProd, ReduceMin, ReduceMax and ReduceMean over all axes or some. */
cvy_status cvy_onnx_fold_reduce(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *from = src[0];
    const int64_t *axes = NULL;
    const int keep = cvy_onnx_int(node, "keepdims", 1) != 0;
    int n = 0, axis = 0;
    unsigned named = 0;
    cvy_shape kept = from->shape, shape = {0};
    cvy_onnx_tensor *to = NULL;
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    if (n == 0 && cvy_onnx_int(node, "noop_with_empty_axes", 0))
        CVY_ONNX_FAIL(node, "%s", "without axes it does nothing");
    for (int i = 0; i < n; i++) {
        CVY_TRY(axis_of(node, axes[i], &from->shape, &axis));
        named |= 1U << axis;
    }
    for (int d = 0; d < from->shape.ndim; d++) {
        const int goes = n == 0 || named >> d & 1;
        kept.dim[d] = goes ? 1 : kept.dim[d];
        if (!goes || keep)
            shape.dim[shape.ndim++] = kept.dim[d];
    }
    for (int64_t i = 0; i < from->elems && from->dtype == CVY_DTYPE_I64; i++)
        CVY_ONNX_CHECK(!cvy_onnx_batch_times(cvy_onnx_i64(from)[i]), node, "%s",
                       "it computes with the number of samples, which must stay free");
    CVY_ONNX_CHECK(from->elems > 0 || strcmp(node->op, "ReduceSum") == 0 || strcmp(node->op, "ReduceProd") == 0, node,
                   "of a constant without elements, of shape %s", cvy_shape_text(&from->shape));
    CVY_TRY(cvy_onnx_new(node->x, from->dtype, &shape, &to));
    for (int64_t i = 0; i < to->elems && from->elems == 0 && strcmp(node->op, "ReduceProd") == 0; i++)
        cvy_onnx_set_number(to, i, 1);
    uint8_t *begun = NULL;
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, (size_t)CVY_MAX(to->elems, 1), &begun));
    for (int64_t i = 0; i < from->elems; i++) {
        const int64_t at = cvy_onnx_repeated(&kept, &from->shape, i);
        cvy_onnx_set_number(to, at,
                            begun[at] ? collect(node->op, cvy_onnx_number(to, at), cvy_onnx_number(from, i))
                                      : cvy_onnx_number(from, i));
        begun[at] = 1;
    }
    if (strcmp(node->op, "ReduceMean") == 0)
        for (int64_t i = 0; i < to->elems; i++)
            cvy_onnx_set_number(to, i, cvy_onnx_number(to, i) * (double)to->elems / (double)from->elems);
    return cvy_onnx_done_constant(node, 0, to);
}

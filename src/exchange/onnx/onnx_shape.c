/*
 * onnx_shape.c: operators that move elements: Reshape, Flatten, Squeeze, Slice, Split and such.
 *
 * Samples stay apart: dimension 0 is the batch before and after.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* ---- the same elements in another shape ---- */

static cvy_status reshape_to(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *sample, int n)
{
    const char *output = NULL;
    CVY_TRY(cvy_onnx_reshape(node, src->layer, sample, n, &output));
    return cvy_onnx_done(node, 0, output);
}

/* PyTorch's exporter writes a view of all samples as one row of elements, from which Gather takes them in their order:
 * samples stay apart. Returns CVY_NOT_APPLICABLE if the nodes do something else. */
static cvy_status reshape_by_gather(const cvy_onnx_node *node, const cvy_onnx_value *src)
{
    const char *index_name = NULL;
    const Cvy__Onnx__NodeProto *gather = cvy_onnx_reader_of_two(node->x, node->proto->output[0], "Gather", &index_name);
    const cvy_onnx_tensor *index = gather ? cvy_onnx_find_constant(node->x, index_name) : NULL;
    const char *output = src->layer;
    if (!index || index->dtype != CVY_DTYPE_I64 || index->shape.ndim < 1 || index->shape.dim[0] < 1 ||
        index->shape.dim[0] != node->x->batch ||
        index->elems / index->shape.dim[0] != cvy_onnx_sample_elems(&src->shape))
        return CVY_NOT_APPLICABLE;
    for (int64_t i = 0; i < index->elems; i++)
        if (cvy_onnx_i64(index)[i] != i)
            return CVY_NOT_APPLICABLE;
    CVY_TRY(cvy_onnx_reshape(node, src->layer, index->shape.dim + 1, index->shape.ndim - 1, &output));
    return cvy_onnx_absorb(node, gather, output);
}

/* Whether the samples stay on the first axis, or the shape is refused. */
static int keeps_samples_first(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *to)
{
    return !cvy_onnx_is_moved(src) && (to[0] == CVY_ONNX_BATCH || to[0] == 0 || (to[0] == node->x->batch && to[0] > 0));
}

/* The first entry is the batch: as the graph computes it, 0 ("as before"), -1, or the number that the file fixes. */
static cvy_status translate_reshape(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *to = NULL;
    int64_t sample[CVY_NDIM_MAX], known = 1;
    int n = 0, open = -1;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "shape", 1, &to, &n));
    CVY_ONNX_CHECK(n >= 1 && n <= CVY_NDIM_MAX, node, "a shape of %d dimensions", n);
    const cvy_status gathered = n == 1 && to[0] == -1 ? reshape_by_gather(node, src) : CVY_NOT_APPLICABLE;
    if (gathered != CVY_NOT_APPLICABLE)
        return gathered;
    const cvy_status moved =
        keeps_samples_first(node, src, to) ? CVY_NOT_APPLICABLE : cvy_onnx_reshape_moved(node, src, to, n);
    if (moved != CVY_NOT_APPLICABLE)
        return moved;
    CVY_ONNX_CHECK(to[0] == CVY_ONNX_BATCH || to[0] == 0 || to[0] == -1 || to[0] == node->x->batch, node,
                   "the first dimension becomes %lld: samples cannot be mixed with each other", (long long)to[0]);
    for (int i = 1; i < n; i++) {
        CVY_ONNX_CHECK(to[i] != 0 || !cvy_onnx_int(node, "allowzero", 0), node, "dimension %d becomes 0", i);
        sample[i - 1] = to[i] == 0 && i < src->shape.ndim ? src->shape.dim[i] : to[i];
        CVY_ONNX_CHECK(to[i] >= -1 && to[i] != CVY_ONNX_BATCH && (to[i] >= 0 || open < 0) &&
                           sample[i - 1] <= CVY_ONNX_ELEMS / CVY_MAX(known, (int64_t)1),
                       node, "dimension %d is not known: %lld", i, (long long)to[i]);
        if (to[i] == -1)
            open = i - 1;
        else
            known *= sample[i - 1];
    }
    const int64_t elems = cvy_onnx_sample_elems(&src->shape);
    if (open >= 0 && known > 0)
        sample[open] = elems / known;
    CVY_ONNX_CHECK(open >= 0 ? known > 0 && elems % known == 0 && to[0] != -1 : elems == known, node,
                   "a sample of %s has %lld elements, and the new shape %s%lld", cvy_shape_text(&src->shape),
                   (long long)elems, open >= 0 ? "a multiple of " : "", (long long)known);
    return reshape_to(node, src, sample, n - 1);
}
CVY_ONNX_DEFINE(reshape) = {"Reshape", .attributes = "allowzero shape", .translate = translate_reshape};

static cvy_status translate_flatten(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    const int64_t axis = cvy_onnx_int(node, "axis", 1), elems = cvy_onnx_sample_elems(&src->shape);
    if (cvy_onnx_is_moved(src) && axis > 0 && axis < src->shape.ndim)
        return cvy_onnx_flatten_moved(node, src, (int)axis);
    CVY_ONNX_CHECK(axis == 1 || axis == 1 - src->shape.ndim, node,
                   "axis %lld, expected 1: samples cannot be mixed with each other", (long long)axis);
    return reshape_to(node, src, &elems, 1);
}
CVY_ONNX_DEFINE(flatten) = {"Flatten", .attributes = "axis", .translate = translate_flatten};

/* A bit for each axis that the node names, of a tensor with ndim axes. */
static cvy_status named_axes(const cvy_onnx_node *node, const int64_t *axes, int n, int ndim, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        int axis = 0;
        CVY_TRY(cvy_onnx_axis(node, axes[i], ndim, &axis));
        CVY_ONNX_CHECK(!(*out >> axis & 1), node, "axis %lld is named twice", (long long)axes[i]);
        *out |= 1U << axis;
    }
    return CVY_OK;
}

static cvy_status translate_squeeze(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *axes = NULL;
    int64_t sample[CVY_NDIM_MAX];
    unsigned named = 0;
    int n = 0, kept = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    if (cvy_onnx_is_moved(src))
        return cvy_onnx_squeeze_moved(node, src, axes, n);
    CVY_TRY(named_axes(node, axes, n, src->shape.ndim, &named));
    for (int d = 1; d < src->shape.ndim; d++) {
        CVY_ONNX_CHECK(!(named >> d & 1) || src->shape.dim[d] == 1, node, "axis %d of %s has not length 1", d,
                       cvy_shape_text(&src->shape));
        if (n ? !(named >> d & 1) : src->shape.dim[d] != 1)
            sample[kept++] = src->shape.dim[d];
    }
    return reshape_to(node, src, sample, kept);
}
CVY_ONNX_DEFINE(squeeze) = {"Squeeze", .attributes = "axes", .translate = translate_squeeze};

static int has_first(const int64_t *axes, int n, int ndim)
{
    for (int i = 0; i < n; i++)
        if (axes[i] == 0 || axes[i] == -ndim)
            return 1;
    return 0;
}

static cvy_status translate_unsqueeze(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *axes = NULL;
    int64_t sample[CVY_NDIM_MAX];
    unsigned named = 0;
    int n = 0, from = 1;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    if (cvy_onnx_is_moved(src) || has_first(axes, n, src->shape.ndim + n))
        return cvy_onnx_unsqueeze_moved(node, src, axes, n);
    CVY_ONNX_CHECK(n <= CVY_NDIM_MAX - src->shape.ndim, node, "%d new axes for %s, which may have %d axes at most", n,
                   cvy_shape_text(&src->shape), CVY_NDIM_MAX);
    const int ndim = src->shape.ndim + n;
    CVY_TRY(named_axes(node, axes, n, ndim, &named));
    for (int d = 1; d < ndim; d++)
        sample[d - 1] = named >> d & 1 ? 1 : src->shape.dim[from++];
    return reshape_to(node, src, sample, ndim - 1);
}
CVY_ONNX_DEFINE(unsqueeze) = {"Unsqueeze", .attributes = "axes", .translate = translate_unsqueeze};

static cvy_status translate_identity(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    return cvy_onnx_done(node, 0, src->layer);
}
CVY_ONNX_DEFINE(identity) = {"Identity", .translate = translate_identity};

/* Integers are needed as indices: Gather takes them as the real numbers that they are here. */
static cvy_status translate_cast(const cvy_onnx_node *node)
{
    int64_t to = 0;
    const Cvy__Onnx__NodeProto *reader = cvy_onnx_reader(node->x, node->proto->output[0]);
    const cvy_onnx_value *src = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_cast_type(node, &to));
    if ((to == CVY_ONNX_INT64 || to == CVY_ONNX_INT32) && reader && strcmp(reader->op_type, "Gather") == 0)
        return translate_identity(node);
    CVY_TRY(cvy_onnx_check_cast(node, src->whole, to));
    return translate_identity(node);
}
CVY_ONNX_DEFINE(cast) = {"Cast", .attributes = "round_mode saturate to", .translate = translate_cast};

/* Of two sources one at least depends on the input here (onnx_fold.c does the others), and all that does is real. */
static cvy_status translate_cast_like(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = cvy_onnx_source(node, 0);
    cvy_onnx_tensor *t = NULL;
    if (!src || !src->constant) {
        const cvy_onnx_value *like = cvy_onnx_source(node, 1);
        CVY_TRY(cvy_onnx_check_cast(node, src ? src->whole : 0,
                                    like && like->layer && like->whole ? like->whole : CVY_ONNX_FLOAT));
        return translate_identity(node);
    }
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &src->constant->shape, &t));
    for (int64_t i = 0; i < t->elems; i++)
        ((float *)t->data)[i] = (float)cvy_onnx_number(src->constant, i);
    return cvy_onnx_done_constant(node, 0, t);
}
CVY_ONNX_DEFINE(cast_like) = {"CastLike", .attributes = "round_mode saturate", .translate = translate_cast_like};

/* ---- parts ---- */

/* Whether a slice takes all samples: exporters write one for each axis. */
static int takes_all_samples(const cvy_onnx_node *node, int64_t axis, int64_t start, int64_t end, int64_t step)
{
    const cvy_onnx *x = node->x;
    return axis == node->source.at && start == 0 && step == 1 &&
           (end >= INT32_MAX || (x->batch > 0 && end == x->batch));
}

/* Entries start, start + step, .. before `end` of an axis. Backward, the entries are joined one by one. */
static cvy_status slice_axis(const cvy_onnx_node *node, int axis, int64_t start, int64_t end, int64_t step,
                             const char **output)
{
    const int64_t size = cvy_onnx_shape(node->x, *output)->dim[axis];
    int64_t at[CVY_ONNX_SOURCES];
    CVY_ONNX_CHECK(step != 0 && step > -CVY_ONNX_SIZE && step < CVY_ONNX_SIZE, node, "a step of %lld", (long long)step);
    CVY_ONNX_CHECK(size == 1 || !(cvy_onnx_batch_times(start) || cvy_onnx_batch_times(end)), node, "%s",
                   "it counts the samples, which are independent of each other");
    const int64_t most = step > 0 ? size : size - 1, least = step > 0 ? 0 : -1;
    const int64_t first = CVY_MIN(CVY_MAX(start < 0 ? start + size : start, (int64_t)0), most),
                  last = CVY_MIN(CVY_MAX(end < 0 ? end + size : end, least), most),
                  span = step > 0 ? last - first : first - last;
    const int64_t width = step > 0 ? step : -step, count = (span + width - 1) / width;
    CVY_ONNX_CHECK(span > 0, node, "entries %lld to %lld of %lld with a step of %lld are none", (long long)start,
                   (long long)end, (long long)size, (long long)step);
    if (step > 0)
        return cvy_onnx_slice_steps(node, *output, axis, first, count, step, output);
    CVY_ONNX_CHECK(count <= CVY_ONNX_SOURCES, node, "%lld entries backward (step %lld), at most %d", (long long)count,
                   (long long)step, CVY_ONNX_SOURCES);
    for (int64_t i = 0; i < count; i++)
        at[i] = first + i * step;
    return cvy_onnx_entries(node, *output, axis, at, count, output);
}

static cvy_status translate_slice(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *starts = NULL, *ends = NULL, *axes = NULL, *steps = NULL;
    int n = 0, nends = 0, naxes = 0, nsteps = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "starts", 1, &starts, &n));
    CVY_TRY(cvy_onnx_ints(node, "ends", 2, &ends, &nends));
    CVY_TRY(cvy_onnx_ints(node, "axes", 3, &axes, &naxes));
    CVY_TRY(cvy_onnx_ints(node, NULL, 4, &steps, &nsteps));
    CVY_ONNX_CHECK(nends == n && (!naxes || naxes == n) && (!nsteps || nsteps == n), node,
                   "%d starts, %d ends, %d axes, %d steps", n, nends, naxes, nsteps);
    const char *output = src->layer;
    for (int i = 0; i < n; i++) {
        int axis = 0;
        if (takes_all_samples(node, naxes ? axes[i] : i, starts[i], ends[i], nsteps ? steps[i] : 1))
            continue;
        CVY_TRY(cvy_onnx_axis(node, naxes ? axes[i] : i, src->shape.ndim, &axis));
        CVY_TRY(slice_axis(node, axis, starts[i], ends[i], nsteps ? steps[i] : 1, &output));
    }
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(slice) = {"Slice", .attributes = "axes ends starts", .translate = translate_slice};

static cvy_status translate_split(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *sizes = NULL;
    int n = 0, axis = 0;
    int64_t first = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", 0), src->shape.ndim, &axis));
    CVY_TRY(cvy_onnx_ints(node, "split", 1, &sizes, &n));
    const int64_t size = src->shape.dim[axis], each = (size + node->nout - 1) / node->nout; /* nout is 1 or more */
    CVY_ONNX_CHECK(!n || n == node->nout, node, "%d sizes for %d outputs", n, node->nout);
    for (int i = 0; i < node->nout; i++) {
        const char *output = NULL;
        const int64_t count = n ? sizes[i] : CVY_MIN(each, size - first);
        CVY_ONNX_CHECK(count > 0 && count <= size - first, node, "part %d has %lld of %lld entries", i,
                       (long long)count, (long long)size);
        CVY_TRY(cvy_onnx_slice(node, src->layer, axis, first, count, &output));
        CVY_TRY(cvy_onnx_done(node, i, output));
        first += count;
    }
    return CVY_OK;
}
CVY_ONNX_DEFINE(split) = {"Split", .attributes = "axis num_outputs split", .translate = translate_split};

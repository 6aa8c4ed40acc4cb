/*
 * onnx_shape.c: operators that move elements: Reshape, Flatten, Squeeze, Slice, Split, Pad, Resize and such.
 *
 * Samples stay apart: dimension 0 is the batch before and after.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* ---- the same elements in another shape ---- */

/* *output: that of the layer, or `from` if it has this shape already. */
static cvy_status add_reshape(const cvy_onnx_node *node, const char *from, const int64_t *sample, int n,
                              const char **output)
{
    cvy_text options = {0};
    cvy_shape shape = {.ndim = n + 1, .dim = {1}};
    CVY_ONNX_CHECK(n >= 0 && n < CVY_NDIM_MAX, node, "%d dimensions, at most %d", n + 1, CVY_NDIM_MAX);
    for (int i = 0; i < n; i++)
        shape.dim[i + 1] = sample[i];
    *output = from;
    if (cvy_shape_equal(&shape, cvy_onnx_shape(node->x, from)))
        return CVY_OK;
    for (int i = 0; i < n; i++)
        cvy_text_add(&options, "%s%lld", i ? ", " : "shape: [", (long long)sample[i]);
    cvy_text_add(&options, "%s]", n ? "" : "shape: [");
    cvy_status status = options.status;
    if (status == CVY_OK)
        status =
            cvy_onnx_add(node, &(cvy_onnx_layer){.op = "reshape", .options = options.data, .from = {from}, .nfrom = 1},
                         NULL, output);
    cvy_text_free(&options);
    return status;
}

static cvy_status reshape_to(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *sample, int n)
{
    const char *output = NULL;
    CVY_TRY(add_reshape(node, src->layer, sample, n, &output));
    return cvy_onnx_done(node, 0, output);
}

static int64_t sample_elems(const cvy_shape *shape)
{
    return cvy_shape_elems(shape) / CVY_MAX(shape->dim[0], 1);
}

/* PyTorch's exporter writes a view of all samples as one row of elements, from which Gather takes them in their order:
 * samples stay apart. Returns CVY_NOT_APPLICABLE if the nodes do something else. */
static cvy_status reshape_by_gather(const cvy_onnx_node *node, const cvy_onnx_value *src)
{
    const char *index_name = NULL;
    const Cvy__Onnx__NodeProto *gather = cvy_onnx_reader_of_two(node->x, node->proto->output[0], "Gather", &index_name);
    const cvy_onnx_tensor *index = gather ? cvy_onnx_find_constant(node->x, index_name) : NULL;
    const char *output = src->layer;
    if (!index || index->dtype != CVY_DTYPE_I64 || index->shape.ndim < 1 || index->shape.dim[0] != node->x->batch ||
        index->elems != node->x->batch * sample_elems(&src->shape))
        return CVY_NOT_APPLICABLE;
    for (int64_t i = 0; i < index->elems; i++)
        if (cvy_onnx_i64(index)[i] != i)
            return CVY_NOT_APPLICABLE;
    CVY_TRY(add_reshape(node, src->layer, index->shape.dim + 1, index->shape.ndim - 1, &output));
    return cvy_onnx_absorb(node, gather, output);
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
    CVY_ONNX_CHECK(to[0] == CVY_ONNX_BATCH || to[0] == 0 || to[0] == -1 || to[0] == node->x->batch, node,
                   "the first dimension becomes %lld: samples cannot be mixed with each other", (long long)to[0]);
    for (int i = 1; i < n; i++) {
        sample[i - 1] = to[i] == 0 && i < src->shape.ndim ? src->shape.dim[i] : to[i];
        CVY_ONNX_CHECK(to[i] >= -1 && to[i] != CVY_ONNX_BATCH, node, "dimension %d is not known", i);
        if (to[i] == -1)
            open = i - 1;
        else
            known *= sample[i - 1];
    }
    const int64_t elems = sample_elems(&src->shape);
    if (open >= 0 && known > 0)
        sample[open] = elems / known;
    CVY_ONNX_CHECK(open >= 0 ? known > 0 && elems % known == 0 && to[0] != -1 : elems == known, node,
                   "a sample of %s has %lld elements, and the new shape %s%lld", cvy_shape_text(&src->shape),
                   (long long)elems, open >= 0 ? "a multiple of " : "", (long long)known);
    return reshape_to(node, src, sample, n - 1);
}
CVY_ONNX_DEFINE(reshape) = {"Reshape", .translate = translate_reshape};

static cvy_status translate_flatten(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    const int64_t axis = cvy_onnx_int(node, "axis", 1), elems = sample_elems(&src->shape);
    CVY_ONNX_CHECK(axis == 1 || axis == 1 - src->shape.ndim, node, "axis %lld, expected 1", (long long)axis);
    return reshape_to(node, src, &elems, 1);
}
CVY_ONNX_DEFINE(flatten) = {"Flatten", .translate = translate_flatten};

/* Whether axis d is among those of the node; no axes: all of length 1. */
static int is_named(const int64_t *axes, int n, int d, int ndim)
{
    for (int i = 0; i < n; i++)
        if ((axes[i] < 0 ? axes[i] + ndim : axes[i]) == d)
            return 1;
    return 0;
}

static cvy_status translate_squeeze(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *axes = NULL;
    int64_t sample[CVY_NDIM_MAX];
    int n = 0, kept = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    for (int d = 1; d < src->shape.ndim; d++)
        if (!(n ? is_named(axes, n, d, src->shape.ndim) : src->shape.dim[d] == 1))
            sample[kept++] = src->shape.dim[d];
    CVY_ONNX_CHECK(!is_named(axes, n, 0, src->shape.ndim), node, "%s", "the batch cannot be squeezed");
    return reshape_to(node, src, sample, kept);
}
CVY_ONNX_DEFINE(squeeze) = {"Squeeze", .translate = translate_squeeze};

static cvy_status translate_unsqueeze(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *axes = NULL;
    int64_t sample[2 * CVY_NDIM_MAX];
    int n = 0, from = 1;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    const int ndim = src->shape.ndim + n;
    CVY_ONNX_CHECK(ndim <= CVY_NDIM_MAX && !is_named(axes, n, 0, ndim), node, "%d new axes for %s", n,
                   cvy_shape_text(&src->shape));
    for (int d = 1; d < ndim; d++)
        sample[d - 1] = is_named(axes, n, d, ndim) ? 1 : src->shape.dim[from++];
    return reshape_to(node, src, sample, ndim - 1);
}
CVY_ONNX_DEFINE(unsqueeze) = {"Unsqueeze", .translate = translate_unsqueeze};

static cvy_status translate_identity(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    return cvy_onnx_done(node, 0, src->layer);
}
CVY_ONNX_DEFINE(identity) = {"Identity", .translate = translate_identity};

static cvy_status translate_cast(const cvy_onnx_node *node)
{
    const int64_t to = cvy_onnx_int(node, "to", CVY_ONNX_FLOAT);
    CVY_ONNX_CHECK(to == CVY_ONNX_FLOAT || to == CVY_ONNX_DOUBLE || to == CVY_ONNX_FLOAT16 || to == CVY_ONNX_BFLOAT16,
                   node, "activations are real numbers, not of the ONNX data type %lld", (long long)to);
    return translate_identity(node);
}
CVY_ONNX_DEFINE(cast) = {"Cast", .translate = translate_cast};

/* Of two sources one at least depends on the input here (onnx_fold.c does the others), and all that does is real. */
static cvy_status translate_cast_like(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = cvy_onnx_source(node, 0);
    cvy_onnx_tensor *t = NULL;
    if (!src || !src->constant)
        return translate_identity(node);
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &src->constant->shape, &t));
    for (int64_t i = 0; i < t->elems; i++)
        ((float *)t->data)[i] = (float)cvy_onnx_number(src->constant, i);
    return cvy_onnx_done_constant(node, 0, t);
}
CVY_ONNX_DEFINE(cast_like) = {"CastLike", .translate = translate_cast_like};

/* ---- parts ---- */

cvy_status cvy_onnx_add_slice(const cvy_onnx_node *node, const char *from, int axis, int64_t first, int64_t count,
                              const char **output)
{
    char *options = NULL;
    const cvy_shape *shape = cvy_onnx_shape(node->x, from);
    if (first == 0 && count == shape->dim[axis]) {
        *output = from;
        return CVY_OK;
    }
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d, first: %lld, count: %lld", axis, (long long)first,
                            (long long)count));
    return cvy_onnx_add(node, &(cvy_onnx_layer){.op = "slice", .options = options, .from = {from}, .nfrom = 1}, NULL,
                        output);
}

static int64_t within(int64_t at, int64_t n)
{
    return CVY_MIN(CVY_MAX(at < 0 ? at + n : at, (int64_t)0), n);
}

/* Whether a slice takes all samples: exporters write one for each axis. */
static int takes_all_samples(const cvy_onnx *x, int64_t axis, int64_t start, int64_t end, int64_t step)
{
    return axis == 0 && start == 0 && step == 1 && (end >= INT32_MAX || (x->batch > 0 && end == x->batch));
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
        if (takes_all_samples(node->x, naxes ? axes[i] : i, starts[i], ends[i], nsteps ? steps[i] : 1))
            continue;
        CVY_TRY(cvy_onnx_axis(node, naxes ? axes[i] : i, src->shape.ndim, &axis));
        CVY_ONNX_CHECK(!nsteps || steps[i] == 1, node, "a step of %lld, expected 1", (long long)steps[i]);
        const int64_t size = src->shape.dim[axis], first = within(starts[i], size), end = within(ends[i], size);
        CVY_ONNX_CHECK(end > first, node, "entries %lld to %lld of %lld are none", (long long)starts[i],
                       (long long)ends[i], (long long)size);
        CVY_TRY(cvy_onnx_add_slice(node, output, axis, first, end - first, &output));
    }
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(slice) = {"Slice", .translate = translate_slice};

static cvy_status translate_split(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *sizes = NULL;
    int n = 0, axis = 0;
    int64_t first = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", 0), src->shape.ndim, &axis));
    CVY_TRY(cvy_onnx_ints(node, "split", 1, &sizes, &n));
    const int64_t size = src->shape.dim[axis], each = (size + node->nout - 1) / node->nout;
    CVY_ONNX_CHECK(!n || n == node->nout, node, "%d sizes for %d outputs", n, node->nout);
    for (int i = 0; i < node->nout; i++) {
        const char *output = NULL;
        const int64_t count = n ? sizes[i] : CVY_MIN(each, size - first);
        CVY_ONNX_CHECK(count > 0 && first + count <= size, node, "part %d has %lld of %lld entries", i,
                       (long long)count, (long long)size);
        CVY_TRY(cvy_onnx_add_slice(node, src->layer, axis, first, count, &output));
        CVY_TRY(cvy_onnx_done(node, i, output));
        first += count;
    }
    return CVY_OK;
}
CVY_ONNX_DEFINE(split) = {"Split", .translate = translate_split};

/* ---- padding and resizing ---- */

/* Channels of zeros before and after those of the source. */
static cvy_status pad_channels(const cvy_onnx_node *node, const cvy_onnx_value *src, int64_t before, int64_t after)
{
    char *options = NULL;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: 1, first: %lld, whole: %lld", (long long)before,
                            (long long)(before + src->shape.dim[1] + after)));
    return cvy_onnx_simple(node, "pad_slice", options);
}

static cvy_status translate_pad(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *pads = NULL;
    const cvy_onnx_tensor *value = NULL;
    const char *mode = NULL, *output = NULL;
    cvy_text options = {0};
    int n = 0, any = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "pads", 1, &pads, &n));
    CVY_TRY(cvy_onnx_constant(node, 2, &value));
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    const int ndim = src->shape.ndim;
    CVY_ONNX_CHECK(
        (!*mode || strcmp(mode, "constant") == 0) &&
            (value ? value->elems != 1 || cvy_onnx_number(value, 0) == 0 : cvy_onnx_real(node, "value", 0) == 0),
        node, "mode %s; only padding with zeros is supported", *mode ? mode : "constant");
    CVY_ONNX_CHECK(n == 2 * ndim && ndim >= 2, node, "%d pads for %s", n, cvy_shape_text(&src->shape));
    for (int i = 0; i < n; i++) {
        CVY_ONNX_CHECK(pads[i] >= 0 && (i % ndim >= 1 || pads[i] == 0), node,
                       "a padding of %lld in dimension %d; only channels and positions can be padded",
                       (long long)pads[i], i % ndim);
        any |= i % ndim >= 2 && pads[i] > 0;
    }
    if (pads[1] || pads[ndim + 1]) {
        CVY_ONNX_CHECK(!any, node, "%s", "channels and positions are padded at once");
        return pad_channels(node, src, pads[1], pads[ndim + 1]);
    }
    if (!any)
        return cvy_onnx_done(node, 0, src->layer);
    for (int end = 0; end < 2; end++)
        for (int d = 2; d < ndim; d++)
            cvy_text_add(&options, "%s%lld%s",
                         d > 2 ? ", "
                         : end ? ", after: ["
                               : "before: [",
                         (long long)pads[end * ndim + d], d == ndim - 1 ? "]" : "");
    cvy_status status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_add(node,
                              &(cvy_onnx_layer){.op = "pad", .options = options.data, .from = {src->layer}, .nfrom = 1},
                              NULL, &output);
    cvy_text_free(&options);
    return status == CVY_OK ? cvy_onnx_done(node, 0, output) : status;
}
CVY_ONNX_DEFINE(pad) = {"Pad", .translate = translate_pad};

/* The new size of a Resize or Upsample: sizes (4 numbers, or 2 of the positions), or scales. */
struct resizing {
    int64_t rows, columns;
    double row_scale, column_scale; /* 0: the sizes are given */
};

static cvy_status read_resizing(const cvy_onnx_node *node, const cvy_onnx_value *src, int scales_at, int sizes_at,
                                struct resizing *out)
{
    const cvy_onnx_tensor *scales = NULL, *sizes = NULL;
    CVY_TRY(cvy_onnx_constant(node, scales_at, &scales));
    if (sizes_at >= 0)
        CVY_TRY(cvy_onnx_constant(node, sizes_at, &sizes));
    const cvy_onnx_tensor *given = sizes && sizes->elems > 0 ? sizes : scales;
    CVY_ONNX_CHECK(given && given->elems >= 2 && src->shape.ndim == 4, node, "%s",
                   "its sizes and scales are not known");
    const double r = cvy_onnx_number(given, given->elems - 2), c = cvy_onnx_number(given, given->elems - 1);
    *out = (struct resizing){(int64_t)r, (int64_t)c, 0, 0};
    if (given == scales)
        *out =
            (struct resizing){(int64_t)(r * (double)src->shape.dim[2]), (int64_t)(c * (double)src->shape.dim[3]), r, c};
    return CVY_OK;
}

/* Scales that do not give whole sizes are kept: positions are computed with them, and not with the sizes. */
static cvy_status add_resize(const cvy_onnx_node *node, const cvy_onnx_value *src, const char *mode, int corners,
                             const struct resizing *to)
{
    char *options = NULL, *size = NULL;
    const char *output = NULL;
    cvy_pool *pool = node->x->out->pool;
    const int is_whole = (double)to->rows == to->row_scale * (double)src->shape.dim[2] &&
                         (double)to->columns == to->column_scale * (double)src->shape.dim[3];
    if (to->row_scale > 0 && !is_whole && !corners)
        CVY_TRY(cvy_pool_printf(pool, &size, "scale: [%.9g, %.9g]", to->row_scale, to->column_scale));
    else
        CVY_TRY(cvy_pool_printf(pool, &size, "size: [%lld, %lld]", (long long)to->rows, (long long)to->columns));
    CVY_TRY(cvy_pool_printf(pool, &options, "mode: %s, %s%s", mode, size, corners ? ", align_corners: true" : ""));
    CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = "resize", .options = options, .from = {src->layer}, .nfrom = 1},
                         NULL, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status translate_resize(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *mode = NULL, *place = NULL, *nearest = NULL;
    struct resizing to;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    CVY_TRY(cvy_onnx_string(node, "coordinate_transformation_mode", &place));
    CVY_TRY(cvy_onnx_string(node, "nearest_mode", &nearest));
    CVY_TRY(read_resizing(node, src, node->x->opset < 11 ? 1 : 2, node->x->opset < 11 ? -1 : 3, &to));
    const int is_nearest = !*mode || strcmp(mode, "nearest") == 0, corners = strcmp(place, "align_corners") == 0;
    const int whole = to.rows % src->shape.dim[2] == 0 && to.columns % src->shape.dim[3] == 0;
    /* nearest: the value of the source position below, as in PyTorch; for whole factors all ways agree */
    CVY_ONNX_CHECK(!is_nearest || (strcmp(place, "asymmetric") == 0 && strcmp(nearest, "floor") == 0) ||
                       (whole && !corners && (strcmp(place, "asymmetric") != 0 || strcmp(nearest, "floor") == 0)),
                   node, "nearest with %s and %s is not supported", *place ? place : "half_pixel",
                   *nearest ? nearest : "round_prefer_floor");
    CVY_ONNX_CHECK(is_nearest ||
                       (strcmp(mode, "linear") == 0 && (!*place || corners || strcmp(place, "half_pixel") == 0 ||
                                                        strcmp(place, "pytorch_half_pixel") == 0)),
                   node, "mode %s with %s is not supported", mode, *place ? place : "half_pixel");
    return add_resize(node, src, is_nearest ? "nearest" : "bilinear", !is_nearest && corners, &to);
}
CVY_ONNX_DEFINE(resize) = {"Resize", .translate = translate_resize};

static cvy_status translate_upsample(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *mode = NULL;
    struct resizing to;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    CVY_ONNX_CHECK(!*mode || strcmp(mode, "nearest") == 0, node, "mode %s is not supported", mode);
    CVY_TRY(read_resizing(node, src, 1, -1, &to));
    return add_resize(node, src, "nearest", 0, &to);
}
CVY_ONNX_DEFINE(upsample) = {"Upsample", .translate = translate_upsample};

/* ---- reductions ---- */

/* A reduction over all positions is global pooling; pool: its operator, NULL: there is none. */
static cvy_status reduce(const cvy_onnx_node *node, const char *method, const char *pool)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *axes = NULL;
    const int keep = (int)cvy_onnx_int(node, "keepdims", 1);
    int n = 0, nsample = 0, is_pool = pool != NULL;
    const char *output = NULL;
    int64_t sample[CVY_NDIM_MAX];
    cvy_text options = {0};
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    const int ndim = src->shape.ndim;
    CVY_ONNX_CHECK(n > 0 && !is_named(axes, n, 0, ndim), node, "%s",
                   "it needs axes, and the first one, that of the samples, cannot be reduced");
    for (int d = 1; d < ndim; d++) {
        const int goes = is_named(axes, n, d, ndim);
        is_pool &= ndim > 2 && goes == (d > 1);
        if (goes)
            cvy_text_add(&options, "%s%d", options.bytes ? ", " : "axes: [", d);
        if (keep || !goes)
            sample[nsample++] = goes ? 1 : src->shape.dim[d];
    }
    cvy_text_add(&options, "], method: %s", method);
    cvy_status status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_add(node,
                              &(cvy_onnx_layer){.op = is_pool ? pool : "reduction",
                                                .options = is_pool ? NULL : options.data,
                                                .from = {src->layer},
                                                .nfrom = 1},
                              NULL, &output);
    cvy_text_free(&options);
    CVY_TRY(status);
    CVY_TRY(add_reshape(node, output, sample, nsample, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status translate_reduce_mean(const cvy_onnx_node *node)
{
    return reduce(node, "mean", "global_avg_pool");
}
CVY_ONNX_DEFINE(reduce_mean) = {"ReduceMean", .translate = translate_reduce_mean};

static cvy_status translate_reduce_sum(const cvy_onnx_node *node)
{
    return reduce(node, "sum", NULL);
}
CVY_ONNX_DEFINE(reduce_sum) = {"ReduceSum", .translate = translate_reduce_sum};

static cvy_status translate_reduce_max(const cvy_onnx_node *node)
{
    return reduce(node, "max", "global_max_pool");
}
CVY_ONNX_DEFINE(reduce_max) = {"ReduceMax", .translate = translate_reduce_max};

/*
 * caffe_shape.c: layers that join, cut, reorder and add up blobs, and layers that do nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "exchange/caffe/caffe.h"

/* Adds a layer `reshape` to these dimensions of a sample. */
static cvy_status reshape(const cvy_caffe_layer *layer, const char *at, const int64_t *dim, int n)
{
    const char *list = NULL;
    if (n == 0)
        return cvy_caffe_decline(layer, "%s", "its result has no dimension besides the batch");
    CVY_TRY(cvy_caffe_list(layer, dim, n, &list));
    CVY_TRY(cvy_caffe_then(layer, &at, "reshape", "shape: %s", list));
    return cvy_caffe_done(layer, 0, at);
}

/* ---- join and cut ---- */

static cvy_status translate_concat(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__ConcatParameter usual = CVY__CAFFE__CONCAT_PARAMETER__INIT;
    const Cvy__Caffe__ConcatParameter *p = layer->p->concat_param ? layer->p->concat_param : &usual;
    enum { MOST = 8 };
    cvy_caffe_new_layer added = {.op = "concat"};
    const char *at = NULL;
    char *options = NULL;
    size_t done = 0;
    int axis = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(cvy_caffe_axis(layer, p->has_concat_dim ? (int64_t)p->concat_dim : p->axis,
                           cvy_caffe_shape(layer, at)->ndim, &axis));
    CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &options, "axis: %d", axis));
    added.options = options;
    /* more than eight are joined one after the other */
    for (done = 1; done < layer->p->n_bottom;) {
        added.from[0] = at;
        added.nfrom = 1;
        while (added.nfrom < MOST && done < layer->p->n_bottom)
            CVY_TRY(cvy_caffe_bottom(layer, done++, &added.from[added.nfrom++]));
        CVY_TRY(cvy_caffe_add(layer, &added, &at));
    }
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(concat) = {"Concat", .translate = translate_concat};

static cvy_status cut(const cvy_caffe_layer *layer, const char **at, int axis, int64_t first, int64_t count)
{
    return cvy_caffe_then(layer, at, "slice", "axis: %d, first: %lld, count: %lld", axis, (long long)first,
                          (long long)count);
}

static cvy_status translate_slice(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__SliceParameter usual = CVY__CAFFE__SLICE_PARAMETER__INIT;
    const Cvy__Caffe__SliceParameter *p = layer->p->slice_param ? layer->p->slice_param : &usual;
    const size_t n = layer->p->n_top;
    const char *from = NULL;
    int axis = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &from));
    const cvy_shape *src = cvy_caffe_shape(layer, from);
    CVY_TRY(cvy_caffe_axis(layer, p->has_slice_dim ? (int64_t)p->slice_dim : p->axis, src->ndim, &axis));
    const int64_t size = src->dim[axis];
    CVY_CHECK(p->n_slice_point == 0 ? n > 0 && size % (int64_t)n == 0 : p->n_slice_point + 1 == n, CVY_E_FORMAT,
              "%s: %s: %zu points cut axis %d of %s, which has %lld entries, into %zu tops", layer->x->build.path,
              layer->where, p->n_slice_point, axis, cvy_shape_text(src), (long long)size, n);
    for (size_t i = 0; i < n; i++) {
        const int equal = p->n_slice_point == 0;
        const int64_t each = size / (int64_t)n;
        const int64_t first = equal ? (int64_t)i * each : i == 0 ? 0 : p->slice_point[i - 1];
        const int64_t end = equal ? first + each : i + 1 == n ? size : p->slice_point[i];
        const char *at = from;
        CVY_CHECK(first < end && end <= size, CVY_E_FORMAT, "%s: %s: top %zu gets the entries %lld .. %lld of %lld",
                  layer->x->build.path, layer->where, i, (long long)first, (long long)end, (long long)size);
        CVY_TRY(cut(layer, &at, axis, first, end - first));
        CVY_TRY(cvy_caffe_done(layer, i, at));
    }
    return CVY_OK;
}
CVY_CAFFE_DEFINE(slice) = {"Slice", .translate = translate_slice};

static cvy_status translate_crop(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__CropParameter usual = CVY__CAFFE__CROP_PARAMETER__INIT;
    const Cvy__Caffe__CropParameter *p = layer->p->crop_param ? layer->p->crop_param : &usual;
    const char *at = NULL, *like = NULL;
    int axis = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(cvy_caffe_bottom(layer, 1, &like));
    const cvy_shape src = *cvy_caffe_shape(layer, at), to = *cvy_caffe_shape(layer, like);
    CVY_TRY(cvy_caffe_axis(layer, p->axis, src.ndim, &axis));
    CVY_CHECK(src.ndim == to.ndim && (p->n_offset <= 1 || p->n_offset == (size_t)(src.ndim - axis)), CVY_E_FORMAT,
              "%s: %s: it crops %s like %s with %zu offsets from axis %d", layer->x->build.path, layer->where,
              cvy_shape_text(&src), cvy_shape_text(&to), p->n_offset, axis);
    for (int d = axis; d < src.ndim; d++) {
        const int64_t first = p->n_offset == 0 ? 0 : p->offset[p->n_offset > 1 ? d - axis : 0];
        CVY_CHECK(first + to.dim[d] <= src.dim[d], CVY_E_SHAPE,
                  "%s: %s: %lld entries from %lld of axis %d, which has %lld", layer->x->build.path, layer->where,
                  (long long)to.dim[d], (long long)first, d, (long long)src.dim[d]);
        if (to.dim[d] != src.dim[d])
            CVY_TRY(cut(layer, &at, d, first, to.dim[d]));
    }
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(crop) = {"Crop", .translate = translate_crop};

/* ---- other shapes ---- */

static cvy_status translate_flatten(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__FlattenParameter usual = CVY__CAFFE__FLATTEN_PARAMETER__INIT;
    const Cvy__Caffe__FlattenParameter *p = layer->p->flatten_param ? layer->p->flatten_param : &usual;
    const char *at = NULL;
    int first = 0, last = 0, n = 0;
    int64_t dim[CVY_NDIM_MAX], all = 1;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    const cvy_shape *src = cvy_caffe_shape(layer, at);
    CVY_TRY(cvy_caffe_axis(layer, p->axis, src->ndim, &first));
    CVY_TRY(cvy_caffe_axis(layer, p->end_axis, src->ndim, &last));
    CVY_CHECK(first <= last, CVY_E_FORMAT, "%s: %s: it flattens the axes %d to %d", layer->x->build.path, layer->where,
              first, last);
    if (first == 1 && last == src->ndim - 1)
        return cvy_caffe_simple(layer, "flatten", NULL);
    for (int d = 1; d < src->ndim; d++) {
        all = d == first ? src->dim[d] : all * src->dim[d];
        if (d < first || d > last)
            dim[n++] = src->dim[d];
        else if (d == last)
            dim[n++] = all;
    }
    return reshape(layer, at, dim, n);
}
CVY_CAFFE_DEFINE(flatten) = {"Flatten", .translate = translate_flatten};

/* The dimensions of a reshaped blob, with the batch as dim[0]: 0: that of the source at this place, -1: what remains.
 */
static cvy_status reshaped(const cvy_caffe_layer *layer, const Cvy__Caffe__ReshapeParameter *p, const cvy_shape *src,
                           int64_t *dim, int *n_out)
{
    const int64_t start = p->axis < 0 ? p->axis + src->ndim + 1 : p->axis;
    const int64_t end = p->num_axes < 0 ? src->ndim : start + p->num_axes;
    int n = 0;
    CVY_CHECK(start >= 0 && start <= end && end <= src->ndim, CVY_E_FORMAT, "%s: %s: it reshapes %d axes from %d of %s",
              layer->x->build.path, layer->where, p->num_axes, p->axis, cvy_shape_text(src));
    const size_t given = p->shape ? p->shape->n_dim : 0, total = (size_t)(start + src->ndim - end) + given;
    CVY_CAFFE_CHECK(total <= CVY_NDIM_MAX, layer, "its result has %zu dimensions, the limit is %d", total,
                    CVY_NDIM_MAX);
    for (int64_t d = 0; d < start; d++)
        dim[n++] = d == 0 ? 0 : src->dim[d];
    for (size_t i = 0; i < given; i++) {
        const int64_t from = start + (int64_t)i, value = p->shape->dim[i];
        CVY_CHECK(value >= -1 && (value != 0 || from < src->ndim), CVY_E_FORMAT, "%s: %s: dimension %zu is %lld",
                  layer->x->build.path, layer->where, i, (long long)value);
        dim[n++] = value == 0 && from > 0 ? src->dim[from] : value;
    }
    for (int64_t d = end; d < src->ndim; d++)
        dim[n++] = d == 0 ? 0 : src->dim[d];
    *n_out = n;
    return CVY_OK;
}

/* The batch must stay what it is: a 0, the batch of the text, or -1 if the rest has all elements of a sample. */
static cvy_status translate_reshape(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__ReshapeParameter usual = CVY__CAFFE__RESHAPE_PARAMETER__INIT;
    const Cvy__Caffe__ReshapeParameter *p = layer->p->reshape_param ? layer->p->reshape_param : &usual;
    const char *at = NULL;
    int64_t dim[CVY_NDIM_MAX], known = 1, elems = 1;
    int n = 0, open = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    const cvy_shape *src = cvy_caffe_shape(layer, at);
    CVY_TRY(reshaped(layer, p, src, dim, &n));
    for (int d = 1; d < src->ndim; d++)
        elems *= src->dim[d];
    for (int i = 1; i < n; i++) {
        open += dim[i] < 0;
        CVY_CAFFE_CHECK(dim[i] <= elems, layer, "dimension %d is %lld, a sample has %lld elements", i,
                        (long long)dim[i], (long long)elems);
        known *= dim[i] > 0 && known <= elems ? dim[i] : 1;
    }
    const int keeps = n > 0 && (dim[0] == 0 || (dim[0] == -1 && open == 0 && known == elems) ||
                                (dim[0] > 0 && (dim[0] == layer->x->batch || (open == 0 && known == elems))));
    CVY_CAFFE_CHECK(keeps, layer, "it moves elements between the samples of a batch, %s", cvy_shape_text(src));
    return reshape(layer, at, dim + 1, n - 1);
}
CVY_CAFFE_DEFINE(reshape) = {"Reshape", .translate = translate_reshape};

static cvy_status translate_permute(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__PermuteParameter *p = layer->p->permute_param;
    const char *at = NULL, *list = NULL;
    int64_t order[CVY_NDIM_MAX];
    int n = 0, seen = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    const int ndim = cvy_caffe_shape(layer, at)->ndim;
    CVY_CHECK(p && p->n_order <= (size_t)ndim, CVY_E_FORMAT, "%s: %s: permute_param has %zu axes, the source has %d",
              layer->x->build.path, layer->where, p ? p->n_order : 0, ndim);
    CVY_CAFFE_CHECK(p->n_order == 0 || p->order[0] == 0, layer, "%s", "it moves the axis of the samples");
    /* axes that are not named come last, in their order */
    for (size_t i = 1; i < p->n_order; i++) {
        CVY_CHECK(p->order[i] > 0 && p->order[i] < (uint32_t)ndim && !(seen >> p->order[i] & 1), CVY_E_FORMAT,
                  "%s: %s: entry %zu of its order is %u", layer->x->build.path, layer->where, i, p->order[i]);
        seen |= 1 << p->order[i];
        order[n++] = p->order[i];
    }
    for (int d = 1; d < ndim; d++)
        if (!(seen >> d & 1))
            order[n++] = d;
    CVY_TRY(cvy_caffe_list(layer, order, n, &list));
    CVY_TRY(cvy_caffe_then(layer, &at, "transpose", "order: %s", list));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(permute) = {"Permute", .translate = translate_permute};

/* ---- sums ---- */

static cvy_status translate_reduction(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__ReductionParameter usual = CVY__CAFFE__REDUCTION_PARAMETER__INIT;
    const Cvy__Caffe__ReductionParameter *p = layer->p->reduction_param ? layer->p->reduction_param : &usual;
    const char *at = NULL, *axes = NULL;
    int first = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    const int ndim = cvy_caffe_shape(layer, at)->ndim;
    CVY_TRY(cvy_caffe_axis(layer, p->axis, ndim, &first));
    CVY_TRY(cvy_caffe_axes_from(layer, first, ndim, &axes));
    if (p->operation == CVY__CAFFE__REDUCTION_PARAMETER__REDUCTION_OP__ASUM)
        CVY_TRY(cvy_caffe_then(layer, &at, "abs", "%s", ""));
    if (p->operation == CVY__CAFFE__REDUCTION_PARAMETER__REDUCTION_OP__SUMSQ)
        CVY_TRY(cvy_caffe_then(layer, &at, "square", "%s", ""));
    CVY_TRY(cvy_caffe_then(layer, &at, "reduction", "method: %s, axes: %s",
                           p->operation == CVY__CAFFE__REDUCTION_PARAMETER__REDUCTION_OP__MEAN ? "mean" : "sum", axes));
    if (p->coeff != 1)
        CVY_TRY(cvy_caffe_then(layer, &at, "scale", "by: %.9g", CVY_CAFFE_REAL(p->coeff)));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(reduction) = {"Reduction", .translate = translate_reduction};

/* ---- tables ---- */

static cvy_status translate_embed(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__EmbedParameter *p = layer->p->embed_param;
    const char *from = NULL, *name = NULL, *output = NULL;
    cvy_text options = {0};
    CVY_CHECK(p && p->num_output > 0 && p->input_dim > 0, CVY_E_FORMAT,
              "%s: %s: embed_param has no num_output or no input_dim", layer->x->build.path, layer->where);
    CVY_CAFFE_CHECK(!p->bias_term, layer, "%s", "a bias is not supported: give bias_term: false");
    CVY_TRY(cvy_caffe_bottom(layer, 0, &from));
    cvy_text_add(&options, "rows: %u, channels: %u", p->input_dim, p->num_output);
    const cvy_caffe_fans fans = {p->num_output, p->input_dim, 0, p->input_dim, 1};
    cvy_status status = cvy_caffe_fill(layer, p->weight_filler, &fans, &options);
    if (status == CVY_OK)
        status = cvy_caffe_add_trained(
            layer, &(cvy_caffe_new_layer){.op = "embedding", .options = options.data, .from = {from}, .nfrom = 1}, 1,
            &name, &output);
    cvy_text_free(&options);
    CVY_TRY(status);
    CVY_TRY(cvy_caffe_has(layer, layer->p, 0, name, "weight", CVY_CAFFE_AS_IS));
    return cvy_caffe_done(layer, 0, output);
}
CVY_CAFFE_DEFINE(embed) = {"Embed", .translate = translate_embed};

/* ---- layers that do nothing ---- */

static cvy_status translate_split(const cvy_caffe_layer *layer)
{
    const char *at = NULL;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    for (size_t i = 0; i < layer->p->n_top; i++)
        CVY_TRY(cvy_caffe_done(layer, i, at));
    return CVY_OK;
}
CVY_CAFFE_DEFINE(split) = {"Split", .translate = translate_split};

static cvy_status translate_nothing(const cvy_caffe_layer *layer)
{
    (void)layer;
    return CVY_OK;
}
CVY_CAFFE_DEFINE(silence) = {"Silence", .translate = translate_nothing};
/* A metric of a job does its work: accuracy, or top_k. */
CVY_CAFFE_DEFINE(accuracy) = {"Accuracy", .translate = translate_nothing};

#define NO_LAYER(what) .declined = "convoy has no layer for " what
CVY_CAFFE_DEFINE(tile) = {"Tile", NO_LAYER("repeated blobs")};
CVY_CAFFE_DEFINE(filter) = {"Filter", NO_LAYER("a choice of samples")};
CVY_CAFFE_DEFINE(batch_reindex) = {"BatchReindex", NO_LAYER("another order of samples")};
CVY_CAFFE_DEFINE(im2col) = {"Im2col", NO_LAYER("the windows of a convolution themselves")};
CVY_CAFFE_DEFINE(spp) = {"SPP", NO_LAYER("spatial pyramid pooling")};
CVY_CAFFE_DEFINE(rnn) = {"RNN", NO_LAYER("recurrent networks")};
CVY_CAFFE_DEFINE(lstm) = {"LSTM", NO_LAYER("recurrent networks")};
CVY_CAFFE_DEFINE(recurrent) = {"Recurrent", NO_LAYER("recurrent networks")};

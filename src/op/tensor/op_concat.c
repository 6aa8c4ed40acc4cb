/*
 * concat, slice, pad_slice: joins tensors along one axis, takes a part of a tensor, and pads that part with zeros.
 * They are for branches that are joined (inception modules, dense blocks), and for inputs that are cut into parts.
 *
 *     concat     dst = src0, src1, ... one after the other    gradient: slice of ddst for each
 *     slice      dst = src[first .. first + count - 1]        gradient: pad_slice of ddst
 *     pad_slice  dst = 0, but dst[first ..] = src             gradient: slice of ddst
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_concat.h"
#include "graph/graph_grad.h"

static cvy_status check_axis(const char *op, int64_t axis, const cvy_shape *src)
{
    CVY_CHECK(axis >= 1 && axis < src->ndim, CVY_E_SHAPE,
              "%s: `axis` %lld does not exist in %s; expected 1 to %d (axis 0 is the batch)", op, (long long)axis,
              cvy_shape_text(src), src->ndim - 1);
    return CVY_OK;
}

/* Copies `count` entries along the axis: from src, starting at entry `from`, to dst, starting at entry `to`. */
static void copy_entries(const cvy_span *src, int64_t from, const cvy_span *dst, int64_t to, int64_t count, int axis)
{
    const int64_t outer = cvy_span_prod(src, 0, axis), inner = cvy_span_prod(src, axis + 1, src->ndim);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count * inner; i++)
            cvy_set(dst, (o * dst->dim[axis] + to) * inner + i, cvy_get(src, (o * src->dim[axis] + from) * inner + i));
}

static const cvy_option concat_rows[] = {
    {"axis", CVY_TYPE_INT, CVY_FIELD(cvy_concat_opts, axis), "1", "1..", "",
     "dimension along which the sources are joined; 1 is the channels"},
    {0},
};

static cvy_status concat_infer(cvy_node *node)
{
    const cvy_concat_opts *o = node->options;
    cvy_shape dst = *cvy_node_src(node, 0);
    CVY_TRY(check_axis("concat", o->axis, &dst));
    for (int i = 1; i < node->nsrc; i++) {
        const cvy_shape *src = cvy_node_src(node, i);
        cvy_shape rest = dst;
        CVY_CHECK(src->ndim == dst.ndim, CVY_E_SHAPE,
                  "concat: source %d is %s, the first is %s; they need the same number of dimensions", i,
                  cvy_shape_text(src), cvy_shape_text(cvy_node_src(node, 0)));
        rest.dim[o->axis] = src->dim[o->axis];
        CVY_CHECK(cvy_shape_equal(&rest, src) && node->src[i]->dtype == node->src[0]->dtype, CVY_E_SHAPE,
                  "concat: source %d is %s %s, the first is %s %s; they may differ in dimension %lld only", i,
                  cvy_dtype_text(node->src[i]->dtype), cvy_shape_text(src), cvy_dtype_text(node->src[0]->dtype),
                  cvy_shape_text(cvy_node_src(node, 0)), (long long)o->axis);
        dst.dim[o->axis] += src->dim[o->axis];
    }
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status concat_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_concat_opts *o = fwd->options;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    int64_t first = 0;
    for (int i = 0; ddst && i < fwd->nsrc; i++) {
        const int64_t count = cvy_node_src(fwd, i)->dim[o->axis];
        if (cvy_grad_wanted(g, fwd->src[i])) {
            const cvy_slice_opts slice = {o->axis, first, count};
            cvy_value *dsrc = NULL;
            CVY_TRY(cvy_grad_emit(g, fwd, "slice", &slice, &ddst, 1, &dsrc, 1));
            CVY_TRY(cvy_grad_add(g, fwd->src[i], dsrc));
        }
        first += count;
    }
    return CVY_OK;
}

/* The cost of writing the destination once and reading as many elements. */
static void copy_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.read_elems = n, .write_elems = n};
}

static int64_t copy_summands(const cvy_node *node)
{
    (void)node;
    return 1;
}

static cvy_status concat_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_concat_opts *o = node->options;
    int64_t first = 0;
    for (int s = 0; s < node->nsrc; s++) {
        copy_entries(&src[s], 0, dst, first, src[s].dim[o->axis], (int)o->axis);
        first += src[s].dim[o->axis];
    }
    return CVY_OK;
}

static const cvy_sample concat_samples[] = {
    {.src = "2x3x4x5,2x2x4x5"},
    {.src = "2x16x3x3,2x32x3x3,2x16x3x3"},
    {.src = "2x3x4,2x3x1", .options = "axis: 2"},
    {.src = "2x24x40x40,2x24x40x40"},
    {.src = "3x2,3x5"},
    {.src = "2x7"},
    {0},
};

/* The split that is possible if the operator joins or slices along this axis: it must be along another axis. */
static unsigned splits_off_axis(int64_t axis)
{
    return axis == 1 ? CVY_SPLIT_SPACE : CVY_SPLIT_CHANNELS;
}

static unsigned concat_splits(const cvy_node *node)
{
    return splits_off_axis(((const cvy_concat_opts *)node->options)->axis);
}

static int64_t concat_joins(const cvy_node *node)
{
    return ((const cvy_concat_opts *)node->options)->axis;
}

CVY_OP_DEFINE(concat) = {
    .name = "concat",
    .summary = "joins tensors along one axis",
    .options = concat_rows,
    .options_size = sizeof(cvy_concat_opts),
    .nsrc_min = 1,
    .nsrc_max = 8,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = concat_splits,
    .infer = concat_infer,
    .copies.joins = concat_joins,
    .grad = concat_grad,
    .cost = copy_cost,
    .reference = concat_reference,
    .summands = copy_summands,
    .samples = concat_samples,
};

/* slice */
static const cvy_option slice_rows[] = {
    {"axis", CVY_TYPE_INT, CVY_FIELD(cvy_slice_opts, axis), "1", "1..", "", "dimension that is cut; 1 is the channels"},
    {"first", CVY_TYPE_INT, CVY_FIELD(cvy_slice_opts, first), "0", "0..", "", "first entry taken"},
    {"count", CVY_TYPE_INT, CVY_FIELD(cvy_slice_opts, count), NULL, "1..", "", "number of entries taken"},
    {0},
};

static cvy_status slice_infer(cvy_node *node)
{
    const cvy_slice_opts *o = node->options;
    cvy_shape dst = *cvy_node_src(node, 0);
    CVY_TRY(check_axis("slice", o->axis, &dst));
    CVY_CHECK(o->first + o->count <= dst.dim[o->axis], CVY_E_SHAPE,
              "slice: entries %lld to %lld are outside dimension %lld of %s", (long long)o->first,
              (long long)(o->first + o->count - 1), (long long)o->axis, cvy_shape_text(&dst));
    dst.dim[o->axis] = o->count;
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status slice_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_slice_opts *o = fwd->options;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    const cvy_pad_slice_opts pad = {o->axis, o->first, cvy_node_src(fwd, 0)->dim[o->axis]};
    CVY_TRY(cvy_grad_emit(g, fwd, "pad_slice", &pad, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static cvy_status slice_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_slice_opts *o = node->options;
    copy_entries(src, o->first, dst, 0, o->count, (int)o->axis);
    return CVY_OK;
}

static const cvy_sample slice_samples[] = {
    {.src = "2x5x3x4", .options = "first: 1, count: 3"},
    {.src = "2x32x3x3", .options = "first: 16, count: 16"},
    {.src = "3x2x6", .options = "axis: 2, count: 1"},
    {0},
};

static unsigned slice_splits(const cvy_node *node)
{
    return splits_off_axis(((const cvy_slice_opts *)node->options)->axis);
}

static int64_t slice_cuts(const cvy_node *node, int64_t *first_out)
{
    const cvy_slice_opts *o = node->options;
    *first_out = o->first;
    return o->axis;
}

CVY_OP_DEFINE(slice) = {
    .name = "slice",
    .summary = "consecutive entries of one axis",
    .options = slice_rows,
    .options_size = sizeof(cvy_slice_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = slice_splits,
    .infer = slice_infer,
    .copies.cuts = slice_cuts,
    .grad = slice_grad,
    .cost = copy_cost,
    .reference = slice_reference,
    .summands = copy_summands,
    .samples = slice_samples,
};

/* pad_slice */
static const cvy_option pad_slice_rows[] = {
    {"axis", CVY_TYPE_INT, CVY_FIELD(cvy_pad_slice_opts, axis), "1", "1..", "", "dimension that is padded"},
    {"first", CVY_TYPE_INT, CVY_FIELD(cvy_pad_slice_opts, first), "0", "0..", "",
     "where the source's first entry goes"},
    {"whole", CVY_TYPE_INT, CVY_FIELD(cvy_pad_slice_opts, whole), NULL, "1..", "",
     "number of entries of the destination"},
    {0},
};

static cvy_status pad_slice_infer(cvy_node *node)
{
    const cvy_pad_slice_opts *o = node->options;
    cvy_shape dst = *cvy_node_src(node, 0);
    CVY_TRY(check_axis("pad_slice", o->axis, &dst));
    CVY_CHECK(o->first + dst.dim[o->axis] <= o->whole, CVY_E_SHAPE,
              "pad_slice: %lld entries from %lld on do not fit into %lld", (long long)dst.dim[o->axis],
              (long long)o->first, (long long)o->whole);
    dst.dim[o->axis] = o->whole;
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status pad_slice_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_pad_slice_opts *o = fwd->options;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    const cvy_slice_opts slice = {o->axis, o->first, cvy_node_src(fwd, 0)->dim[o->axis]};
    CVY_TRY(cvy_grad_emit(g, fwd, "slice", &slice, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static cvy_status pad_slice_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_pad_slice_opts *o = node->options;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, 0);
    copy_entries(src, 0, dst, o->first, src->dim[o->axis], (int)o->axis);
    return CVY_OK;
}

static const cvy_sample pad_slice_samples[] = {
    {.src = "2x3x3x4", .options = "first: 1, whole: 5"},
    {.src = "2x16x3x3", .options = "first: 16, whole: 48"},
    {.src = "3x2x2", .options = "axis: 2, whole: 3"},
    {0},
};

static unsigned pad_slice_splits(const cvy_node *node)
{
    return splits_off_axis(((const cvy_pad_slice_opts *)node->options)->axis);
}

CVY_OP_DEFINE(pad_slice) = {
    .name = "pad_slice",
    .summary = "pads one axis with zeros",
    .options = pad_slice_rows,
    .options_size = sizeof(cvy_pad_slice_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = pad_slice_splits,
    .infer = pad_slice_infer,
    .grad = pad_slice_grad,
    .cost = copy_cost,
    .reference = pad_slice_reference,
    .summands = copy_summands,
    .samples = pad_slice_samples,
};

/*
 * reduction: mean, sum or maximum over axes of each sample, as PyTorch's mean, sum and amax. global_avg_pool and
 * global_max_pool do the same for all positions, faster.
 *
 *     mean   dsrc = ddst / number of elements, repeated
 *     sum    dsrc = ddst, repeated
 *     max    dsrc = ddst at the maximum (the first of equal ones), else 0; NaN if there is a NaN
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_reduction.h"

#include <math.h>

#include "graph/graph_grad.h"
#include "op/tensor/op_walk.h"

struct reduction_grad {
    cvy_reduction_opts r;
    cvy_shape src;
};

static const cvy_option reduction_rows[] = {
    {"method", CVY_TYPE_CHOICE, CVY_FIELD(cvy_reduction_opts, method), "mean", "mean|sum|max", "", "what is computed"},
    {"axes", CVY_TYPE_INTS, CVY_FIELD(cvy_reduction_opts, axes), NULL, "", "",
     "axes that are reduced; 1 is the channels, negative ones count from the end"},
    {"keep", CVY_TYPE_BOOL, CVY_FIELD(cvy_reduction_opts, keep), "false", "", "",
     "the reduced axes stay, with length 1"},
    {0},
};

/* A bit for each axis that is reduced. The options must be valid. */
static unsigned axes_of(const cvy_reduction_opts *o, int ndim)
{
    unsigned axes = 0;
    for (int i = 0; i < o->axes.count; i++)
        axes |= 1U << (o->axes.at[i] < 0 ? o->axes.at[i] + ndim : o->axes.at[i]);
    return axes;
}

static cvy_status reduction_infer(cvy_node *node)
{
    const cvy_reduction_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_shape dst = {0};
    CVY_CHECK(o->axes.count > 0, CVY_E_SHAPE, "reduction: `axes` is empty; give at least one axis");
    for (int i = 0; i < o->axes.count; i++) {
        const int64_t axis = o->axes.at[i] < 0 ? o->axes.at[i] + src->ndim : o->axes.at[i];
        CVY_CHECK(axis >= 1 && axis < src->ndim, CVY_E_SHAPE,
                  "reduction: entry %d of `axes` is %lld, which is not an axis of a sample of %s; axis 0 is the batch",
                  i, (long long)o->axes.at[i], cvy_shape_text(src));
    }
    const unsigned axes = axes_of(o, src->ndim);
    for (int d = 0; d < src->ndim; d++)
        if (o->keep || !(axes >> d & 1))
            dst.dim[dst.ndim++] = axes >> d & 1 ? 1 : src->dim[d];
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status reduction_backward(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_reduction_opts *o = fwd->options;
    const struct reduction_grad opts = {*o, *cvy_node_src(fwd, 0)};
    cvy_value *const from[] = {cvy_grad_of(g, fwd->dst[0]), fwd->src[0]};
    cvy_value *dsrc = NULL;
    if (!from[0] || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, "reduction_grad", &opts, from, o->method == CVY_REDUCTION_MAX ? 2 : 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void reduction_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t reduction_summands(const cvy_node *node)
{
    cvy_walk along, others;
    const cvy_reduction_opts *o = node->options;
    cvy_walk_split(cvy_node_src(node, 0), axes_of(o, cvy_node_src(node, 0)->ndim), &along, &others);
    return cvy_walk_count(&along) + 1;
}

/* The offset, within the reduced axes, of the maximum of the elements from `at` on. */
static int64_t place_of_maximum(const cvy_span *src, const cvy_walk *along, int64_t at)
{
    int64_t place = 0;
    double most = cvy_get(src, at);
    for (int64_t r = 1; r < cvy_walk_count(along); r++) {
        const double v = cvy_get(src, at + cvy_walk_at(along, r));
        if (v > most || (isnan(v) && !isnan(most))) {
            most = v;
            place = cvy_walk_at(along, r);
        }
    }
    return place;
}

static cvy_status reduction_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_reduction_opts *o = node->options;
    cvy_walk along, others;
    cvy_walk_split(cvy_node_src(node, 0), axes_of(o, src->ndim), &along, &others);
    const int64_t n = cvy_walk_count(&along);
    for (int64_t k = 0; k < dst->elems; k++) {
        const int64_t at = cvy_walk_at(&others, k);
        double sum = 0;
        for (int64_t r = 0; r < n && o->method != CVY_REDUCTION_MAX; r++)
            sum += cvy_get(src, at + cvy_walk_at(&along, r));
        cvy_set(dst, k,
                o->method == CVY_REDUCTION_MAX   ? cvy_get(src, at + place_of_maximum(src, &along, at))
                : o->method == CVY_REDUCTION_SUM ? sum
                                                 : sum / (double)n);
    }
    return CVY_OK;
}

static const cvy_sample reduction_samples[] = {
    {.src = "2x3x4x5", .options = "axes: [2, 3]"},
    {.src = "2x3x4x5", .options = "axes: 1, keep: true"},
    {.src = "3x7x4", .options = "axes: -1, method: sum"},
    {.src = "2x3x4x5", .options = "axes: [1, 3], method: sum, keep: true"},
    {.src = "2x3x4x5", .options = "axes: [-2, 1], method: max"},
    {.src = "3x6", .options = "axes: 1, method: max, keep: true"},
    {.src = "2x4x3x5", .options = "axes: 2, method: max", .flags = CVY_SAMPLE_TIES},
    {.src = "2x3x2x3x2", .options = "axes: [1, 2, 3, 4]"},
    {0},
};

CVY_OP_DEFINE(reduction) = {
    .name = "reduction",
    .summary = "mean, sum or maximum over axes of each sample",
    .options = reduction_rows,
    .options_size = sizeof(cvy_reduction_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = reduction_infer,
    .grad = reduction_backward,
    .cost = reduction_cost,
    .reference = reduction_reference,
    .summands = reduction_summands,
    .samples = reduction_samples,
};

/* reduction_grad: ddst and, of a maximum, src -> dsrc. It is tested with the samples of reduction, through its
 * gradient. */
static cvy_status reduction_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const struct reduction_grad *)node->options)->src);
}

static cvy_status reduction_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_reduction_opts *o = node->options;
    cvy_walk along, others;
    cvy_walk_split(cvy_node_dst(node, 0), axes_of(o, dst->ndim), &along, &others);
    const int64_t n = cvy_walk_count(&along);
    for (int64_t k = 0; k < src[0].elems; k++) {
        const int64_t at = cvy_walk_at(&others, k);
        const double d = cvy_get(&src[0], k), each = o->method == CVY_REDUCTION_MEAN  ? d / (double)n
                                                     : o->method == CVY_REDUCTION_SUM ? d
                                                                                      : 0;
        for (int64_t r = 0; r < n; r++)
            cvy_set(dst, at + cvy_walk_at(&along, r), each);
        if (o->method == CVY_REDUCTION_MAX)
            cvy_set(dst, at + place_of_maximum(&src[1], &along, at), d);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(reduction_grad) = {
    .name = "reduction_grad",
    .summary = "gradient of reduction",
    .options = reduction_rows,
    .options_size = sizeof(struct reduction_grad),
    .nsrc_min = 1,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = reduction_grad_infer,
    .reference = reduction_grad_reference,
};

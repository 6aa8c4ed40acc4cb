/*
 * max_pool: maximum over a sliding window. Networks have it between convolutions; evaluation does not need the index.
 * Source: ceil mode as in Caffe and PyTorch: a last, partial window counts if it starts inside the source or its left
 * padding.
 *
 *     dst   = max of src over the window, without padding; NaN if there is a NaN
 *     index = row-major position of the maximum in the window (the first of equal ones)
 *     dsrc  = sum of ddst over the windows whose maximum is at this position
 *
 * With relu: dst = max(dst, 0), and the index says that no position is the maximum if it is not above zero. So one
 * index gives the gradient of both.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_grad.h"
#include "op/conv/op_pool.h"

static const cvy_option max_pool_rows[] = {
    {"kernel", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, kernel), NULL, "1..", "",
     "positions of the window, one number or one for each dimension"},
    {"stride", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, stride), "", "1..", "",
     "step of the window; the size of the kernel if not given"},
    {"pad", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, pad), "0", "0..", "", "padding around the source, on each side"},
    {"pad_end", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, pad_end), "", "0..", "",
     "padding at the far end, if there is not as much as at the near end"},
    {"dilation", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, dilation), "1", "1..", "",
     "distance between the positions of the window"},
    {"ceil", CVY_TYPE_BOOL, CVY_FIELD(cvy_pool_opts, ceil), "false", "", "", "also compute a last, partial window"},
    {"relu", CVY_TYPE_BOOL, CVY_FIELD(cvy_pool_opts, relu), "false", "", "",
     "rectify the result; set if a relu before or after it is fused in"},
    {0},
};

/* No window may contain only padding: the first one must reach the source, the last one begin before its end, and taps
 * that are further apart than the source is long must not begin in the padding. */
static cvy_status check_touches(const char *op, const cvy_window *w, int d)
{
    const int64_t size = w->src[d], dilation = w->dilation[d], last = (w->dst[d] - 1) * w->stride[d] - w->pad[d];
    CVY_CHECK(w->pad[d] <= dilation * (w->kernel[d] - 1), CVY_E_SHAPE,
              "%s: `pad` %lld must be smaller than the kernel (%lld), or a window would contain only padding", op,
              (long long)w->pad[d], (long long)w->kernel[d]);
    CVY_CHECK(last < size, CVY_E_SHAPE,
              "%s: the last window begins at position %lld of %lld: with a `pad_end` of %lld it would contain only "
              "padding",
              op, (long long)last, (long long)size, (long long)w->pad_end[d]);
    CVY_CHECK(w->pad[d] == 0 || dilation <= size, CVY_E_SHAPE,
              "%s: with a `dilation` of %lld on %lld positions and a `pad` of %lld a window could contain only padding",
              op, (long long)dilation, (long long)size, (long long)w->pad[d]);
    return CVY_OK;
}

cvy_status cvy_pool_window(const char *op, const cvy_pool_opts *o, const cvy_shape *src, cvy_window *out)
{
    const cvy_window_lists lists = {&o->kernel, &o->stride, &o->pad, &o->dilation, &o->pad_end};
    cvy_window w;
    CVY_TRY(cvy_window_make(op, src, &lists, o->ceil, &w));
    for (int d = 0; d < w.nspace; d++)
        CVY_TRY(check_touches(op, &w, d));
    *out = w;
    return CVY_OK;
}

/* Positions outside the source never are the maximum. The part's source has exactly the positions of its windows, so
 * `ceil` adds none along this dimension, and stays for the others. */
cvy_status cvy_pool_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    cvy_pool_opts *o = options;
    const cvy_window_lists lists = {&o->kernel, &o->stride, &o->pad, &o->dilation, NULL};
    if (part->split != CVY_SPLIT_SPACE)
        return CVY_OK;
    const cvy_ints after = o->pad_end;
    cvy_node_part far = *part;
    CVY_TRY(cvy_window_part(cvy_node_src(node, 0)->ndim, &lists, &o->pad, part));
    if (after.count > 0)
        CVY_TRY(cvy_window_part(cvy_node_src(node, 0)->ndim,
                                &(cvy_window_lists){&o->kernel, &o->stride, &after, &o->dilation, NULL}, &o->pad_end,
                                &far));
    part->fill = -INFINITY;
    return CVY_OK;
}

cvy_dtype cvy_max_pool_index_dtype(const cvy_window *w)
{
    return w->taps <= 255 ? CVY_DTYPE_U8 : CVY_DTYPE_I32;
}

static cvy_status max_pool_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_window w;
    CVY_TRY(cvy_pool_window("max_pool", node->options, src, &w));
    const cvy_shape dst = cvy_window_dst_shape(&w, src->dim[0], src->dim[1]);
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst));
    return cvy_node_set_saved(node, 1, cvy_max_pool_index_dtype(&w), &dst);
}

static cvy_status max_pool_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *index = NULL, *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_saved(g, fwd, 1, &index));
    const cvy_pool_grad_opts opts = {*(const cvy_pool_opts *)fwd->options, *cvy_node_src(fwd, 0)};
    cvy_value *const from[] = {ddst, index};
    CVY_TRY(cvy_grad_emit(g, fwd, "max_pool_grad", &opts, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void max_pool_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_window w;
    if (cvy_pool_window("max_pool", node->options, cvy_node_src(node, 0), &w) != CVY_OK)
        return;
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.flop = n * w.taps, .read_elems = cvy_shape_elems(cvy_node_src(node, 0)), .write_elems = n};
}

/* The tap of one window that has the maximum, and the maximum; s0: offset of the channel. */
static int64_t max_in_window(const cvy_window *w, const cvy_span *src, int64_t s0, const int64_t at[CVY_SPACE_MAX],
                             double *max_out)
{
    double best = -INFINITY;
    int64_t winner = -1;
    for (int64_t t = 0; t < w->taps; t++) {
        int64_t tap[CVY_SPACE_MAX];
        cvy_window_split(w->kernel, t, tap);
        const int64_t x = cvy_window_touch(w, 0, at[0], tap[0]), y = cvy_window_touch(w, 1, at[1], tap[1]),
                      z = cvy_window_touch(w, 2, at[2], tap[2]);
        if (x < 0 || y < 0 || z < 0)
            continue;
        const double v = cvy_get(src, s0 + (x * w->src[1] + y) * w->src[2] + z);
        if (winner < 0 || v > best || (isnan(v) && !isnan(best))) {
            best = v;
            winner = t;
        }
    }
    *max_out = best;
    return winner;
}

static cvy_status max_pool_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_pool_opts *opts = node->options;
    cvy_window w;
    CVY_TRY(cvy_pool_window("max_pool", node->options, cvy_node_src(node, 0), &w));
    for (int64_t o = 0; o < dst->elems; o++) {
        int64_t at[CVY_SPACE_MAX];
        double max;
        cvy_window_split(w.dst, o % w.dst_elems, at);
        int64_t winner = max_in_window(&w, src, o / w.dst_elems * w.src_elems, at, &max);
        if (opts->relu && max <= 0) {
            max = 0;
            winner = cvy_max_pool_no_winner(dst[1].dtype);
        }
        cvy_set(&dst[0], o, max);
        if (dst[1].data)
            cvy_set(&dst[1], o, (double)winner);
    }
    return CVY_OK;
}

static int64_t max_pool_summands(const cvy_node *node)
{
    (void)node;
    return 1;
}

static const cvy_sample max_pool_samples[] = {
    {.src = "2x3x6x8", .options = "kernel: 2"},
    {.src = "2x16x7x9", .options = "kernel: 3, stride: 2, ceil: true"},
    {.src = "2x16x7x9", .options = "kernel: 3, stride: 2, pad: 1"},
    {.src = "1x5x6x6", .options = "kernel: [3, 2], stride: [1, 3], pad: [1, 0]"},
    {.src = "1x2x1x1", .options = "kernel: 2, pad: 1, ceil: true"},
    {.src = "3x4x9", .options = "kernel: 3, stride: 2"},
    {.src = "2x3x2x4", .options = "kernel: 3, stride: 2, ceil: true"},
    {.src = "2x16x6x6", .options = "kernel: 7, stride: 1, pad_end: 1"},
    {.src = "1x5x6x7", .options = "kernel: [3, 4], stride: [2, 1], pad: [0, 1], pad_end: [2, 3], relu: true"},
    {.src = "2x18x7x8", .options = "kernel: 2, stride: 1, dilation: [3, 2]"},
    {.src = "1x3x9", .options = "kernel: 3, stride: 2, dilation: 2, pad: 1, pad_end: 2, ceil: true"},
    {.src = "1x2x5x4x6", .options = "kernel: 2, ceil: true"},
    {.src = "1x2x17x16", .options = "kernel: 16, stride: 1"},
    {.src = "2x16x7x9", .options = "kernel: 3, stride: 2, pad: 1, relu: true"},
    {.src = "2x32x6x5", .options = "kernel: 2, ceil: true, relu: true"},
    {.src = "1x96x6x7", .options = "kernel: 3, stride: 2"},
    {.src = "1x40x5x6", .options = "kernel: 3, stride: 1, pad: 1"},
    {.src = "2x3x4x18", .options = "kernel: [1, 2], relu: true"},
    {.src = "1x32x5x14", .options = "kernel: 5, stride: 1, pad: 2"},
    {.src = "1x40x4x19", .options = "kernel: [2, 4], stride: [2, 3]"},
    {.src = "1x2x17x16", .options = "kernel: 16, stride: 1, relu: true"},
    {.src = "2x19x7x9", .options = "kernel: 3, stride: 2, pad: 1", .flags = CVY_SAMPLE_TIES},
    {.src = "2x64x7x9", .options = "kernel: 3, stride: 2", .flags = CVY_SAMPLE_TIES},
    {.src = "64x64x55x55", .options = "kernel: 3, stride: 2", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(max_pool) = {
    .name = "max_pool",
    .summary = "maximum over a sliding window",
    .options = max_pool_rows,
    .options_size = sizeof(cvy_pool_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 2,
    .nsaved = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .part_splits = CVY_SPLIT_SPACE,
    .part = cvy_pool_part,
    .infer = max_pool_infer,
    .grad = max_pool_grad,
    .cost = max_pool_cost,
    .reference = max_pool_reference,
    .summands = max_pool_summands,
    .samples = max_pool_samples,
};

/* max_pool_grad: ddst, index -> dsrc. It is tested with the samples of max_pool, through its gradient. */
static cvy_status max_pool_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_pool_grad_opts *)node->options)->src);
}

static int64_t max_pool_grad_summands(const cvy_node *node)
{
    const cvy_pool_grad_opts *o = node->options;
    cvy_window w;
    return cvy_pool_window("max_pool", &o->pool, &o->src, &w) == CVY_OK ? w.taps : 1;
}

/* Sum of ddst over the windows whose maximum is at source position `at`. */
static double gather_grad(const cvy_window *w, const cvy_span *ddst, const cvy_span *index, int64_t d0,
                          const int64_t at[CVY_SPACE_MAX])
{
    double sum = 0;
    for (int64_t t = 0; t < w->taps; t++) {
        int64_t tap[CVY_SPACE_MAX], o = 0;
        cvy_window_split(w->kernel, t, tap);
        for (int d = 0; d < CVY_SPACE_MAX && o >= 0; d++) {
            const int64_t start = at[d] + w->pad[d] - tap[d] * w->dilation[d], window = start / w->stride[d];
            o = start >= 0 && start % w->stride[d] == 0 && window < w->dst[d] ? o * w->dst[d] + window : -1;
        }
        if (o >= 0 && (int64_t)cvy_get(index, d0 + o) == t)
            sum += cvy_get(ddst, d0 + o);
    }
    return sum;
}

static cvy_status max_pool_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_pool_grad_opts *o = node->options;
    cvy_window w;
    CVY_TRY(cvy_pool_window("max_pool", &o->pool, &o->src, &w));
    for (int64_t s = 0; s < dst->elems; s++) {
        int64_t at[CVY_SPACE_MAX];
        cvy_window_split(w.src, s % w.src_elems, at);
        cvy_set(dst, s, gather_grad(&w, &src[0], &src[1], s / w.src_elems * w.dst_elems, at));
    }
    return CVY_OK;
}

CVY_OP_DEFINE(max_pool_grad) = {
    .name = "max_pool_grad",
    .summary = "gradient of max_pool",
    .options = max_pool_rows,
    .options_size = sizeof(cvy_pool_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = max_pool_grad_infer,
    .reference = max_pool_grad_reference,
    .summands = max_pool_grad_summands,
};

/*
 * avg_pool: mean over a sliding window. Networks have it between convolutions, or at the end. Source: the divisor
 * follows PyTorch. A window is first cut at the far end of the padding, so positions beyond it, which ceil mode allows,
 * never count. count_include_pad then says whether the remaining padding counts.
 *
 *     dst  = sum of src over the window / divisor
 *     dsrc = sum of ddst / divisor over the windows that touch the position
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/conv/op_pool.h"

static const cvy_option avg_pool_rows[] = {
    {"kernel", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, kernel), NULL, "1..", "",
     "positions of the window, one number or one for each dimension"},
    {"stride", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, stride), "", "1..", "",
     "step of the window; the size of the kernel if not given"},
    {"pad", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, pad), "0", "0..", "", "zeros around the source, on each side"},
    {"pad_end", CVY_TYPE_INTS, CVY_FIELD(cvy_pool_opts, pad_end), "", "0..", "",
     "zeros at the far end, if there are not as many as at the near end"},
    {"ceil", CVY_TYPE_BOOL, CVY_FIELD(cvy_pool_opts, ceil), "false", "", "", "also compute a last, partial window"},
    {"count_include_pad", CVY_TYPE_BOOL, CVY_FIELD(cvy_pool_opts, count_include_pad), "true", "", "",
     "count the padding in the mean"},
    {0},
};

int64_t cvy_avg_pool_divisor(const cvy_window *w, const int64_t at[CVY_SPACE_MAX], int count_include_pad)
{
    int64_t count = 1;
    for (int d = 0; d < CVY_SPACE_MAX; d++) {
        const int64_t first = at[d] * w->stride[d] - w->pad[d],
                      last = CVY_MIN(first + w->kernel[d], w->src[d] + w->pad_end[d]);
        count *= count_include_pad ? last - first : CVY_MIN(last, w->src[d]) - CVY_MAX(first, 0);
    }
    return count;
}

static cvy_status avg_pool_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_window w;
    CVY_TRY(cvy_pool_window("avg_pool", node->options, src, &w));
    const cvy_shape dst = cvy_window_dst_shape(&w, src->dim[0], src->dim[1]);
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status avg_pool_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    const cvy_pool_grad_opts opts = {*(const cvy_pool_opts *)fwd->options, *cvy_node_src(fwd, 0)};
    CVY_TRY(cvy_grad_emit(g, fwd, "avg_pool_grad", &opts, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void avg_pool_cost(const cvy_node *node, cvy_cost *cost_out)
{
    cvy_window w;
    if (cvy_pool_window("avg_pool", node->options, cvy_node_src(node, 0), &w) != CVY_OK)
        return;
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.flop = n * w.taps, .read_elems = cvy_shape_elems(cvy_node_src(node, 0)), .write_elems = n};
}

static int64_t avg_pool_summands(const cvy_node *node)
{
    cvy_window w;
    return cvy_pool_window("avg_pool", node->options, cvy_node_src(node, 0), &w) == CVY_OK ? w.taps + 1 : 1;
}

static double window_sum(const cvy_window *w, const cvy_span *src, int64_t s0, const int64_t at[CVY_SPACE_MAX])
{
    double sum = 0;
    for (int64_t t = 0; t < w->taps; t++) {
        int64_t tap[CVY_SPACE_MAX];
        cvy_window_split(w->kernel, t, tap);
        const int64_t x = cvy_window_touch(w, 0, at[0], tap[0]), y = cvy_window_touch(w, 1, at[1], tap[1]),
                      z = cvy_window_touch(w, 2, at[2], tap[2]);
        if (x >= 0 && y >= 0 && z >= 0)
            sum += cvy_get(src, s0 + (x * w->src[1] + y) * w->src[2] + z);
    }
    return sum;
}

static cvy_status avg_pool_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_pool_opts *opts = node->options;
    cvy_window w;
    CVY_TRY(cvy_pool_window("avg_pool", opts, cvy_node_src(node, 0), &w));
    for (int64_t o = 0; o < dst->elems; o++) {
        int64_t at[CVY_SPACE_MAX];
        cvy_window_split(w.dst, o % w.dst_elems, at);
        cvy_set(dst, o,
                window_sum(&w, src, o / w.dst_elems * w.src_elems, at) /
                    (double)cvy_avg_pool_divisor(&w, at, opts->count_include_pad));
    }
    return CVY_OK;
}

static const cvy_sample avg_pool_samples[] = {
    {.src = "2x3x6x8", .options = "kernel: 2"},
    {.src = "2x16x7x9", .options = "kernel: 3, stride: 2, ceil: true, pad: 1"},
    {.src = "2x16x8x9", .options = "kernel: 3, stride: 2, ceil: true, pad: 1, count_include_pad: false"},
    {.src = "1x5x6x6", .options = "kernel: [3, 2], stride: [1, 3], pad: [1, 0], count_include_pad: false"},
    {.src = "3x4x9", .options = "kernel: 3, stride: 2"},
    {.src = "2x16x6x6", .options = "kernel: 7, stride: 1, pad_end: 1, count_include_pad: false"},
    {.src = "1x5x6x7", .options = "kernel: [3, 4], stride: [2, 1], pad: [0, 1], pad_end: [2, 3]"},
    {.src = "2x3x9", .options = "kernel: 4, stride: 3, pad: 2, pad_end: 1, ceil: true"},
    {.src = "2x3x2x4", .options = "kernel: 3, stride: 2, ceil: true"},
    {.src = "1x2x5x4x6", .options = "kernel: 2, ceil: true"},
    {.src = "1x33x5x6", .options = "kernel: 3, stride: 1, pad: 1"},
    {.src = "64x64x28x28", .options = "kernel: 3, stride: 2", .flags = CVY_SAMPLE_TIMING},
    {0},
};

/* Windows at the borders must have the same divisor as all others, because a part does not know where it is. */
static cvy_status avg_pool_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    const cvy_pool_opts *o = node->options;
    CVY_TRY(cvy_pool_part(node, part, options));
    if (part->split != CVY_SPLIT_SPACE)
        return CVY_OK;
    const int64_t last = (cvy_node_dst(node, 0)->dim[part->dim] - 1) * part->stride - part->pad + part->reach;
    part->fill = 0;
    const int64_t size = cvy_node_src(node, 0)->dim[part->dim];
    const int64_t pad_end = cvy_ints_at(&o->pad_end, part->dim - 2, part->pad);
    return (!o->count_include_pad && (part->pad > 0 || last > size)) || last > size + pad_end ? CVY_NOT_APPLICABLE
                                                                                              : CVY_OK;
}

CVY_OP_DEFINE(avg_pool) = {
    .name = "avg_pool",
    .summary = "mean over a sliding window",
    .options = avg_pool_rows,
    .options_size = sizeof(cvy_pool_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .part_splits = CVY_SPLIT_SPACE,
    .part = avg_pool_part,
    .infer = avg_pool_infer,
    .grad = avg_pool_grad,
    .cost = avg_pool_cost,
    .reference = avg_pool_reference,
    .summands = avg_pool_summands,
    .samples = avg_pool_samples,
};

/* avg_pool_grad: ddst -> dsrc. It is tested with the samples of avg_pool, through its gradient. */
static cvy_status avg_pool_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_pool_grad_opts *)node->options)->src);
}

static int64_t avg_pool_grad_summands(const cvy_node *node)
{
    const cvy_pool_grad_opts *o = node->options;
    cvy_window w;
    return cvy_pool_window("avg_pool", &o->pool, &o->src, &w) == CVY_OK ? w.taps + 1 : 1;
}

/* Sum of ddst / divisor over the windows that touch source position `at`. */
static double gather_grad(const cvy_window *w, const cvy_span *ddst, int64_t d0, const int64_t at[CVY_SPACE_MAX],
                          int count_include_pad)
{
    double sum = 0;
    for (int64_t t = 0; t < w->taps; t++) {
        int64_t tap[CVY_SPACE_MAX], window[CVY_SPACE_MAX], o = 0;
        cvy_window_split(w->kernel, t, tap);
        for (int d = 0; d < CVY_SPACE_MAX && o >= 0; d++) {
            const int64_t start = at[d] + w->pad[d] - tap[d];
            window[d] = start / w->stride[d];
            o = start >= 0 && start % w->stride[d] == 0 && window[d] < w->dst[d] ? o * w->dst[d] + window[d] : -1;
        }
        if (o >= 0)
            sum += cvy_get(ddst, d0 + o) / (double)cvy_avg_pool_divisor(w, window, count_include_pad);
    }
    return sum;
}

static cvy_status avg_pool_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_pool_grad_opts *o = node->options;
    cvy_window w;
    CVY_TRY(cvy_pool_window("avg_pool", &o->pool, &o->src, &w));
    for (int64_t s = 0; s < dst->elems; s++) {
        int64_t at[CVY_SPACE_MAX];
        cvy_window_split(w.src, s % w.src_elems, at);
        cvy_set(dst, s, gather_grad(&w, src, s / w.src_elems * w.dst_elems, at, o->pool.count_include_pad));
    }
    return CVY_OK;
}

CVY_OP_DEFINE(avg_pool_grad) = {
    .name = "avg_pool_grad",
    .summary = "gradient of avg_pool",
    .options = avg_pool_rows,
    .options_size = sizeof(cvy_pool_grad_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = avg_pool_grad_infer,
    .reference = avg_pool_grad_reference,
    .summands = avg_pool_grad_summands,
};

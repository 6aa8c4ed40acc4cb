/*
 * bn_train, bn_train_grad: batch norm in one forward and one backward node: the statistics of the micro-batch, the
 * normalisation, the addition of a residual, and the ReLU after it. If no group spans ranks, the fusion pass
 * (pass_fuse_batch_norm.c) replaces bn_stats, bn_apply, add and relu by bn_train, and relu_grad, bn_grad_stats and
 * bn_grad_apply by bn_train_grad. A kernel may then keep a channel in the cache between its two passes over it. Source:
 * Ioffe and Szegedy 2015; He et al. 2016.
 *
 *     dst  = (src - mean) / sqrt(variance + eps) * scale + shift + residual, rectified with relu
 *     d    = ddst; with relu: ddst if dst > 0, else 0
 *     dsrc = scale / sqrt(variance + eps) * (d - sum(d) / n - xhat * sum(d * xhat) / n)         dresidual = d
 *
 * Without a residual the sign of dst is computed from src, so dst is not read again. In a sample that does not count,
 * the normalised value is replaced by 0: dst is the residual, and dsrc is 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_grad.h"
#include "op/norm/op_batch_norm.h"

static cvy_status bn_train_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const cvy_shape stats = cvy_bn_stats_shape(node);
    const int residual = node->nsrc > 1 && cvy_bn_counted(node) != 1;
    CVY_CHECK(!groups.spans, CVY_E_INTERNAL, "%s: groups span ranks, so the statistics need a separate node",
              node->name);
    CVY_CHECK(!residual || cvy_shape_equal(src, cvy_node_src(node, 1)), CVY_E_SHAPE,
              "%s: the residual is %s and the source is %s; they must be equal", node->name,
              cvy_shape_text(cvy_node_src(node, 1)), cvy_shape_text(src));
    CVY_TRY(cvy_bn_scale_shift_params(node, src->dim[1]));
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, src));
    return cvy_node_set_dst(node, 1, CVY_DTYPE_F64, &stats);
}

static cvy_status bn_train_grad_of(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_batch_norm_opts *o = fwd->options;
    const int residual = cvy_bn_train_has_residual(fwd), param = fwd->nsrc - 2, counted = cvy_bn_counted(fwd);
    cvy_value *src[7] = {fwd->src[0], fwd->dst[1], cvy_grad_of(g, fwd->dst[0])}, *dst[4] = {NULL};
    int nsrc = 3;
    if (!src[2])
        return CVY_OK;
    if (counted)
        src[nsrc++] = fwd->src[counted];
    for (int i = 0; i < 2 && o->scale_shift; i++)
        src[nsrc++] = fwd->src[param + i];
    if (residual && o->relu)
        src[nsrc++] = fwd->dst[0];
    CVY_TRY(cvy_grad_emit(g, fwd, "bn_train_grad", o, src, nsrc, dst, 4));
    CVY_TRY(cvy_grad_add(g, fwd->src[0], dst[0]));
    for (int i = 0; i < 2 && o->scale_shift; i++)
        CVY_TRY(cvy_grad_add(g, fwd->src[param + i], dst[1 + i]));
    return residual ? cvy_grad_add(g, fwd->src[1], o->relu ? dst[3] : src[2]) : CVY_OK;
}

static void bn_train_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 5 * n, .read_elems = 2 * n, .write_elems = n};
}

static int64_t bn_train_summands(const cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    return CVY_MAX(src->dim[0], 1) * cvy_bn_positions(src);
}

/* One group of one channel, for the reference kernel. */
struct channel {
    int64_t C, c, positions, first, last;
    double elems, mean, inv_std, scale, shift;
    const cvy_span *counted;
};

static struct channel channel_make(const cvy_node *node, const cvy_span *src, int64_t g, int64_t c,
                                   const cvy_span *scale, const cvy_span *shift)
{
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    struct channel ch = {.C = src->dim[1],
                         .c = c,
                         .positions = cvy_span_prod(src, 2, src->ndim),
                         .scale = scale ? cvy_get(scale, c) : 1,
                         .shift = shift ? cvy_get(shift, c) : 0,
                         .counted = cvy_bn_counted_span(node, src)};
    cvy_bn_group_local(&groups, g, &ch.first, &ch.last);
    for (int64_t n = ch.first; n < ch.last; n++)
        ch.elems += cvy_bn_counts(ch.counted, n) ? (double)ch.positions : 0;
    return ch;
}

static void channel_normalise(struct channel *ch, const cvy_span *stats, int64_t g, double eps)
{
    double variance;
    cvy_bn_moments(stats, g, ch->c, ch->elems, &ch->mean, &variance);
    ch->inv_std = 1 / sqrt(variance + eps);
}

static int64_t channel_at(const struct channel *ch, int64_t n, int64_t position)
{
    return (n * ch->C + ch->c) * ch->positions + position;
}

static double normalised(const struct channel *ch, const cvy_span *src, int64_t n, int64_t i)
{
    return cvy_bn_counts(ch->counted, n) ? (cvy_get(src, i) - ch->mean) * ch->inv_std * ch->scale + ch->shift : 0;
}

static void channel_forward(struct channel *ch, const cvy_node *node, const cvy_span *src, const cvy_span *dst,
                            int64_t g)
{
    const cvy_batch_norm_opts *o = node->options;
    double sum = 0, squares = 0;
    for (int64_t n = ch->first; n < ch->last; n++)
        for (int64_t p = 0; p < ch->positions && cvy_bn_counts(ch->counted, n); p++) {
            const double x = cvy_get(src, channel_at(ch, n, p));
            sum += x;
            squares += x * x;
        }
    cvy_bn_set_stats(&dst[1], g, ch->c, sum, squares, ch->elems);
    channel_normalise(ch, &dst[1], g, o->eps);
    for (int64_t n = ch->first; n < ch->last; n++)
        for (int64_t p = 0; p < ch->positions; p++) {
            const int64_t i = channel_at(ch, n, p);
            double y = normalised(ch, src, n, i);
            if (cvy_bn_train_has_residual(node))
                y += cvy_get(&src[1], i);
            cvy_set(dst, i, o->relu && y < 0 ? 0 : y);
        }
}

static cvy_status bn_train_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const cvy_span *param = o->scale_shift ? &src[node->nsrc - 2] : NULL;
    for (int64_t row = 0; row < groups.count * src->dim[1]; row++) {
        const int64_t g = row / src->dim[1];
        struct channel ch = channel_make(node, src, g, row % src->dim[1], param, param ? param + 1 : NULL);
        channel_forward(&ch, node, src, dst, g);
    }
    return CVY_OK;
}

static const cvy_sample bn_train_samples[] = {
    {.src = "6x3x4x5"},
    {.src = "6x16x3x5", .options = "relu: true"},
    {.src = "5x19x4x5,5x19x4x5", .options = "relu: true"},
    {.src = "4x32x3x3,4x32x3x3", .options = "relu: true, scale_shift: false"},
    {.src = "3x7x2x9,3x7x2x9"},
    {.src = "9x40x6x6,9x40x6x6", .options = "relu: true, eps: 0.01", .flags = CVY_SAMPLE_NO_GRAD},
    {.src = "8x48x7", .options = "relu: true, scale_shift: false"},
    {.src = "7x3x4x5,7:i32"},
    {.src = "9x16x3x5,9:i32", .options = "relu: true"},
    {.src = "5x19x4x5,5x19x4x5,5:i32", .options = "relu: true"},
    {.src = "6x32x3x3,6x32x3x3,6:i32", .options = "relu: true, scale_shift: false"},
    {.src = "9x7x2x9,9x7x2x9,9:i32"},
    {.src = "64x128x28x28,64x128x28x28", .options = "relu: true", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(bn_train) = {
    .name = "bn_train",
    .summary = "batch normalisation of a micro-batch, with the addition of a residual and a ReLU",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 3,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_CHANNELS,
    .infer = bn_train_infer,
    .grad = bn_train_grad_of,
    .cost = bn_train_cost,
    .reference = bn_train_reference,
    .summands = bn_train_summands,
    .samples = bn_train_samples,
};

/* bn_train_grad: src, stats, ddst [, counted], scale, shift, dst (with relu and residual) -> dsrc, dscale, dshift,
 * dresidual (with relu and residual). */
static cvy_status bn_train_grad_infer(cvy_node *node)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_shape channels = {.ndim = 1, .dim = {cvy_node_src(node, 0)->dim[1]}};
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0)));
    for (int i = 1; i < 3 && o->scale_shift; i++)
        CVY_TRY(cvy_node_set_dst(node, i, cvy_graph_weight_dtype(node->graph), &channels));
    return cvy_bn_train_grad_dst(node) ? cvy_node_set_dst(node, 3, node->src[0]->dtype, cvy_node_src(node, 0)) : CVY_OK;
}

static void bn_train_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 10 * n, .read_elems = 4 * n, .write_elems = n};
}

/* ddst if the ReLU was active at element i, else 0. */
static double passed(const struct channel *ch, const cvy_node *node, const cvy_span *src, int64_t n, int64_t i)
{
    const cvy_batch_norm_opts *o = node->options;
    const int y = cvy_bn_train_grad_dst(node);
    const double kept = y ? cvy_get(&src[y], i) : normalised(ch, src, n, i);
    return !o->relu || kept > 0 ? cvy_get(&src[2], i) : 0;
}

static void channel_backward(const struct channel *ch, const cvy_node *node, const cvy_span *src, const cvy_span *dst,
                             double *sum_out, double *sum_xhat_out)
{
    double sum = 0, sum_xhat = 0;
    for (int64_t n = ch->first; n < ch->last; n++)
        for (int64_t p = 0; p < ch->positions && cvy_bn_counts(ch->counted, n); p++) {
            const int64_t i = channel_at(ch, n, p);
            const double d = passed(ch, node, src, n, i);
            sum += d;
            sum_xhat += d * (cvy_get(src, i) - ch->mean) * ch->inv_std;
        }
    *sum_out += sum;
    *sum_xhat_out += sum_xhat;
    for (int64_t n = ch->first; n < ch->last; n++)
        for (int64_t p = 0; p < ch->positions; p++) {
            const int64_t i = channel_at(ch, n, p);
            const double d = passed(ch, node, src, n, i), xhat = (cvy_get(src, i) - ch->mean) * ch->inv_std,
                         count = ch->elems;
            cvy_set(dst, i,
                    cvy_bn_counts(ch->counted, n)
                        ? ch->scale * ch->inv_std * (d - sum / count - xhat * sum_xhat / count)
                        : 0);
            if (dst[3].data)
                cvy_set(&dst[3], i, d);
        }
}

static cvy_status bn_train_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const cvy_span *param = o->scale_shift ? &src[3 + cvy_bn_has_counted(node)] : NULL;
    for (int64_t c = 0; c < src->dim[1]; c++) {
        double dshift = 0, dscale = 0;
        for (int64_t g = 0; g < groups.count; g++) {
            struct channel ch = channel_make(node, src, g, c, param, param ? param + 1 : NULL);
            channel_normalise(&ch, &src[1], g, o->eps);
            channel_backward(&ch, node, src, dst, &dshift, &dscale);
        }
        if (o->scale_shift) {
            cvy_set(&dst[1], c, dscale);
            cvy_set(&dst[2], c, dshift);
        }
    }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_train_grad) = {
    .name = "bn_train_grad",
    .summary = "gradient of bn_train",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 3,
    .nsrc_max = 7,
    .ndst = 4,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_CHANNELS,
    .infer = bn_train_grad_infer,
    .cost = bn_train_grad_cost,
    .reference = bn_train_grad_reference,
    .summands = bn_train_summands,
};

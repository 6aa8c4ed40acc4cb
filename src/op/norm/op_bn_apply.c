/*
 * bn_apply, bn_grad_stats, bn_grad_apply: normalisation by the statistics of the micro-batch, and its gradient through
 * these statistics. op_batch_norm.h says how they are combined. They are tested through batch_norm (op_batch_norm.c)
 * and by tests/op/test_op_batch_norm.c. Source: Ioffe and Szegedy 2015, section 3.
 *
 *     xhat = (src - mean) / sqrt(variance + eps)
 *     dst  = xhat * scale + shift
 *     dsrc = scale / sqrt(variance + eps) * (ddst - sum(ddst) / n - xhat * sum(ddst * xhat) / n)
 *
 * mean and variance are those of the sample's group; sums run over the group's n values. dst and dsrc of a sample that
 * does not count are 0, and it is in no sum.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "comm/comm_grid.h"
#include "graph/graph_grad.h"
#include "op/norm/op_batch_norm.h"
#include "op/pointwise/op_scale.h"

static cvy_status bn_apply_infer(cvy_node *node)
{
    CVY_CHECK(cvy_node_src(node, 1)->dim[2] == cvy_node_src(node, 0)->dim[1], CVY_E_INTERNAL,
              "%s: statistics of %s do not fit a source of %s", node->name, cvy_shape_text(cvy_node_src(node, 1)),
              cvy_shape_text(cvy_node_src(node, 0)));
    CVY_TRY(cvy_bn_scale_shift_params(node, cvy_node_src(node, 0)->dim[1]));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

/* This is the whole gradient of the layer: it includes the part through the statistics, so bn_stats gets no
 * gradient. */
static cvy_status bn_apply_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_batch_norm_opts *o = fwd->options;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    if (!ddst)
        return CVY_OK;
    if (o->relu) {
        cvy_value *const from[] = {ddst, fwd->dst[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, "relu_grad", NULL, from, 2, &ddst, 1));
    }
    const int counted = cvy_bn_counted(fwd), has = cvy_bn_has_counted(fwd), scale_at = 2 + has;
    cvy_value *const sums_from[] = {fwd->src[0], fwd->src[1], ddst, has ? fwd->src[counted] : NULL};
    cvy_value *sums[3] = {NULL, NULL, NULL}, *dsrc = NULL;
    CVY_TRY(cvy_grad_emit(g, fwd, "bn_grad_stats", o, sums_from, 3 + has, sums, o->scale_shift ? 3 : 1));
    for (int i = 1; i < 3 && o->scale_shift; i++)
        if (cvy_grad_wanted(g, fwd->src[scale_at + i - 1]))
            CVY_TRY(cvy_grad_add(g, fwd->src[scale_at + i - 1], sums[i]));
    if (!cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    const unsigned over =
        (cvy_bn_groups_of(fwd).spans ? CVY_AXIS_BIT(CVY_AXIS_DATA) : 0) | (fwd->split & ~fwd->src[1]->split);
    CVY_TRY(cvy_grad_allreduce(g, fwd, over, &sums[0]));
    const cvy_scale_opts scale = {o->share};
    if (o->share != 1)
        CVY_TRY(cvy_grad_emit(g, fwd, "scale", &scale, &sums[0], 1, &sums[0], 1));
    cvy_value *dsrc_from[6] = {fwd->src[0], fwd->src[1], sums[0], ddst};
    int nfrom = 4;
    if (has)
        dsrc_from[nfrom++] = fwd->src[counted];
    if (o->scale_shift)
        dsrc_from[nfrom++] = fwd->src[scale_at];
    CVY_TRY(cvy_grad_emit(g, fwd, "bn_grad_apply", o, dsrc_from, nfrom, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

/* The node divides sums by the number of elements of this rank. If ranks share the positions of a sample, sums are
 * those of all ranks; so they are multiplied by this rank's share. */
static cvy_status bn_apply_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    if (part->split == CVY_SPLIT_SAMPLES)
        part->whole_src = 1u << 1;
    if (part->split != CVY_SPLIT_SPACE)
        return CVY_OK;
    part->scaled = 1;
    part->factor = (double)part->count / (double)cvy_node_dst(node, 0)->dim[part->dim];
    ((cvy_batch_norm_opts *)options)->share *= part->factor;
    return CVY_OK;
}

static void bn_apply_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 2 * n, .read_elems = n, .write_elems = n};
}

/* The mean and inv_std of one channel of a group: xhat = (x - mean) * inv_std. */
static void normaliser(const cvy_span *stats, int64_t g, int64_t c, double n, double eps, double *mean_out,
                       double *inv_std_out)
{
    double variance;
    cvy_bn_moments(stats, g, c, n, mean_out, &variance);
    *inv_std_out = 1 / sqrt(variance + eps);
}

static cvy_status bn_apply_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const int has = cvy_bn_has_counted(node);
    const cvy_span *counted = cvy_bn_counted_span(node, src), *param = o->scale_shift ? &src[2 + has] : NULL;
    const int64_t C = src->dim[1], positions = cvy_span_prod(src, 2, src->ndim);
    for (int64_t row = 0; row < groups.count * C; row++) {
        const int64_t g = row / C, c = row % C;
        int64_t first, last;
        double mean, inv_std;
        cvy_bn_group_local(&groups, g, &first, &last);
        normaliser(&src[1], g, c, cvy_bn_values(&src[1], &groups, g, c, positions), o->eps, &mean, &inv_std);
        const double scale = param ? cvy_get(&param[0], c) : 1, shift = param ? cvy_get(&param[1], c) : 0;
        for (int64_t n = first; n < last; n++)
            for (int64_t i = (n * C + c) * positions; i < (n * C + c + 1) * positions; i++) {
                const double y = cvy_bn_counts(counted, n) ? (cvy_get(src, i) - mean) * inv_std * scale + shift : 0;
                cvy_set(dst, i, o->relu && y < 0 ? 0 : y);
            }
    }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_apply) = {
    .name = "bn_apply",
    .summary = "batch normalisation by the statistics of the micro-batch",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 2,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .part_splits = CVY_SPLIT_SPACE,
    .part = bn_apply_part,
    .infer = bn_apply_infer,
    .grad = bn_apply_grad,
    .cost = bn_apply_cost,
    .reference = bn_apply_reference,
};

/* bn_grad_stats: src, stats, ddst [, counted] -> gstats [G, 2, C]: sums of ddst and ddst * xhat over this rank's
 * samples of each group; with scale_shift also dscale and dshift. These two are sums over this rank only, because like
 * all gradients they are reduced later. */
static cvy_status bn_grad_stats_infer(cvy_node *node)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_shape channels = {.ndim = 1, .dim = {cvy_node_src(node, 0)->dim[1]}};
    const cvy_shape sums = {.ndim = 3, .dim = {cvy_bn_groups_of(node).count, 2, channels.dim[0]}};
    CVY_TRY(cvy_node_set_dst(node, 0, CVY_DTYPE_F64, &sums));
    for (int i = 1; i < 3 && o->scale_shift; i++)
        CVY_TRY(cvy_node_set_dst(node, i, cvy_graph_weight_dtype(node->graph), &channels));
    return CVY_OK;
}

static void bn_grad_stats_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 5 * n, .read_elems = 2 * n, .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t bn_grad_stats_summands(const cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    return CVY_MAX(src->dim[0], 1) * cvy_bn_positions(src);
}

static cvy_status bn_grad_stats_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const cvy_span *counted = cvy_bn_counted_span(node, src);
    const int64_t C = src->dim[1], positions = cvy_span_prod(src, 2, src->ndim);
    for (int64_t c = 0; c < C; c++) {
        double dscale = 0, dshift = 0;
        for (int64_t g = 0; g < groups.count; g++) {
            int64_t first, last;
            double mean, inv_std, sum = 0, sum_xhat = 0;
            cvy_bn_group_local(&groups, g, &first, &last);
            normaliser(&src[1], g, c, cvy_bn_values(&src[1], &groups, g, c, positions), o->eps, &mean, &inv_std);
            for (int64_t n = first; n < last; n++)
                for (int64_t i = (n * C + c) * positions; i < (n * C + c + 1) * positions && cvy_bn_counts(counted, n);
                     i++) {
                    sum += cvy_get(&src[2], i);
                    sum_xhat += cvy_get(&src[2], i) * (cvy_get(&src[0], i) - mean) * inv_std;
                }
            cvy_set(&dst[0], 2 * g * C + c, sum);
            cvy_set(&dst[0], (2 * g + 1) * C + c, sum_xhat);
            dshift += sum;
            dscale += sum_xhat;
        }
        if (o->scale_shift) {
            cvy_set(&dst[1], c, dscale);
            cvy_set(&dst[2], c, dshift);
        }
    }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_grad_stats) = {
    .name = "bn_grad_stats",
    .summary = "sums that the gradient of batch norm needs",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 3,
    .nsrc_max = 4,
    .ndst = 3,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = bn_grad_stats_infer,
    .cost = bn_grad_stats_cost,
    .reference = bn_grad_stats_reference,
    .summands = bn_grad_stats_summands,
};

/* bn_grad_apply: src, stats, gstats, ddst [, counted] [, scale] -> dsrc. */
static cvy_status bn_grad_apply_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static void bn_grad_apply_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 5 * n, .read_elems = 2 * n, .write_elems = n};
}

static cvy_status bn_grad_apply_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const int has = cvy_bn_has_counted(node);
    const cvy_span *counted = cvy_bn_counted_span(node, src);
    const int64_t C = src->dim[1], positions = cvy_span_prod(src, 2, src->ndim);
    for (int64_t row = 0; row < groups.count * C; row++) {
        const int64_t g = row / C, c = row % C;
        const double elems = cvy_bn_values(&src[1], &groups, g, c, positions), by = elems > 0 ? 1 / elems : 0;
        int64_t first, last;
        double mean, inv_std;
        cvy_bn_group_local(&groups, g, &first, &last);
        normaliser(&src[1], g, c, elems, o->eps, &mean, &inv_std);
        const double mean_d = cvy_get(&src[2], 2 * g * C + c) * by,
                     mean_dx = cvy_get(&src[2], (2 * g + 1) * C + c) * by;
        const double factor = (o->scale_shift ? cvy_get(&src[4 + has], c) : 1) * inv_std;
        for (int64_t n = first; n < last; n++)
            for (int64_t i = (n * C + c) * positions; i < (n * C + c + 1) * positions; i++) {
                const double xhat = (cvy_get(&src[0], i) - mean) * inv_std;
                cvy_set(dst, i,
                        cvy_bn_counts(counted, n) ? factor * (cvy_get(&src[3], i) - mean_d - xhat * mean_dx) : 0);
            }
    }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_grad_apply) = {
    .name = "bn_grad_apply",
    .summary = "gradient of batch norm for its source",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 4,
    .nsrc_max = 6,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = bn_grad_apply_infer,
    .cost = bn_grad_apply_cost,
    .reference = bn_grad_apply_reference,
};

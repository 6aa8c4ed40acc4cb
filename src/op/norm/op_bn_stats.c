/*
 * bn_stats, bn_group_stats, bn_running: the statistics of batch norm: of the groups of one micro-batch, of the step,
 * and running ones. op_batch_norm.h says how they are combined. They are tested through batch_norm (op_batch_norm.c)
 * and by tests/op/test_op_batch_norm.c. Source: Ioffe and Szegedy 2015; running statistics with the unbiased variance
 * as in PyTorch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_batch_norm.h"

/* bn_stats: src [, counted] -> stats: sums of x and x^2 over this rank's samples of each group. */
static cvy_status bn_stats_infer(cvy_node *node)
{
    const cvy_shape stats = cvy_bn_stats_shape(node);
    return cvy_node_set_dst(node, 0, CVY_DTYPE_F64, &stats);
}

static void bn_stats_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 3 * n, .read_elems = n, .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t bn_stats_summands(const cvy_node *node)
{
    return cvy_bn_largest(&node->graph->batch, node->graph->bn_group) * cvy_bn_positions(cvy_node_src(node, 0));
}

static cvy_status bn_stats_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const cvy_span *counted = cvy_bn_counted_span(node, src);
    const int64_t C = src->dim[1], positions = cvy_span_prod(src, 2, src->ndim);
    for (int64_t row = 0; row < groups.count * C; row++) {
        const int64_t g = row / C, c = row % C;
        int64_t first, last, values = 0;
        double sum = 0, squares = 0;
        cvy_bn_group_local(&groups, g, &first, &last);
        for (int64_t n = first; n < last; n++)
            for (int64_t i = 0; i < positions && cvy_bn_counts(counted, n); i++) {
                values++;
                const double x = cvy_get(src, (n * C + c) * positions + i);
                sum += x;
                squares += x * x;
            }
        cvy_bn_set_stats(dst, g, c, sum, squares, (double)values);
    }
    return CVY_OK;
}

static cvy_status bn_stats_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    (void)node, (void)options;
    part->sums_samples = 1;
    return CVY_OK;
}

CVY_OP_DEFINE(bn_stats) = {
    .name = "bn_stats",
    .summary = "sums of x and x^2 over groups of samples",
    .nsrc_min = 1,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .part = bn_stats_part,
    .infer = bn_stats_infer,
    .cost = bn_stats_cost,
    .reference = bn_stats_reference,
    .summands = bn_stats_summands,
};

/* bn_group_stats: stats -> accumulator [2 C + 1]: the sums over groups of w mean, w unbiased variance and w. The weight
 * w is the number of values of the group, as a multiple of `unit` samples: 1 for a full group. A single value has no
 * variance and weighs nothing. Exactly one rank counts each group of the step. So the accumulator, summed over
 * micro-batches and ranks and divided by its last element, is the weighted mean over all groups. */
static const cvy_option bn_group_stats_rows[] = {
    {"positions", CVY_TYPE_INT, CVY_FIELD(cvy_bn_group_stats_opts, positions), "1", "1..", "",
     "positions of a channel of one sample"},
    {"unit", CVY_TYPE_INT, CVY_FIELD(cvy_bn_group_stats_opts, unit), "1", "1..", "",
     "samples of a group that weighs 1"},
    {0},
};

static cvy_status bn_group_stats_infer(cvy_node *node)
{
    const cvy_shape sums = {.ndim = 1, .dim = {2 * cvy_node_src(node, 0)->dim[2] + 1}};
    return cvy_node_set_accumulator(node, 0, cvy_graph_weight_dtype(node->graph), &sums, 1);
}

static cvy_status bn_group_stats_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_bn_group_stats_opts *o = node->options;
    const cvy_bn_groups groups = cvy_bn_groups_of(node);
    const int64_t C = src->dim[2];
    const double unit = (double)(o->unit * o->positions);
    double weights = 0;
    for (int64_t c = 0; c < C; c++) {
        double means = 0, variances = 0;
        weights = 0;
        for (int64_t g = 0; g < groups.count; g++) {
            const double n = cvy_bn_values(src, &groups, g, c, o->positions);
            double mean, variance;
            if (!cvy_bn_group_is_mine(&groups, g) || n < 2)
                continue;
            cvy_bn_moments(src, g, c, n, &mean, &variance);
            const double weight = n / unit;
            means += weight * mean;
            variances += weight * variance * n / (n - 1);
            weights += weight;
        }
        cvy_set(dst, c, means);
        cvy_set(dst, C + c, variances);
    }
    cvy_set(dst, 2 * C, weights);
    return CVY_OK;
}

/* The normalised value of a single sample is always 0, so what follows would learn nothing. */
static cvy_status bn_group_stats_check_batch(const cvy_node *node)
{
    const cvy_graph *g = node->graph;
    const cvy_bn_groups groups = cvy_bn_groups_make(g);
    const cvy_bn_group_stats_opts *o = node->options;
    CVY_CHECK(groups.samples / groups.total * o->positions != 1, CVY_E_CONFIG,
              "batch_norm %s would take its statistics from one sample, with one value for each channel, and one value "
              "has no variance: %s %lld %s, in %lld %s (opts.batch_norm_group). Take more samples for a step or a "
              "group, leave out a last batch of one sample (data.tail: drop), or take another layer of normalisation",
              node->layer, g->bn_group < 0 ? "a rank has" : "a micro-batch has", (long long)groups.samples,
              groups.samples == 1 ? "sample" : "samples", (long long)groups.total,
              groups.total == 1 ? "group" : "groups");
    return CVY_OK;
}

CVY_OP_DEFINE(bn_group_stats) = {
    .name = "bn_group_stats",
    .summary = "sums over groups of mean and unbiased variance, weighed, and of the weights",
    .options = bn_group_stats_rows,
    .options_size = sizeof(cvy_bn_group_stats_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN | CVY_OP_FOLLOWS,
    .infer = bn_group_stats_infer,
    .check_batch = bn_group_stats_check_batch,
    .reference = bn_group_stats_reference,
};

/* bn_running: accumulator, running_mean, running_var [, further accumulators] -> the running ones: running =
 * (1 - momentum) running + momentum mean over the step's groups, for one accumulator after the other. */
static cvy_status bn_running_infer(cvy_node *node)
{
    CVY_TRY(cvy_bn_running_params(node, (cvy_node_src(node, 0)->dim[0] - 1) / 2));
    CVY_TRY(cvy_node_assign(node, 0, 1));
    return cvy_node_assign(node, 1, 2);
}

static cvy_status bn_running_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_batch_norm_opts *o = node->options;
    const int64_t C = dst->elems;
    for (int s = 0; s < 2; s++)
        for (int64_t c = 0; c < C; c++) {
            double running = cvy_get(&src[1 + s], c);
            for (int i = 0; i < node->nsrc; i = i ? i + 1 : 3) {
                const double weights = cvy_get(&src[i], 2 * C);
                if (weights > 0)
                    running = (1 - o->momentum) * running + o->momentum * cvy_get(&src[i], s * C + c) / weights;
            }
            cvy_set(&dst[s], c, running);
        }
    return CVY_OK;
}

CVY_OP_DEFINE(bn_running) = {
    .name = "bn_running",
    .summary = "updates the running statistics with those of the step",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 2,
    .flags = CVY_OP_ASSIGNS | CVY_OP_HIDDEN | CVY_OP_FOLLOWS,
    .infer = bn_running_infer,
    .reference = bn_running_reference,
};

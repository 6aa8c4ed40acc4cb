/*
 * op_batch_norm.h: options of the batch-norm operators, and the groups of samples over which their statistics run.
 *
 * In a training graph the layer `batch_norm` becomes these nodes (f64 statistics; C channels; row g of the statistics
 * is one of G groups, see cvy_bn_groups):
 *
 *     bn_stats        src -> stats [G, 2, C]           sums of x and x^2 over this rank's samples of each group
 *     allreduce       stats -> stats                   only if a group spans ranks
 *     bn_apply        src, stats, scale, shift -> dst  (x - mean) / sqrt(variance + eps) * scale + shift
 *     bn_group_stats  stats -> accumulator [2 C + 1]   sums over groups of w mean, w unbiased variance and w, where w
 * is the number of values of the group bn_running      accumulator, running_mean, running_var -> both are assigned,
 * once per step bn_grad_stats   src, stats, ddst -> gstats [G, 2, C], dscale, dshift sums of ddst and ddst * xhat;
 * dscale, dshift: of this rank only allreduce       gstats -> gstats                 only if a group spans ranks
 *     bn_grad_apply   src, stats, gstats, ddst, scale -> dsrc
 *
 * Samples of weight 0 do not count. If the layer also reads weights of samples, all these nodes but bn_group_stats and
 * bn_running have one more source, before scale and shift:
 *
 *     counted_samples weights -> counted [N], i32      1: the sample counts; 0: none of its weights differs from 0
 *
 * A sample that does not count is in no sum; its result is 0, and so is its dsrc. Then stats are [G, 3, C], and the
 * third entry is the number of values that count. An all-reduce completes it like the sums.
 *
 * If there is no allreduce, bn_stats and bn_apply are fused into bn_train, and bn_grad_stats and bn_grad_apply into
 * bn_train_grad.
 *
 * In any other graph, and if its statistics are frozen, the layer is one node: bn_infer (src, scale, shift,
 * running_mean, running_var [, residual] -> dst). The residual and the ReLU after it are added by the pass that fuses
 * batch norm. Its gradient is bn_infer_grad and bn_infer_grad_params (op_bn_infer.c). Without
 * scale_shift there are no scale, shift, dscale and dshift.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_BATCH_NORM_H
#define CVY_OP_BATCH_NORM_H

#include "graph/graph_op.h"

typedef struct cvy_batch_norm_opts { /* of every operator above except bn_stats (it has none) and bn_group_stats */
    double momentum, eps;
    int scale_shift;
    int frozen;   /* of the layer: it normalises by running statistics in training too */
    int relu;     /* set by the fusion passes: dst = max(dst, 0) */
    double share; /* of the positions of a channel, those that this rank has */
} cvy_batch_norm_opts;

extern const cvy_option cvy_batch_norm_rows[];

typedef struct cvy_bn_group_stats_opts {
    int64_t positions; /* per channel of one sample */
    int64_t unit;      /* samples of a group that weighs 1; equal in all micro-batches and on all ranks */
} cvy_bn_group_stats_opts;

/* Groups of consecutive samples of a micro-batch; samples are numbered over all ranks. Their sizes differ by one sample
 * at most. A rank's statistics have `count` rows: one for each of its own groups. If `spans`, they have one for every
 * group, with zeros for groups of which this rank has no samples, so that one all-reduce completes them. */
typedef struct cvy_bn_groups {
    int64_t count;
    int64_t first;                  /* the group of row 0, among ... */
    int64_t total;                  /* ... so many groups, which share ... */
    int64_t begin, samples;         /* ... the samples begin .. begin + samples - 1 */
    int64_t local_begin, local_end; /* this rank's samples */
    int spans;                      /* 1: some group has samples on more than one rank; equal on all ranks */
} cvy_bn_groups;

cvy_bn_groups cvy_bn_groups_make(const cvy_graph *g);
/* The same, with the samples of the node as the local ones. */
cvy_bn_groups cvy_bn_groups_of(const cvy_node *node);

/* Samples of the largest group of a micro-batch, for cvy_graph_opts.bn_unit. bn_group: as in cvy_graph. */
int64_t cvy_bn_largest(const cvy_batch *batch, int64_t bn_group);

/* A product of numbers of samples: absurd batches come here before they are refused. */
__extension__ typedef __int128 cvy_bn_product;

/* The first sample of row g; that of row g + 1 is its end. */
static inline int64_t cvy_bn_group_begin(const cvy_bn_groups *b, int64_t g)
{
    return b->begin + (int64_t)((cvy_bn_product)b->samples * (b->first + g) / b->total);
}

/* Samples of row g over all ranks. */
static inline int64_t cvy_bn_group_samples(const cvy_bn_groups *b, int64_t g)
{
    return cvy_bn_group_begin(b, g + 1) - cvy_bn_group_begin(b, g);
}

/* This rank's samples of row g: indices first .. last - 1 in the local tensors; none if first >= last. */
static inline void cvy_bn_group_local(const cvy_bn_groups *b, int64_t g, int64_t *first_out, int64_t *last_out)
{
    *first_out = CVY_MAX(cvy_bn_group_begin(b, g), b->local_begin) - b->local_begin;
    *last_out = CVY_MIN(cvy_bn_group_begin(b, g + 1), b->local_end) - b->local_begin;
}

/* Whether this rank has the first sample of row g. Only this rank counts the group. */
static inline int cvy_bn_group_is_mine(const cvy_bn_groups *b, int64_t g)
{
    const int64_t at = cvy_bn_group_begin(b, g);
    return at >= b->local_begin && at < b->local_end;
}

/* The source that says which samples count, the only one of whole numbers. 0: there is none, and all count. */
static inline int cvy_bn_counted(const cvy_node *node)
{
    for (int i = 1; i < node->nsrc; i++)
        if (node->src[i]->dtype == CVY_DTYPE_I32)
            return i;
    return 0;
}

/* 1 if there is such a source, else 0: sources after it have so much larger indices. */
static inline int cvy_bn_has_counted(const cvy_node *node)
{
    return cvy_bn_counted(node) > 0;
}

/* The same as a span; NULL: all samples count. */
static inline const cvy_span *cvy_bn_counted_span(const cvy_node *node, const cvy_span *src)
{
    return cvy_bn_has_counted(node) ? &src[cvy_bn_counted(node)] : NULL;
}

/* Whether a bn_train adds a residual, which is its source 1. */
static inline int cvy_bn_train_has_residual(const cvy_node *node)
{
    const int params = ((const cvy_batch_norm_opts *)node->options)->scale_shift ? 2 : 0;
    return node->nsrc - params - cvy_bn_has_counted(node) == 2;
}

/* The index of bn_infer's running mean, which its running variance follows. */
static inline int cvy_bn_infer_mean(const cvy_node *node)
{
    return ((const cvy_batch_norm_opts *)node->options)->scale_shift ? 3 : 1;
}

/* The index of the residual that bn_infer adds; -1: it adds none. */
static inline int cvy_bn_infer_residual(const cvy_node *node)
{
    const int after = cvy_bn_infer_mean(node) + 2;
    return node->nsrc > after ? after : -1;
}

/* Index of the source of a bn_train_grad that is bn_train's result. Only with residual and ReLU there is one, else it
 * is 0. */
static inline int cvy_bn_train_grad_dst(const cvy_node *node)
{
    const int at = cvy_bn_has_counted(node) + (((const cvy_batch_norm_opts *)node->options)->scale_shift ? 5 : 3);
    return node->nsrc > at ? at : 0;
}

/* Positions of a channel of one sample [N, C, positions...]. */
int64_t cvy_bn_positions(const cvy_shape *src);

/* The shape of the statistics of this node's source 0. */
cvy_shape cvy_bn_stats_shape(const cvy_node *node);
/* The number of values of a channel in row g that count. positions: of this rank's part of a sample. */
double cvy_bn_values(const cvy_span *stats, const cvy_bn_groups *groups, int64_t g, int64_t c, int64_t positions);
/* Whether local sample n counts. counted: NULL: all do. */
static inline int cvy_bn_counts(const cvy_span *counted, int64_t n)
{
    return !counted || cvy_get(counted, n) != 0;
}
/* Sets the statistics of channel c of row g. */
void cvy_bn_set_stats(const cvy_span *stats, int64_t g, int64_t c, double sum, double squares, double values);
/* Mean and biased variance of channel c of row g, which has n values; 0 and 0 if it has none. */
void cvy_bn_moments(const cvy_span *stats, int64_t g, int64_t c, double n, double *mean_out, double *variance_out);

/* Appends the variables scale and shift to the node's sources, if its options want them. */
cvy_status cvy_bn_scale_shift_params(cvy_node *node, int64_t channels);
/* Appends the variables running_mean and running_var. */
cvy_status cvy_bn_running_params(cvy_node *node, int64_t channels);

#endif

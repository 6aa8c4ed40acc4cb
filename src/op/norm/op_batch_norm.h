/*
 * op_batch_norm.h: options of the batch-norm operators, and the groups of samples over which their statistics run.
 *
 * In a training graph the layer `batch_norm` becomes these nodes (f64 statistics; C channels; row g of the statistics
 * is one of G groups, see cvy_bn_groups):
 *
 *     bn_stats        src -> stats [G, 2, C]           sums of x and x^2 over this rank's samples of each group
 *     allreduce       stats -> stats                   only if a group spans ranks
 *     bn_apply        src, stats, scale, shift -> dst  (x - mean) / sqrt(variance + eps) * scale + shift
 *     bn_group_stats  stats -> accumulator [2 C + 1]   sums over groups of mean and unbiased variance; number of groups
 *     bn_running      accumulator, running_mean, running_var -> both are assigned, once per step
 *     bn_grad_stats   src, stats, ddst -> gstats [G, 2, C], dscale, dshift
 *                                                      sums of ddst and ddst * xhat; dscale, dshift: of this rank only
 *     allreduce       gstats -> gstats                 only if a group spans ranks
 *     bn_grad_apply   src, stats, gstats, ddst, scale -> dsrc
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
} cvy_bn_group_stats_opts;

/* Groups of consecutive samples of a micro-batch; samples are numbered over all ranks. A rank's statistics have `count`
 * rows: one for each of its own groups. If `spans`, they have one for every group, with zeros for groups of which this
 * rank has no samples, so that one all-reduce completes them. */
typedef struct cvy_bn_groups {
    int64_t count;
    int64_t size;                   /* samples of a group; the last group may be smaller */
    int64_t begin, end;             /* the samples that the rows cover: row g is begin + g * size ... */
    int64_t local_begin, local_end; /* this rank's samples */
    int spans;                      /* 1: some group has samples on more than one rank; equal on all ranks */
} cvy_bn_groups;

cvy_bn_groups cvy_bn_groups_make(const cvy_graph *g);
/* The same, with the samples of the node as the local ones. */
cvy_bn_groups cvy_bn_groups_of(const cvy_node *node);

/* Samples of row g over all ranks. */
static inline int64_t cvy_bn_group_samples(const cvy_bn_groups *b, int64_t g)
{
    return CVY_MIN(b->size, b->end - b->begin - g * b->size);
}

/* This rank's samples of row g: indices first .. last - 1 in the local tensors; none if first >= last. */
static inline void cvy_bn_group_local(const cvy_bn_groups *b, int64_t g, int64_t *first_out, int64_t *last_out)
{
    const int64_t at = b->begin + g * b->size;
    *first_out = CVY_MAX(at, b->local_begin) - b->local_begin;
    *last_out = CVY_MIN(at + cvy_bn_group_samples(b, g), b->local_end) - b->local_begin;
}

/* Whether this rank has the first sample of row g. Only this rank counts the group. */
static inline int cvy_bn_group_is_mine(const cvy_bn_groups *b, int64_t g)
{
    const int64_t at = b->begin + g * b->size;
    return at >= b->local_begin && at < b->local_end;
}

/* Whether a bn_train adds a residual, which is its source 1. */
static inline int cvy_bn_train_has_residual(const cvy_node *node)
{
    return node->nsrc - (((const cvy_batch_norm_opts *)node->options)->scale_shift ? 2 : 0) == 2;
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
    const int at = ((const cvy_batch_norm_opts *)node->options)->scale_shift ? 5 : 3;
    return node->nsrc > at ? at : 0;
}

/* Positions of a channel of one sample [N, C, positions...]. */
int64_t cvy_bn_positions(const cvy_shape *src);

/* Mean and biased variance of channel c of row g, from stats [G, 2, C]. n: elements per channel in the group. */
void cvy_bn_moments(const cvy_span *stats, int64_t g, int64_t c, int64_t n, double *mean_out, double *variance_out);

/* Appends the variables scale and shift to the node's sources, if its options want them. */
cvy_status cvy_bn_scale_shift_params(cvy_node *node, int64_t channels);
/* Appends the variables running_mean and running_var. */
cvy_status cvy_bn_running_params(cvy_node *node, int64_t channels);

#endif

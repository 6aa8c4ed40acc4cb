/*
 * native_bn_passes.h: what the passes of batch norm over f32 and over bf16 have in common: which sources are
 * activations, groups, coefficients, and the run functions.
 *
 * Each of the two dtypes has its own layouts of activations and its own loops over them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_BN_PASSES_H
#define CVY_NATIVE_BN_PASSES_H

#include <math.h>

#include "kernel/native/native_common.h"
#include "op/norm/op_batch_norm.h"

/* A work item of apply and grad is a part of the channels of a sample. A work item of the two stats functions is a part
 * of the channels of a row of the statistics. */
typedef struct cvy_bn_walks {
    cvy_range_fn apply, grad, stats, grad_stats;
} cvy_bn_walks;

/* The first member of each kernel state. The kernel fills the fields up to folds_mean; cvy_bn_passes_make fills the
 * others. */
typedef struct cvy_bn_passes {
    int64_t n, channels, positions;
    int64_t parts, width, lanes; /* parts of the channels; lanes of a part; lanes of all parts, with padding */
    cvy_bn_walks walks;
    int folds_mean; /* 1: apply is x * factor + offset; 0: (x - mean) * factor + shift */
    cvy_bn_groups groups;
    int threads, relu, scale_shift;
    int residual_at; /* of bn_infer: the source that is added; -1: none */
    int counted_at;  /* the source that says which samples count; 0: all do */
    int64_t entries; /* of a channel in a row of the statistics: 2, or 3 with the number of values that count */
    double eps;
    int64_t *group_of; /* row of the statistics of each sample */
    /* Of the running call. */
    const void *x, *ddst;
    const void *residual; /* it is added by apply; NULL: none */
    void *dst;
    const float *scale, *shift;
    const int32_t *counted; /* of each sample, whether it counts; NULL: all do */
    const double *stats, *gstats;
    double *sums; /* [G, entries, C] or, in the gradient, [G, 2, C] */
    float *coef;  /* scratch memory [G, 3, lanes]; apply: mean, factor, shift; grad: factor, slope, offset */
} cvy_bn_passes;

/* other: the source, besides source 0, that is an activation; -1: none. inplace: the source whose memory dst[0] may
 * take over; -1: none, and dst[0] is not an activation. */
typedef struct cvy_bn_roles {
    const char *op;
    int other, inplace;
} cvy_bn_roles;
const cvy_bn_roles *cvy_bn_roles_of(const cvy_node *node);

/* Makes the offer, after the layout of the activations has been chosen. lanes: lanes of all channels in that layout. */
void cvy_bn_passes_offer(cvy_kernel_ask *ask, const cvy_layout *layout, int64_t lanes);
/* Fills the rest of the state. The caller destroys the state, also after an error. */
cvy_status cvy_bn_passes_make(const cvy_kernel_ask *ask, cvy_bn_passes *b);
void cvy_bn_passes_destroy(void *state);

cvy_status cvy_bn_stats_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_apply_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_infer_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_infer_grad_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_infer_grad_params_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_grad_stats_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_grad_apply_run(void *state, void *const *src, void *const *dst, void *scratch);

static inline int cvy_bn_sample_counts(const cvy_bn_passes *b, int64_t n)
{
    return !b->counted || b->counted[n];
}

/* The end of the run of samples n .. last - 1 that count or do not count alike. */
static inline int64_t cvy_bn_run_end(const cvy_bn_passes *b, int64_t n, int64_t last)
{
    int64_t end = b->counted ? n + 1 : last;
    while (end < last && !b->counted[end] == !b->counted[n])
        end++;
    return end;
}

/* The values of channel c of row g that count, at least 1. */
static inline double cvy_bn_count(const cvy_bn_passes *b, int64_t g, int64_t c)
{
    if (!b->counted)
        return (double)(cvy_bn_group_samples(&b->groups, g) * b->positions);
    const double n = b->stats[(3 * g + 2) * b->channels + c];
    return n > 0 ? n : 1;
}

/* Mean and 1 / sqrt(variance + eps) of channel c of row g of the statistics. */
static inline void cvy_bn_normaliser(const cvy_bn_passes *b, int64_t g, int64_t c, double *mean_out,
                                     double *inv_std_out)
{
    const double *sums = b->stats + b->entries * g * b->channels + c;
    const double n = cvy_bn_count(b, g, c), mean = sums[0] / n;
    const double variance = fmax(sums[b->channels] / n - mean * mean, 0);
    *mean_out = mean;
    *inv_std_out = 1 / sqrt(variance + b->eps);
}

static inline float *cvy_bn_coef(const cvy_bn_passes *b, int64_t g, int k)
{
    return b->coef + (g * 3 + k) * b->lanes;
}

/* The members of a kernel of one pass; its file has the functions offer and create. */
#define CVY_BN_PASS(kernel, operator, runs)                                                                            \
    .name = kernel, .op = operator, .preference = 50, .offer = offer, .create = create, .run = runs,                   \
    .destroy = cvy_bn_passes_destroy

#endif

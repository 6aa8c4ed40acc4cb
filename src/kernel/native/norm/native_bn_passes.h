/*
 * native_bn_passes.h: what the passes of batch norm over f32 and over bf16 have in common: which sources are
 * activations, groups, coefficients, and the runs. What is left to each is how activations lie in memory, and the walks
 * over them.
 */
#ifndef CVY_NATIVE_BN_PASSES_H
#define CVY_NATIVE_BN_PASSES_H

#include <math.h>

#include "kernel/native/native_common.h"
#include "op/norm/op_batch_norm.h"

/* Work items of apply and grad: a part of the channels of a sample; of the sums: a part of the channels of a row. */
typedef struct cvy_bn_walks {
    cvy_range_fn apply, grad, stats, grad_stats;
} cvy_bn_walks;

/* A state begins with it. The fields up to folds_mean are the maker's. */
typedef struct cvy_bn_passes {
    int64_t n, channels, positions;
    int64_t parts, width, lanes; /* of the channels; lanes: of all parts, padding included */
    cvy_bn_walks walks;
    int folds_mean; /* apply is x * factor + offset, not (x - mean) * factor + shift */
    cvy_bn_groups groups;
    int threads, relu, scale_shift;
    double eps;
    int64_t *group_of; /* row of the statistics of each sample */
    /* of the running call */
    const void *x, *ddst;
    void *dst;
    const float *scale, *shift;
    const double *stats, *gstats;
    double *sums; /* [G, 2, C] */
    float *coef;  /* in scratch: [G, 3, lanes]; apply: mean, factor, shift; grad: factor, slope, offset */
} cvy_bn_passes;

/* Besides source 0: which source is an activation, and whose memory dst[0] may take over; -1: none. Only then is dst[0]
 * an activation. */
typedef struct cvy_bn_roles {
    const char *op;
    int other, inplace;
} cvy_bn_roles;
const cvy_bn_roles *cvy_bn_roles_of(const cvy_node *node);

/* The offer behind the choice of the activations' layout, in which the channels take so many lanes. */
void cvy_bn_passes_offer(cvy_kernel_ask *ask, const cvy_layout *layout, int64_t lanes);
/* Fills in the rest. The state is the caller's to destroy, also on a fault. */
cvy_status cvy_bn_passes_make(const cvy_kernel_ask *ask, cvy_bn_passes *b);
void cvy_bn_passes_destroy(void *state);

cvy_status cvy_bn_stats_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_apply_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_infer_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_grad_stats_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_bn_grad_apply_run(void *state, void *const *src, void *const *dst, void *scratch);

/* Mean and 1 / sqrt(variance + eps) of channel c of row g. */
static inline void cvy_bn_normaliser(const cvy_bn_passes *b, int64_t g, int64_t c, double *mean_out,
                                     double *inv_std_out)
{
    const int64_t C = b->channels, n = cvy_bn_group_samples(&b->groups, g) * b->positions;
    const double mean = b->stats[2 * g * C + c] / (double)n;
    const double variance = fmax(b->stats[(2 * g + 1) * C + c] / (double)n - mean * mean, 0);
    *mean_out = mean;
    *inv_std_out = 1 / sqrt(variance + b->eps);
}

static inline float *cvy_bn_coef(const cvy_bn_passes *b, int64_t g, int k)
{
    return b->coef + (g * 3 + k) * b->lanes;
}

#endif

/*
 * gpu_bn_running.c: bn_group_stats, bn_running and counted_samples: the statistics of batch norm from those of groups
 * to running ones, and the samples that they are taken from.
 *
 * op/norm/op_batch_norm.h describes how the operators work together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct bn_group_stats {
    i64 positions;
    int begin, samples, first, total, local_begin, local_end; /* of cvy_bn_groups */
    int groups, channels, entries;                            /* entries of a channel in the statistics: 2, or 3 */
    float unit;                                               /* the number of values that weighs 1 */
};

#ifdef CVY_DEVICE

/* sums [2 C + 1]: over the groups whose first sample is here. */
KERNEL(bn_group_stats)(GLOBAL const double *stats, GLOBAL float *sums, struct bn_group_stats a)
{
    FOR_EACH (c, a.channels) {
        double means = 0, variances = 0, weights = 0;
        for (int g = 0; g < a.groups; g++) {
            const int begin = a.begin + (int)((u32)a.samples * (u32)(a.first + g) / (u32)a.total);
            const int end = a.begin + (int)((u32)a.samples * (u32)(a.first + g + 1) / (u32)a.total);
            const i64 at = (i64)g * a.entries * a.channels + c;
            const double n = a.entries == 3 ? stats[at + 2 * (i64)a.channels] : (double)(end - begin) * a.positions;
            double mean, variance, weight;
            if (begin < a.local_begin || begin >= a.local_end || n < 2)
                continue;
            mean = stats[at] / n;
            variance = stats[at + a.channels] / n - mean * mean;
            variance = MAX(variance, 0);
            weight = n / a.unit;
            means += weight * mean;
            variances += weight * variance * n / (n - 1);
            weights += weight;
        }
        sums[c] = (float)means;
        sums[a.channels + c] = (float)variances;
        if (c == 0)
            sums[2 * (i64)a.channels] = (float)weights;
    }
}

/* Takes the running ones from mean_in and variance_in, which may be mean and variance; not while updates are held. */
KERNEL(bn_running)
(GLOBAL const float *sums, GLOBAL const float *mean_in, GLOBAL const float *variance_in, GLOBAL float *mean,
 GLOBAL float *variance, GLOBAL const int *hold, int channels, float momentum)
{
    if (hold[0])
        return;
    const double weights = sums[2 * (i64)channels], keep = 1 - (double)momentum;
    FOR_EACH (c, channels) {
        const double m = mean_in[c], v = variance_in[c];
        mean[c] = (float)(weights > 0 ? keep * m + momentum * (sums[c] / weights) : m);
        variance[c] = (float)(weights > 0 ? keep * v + momentum * (sums[channels + c] / weights) : v);
    }
}

/* again: weights before these have set `counted` already. */
KERNEL(counted_samples)(GLOBAL const void *weights, GLOBAL int *counted, i64 samples, i64 each, int kind, int again)
{
    FOR_EACH (n, samples) {
        int any = again ? counted[n] : 0;
        for (i64 i = n * each; i < (n + 1) * each && !any; i++)
            any = number_at(weights, kind, i) != 0;
        counted[n] = any;
    }
}

#else
#include "kernel/gpu/norm/gpu_norm.h"
#include "op/norm/op_batch_norm.h"

CVY_GPU_SOURCE_DECLARE(gpu_bn_running);

/* All layouts stay plain. */
static cvy_status plain_offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    cvy_gpu_kernel kernel;
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    for (int i = 0; i < node->ndst; i++) {
        ask->dst[i] = cvy_layout_plain();
        CVY_CHECK(node->dst[i]->dtype == CVY_DTYPE_F32 || node->dst[i]->dtype == CVY_DTYPE_I32, CVY_NOT_APPLICABLE,
                  "this kernel has weights in f32, not %s", cvy_dtype_text(node->dst[i]->dtype));
    }
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_bn_running), node->op->name, CVY_DTYPE_F32, &kernel);
}

/* ---- bn_group_stats ---- */

struct group_stats {
    cvy_gpu_kernel kernel;
    struct bn_group_stats a;
};

static cvy_status bn_group_stats_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_bn_group_stats_opts *o = ask->node->options;
    const cvy_bn_groups groups = cvy_bn_groups_of(ask->node);
    const cvy_shape *stats = &ask->node->src[0]->shape;
    struct group_stats *s = NULL;
    cvy_gpu_kernel kernel;
    CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_bn_running), "bn_group_stats", CVY_DTYPE_F32, &kernel));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->kernel = kernel;
    s->a = (struct bn_group_stats){.positions = o->positions,
                                   .begin = (int)groups.begin,
                                   .samples = (int)groups.samples,
                                   .first = (int)groups.first,
                                   .total = (int)groups.total,
                                   .local_begin = (int)groups.local_begin,
                                   .local_end = (int)groups.local_end,
                                   .groups = (int)groups.count,
                                   .channels = (int)stats->dim[2],
                                   .entries = (int)stats->dim[1],
                                   .unit = (float)(o->unit * o->positions)};
    *state_out = s;
    return CVY_OK;
}

static cvy_status bn_group_stats_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct group_stats *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->a.channels), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->a));
}

static cvy_status bn_group_stats_offer(cvy_kernel_ask *ask)
{
    const cvy_bn_groups groups = cvy_bn_groups_of(ask->node);
    CVY_TRY(cvy_gpu_groups_fit(&groups));
    return plain_offer(ask);
}

CVY_KERNEL_DEFINE(gpu_bn_group_stats) = {CVY_GPU_FIELDS("bn_group_stats", bn_group_stats_offer, bn_group_stats_create,
                                                        bn_group_stats_run, cvy_gpu_free_state)};

/* ---- bn_running ---- */

struct running {
    cvy_gpu_kernel kernel;
    int *hold; /* cvy_gpu_hold() */
    int channels, nsrc;
    float momentum;
};

static cvy_status bn_running_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_batch_norm_opts *o = ask->node->options;
    struct running *s = NULL;
    cvy_gpu_kernel kernel;
    CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_bn_running), "bn_running", CVY_DTYPE_F32, &kernel));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct running){kernel, NULL, (int)ask->node->dst[0]->shape.dim[0], ask->node->nsrc, (float)o->momentum};
    *state_out = s;
    return cvy_gpu_hold(ask->space, &s->hold);
}

/* One accumulator after the other, of a layer that is applied several times: sources 0, 3, 4 ... */
static cvy_status bn_running_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct running *s = state;
    (void)scratch;
    for (int i = 0; i < s->nsrc; i = i ? i + 1 : 3) {
        void *const *from = i == 0 ? src + 1 : dst;
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->channels), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[i]),
                               CVY_GPU_POINTER(from[0]), CVY_GPU_POINTER(from[1]), CVY_GPU_POINTER(dst[0]),
                               CVY_GPU_POINTER(dst[1]), CVY_GPU_POINTER(s->hold), CVY_GPU_VALUE(s->channels),
                               CVY_GPU_VALUE(s->momentum)));
    }
    return CVY_OK;
}

CVY_KERNEL_DEFINE(gpu_bn_running) = {
    CVY_GPU_FIELDS("bn_running", plain_offer, bn_running_create, bn_running_run, cvy_gpu_free_state), .can_hold = 1};

/* ---- counted_samples ---- */

struct counted {
    cvy_gpu_kernel kernel;
    int64_t samples, each[CVY_NODE_SRC_MAX];
    int kind[CVY_NODE_SRC_MAX], nsrc;
};

static cvy_status counted_samples_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    struct counted *s = NULL;
    cvy_gpu_kernel kernel;
    CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_bn_running), "counted_samples", CVY_DTYPE_F32, &kernel));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct counted){.kernel = kernel, .samples = node->dst[0]->shape.dim[0], .nsrc = node->nsrc};
    for (int i = 0; i < node->nsrc; i++) {
        s->each[i] = cvy_shape_elems(&node->src[i]->shape) / CVY_MAX(s->samples, 1);
        s->kind[i] = cvy_gpu_number_kind(node->src[i]->dtype);
    }
    *state_out = s;
    return CVY_OK;
}

static cvy_status counted_samples_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct counted *s = state;
    (void)scratch;
    for (int i = 0; i < s->nsrc; i++) {
        const int again = i > 0;
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->samples), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[i]),
                               CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->samples), CVY_GPU_VALUE(s->each[i]),
                               CVY_GPU_VALUE(s->kind[i]), CVY_GPU_VALUE(again)));
    }
    return CVY_OK;
}

CVY_KERNEL_DEFINE(gpu_counted_samples) = {
    CVY_GPU_FIELDS("counted_samples", plain_offer, counted_samples_create, counted_samples_run, cvy_gpu_free_state)};
#endif

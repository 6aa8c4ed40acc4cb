/*
 * native_batch_norm.c: the passes of batch norm over activations: statistics, normalisation, the gradient's sums, the
 * gradient. In the step: see op_batch_norm.h for how the operators work together. All are bound by memory bandwidth.
 *
 * Memory is walked in vectors of 16 floats: one position's block of channels, or neighbouring positions of one channel,
 * whose 16 coefficients are then equal. So one loop serves every layout. Sums are kept in double, as the statistics
 * are: a variance is a small difference.
 */
#include <math.h>
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/op_batch_norm.h"

enum { LANES = 16 };

struct batch_norm {
    cvy_planes p;
    cvy_bn_groups groups;
    int threads, relu, scale_shift;
    double eps;
    int64_t *group_of; /* row of the statistics of each sample */
    int64_t pitch;     /* of what may lie in a slice: the result, in the gradients what comes back */
    /* of the running call */
    const float *x, *ddst, *scale, *shift;
    const double *stats, *gstats;
    double *sums;
    float *dst, *dscale, *dshift;
    float *coef; /* in scratch: [G, 3, channels with padding] */
};

/* ---- coefficients of each group and channel, made before the walk ---- */

/* Mean and 1 / sqrt(variance + eps) of channel c of row g. */
static void normaliser(const struct batch_norm *s, int64_t g, int64_t c, double *mean_out, double *inv_std_out)
{
    const int64_t C = s->p.channels, n = cvy_bn_group_samples(&s->groups, g) * s->p.positions;
    const double mean = s->stats[2 * g * C + c] / (double)n;
    const double variance = fmax(s->stats[(2 * g + 1) * C + c] / (double)n - mean * mean, 0);
    *mean_out = mean;
    *inv_std_out = 1 / sqrt(variance + s->eps);
}

static float *coef_row(const struct batch_norm *s, int64_t g, int k)
{
    return s->coef + (g * 3 + k) * s->p.groups * s->p.block;
}

/* Padding lanes get zeros, which keep them zero. */
static void clear_coef(const struct batch_norm *s)
{
    memset(s->coef, 0, (size_t)(CVY_MAX(1, s->groups.count) * 3 * s->p.groups * s->p.block) * sizeof *s->coef);
}

/* dst = (x - mean) * factor + shift */
static void make_apply_coef(const struct batch_norm *s)
{
    const int64_t C = s->p.channels;
    clear_coef(s);
    for (int64_t row = 0; row < s->groups.count * C; row++) {
        const int64_t g = row / C, c = row % C;
        double mean, inv_std;
        normaliser(s, g, c, &mean, &inv_std);
        coef_row(s, g, 0)[c] = (float)mean;
        coef_row(s, g, 1)[c] = (float)(s->scale ? s->scale[c] * inv_std : inv_std);
        coef_row(s, g, 2)[c] = s->shift ? s->shift[c] : 0;
    }
}

static void make_infer_coef(const struct batch_norm *s, const float *mean, const float *variance)
{
    clear_coef(s);
    for (int64_t c = 0; c < s->p.channels; c++) {
        const double inv_std = 1 / sqrt(variance[c] + s->eps);
        coef_row(s, 0, 0)[c] = mean[c];
        coef_row(s, 0, 1)[c] = (float)(s->scale ? s->scale[c] * inv_std : inv_std);
        coef_row(s, 0, 2)[c] = s->shift ? s->shift[c] : 0;
    }
}

/* dsrc = factor * ddst + slope * x + offset */
static void make_grad_coef(const struct batch_norm *s)
{
    const int64_t C = s->p.channels;
    clear_coef(s);
    for (int64_t row = 0; row < s->groups.count * C; row++) {
        const int64_t g = row / C, c = row % C;
        const double n = (double)(cvy_bn_group_samples(&s->groups, g) * s->p.positions);
        double mean, inv_std;
        normaliser(s, g, c, &mean, &inv_std);
        const double factor = (s->scale ? s->scale[c] : 1) * inv_std,
                     slope = -factor * inv_std * s->gstats[(2 * g + 1) * C + c] / n;
        coef_row(s, g, 0)[c] = (float)factor;
        coef_row(s, g, 1)[c] = (float)slope;
        coef_row(s, g, 2)[c] = (float)(-factor * s->gstats[2 * g * C + c] / n - slope * mean);
    }
}

/* The coefficients of one plane, one for each lane. */
CVY_INLINE void spread_coef(const struct batch_norm *s, int64_t g, int64_t plane, float out[3][LANES])
{
    const int64_t block = s->p.block, first = plane % s->p.groups * block;
    for (int k = 0; k < 3; k++)
        for (int64_t l = 0; l < LANES; l++)
            out[k][l] = s->coef[(g * 3 + k) * s->p.groups * block + first + l % block];
}

/* ---- walks ---- */

CVY_SIMD static void apply_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    const int64_t elems = s->p.positions * s->p.block;
    const float floor = s->relu ? 0 : -INFINITY;
    for (int64_t plane = first; plane < end; plane++) {
        const float *x = s->x + plane * elems;
        float *dst = s->dst + cvy_plane_in(&s->p, s->pitch, plane) * elems, coef[3][LANES];
        spread_coef(s, s->group_of[plane / s->p.groups], plane, coef);
        int64_t i = 0;
        for (; i + LANES <= elems; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                const float y = (x[i + l] - coef[0][l]) * coef[1][l] + coef[2][l];
                dst[i + l] = y < floor ? floor : y;
            }
        for (; i < elems; i++) {
            const int64_t l = i % LANES;
            const float y = (x[i] - coef[0][l]) * coef[1][l] + coef[2][l];
            dst[i] = y < floor ? floor : y;
        }
    }
}

CVY_SIMD static void grad_apply_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    const int64_t elems = s->p.positions * s->p.block;
    for (int64_t plane = first; plane < end; plane++) {
        const float *x = s->x + plane * elems, *ddst = s->ddst + cvy_plane_in(&s->p, s->pitch, plane) * elems;
        float *dst = s->dst + plane * elems, coef[3][LANES];
        spread_coef(s, s->group_of[plane / s->p.groups], plane, coef);
        int64_t i = 0;
        for (; i + LANES <= elems; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++)
                dst[i + l] = coef[0][l] * ddst[i + l] + coef[1][l] * x[i + l] + coef[2][l];
        for (; i < elems; i++) {
            const int64_t l = i % LANES;
            dst[i] = coef[0][l] * ddst[i] + coef[1][l] * x[i] + coef[2][l];
        }
    }
}

/* Adds lane by lane: sum[0] of a, sum[1] of a * (b - mean); a group's samples lie a_step and b_step floats apart. */
CVY_INLINE void add_planes(const float *a, int64_t a_step, const float *b, int64_t b_step, const float *mean,
                           int64_t samples, int64_t elems, double sum[2][LANES])
{
    for (int64_t n = 0; n < samples; n++, a += a_step, b += b_step) {
        int64_t i = 0;
        for (; i + LANES <= elems; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                sum[0][l] += a[i + l];
                sum[1][l] += (double)a[i + l] * (b[i + l] - mean[l]);
            }
        for (; i < elems; i++) {
            sum[0][i % LANES] += a[i];
            sum[1][i % LANES] += (double)a[i] * (b[i] - mean[i % LANES]);
        }
    }
}

/* Work item: one row of the statistics and one block of channels. sums [G, 2, C]; the second sum is multiplied by
 * second[c] of its row. */
CVY_INLINE void sum_item(const struct batch_norm *s, const float *a, const float *b, int centred, int64_t item)
{
    const int64_t block = s->p.block, C = s->p.channels, g = item / s->p.groups, part = item % s->p.groups,
                  elems = s->p.positions * block;
    int64_t first, last;
    float mean[LANES] = {0};
    double sum[2][LANES] = {{0}}, inv_std[LANES];
    for (int64_t l = 0; l < LANES; l++) {
        const int64_t c = part * block + l % block;
        double m = 0;
        inv_std[l] = 1;
        if (centred && c < C)
            normaliser(s, g, c, &m, &inv_std[l]);
        mean[l] = (float)m;
    }
    cvy_bn_group_local(&s->groups, g, &first, &last);
    const int64_t pitch = centred ? s->pitch : s->p.groups;
    add_planes(a + (first * pitch + part) * elems, pitch * elems, b + (first * s->p.groups + part) * elems,
               s->p.groups * elems, mean, last - first, elems, sum);
    for (int64_t l = 0; l < block && part * block + l < C; l++) {
        double total[2] = {0, 0};
        for (int64_t k = l; k < LANES; k += block) {
            total[0] += sum[0][k];
            total[1] += sum[1][k];
        }
        s->sums[2 * g * C + part * block + l] = total[0];
        s->sums[(2 * g + 1) * C + part * block + l] = total[1] * inv_std[l];
    }
}

CVY_SIMD static void stats_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        sum_item(s, s->x, s->x, 0, item);
}

CVY_SIMD static void grad_stats_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        sum_item(s, s->ddst, s->x, 1, item);
}

/* ---- offers ---- */

/* All activations (sources first and, if other >= 0, other; dst[0] if it is one) in one layout of planes. */
static cvy_status offer(cvy_kernel_ask *ask, int other, int dst_is_activation, int inplace)
{
    CVY_TRY(cvy_native_f32(ask->node));
    cvy_layout layout = cvy_native_channels(ask, 0);
    if (other >= 0 && cvy_layout_is_plain(&layout))
        layout = cvy_native_channels(ask, other);
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = i == 0 || i == other ? layout : cvy_layout_plain();
    if (dst_is_activation) {
        const cvy_planes p = cvy_planes_make(&ask->node->src[0]->shape, &layout);
        ask->dst[0] = layout;
        ask->inplace[0] = inplace + 1;
        ask->scratch_bytes =
            (size_t)(CVY_MAX(1, cvy_bn_groups_make(ask->node->graph).count) * 3 * p.groups * p.block) * sizeof(float);
    }
    return CVY_OK;
}

static cvy_status stats_offer(cvy_kernel_ask *ask)
{
    return offer(ask, -1, 0, -1);
}

static cvy_status apply_offer(cvy_kernel_ask *ask)
{
    return offer(ask, -1, 1, 0);
}

static cvy_status grad_stats_offer(cvy_kernel_ask *ask)
{
    return offer(ask, 2, 0, -1);
}

static cvy_status grad_apply_offer(cvy_kernel_ask *ask)
{
    return offer(ask, 3, 1, 3);
}

/* ---- states ---- */

static void destroy(void *state)
{
    struct batch_norm *s = state;
    if (s)
        cvy_mem_free(&s->group_of);
    cvy_mem_free(&s);
}

/* sliced: the layout of what may lie in a slice. */
static cvy_status create(const cvy_kernel_ask *ask, const cvy_layout *sliced, void **state_out)
{
    const cvy_batch_norm_opts *o = ask->node->options;
    cvy_status status = CVY_OK;
    struct batch_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->p = cvy_planes_make(&ask->node->src[0]->shape, &ask->src[0]);
    s->pitch = cvy_planes_make(&ask->node->src[0]->shape, sliced).pitch;
    s->groups = cvy_bn_groups_make(ask->node->graph);
    s->threads = ask->threads;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)s->p.n * sizeof *s->group_of, &s->group_of));
    for (int64_t g = 0; g < s->groups.count; g++) {
        int64_t first, last;
        cvy_bn_group_local(&s->groups, g, &first, &last);
        for (int64_t n = first; n < last; n++)
            s->group_of[n] = g;
    }
    if (o) {
        s->eps = o->eps;
        s->relu = o->relu;
        s->scale_shift = o->scale_shift;
    }
    *state_out = s;
    return CVY_OK;
out:
    destroy(s);
    return status;
}

static cvy_status stats_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, &ask->src[0], state_out);
}

static cvy_status apply_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, &ask->dst[0], state_out);
}

static cvy_status grad_stats_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, &ask->src[2], state_out);
}

static cvy_status grad_apply_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, &ask->src[3], state_out);
}

/* The running statistics are one row for all samples. */
static cvy_status infer_create(const cvy_kernel_ask *ask, void **state_out)
{
    CVY_TRY(apply_create(ask, state_out));
    struct batch_norm *s = *state_out;
    memset(s->group_of, 0, (size_t)s->p.n * sizeof *s->group_of);
    s->groups.count = 1;
    return CVY_OK;
}

static void walk_planes(struct batch_norm *s, cvy_range_fn body)
{
    cvy_parallel_for(s->threads, s->p.n * s->p.groups, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, s->p.positions * s->p.block)),
                     body, s);
}

static cvy_status stats_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    (void)scratch;
    s->x = src[0];
    s->sums = dst[0];
    cvy_parallel_for(s->threads, s->groups.count * s->p.groups, 1, stats_range, s);
    return CVY_OK;
}

static cvy_status apply_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    s->x = src[0];
    s->stats = src[1];
    s->scale = s->scale_shift ? src[2] : NULL;
    s->shift = s->scale_shift ? src[3] : NULL;
    s->dst = dst[0];
    s->coef = scratch;
    make_apply_coef(s);
    walk_planes(s, apply_range);
    return CVY_OK;
}

static cvy_status infer_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    const int running = s->scale_shift ? 3 : 1;
    s->x = src[0];
    s->scale = s->scale_shift ? src[1] : NULL;
    s->shift = s->scale_shift ? src[2] : NULL;
    s->dst = dst[0];
    s->coef = scratch;
    make_infer_coef(s, src[running], src[running + 1]);
    walk_planes(s, apply_range);
    return CVY_OK;
}

static cvy_status grad_stats_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    const int64_t C = s->p.channels;
    (void)scratch;
    s->x = src[0];
    s->stats = src[1];
    s->ddst = src[2];
    s->sums = dst[0];
    cvy_parallel_for(s->threads, s->groups.count * s->p.groups, 1, grad_stats_range, s);
    for (int k = 0; k < 2 && s->scale_shift; k++) {
        float *sum = dst[2 - k]; /* row 0 of the sums is dshift, row 1 dscale */
        for (int64_t c = 0; sum && c < C; c++) {
            double total = 0;
            for (int64_t g = 0; g < s->groups.count; g++)
                total += s->sums[(2 * g + k) * C + c];
            sum[c] = (float)total;
        }
    }
    return CVY_OK;
}

static cvy_status grad_apply_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    s->x = src[0];
    s->stats = src[1];
    s->gstats = src[2];
    s->ddst = src[3];
    s->scale = s->scale_shift ? src[4] : NULL;
    s->dst = dst[0];
    s->coef = scratch;
    make_grad_coef(s);
    walk_planes(s, grad_apply_range);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_bn_stats) = {
    .name = "native.bn_stats",
    .op = "bn_stats",
    .preference = 50,
    .offer = stats_offer,
    .create = stats_create,
    .run = stats_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_apply) = {
    .name = "native.bn_apply",
    .op = "bn_apply",
    .preference = 50,
    .slice_dst = 1,
    .offer = apply_offer,
    .create = apply_create,
    .run = apply_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_infer) = {
    .name = "native.bn_infer",
    .op = "bn_infer",
    .preference = 50,
    .slice_dst = 1,
    .offer = apply_offer,
    .create = infer_create,
    .run = infer_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_grad_stats) = {
    .name = "native.bn_grad_stats",
    .op = "bn_grad_stats",
    .preference = 50,
    .slice_src = 1 << 2,
    .offer = grad_stats_offer,
    .create = grad_stats_create,
    .run = grad_stats_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_grad_apply) = {
    .name = "native.bn_grad_apply",
    .op = "bn_grad_apply",
    .preference = 50,
    .slice_src = 1 << 3,
    .offer = grad_apply_offer,
    .create = grad_apply_create,
    .run = grad_apply_run,
    .destroy = destroy,
};

/*
 * native_batch_norm.c: the passes of batch norm over f32 activations: statistics, normalisation, the sums of the
 * gradient, the gradient.
 *
 * op_batch_norm.h describes how the operators work together. All passes are limited by memory bandwidth. Memory is
 * walked in vectors of 16 floats: a block of channels of one position, or adjacent positions of one channel, whose 16
 * coefficients are then equal. So one loop serves every layout. Sums are in double, like the statistics, because a
 * variance is a small difference of large numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/norm/native_bn_passes.h"

enum { LANES = 16 };

struct batch_norm {
    cvy_bn_passes b;
    cvy_planes p;
    int64_t pitch; /* of the tensor that may be a slice: the result; in the gradients, ddst */
};

/* The coefficients of one plane, one for each lane. */
CVY_INLINE void spread_coef(const struct batch_norm *s, int64_t g, int64_t plane, float out[3][LANES])
{
    const int64_t block = s->p.block, first = plane % s->p.groups * block;
    for (int k = 0; k < 3; k++)
        for (int64_t l = 0; l < LANES; l++)
            out[k][l] = cvy_bn_coef(&s->b, g, k)[first + l % block];
}

/* ---- walks ---- */

/* adds: there is a residual. */
CVY_INLINE void apply_plane(const struct batch_norm *s, int64_t plane, const int adds)
{
    const int64_t elems = s->p.positions * s->p.block;
    const float floor = s->b.relu ? 0 : -INFINITY, *x = (const float *)s->b.x + plane * elems,
                *residual = adds ? (const float *)s->b.residual + plane * elems : NULL;
    float *dst = (float *)s->b.dst + cvy_plane_in(&s->p, s->pitch, plane) * elems, coef[3][LANES];
    if (!cvy_bn_sample_counts(&s->b, plane / s->p.groups)) {
        memset(dst, 0, (size_t)elems * sizeof *dst);
        return;
    }
    spread_coef(s, s->b.group_of[plane / s->p.groups], plane, coef);
    int64_t i = 0;
    for (; i + LANES <= elems; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float y = (x[i + l] - coef[0][l]) * coef[1][l] + coef[2][l];
            if (adds)
                y += residual[i + l];
            dst[i + l] = y < floor ? floor : y;
        }
    for (; i < elems; i++) {
        const int64_t l = i % LANES;
        const float y = (x[i] - coef[0][l]) * coef[1][l] + coef[2][l] + (adds ? residual[i] : 0);
        dst[i] = y < floor ? floor : y;
    }
}

CVY_SIMD static void apply_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t plane = first; plane < end; plane++)
        if (s->b.residual)
            apply_plane(s, plane, 1);
        else
            apply_plane(s, plane, 0);
}

CVY_SIMD static void grad_apply_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    const int64_t elems = s->p.positions * s->p.block;
    for (int64_t plane = first; plane < end; plane++) {
        const float *x = (const float *)s->b.x + plane * elems;
        const float *ddst = (const float *)s->b.ddst + cvy_plane_in(&s->p, s->pitch, plane) * elems;
        float *dst = (float *)s->b.dst + plane * elems, coef[3][LANES];
        if (!cvy_bn_sample_counts(&s->b, plane / s->p.groups)) {
            memset(dst, 0, (size_t)elems * sizeof *dst);
            continue;
        }
        spread_coef(s, s->b.group_of[plane / s->p.groups], plane, coef);
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

/* Adds a to sum[0] and a * (b - mean) to sum[1], lane by lane. The samples of a group are a_step and b_step floats
 * apart. */
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

/* Work item: one row of the statistics and one block of channels. Writes to the sums. If centred, the second sum
 * is centred by the mean and multiplied by 1 / sqrt(variance + eps). */
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
            cvy_bn_normaliser(&s->b, g, c, &m, &inv_std[l]);
        mean[l] = (float)m;
    }
    cvy_bn_group_local(&s->b.groups, g, &first, &last);
    const int64_t pitch = centred ? s->pitch : s->p.groups;
    for (int64_t n = first, end; n < last; n = end) {
        end = cvy_bn_run_end(&s->b, n, last);
        if (cvy_bn_sample_counts(&s->b, n))
            add_planes(a + (n * pitch + part) * elems, pitch * elems, b + (n * s->p.groups + part) * elems,
                       s->p.groups * elems, mean, end - n, elems, sum);
    }
    for (int64_t l = 0; l < block && part * block + l < C; l++) {
        double total[2] = {0, 0};
        for (int64_t k = l; k < LANES; k += block) {
            total[0] += sum[0][k];
            total[1] += sum[1][k];
        }
        double *out = s->b.sums + (centred ? 2 : s->b.entries) * g * C + part * block + l;
        out[0] = total[0];
        out[C] = total[1] * inv_std[l];
    }
}

CVY_SIMD static void stats_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        sum_item(s, s->b.x, s->b.x, 0, item);
}

CVY_SIMD static void grad_stats_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        sum_item(s, s->b.ddst, s->b.x, 1, item);
}

/* ---- planning ---- */

static cvy_status offer(cvy_kernel_ask *ask)
{
    const int other = cvy_bn_roles_of(ask->node)->other;
    CVY_TRY(cvy_native_f32(ask->node));
    cvy_layout layout = cvy_native_channels(ask, 0);
    if (other >= 0 && cvy_layout_is_plain(&layout))
        layout = cvy_native_channels(ask, other);
    const cvy_planes p = cvy_planes_make(&ask->node->src[0]->shape, &layout);
    cvy_bn_passes_offer(ask, &layout, p.groups * p.block);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_bn_roles *roles = cvy_bn_roles_of(ask->node);
    const cvy_shape *shape = &ask->node->src[0]->shape;
    const cvy_planes p = cvy_planes_make(shape, &ask->src[0]);
    const cvy_layout *sliced = roles->other >= 0     ? &ask->src[roles->other]
                               : roles->inplace >= 0 ? &ask->dst[0]
                                                     : &ask->src[0];
    struct batch_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->p = p;
    s->pitch = cvy_planes_make(shape, sliced).pitch;
    s->b = (cvy_bn_passes){.n = p.n,
                           .channels = p.channels,
                           .positions = p.positions,
                           .parts = p.groups,
                           .width = p.block,
                           .lanes = p.groups * p.block,
                           .walks = {apply_range, grad_apply_range, stats_range, grad_stats_range}};
    const cvy_status status = cvy_bn_passes_make(ask, &s->b);
    if (status != CVY_OK)
        cvy_bn_passes_destroy(s);
    else
        *state_out = s;
    return status;
}

CVY_KERNEL_DEFINE(native_bn_stats) = {CVY_BN_PASS("native.bn_stats", "bn_stats", cvy_bn_stats_run)};
CVY_KERNEL_DEFINE(native_bn_apply) = {CVY_BN_PASS("native.bn_apply", "bn_apply", cvy_bn_apply_run), .slice_dst = 1};
CVY_KERNEL_DEFINE(native_bn_infer) = {CVY_BN_PASS("native.bn_infer", "bn_infer", cvy_bn_infer_run), .slice_dst = 1};
CVY_KERNEL_DEFINE(native_bn_grad_stats) = {CVY_BN_PASS("native.bn_grad_stats", "bn_grad_stats", cvy_bn_grad_stats_run),
                                           .slice_src = 1 << 2};
CVY_KERNEL_DEFINE(native_bn_grad_apply) = {CVY_BN_PASS("native.bn_grad_apply", "bn_grad_apply", cvy_bn_grad_apply_run),
                                           .slice_src = 1 << 3};
CVY_KERNEL_DEFINE(native_bn_infer_grad) = {CVY_BN_PASS("native.bn_infer_grad", "bn_infer_grad", cvy_bn_infer_grad_run)};
CVY_KERNEL_DEFINE(native_bn_infer_grad_params) = {
    CVY_BN_PASS("native.bn_infer_grad_params", "bn_infer_grad_params", cvy_bn_infer_grad_params_run)};

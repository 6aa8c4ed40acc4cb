/*
 * native_bf16_batch_norm.c: the passes of batch norm over bf16 activations: statistics, normalisation, the sums of the
 * gradient, the gradient.
 *
 * op_batch_norm.h describes how the operators work together. All passes are limited by memory bandwidth. As for f32
 * activations, statistics are f64; scale, shift and coefficients are f32. A run of positions is summed in f32, and the
 * sums of runs are added in f64.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/norm/native_bn_passes.h"
#include "kernel/native/pointwise/native_bf16.h"

enum { RUN = 32 }; /* positions whose sum in f32 loses no bits of the bf16 values */

struct batch_norm {
    cvy_bn_passes b;
    cvy_strips s;
};

/* ---- walks; a work item is a part of the channels of a sample ---- */

CVY_INLINE void clear_item(const struct batch_norm *s, int64_t at, const int64_t width)
{
    for (int64_t i = 0; i < s->s.positions; i++)
        memset((cvy_bf16 *)s->b.dst + at + i * s->s.position, 0, (size_t)width * sizeof(cvy_bf16));
}

CVY_INLINE void apply_item(const struct batch_norm *s, int64_t item, const int64_t width)
{
    const cvy_bf16 *residual = s->b.residual;
    const int64_t n = item / s->s.parts, p = item % s->s.parts, at = n * s->s.sample + p * s->s.part,
                  g = s->b.group_of[n];
    const float *factor = cvy_bn_coef(&s->b, g, 1) + p * s->s.lanes,
                *offset = cvy_bn_coef(&s->b, g, 2) + p * s->s.lanes;
    const float floor = s->b.relu ? 0 : -INFINITY;
    if (!cvy_bn_sample_counts(&s->b, n)) {
        clear_item(s, at, width);
        return;
    }
    for (int64_t i = 0; i < s->s.positions; i++) {
        const cvy_bf16 *x = (const cvy_bf16 *)s->b.x + at + i * s->s.position;
        cvy_bf16 *dst = (cvy_bf16 *)s->b.dst + at + i * s->s.position;
        float y[CVY_STRIP_LANES];
#pragma omp simd
        for (int64_t l = 0; l < width; l++)
            y[l] = cvy_bf16_get(x[l]) * factor[l] + offset[l];
        if (residual)
#pragma omp simd
            for (int64_t l = 0; l < width; l++)
                y[l] += cvy_bf16_get(residual[at + i * s->s.position + l]);
#pragma omp simd
        for (int64_t l = 0; l < width; l++)
            dst[l] = cvy_bf16_of(y[l] < floor ? floor : y[l]);
    }
}

CVY_INLINE void grad_item(const struct batch_norm *s, int64_t item, const int64_t width)
{
    const int64_t n = item / s->s.parts, p = item % s->s.parts, at = n * s->s.sample + p * s->s.part,
                  g = s->b.group_of[n];
    const float *factor = cvy_bn_coef(&s->b, g, 0) + p * s->s.lanes, *slope = cvy_bn_coef(&s->b, g, 1) + p * s->s.lanes,
                *offset = cvy_bn_coef(&s->b, g, 2) + p * s->s.lanes;
    if (!cvy_bn_sample_counts(&s->b, n)) {
        clear_item(s, at, width);
        return;
    }
    for (int64_t i = 0; i < s->s.positions; i++) {
        const cvy_bf16 *x = (const cvy_bf16 *)s->b.x + at + i * s->s.position,
                       *ddst = (const cvy_bf16 *)s->b.ddst + at + i * s->s.position;
        cvy_bf16 *dst = (cvy_bf16 *)s->b.dst + at + i * s->s.position;
#pragma omp simd
        for (int64_t l = 0; l < width; l++)
            dst[l] = cvy_bf16_of(cvy_bf16_get(ddst[l]) * factor[l] + cvy_bf16_get(x[l]) * slope[l] + offset[l]);
    }
}

CVY_SIMD static void bn_apply_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->s, item % s->s.parts), apply_item, s, item);
}

CVY_SIMD static void bn_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->s, item % s->s.parts), grad_item, s, item);
}

/* Work item: one row of the statistics and one part of the channels. Sums a, and a * (b - mean) / sqrt(variance + eps);
 * the mean and the division only if centred. */
CVY_INLINE void sum_item(const struct batch_norm *s, const cvy_bf16 *a, const cvy_bf16 *b, int centred, int64_t item,
                         const int64_t width)
{
    const int64_t C = s->s.channels, g = item / s->s.parts, p = item % s->s.parts,
                  used = CVY_MIN(width, C - p * s->s.lanes);
    int64_t first, last;
    double sum[CVY_STRIP_LANES] = {0}, second[CVY_STRIP_LANES] = {0}, inv_std[CVY_STRIP_LANES];
    float mean[CVY_STRIP_LANES] = {0};
    for (int64_t l = 0; l < used; l++) {
        double m = 0;
        inv_std[l] = 1;
        if (centred)
            cvy_bn_normaliser(&s->b, g, p * s->s.lanes + l, &m, &inv_std[l]);
        mean[l] = (float)m;
    }
    cvy_bn_group_local(&s->b.groups, g, &first, &last);
    for (int64_t n = first; n < last; n++)
        for (int64_t from = 0; from < s->s.positions && cvy_bn_sample_counts(&s->b, n); from += RUN) {
            float part[CVY_STRIP_LANES] = {0}, part_second[CVY_STRIP_LANES] = {0};
            for (int64_t i = from; i < CVY_MIN(from + RUN, s->s.positions); i++) {
                const int64_t at = n * s->s.sample + p * s->s.part + i * s->s.position;
#pragma omp simd
                for (int64_t l = 0; l < width; l++) {
                    const float x = cvy_bf16_get(a[at + l]);
                    part[l] += x;
                    part_second[l] += x * (cvy_bf16_get(b[at + l]) - mean[l]);
                }
            }
            for (int64_t l = 0; l < width; l++) {
                sum[l] += part[l];
                second[l] += part_second[l];
            }
        }
    for (int64_t l = 0; l < used; l++) {
        double *out = s->b.sums + (centred ? 2 : s->b.entries) * g * C + p * s->s.lanes + l;
        out[0] = sum[l];
        out[C] = second[l] * inv_std[l];
    }
}

CVY_SIMD static void bn_stats_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->s, item % s->s.parts), sum_item, s, s->b.x, s->b.x, 0, item);
}

CVY_SIMD static void bn_grad_stats_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->s, item % s->s.parts), sum_item, s, s->b.ddst, s->b.x, 1, item);
}

/* ---- planning ---- */

static cvy_status offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_bf16(ask->node, 0));
    const cvy_layout layout = cvy_native_strips(ask, 0);
    cvy_bn_passes_offer(ask, &layout, cvy_strips_make(&ask->node->src[0]->shape, &layout).all_lanes);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_strips strips = cvy_strips_make(&ask->node->src[0]->shape, &ask->src[0]);
    struct batch_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->s = strips;
    s->b = (cvy_bn_passes){
        .n = strips.n,
        .channels = strips.channels,
        .positions = strips.positions,
        .parts = strips.parts,
        .width = strips.lanes,
        .lanes = strips.all_lanes,
        .walks = {bn_apply_bf16_range, bn_grad_bf16_range, bn_stats_bf16_range, bn_grad_stats_bf16_range},
        .folds_mean = 1};
    const cvy_status status = cvy_bn_passes_make(ask, &s->b);
    if (status != CVY_OK)
        cvy_bn_passes_destroy(s);
    else
        *state_out = s;
    return status;
}

CVY_KERNEL_DEFINE(native_bn_stats_bf16) = {CVY_BN_PASS("native.bn_stats_bf16", "bn_stats", cvy_bn_stats_run)};
CVY_KERNEL_DEFINE(native_bn_apply_bf16) = {CVY_BN_PASS("native.bn_apply_bf16", "bn_apply", cvy_bn_apply_run)};
CVY_KERNEL_DEFINE(native_bn_infer_bf16) = {CVY_BN_PASS("native.bn_infer_bf16", "bn_infer", cvy_bn_infer_run)};
CVY_KERNEL_DEFINE(native_bn_grad_stats_bf16) = {
    CVY_BN_PASS("native.bn_grad_stats_bf16", "bn_grad_stats", cvy_bn_grad_stats_run)};
CVY_KERNEL_DEFINE(native_bn_grad_apply_bf16) = {
    CVY_BN_PASS("native.bn_grad_apply_bf16", "bn_grad_apply", cvy_bn_grad_apply_run)};
CVY_KERNEL_DEFINE(native_bn_infer_grad_bf16) = {
    CVY_BN_PASS("native.bn_infer_grad_bf16", "bn_infer_grad", cvy_bn_infer_grad_run)};
CVY_KERNEL_DEFINE(native_bn_infer_grad_params_bf16) = {
    CVY_BN_PASS("native.bn_infer_grad_params_bf16", "bn_infer_grad_params", cvy_bn_infer_grad_params_run)};

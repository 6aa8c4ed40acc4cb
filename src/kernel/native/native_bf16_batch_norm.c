/*
 * native_bf16_batch_norm.c: the passes of batch norm over bf16 activations: statistics, normalisation, the gradient's sums, the gradient.
 * In the step: see op_batch_norm.h for how the operators work together. All are bound by memory bandwidth.
 *
 * Statistics are f64, scale, shift and coefficients f32, as for f32 activations: a run of positions is summed in f32, the runs in f64.
 */
#include <math.h>
#include <string.h>

#include "kernel/native/native_bf16.h"
#include "op/op_batch_norm.h"

enum { RUN = 32 }; /* positions whose sum in f32 loses nothing that bf16 has */

struct batch_norm {
    cvy_strips s;
    cvy_bn_groups groups;
    int threads, relu, scale_shift;
    double eps;
    int64_t *group_of; /* row of the statistics of each sample */
    /* of the running call */
    const cvy_bf16 *x, *ddst;
    cvy_bf16 *dst;
    const float *scale, *shift;
    const double *stats, *gstats;
    double *sums;
    float *coef; /* in scratch: [G, 3, lanes] */
};

/* ---- coefficients of each group and channel, made before the walk ---- */

/* Mean and 1 / sqrt(variance + eps) of channel c of row g. */
static void normaliser(const struct batch_norm *s, int64_t g, int64_t c, double *mean_out, double *inv_std_out)
{
    const int64_t C = s->s.channels, n = cvy_bn_group_samples(&s->groups, g) * s->s.positions;
    const double mean = s->stats[2 * g * C + c] / (double)n;
    *mean_out = mean;
    *inv_std_out = 1 / sqrt(fmax(s->stats[(2 * g + 1) * C + c] / (double)n - mean * mean, 0) + s->eps);
}

static float *coef_row(const struct batch_norm *s, int64_t g, int k)
{
    return s->coef + (g * 3 + k) * s->s.all_lanes;
}

static size_t coef_bytes(int64_t groups, const cvy_strips *s)
{
    return (size_t)(CVY_MAX(1, groups) * 3 * s->all_lanes) * sizeof(float);
}

/* dst = x * row 1 + row 2; padding lanes get zeros, which keep them zero. */
static void make_apply_coef(const struct batch_norm *s)
{
    memset(s->coef, 0, coef_bytes(s->groups.count, &s->s));
    for (int64_t g = 0; g < s->groups.count; g++)
        for (int64_t c = 0; c < s->s.channels; c++) {
            double mean, inv_std;
            normaliser(s, g, c, &mean, &inv_std);
            const double factor = s->scale ? s->scale[c] * inv_std : inv_std;
            coef_row(s, g, 1)[c] = (float)factor;
            coef_row(s, g, 2)[c] = (float)((s->shift ? s->shift[c] : 0) - mean * factor);
        }
}

static void make_infer_coef(const struct batch_norm *s, const float *mean, const float *variance)
{
    memset(s->coef, 0, coef_bytes(1, &s->s));
    for (int64_t c = 0; c < s->s.channels; c++) {
        const double inv_std = 1 / sqrt(variance[c] + s->eps), factor = s->scale ? s->scale[c] * inv_std : inv_std;
        coef_row(s, 0, 1)[c] = (float)factor;
        coef_row(s, 0, 2)[c] = (float)((s->shift ? s->shift[c] : 0) - mean[c] * factor);
    }
}

/* dsrc = ddst * row 0 + x * row 1 + row 2 */
static void make_grad_coef(const struct batch_norm *s)
{
    const int64_t C = s->s.channels;
    memset(s->coef, 0, coef_bytes(s->groups.count, &s->s));
    for (int64_t g = 0; g < s->groups.count; g++)
        for (int64_t c = 0; c < C; c++) {
            const double n = (double)(cvy_bn_group_samples(&s->groups, g) * s->s.positions);
            double mean, inv_std;
            normaliser(s, g, c, &mean, &inv_std);
            const double factor = (s->scale ? s->scale[c] : 1) * inv_std, slope = -factor * inv_std * s->gstats[(2 * g + 1) * C + c] / n;
            coef_row(s, g, 0)[c] = (float)factor;
            coef_row(s, g, 1)[c] = (float)slope;
            coef_row(s, g, 2)[c] = (float)(-factor * s->gstats[2 * g * C + c] / n - slope * mean);
        }
}

/* ---- walks; an item is a part of a sample's channels ---- */

CVY_INLINE void apply_item(const struct batch_norm *s, int64_t item, const int64_t width)
{
    const int64_t n = item / s->s.parts, p = item % s->s.parts, at = n * s->s.sample + p * s->s.part, g = s->group_of[n];
    const float *factor = coef_row(s, g, 1) + p * s->s.lanes, *offset = coef_row(s, g, 2) + p * s->s.lanes;
    const float floor = s->relu ? 0 : -INFINITY;
    for (int64_t i = 0; i < s->s.positions; i++) {
        const cvy_bf16 *x = s->x + at + i * s->s.position;
        cvy_bf16 *dst = s->dst + at + i * s->s.position;
#pragma omp simd
        for (int64_t l = 0; l < width; l++) {
            const float y = cvy_bf16_get(x[l]) * factor[l] + offset[l];
            dst[l] = cvy_bf16_of(y < floor ? floor : y);
        }
    }
}

CVY_INLINE void grad_item(const struct batch_norm *s, int64_t item, const int64_t width)
{
    const int64_t n = item / s->s.parts, p = item % s->s.parts, at = n * s->s.sample + p * s->s.part, g = s->group_of[n];
    const float *factor = coef_row(s, g, 0) + p * s->s.lanes, *slope = coef_row(s, g, 1) + p * s->s.lanes, *offset = coef_row(s, g, 2) + p * s->s.lanes;
    for (int64_t i = 0; i < s->s.positions; i++) {
        const cvy_bf16 *x = s->x + at + i * s->s.position, *ddst = s->ddst + at + i * s->s.position;
        cvy_bf16 *dst = s->dst + at + i * s->s.position;
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

/* Sums over one part of the channels of one row of the statistics: of a, and of a * (b - mean), times second[c]. */
CVY_INLINE void sum_item(const struct batch_norm *s, const cvy_bf16 *a, const cvy_bf16 *b, int centred, int64_t item, const int64_t width)
{
    const int64_t C = s->s.channels, g = item / s->s.parts, p = item % s->s.parts, used = CVY_MIN(width, C - p * s->s.lanes);
    int64_t first, last;
    double sum[CVY_STRIP_LANES] = {0}, second[CVY_STRIP_LANES] = {0}, inv_std[CVY_STRIP_LANES];
    float mean[CVY_STRIP_LANES] = {0};
    for (int64_t l = 0; l < used; l++) {
        double m = 0;
        inv_std[l] = 1;
        if (centred)
            normaliser(s, g, p * s->s.lanes + l, &m, &inv_std[l]);
        mean[l] = (float)m;
    }
    cvy_bn_group_local(&s->groups, g, &first, &last);
    for (int64_t n = first; n < last; n++)
        for (int64_t from = 0; from < s->s.positions; from += RUN) {
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
        s->sums[2 * g * C + p * s->s.lanes + l] = sum[l];
        s->sums[(2 * g + 1) * C + p * s->s.lanes + l] = second[l] * inv_std[l];
    }
}

CVY_SIMD static void bn_stats_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->s, item % s->s.parts), sum_item, s, s->x, s->x, 0, item);
}

CVY_SIMD static void bn_grad_stats_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct batch_norm *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->s, item % s->s.parts), sum_item, s, s->ddst, s->x, 1, item);
}

/* ---- offers: sources 0 and, if not negative, other are activations; dst[0] if asked ---- */

static cvy_status offer(cvy_kernel_ask *ask, int other, int dst_is_activation, int inplace)
{
    CVY_TRY(cvy_native_bf16(ask->node, 0));
    const cvy_layout layout = cvy_native_strips(ask, 0);
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = i == 0 || i == other ? layout : cvy_layout_plain();
    if (dst_is_activation) {
        const cvy_strips s = cvy_strips_make(&ask->node->src[0]->shape, &layout);
        ask->dst[0] = layout;
        ask->inplace[0] = inplace + 1;
        ask->scratch_bytes = coef_bytes(cvy_bn_groups_make(ask->node->graph).count, &s);
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

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_batch_norm_opts *o = ask->node->options;
    struct batch_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->s = cvy_strips_make(&ask->node->src[0]->shape, &ask->src[0]);
    s->groups = cvy_bn_groups_make(ask->node->graph);
    s->threads = ask->threads;
    const cvy_status status = cvy_mem_alloc((size_t)s->s.n * sizeof *s->group_of, &s->group_of);
    if (status != CVY_OK) {
        destroy(s);
        return status;
    }
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
}

/* The running statistics are one row for all samples. */
static cvy_status infer_create(const cvy_kernel_ask *ask, void **state_out)
{
    CVY_TRY(create(ask, state_out));
    struct batch_norm *s = *state_out;
    memset(s->group_of, 0, (size_t)s->s.n * sizeof *s->group_of);
    s->groups.count = 1;
    return CVY_OK;
}

static void walk(struct batch_norm *s, cvy_range_fn body)
{
    cvy_parallel_for(s->threads, s->s.n * s->s.parts, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, s->s.positions * s->s.lanes)), body, s);
}

static cvy_status stats_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    (void)scratch;
    s->x = src[0];
    s->sums = dst[0];
    cvy_parallel_for(s->threads, s->groups.count * s->s.parts, 1, bn_stats_bf16_range, s);
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
    walk(s, bn_apply_bf16_range);
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
    walk(s, bn_apply_bf16_range);
    return CVY_OK;
}

static cvy_status grad_stats_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    const int64_t C = s->s.channels;
    (void)scratch;
    s->x = src[0];
    s->stats = src[1];
    s->ddst = src[2];
    s->sums = dst[0];
    cvy_parallel_for(s->threads, s->groups.count * s->s.parts, 1, bn_grad_stats_bf16_range, s);
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
    walk(s, bn_grad_bf16_range);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_bn_stats_bf16) = {
    .name = "native.bn_stats_bf16",
    .op = "bn_stats",
    .preference = 50,
    .offer = stats_offer,
    .create = create,
    .run = stats_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_apply_bf16) = {
    .name = "native.bn_apply_bf16",
    .op = "bn_apply",
    .preference = 50,
    .offer = apply_offer,
    .create = create,
    .run = apply_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_infer_bf16) = {
    .name = "native.bn_infer_bf16",
    .op = "bn_infer",
    .preference = 50,
    .offer = apply_offer,
    .create = infer_create,
    .run = infer_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_grad_stats_bf16) = {
    .name = "native.bn_grad_stats_bf16",
    .op = "bn_grad_stats",
    .preference = 50,
    .offer = grad_stats_offer,
    .create = create,
    .run = grad_stats_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_grad_apply_bf16) = {
    .name = "native.bn_grad_apply_bf16",
    .op = "bn_grad_apply",
    .preference = 50,
    .offer = grad_apply_offer,
    .create = create,
    .run = grad_apply_run,
    .destroy = destroy,
};

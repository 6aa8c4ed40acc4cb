/*
 * gpu_group_norm.c: group_norm, which instance_norm is too, and its gradient on f32 and bf16.
 *
 * op/norm/op_sample_norm.h has the formulas. An activation is a matrix in memory: a row for each position of each
 * sample, a column for each channel. As in batch norm (gpu_batch_norm.c) a thread has one column, and adds a part of
 * the rows of one sample; so neighbouring threads read neighbouring elements, however few channels a group has. A
 * second kernel adds the parts and the channels of a group in a fixed order. Sums are in double, because a variance is
 * a small difference of large numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { GROUP_FOLD = 8 }; /* columns of a block that adds parts */

struct group_norm {
    i64 ddst_step, dst_step;                 /* elements from one row to the next, of slices too */
    int samples, positions, channels, width; /* width: columns of a block */
    int groups, each;                        /* groups of channels; channels of each */
    int parts, part_rows;                    /* parts of the rows of a sample; rows of each */
    int scales, relu;
    int dscale, dshift; /* they are wanted */
    float eps;
};

#ifdef CVY_DEVICE

/* A thread reads so many rows before it writes the first one, because the time of a read is long. */
enum { AT_ONCE = 8 };

/* The rows of a part of a sample. */
INLINE int part_begin(struct group_norm a, int sample, int part)
{
    return sample * a.positions + MIN(part * a.part_rows, a.positions);
}

/* Entry k of channel c in the sums [samples, parts, 2, C]. */
INLINE i64 part_at(struct group_norm a, int sample, int part, int k, int c)
{
    return (((i64)sample * a.parts + part) * 2 + k) * a.channels + c;
}

/* Sums of x and x^2. Grid: columns, parts, samples. */
KERNEL(group_norm_sums)(GLOBAL const act *x, GLOBAL double *part, struct group_norm a)
{
    SHARED double s[256];
    const int c = BLOCK * a.width + THREAD % a.width, end = part_begin(a, BLOCK_Z, BLOCK_Y + 1);
    const int step = THREADS / a.width;
    double sum = 0, squares = 0;
    for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end && c < a.channels;
         row += AT_ONCE * step) {
        float v[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++)
            v[k] = row + k * step < end ? GET(x, (i64)(row + k * step) * a.channels + c) : 0.0f;
        for (int k = 0; k < AT_ONCE; k++) {
            sum += v[k];
            squares += (double)v[k] * v[k];
        }
    }
    COLUMN_SUM(sum, s, a.width);
    COLUMN_SUM(squares, s, a.width);
    if (THREAD < a.width && c < a.channels) {
        part[part_at(a, BLOCK_Z, BLOCK_Y, 0, c)] = sum;
        part[part_at(a, BLOCK_Z, BLOCK_Y, 1, c)] = squares;
    }
}

/* Mean and 1 / sqrt(variance + eps) of each group. Grid: groups, samples. */
KERNEL(group_norm_stats)(GLOBAL const double *part, GLOBAL float *stats, struct group_norm a)
{
    SHARED double s[256];
    const double values = (double)a.each * a.positions;
    double sum = 0, squares = 0;
    for (int i = THREAD; i < a.each * a.parts; i += THREADS) {
        sum += part[part_at(a, BLOCK_Y, i / a.each, 0, BLOCK * a.each + i % a.each)];
        squares += part[part_at(a, BLOCK_Y, i / a.each, 1, BLOCK * a.each + i % a.each)];
    }
    BLOCK_SUM(sum, s);
    BLOCK_SUM(squares, s);
    if (THREAD == 0) {
        const i64 at = 2 * ((i64)BLOCK_Y * a.groups + BLOCK);
        const double mean = sum / values, variance = squares / values - mean * mean;
        stats[at] = (float)mean;
        stats[at + 1] = (float)(1 / SQRT_D(MAX(variance, 0) + a.eps));
    }
}

/* What a thread needs for its column: y = (x - mean) * factor + shift. */
struct column {
    float mean, inv_std, scale, factor, shift;
};

INLINE struct column column_of(struct group_norm a, int sample, int c, GLOBAL const float *stats,
                               GLOBAL const float *scale, GLOBAL const float *shift)
{
    const i64 at = 2 * ((i64)sample * a.groups + c / a.each);
    struct column m;
    m.mean = stats[at];
    m.inv_std = stats[at + 1];
    m.scale = a.scales ? scale[c] : 1.0f;
    m.shift = a.scales ? shift[c] : 0.0f;
    m.factor = m.scale * m.inv_std;
    return m;
}

/* Forward and backward must agree on the sign of the result, so both use this. */
INLINE float normalised(struct column m, float x)
{
    return FMA(x - m.mean, m.factor, m.shift);
}

/* Grid: columns, parts, samples. */
KERNEL(group_norm_apply)
(GLOBAL const act *x, GLOBAL const float *stats, GLOBAL const float *scale, GLOBAL const float *shift, GLOBAL act *dst,
 struct group_norm a)
{
    const int c = BLOCK * a.width + THREAD % a.width, end = part_begin(a, BLOCK_Z, BLOCK_Y + 1);
    const int step = THREADS / a.width;
    struct column m;
    if (c >= a.channels)
        return;
    m = column_of(a, BLOCK_Z, c, stats, scale, shift);
    for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end; row += AT_ONCE * step) {
        float v[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++)
            v[k] = row + k * step < end ? GET(x, (i64)(row + k * step) * a.channels + c) : 0.0f;
        for (int k = 0; k < AT_ONCE && row + k * step < end; k++) {
            const float y = normalised(m, v[k]);
            SET(dst, (row + k * step) * a.dst_step + c, a.relu && y < 0 ? 0.0f : y);
        }
    }
}

/* Sums of d and of d * xhat. d is ddst where the result is positive. Grid: columns, parts, samples. */
KERNEL(group_norm_grad_sums)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const float *stats, GLOBAL const float *scale,
 GLOBAL const float *shift, GLOBAL double *part, struct group_norm a)
{
    SHARED double s[256];
    const int c = BLOCK * a.width + THREAD % a.width, end = part_begin(a, BLOCK_Z, BLOCK_Y + 1);
    const int step = THREADS / a.width;
    double sum = 0, products = 0;
    if (c < a.channels) {
        const struct column m = column_of(a, BLOCK_Z, c, stats, scale, shift);
        for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end; row += AT_ONCE * step) {
            float v[AT_ONCE], d[AT_ONCE];
            for (int k = 0; k < AT_ONCE; k++) {
                const int r = row + k * step;
                v[k] = r < end ? GET(x, (i64)r * a.channels + c) : 0.0f;
                d[k] = r < end ? GET(ddst, r * a.ddst_step + c) : 0.0f;
            }
            for (int k = 0; k < AT_ONCE; k++) {
                const float passed = !a.relu || normalised(m, v[k]) > 0 ? d[k] : 0.0f;
                sum += passed;
                products += (double)passed * (v[k] - m.mean);
            }
        }
        products *= m.inv_std;
    }
    COLUMN_SUM(sum, s, a.width);
    COLUMN_SUM(products, s, a.width);
    if (THREAD < a.width && c < a.channels) {
        part[part_at(a, BLOCK_Z, BLOCK_Y, 0, c)] = sum;
        part[part_at(a, BLOCK_Z, BLOCK_Y, 1, c)] = products;
    }
}

/* Means of d * scale and of d * scale * xhat over each group. Grid: groups, samples. */
KERNEL(group_norm_grad_means)
(GLOBAL const double *part, GLOBAL const float *scale, GLOBAL float *means, struct group_norm a)
{
    SHARED double s[256];
    const double values = (double)a.each * a.positions;
    double sum = 0, products = 0;
    for (int i = THREAD; i < a.each * a.parts; i += THREADS) {
        const int c = BLOCK * a.each + i % a.each;
        const double by = a.scales ? scale[c] : 1;
        sum += by * part[part_at(a, BLOCK_Y, i / a.each, 0, c)];
        products += by * part[part_at(a, BLOCK_Y, i / a.each, 1, c)];
    }
    BLOCK_SUM(sum, s);
    BLOCK_SUM(products, s);
    if (THREAD == 0) {
        const i64 at = 2 * ((i64)BLOCK_Y * a.groups + BLOCK);
        means[at] = (float)(sum / values);
        means[at + 1] = (float)(products / values);
    }
}

/* dscale and dshift: the sums over all samples. Grid: columns. */
KERNEL(group_norm_grad_params)
(GLOBAL const double *part, GLOBAL float *dscale, GLOBAL float *dshift, struct group_norm a)
{
    SHARED double s[256];
    const int c = BLOCK * GROUP_FOLD + THREAD % GROUP_FOLD;
    double sum = 0, products = 0;
    for (i64 i = THREAD / GROUP_FOLD; i < (i64)a.samples * a.parts && c < a.channels; i += THREADS / GROUP_FOLD) {
        sum += part[2 * i * a.channels + c];
        products += part[(2 * i + 1) * a.channels + c];
    }
    COLUMN_SUM(sum, s, GROUP_FOLD);
    COLUMN_SUM(products, s, GROUP_FOLD);
    if (THREAD < GROUP_FOLD && c < a.channels && a.dscale)
        dscale[c] = (float)products;
    if (THREAD < GROUP_FOLD && c < a.channels && a.dshift)
        dshift[c] = (float)sum;
}

/* Grid: columns, parts, samples. */
KERNEL(group_norm_grad_apply)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const float *stats, GLOBAL const float *means,
 GLOBAL const float *scale, GLOBAL const float *shift, GLOBAL act *dsrc, struct group_norm a)
{
    const int c = BLOCK * a.width + THREAD % a.width, end = part_begin(a, BLOCK_Z, BLOCK_Y + 1);
    const int step = THREADS / a.width;
    struct column m;
    float mean_d, mean_dx;
    if (c >= a.channels)
        return;
    m = column_of(a, BLOCK_Z, c, stats, scale, shift);
    mean_d = means[2 * ((i64)BLOCK_Z * a.groups + c / a.each)];
    mean_dx = means[2 * ((i64)BLOCK_Z * a.groups + c / a.each) + 1];
    for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end; row += AT_ONCE * step) {
        float v[AT_ONCE], d[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) {
            const int r = row + k * step;
            v[k] = r < end ? GET(x, (i64)r * a.channels + c) : 0.0f;
            d[k] = r < end ? GET(ddst, r * a.ddst_step + c) : 0.0f;
        }
        for (int k = 0; k < AT_ONCE && row + k * step < end; k++) {
            const float passed = !a.relu || normalised(m, v[k]) > 0 ? d[k] : 0.0f;
            SET(dsrc, (i64)(row + k * step) * a.channels + c,
                m.inv_std * (passed * m.scale - mean_d - (v[k] - m.mean) * m.inv_std * mean_dx));
        }
    }
}

#else
#include "kernel/gpu/norm/gpu_norm.h"
#include "op/norm/op_sample_norm.h"

CVY_GPU_SOURCE_DECLARE(gpu_group_norm);

enum { SUMS, STATS, APPLY, PARAMS, STEPS }; /* STATS: the means of the gradient; PARAMS: of the gradient only */
static const char *const forward_names[] = {"group_norm_sums", "group_norm_stats", "group_norm_apply"};
static const char *const grad_names[] = {"group_norm_grad_sums", "group_norm_grad_means", "group_norm_grad_apply",
                                         "group_norm_grad_params"};

struct call {
    cvy_gpu_kernel kernel[STEPS];
    struct group_norm a;
    int64_t part_doubles;
    int threads; /* of a block that adds the sums of a group */
    int is_grad, keeps;
};

static void set_sizes(const cvy_kernel_ask *ask, struct call *c)
{
    const cvy_node *node = ask->node;
    const cvy_sample_norm_opts *o = node->options;
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    const cvy_shape *shape = &node->src[0]->shape;
    struct group_norm *a = &c->a;
    a->samples = (int)shape->dim[0];
    a->channels = (int)shape->dim[1];
    a->positions = (int)sets.repeat;
    a->each = (int)(sets.size / CVY_MAX(sets.repeat, 1));
    a->groups = a->channels / CVY_MAX(a->each, 1);
    a->width = cvy_gpu_columns(a->channels);
    a->parts = cvy_gpu_row_parts(a->positions, a->channels, a->width, a->samples);
    a->part_rows = (int)cvy_gpu_tiles(a->positions, a->parts);
    a->dst_step = cvy_gpu_row_step(shape, &ask->dst[0]);
    a->ddst_step = cvy_gpu_row_step(shape, &ask->src[c->is_grad ? 1 : 0]);
    a->scales = o->scale_shift;
    a->relu = o->relu;
    a->eps = (float)o->eps;
    a->dscale = c->is_grad && o->scale_shift && node->dst[1];
    a->dshift = c->is_grad && o->scale_shift && node->dst[2];
    c->keeps = !c->is_grad && node->dst[1];
    c->part_doubles = (int64_t)a->samples * a->parts * 2 * a->channels;
    c->threads = 32;
    while (c->threads < CVY_GPU_THREADS && c->threads < a->each * a->parts)
        c->threads *= 2;
}

static cvy_status make(const cvy_kernel_ask *ask, struct call *c)
{
    const cvy_shape *shape = &ask->node->src[0]->shape;
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    CVY_TRY(cvy_gpu_rows_fit(shape));
    CVY_CHECK(shape->dim[0] < 65536, CVY_NOT_APPLICABLE, "this kernel has at most 65535 samples, not %lld",
              (long long)shape->dim[0]);
    *c = (struct call){.is_grad = ask->node->op->nsrc_min > 1};
    set_sizes(ask, c);
    for (int i = 0; i < (c->is_grad && (c->a.dscale || c->a.dshift) ? STEPS : PARAMS); i++)
        CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_group_norm), c->is_grad ? grad_names[i] : forward_names[i], act,
                              &c->kernel[i]));
    return CVY_OK;
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_layout layout = cvy_gpu_layout(&ask->node->src[0]->shape);
    struct call c;
    CVY_TRY(make(ask, &c));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = i == 0 || (i == 1 && c.is_grad) ? layout : cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = i == 0 ? layout : cvy_layout_plain();
    ask->inplace[0] = c.is_grad ? 2 : 1;
    ask->scratch_bytes =
        sizeof(double) * (size_t)c.part_doubles + sizeof(float) * 2 * (size_t)c.a.samples * (size_t)c.a.groups;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    return make(ask, c);
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const struct group_norm *a = &c->a;
    const int64_t columns = cvy_gpu_tiles(a->channels, a->width);
    const void *stats = c->keeps ? dst[1] : (void *)((double *)scratch + c->part_doubles),
               *scale = a->scales ? src[1] : src[0], *shift = a->scales ? src[2] : src[0];
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[SUMS], columns, a->parts, a->samples, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(*a)));
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[STATS], a->groups, a->samples, 1, c->threads, CVY_GPU_POINTER(scratch),
                           CVY_GPU_POINTER(stats), CVY_GPU_VALUE(*a)));
    return CVY_GPU_LAUNCH(&c->kernel[APPLY], columns, a->parts, a->samples, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(stats), CVY_GPU_POINTER(scale), CVY_GPU_POINTER(shift),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(*a));
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const struct group_norm *a = &c->a;
    const int64_t columns = cvy_gpu_tiles(a->channels, a->width);
    const void *means = (double *)scratch + c->part_doubles, *scale = a->scales ? src[3] : src[0],
               *shift = a->scales && a->relu ? src[4] : scale, *dscale = a->dscale ? dst[1] : scratch,
               *dshift = a->dshift ? dst[2] : scratch;
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[SUMS], columns, a->parts, a->samples, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(scale),
                           CVY_GPU_POINTER(shift), CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(*a)));
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[STATS], a->groups, a->samples, 1, c->threads, CVY_GPU_POINTER(scratch),
                           CVY_GPU_POINTER(scale), CVY_GPU_POINTER(means), CVY_GPU_VALUE(*a)));
    if (a->dscale || a->dshift)
        CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[PARAMS], cvy_gpu_tiles(a->channels, GROUP_FOLD), 1, 1, CVY_GPU_THREADS,
                               CVY_GPU_POINTER(scratch), CVY_GPU_POINTER(dscale), CVY_GPU_POINTER(dshift),
                               CVY_GPU_VALUE(*a)));
    return CVY_GPU_LAUNCH(&c->kernel[APPLY], columns, a->parts, a->samples, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(means),
                          CVY_GPU_POINTER(scale), CVY_GPU_POINTER(shift), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(*a));
}

CVY_KERNEL_DEFINE(gpu_group_norm) = {CVY_GPU_FIELDS("group_norm", offer, create, forward_run, cvy_gpu_free_state),
                                     .slice_dst = 1, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_group_norm_grad) = {
    CVY_GPU_FIELDS("group_norm_grad", offer, create, grad_run, cvy_gpu_free_state), .slice_src = 1 << 1,
    .slice_last = 1};
#endif

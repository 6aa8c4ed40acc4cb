/*
 * gpu_batch_norm.c: batch norm on f32 and bf16: the operators over activations. gpu_bn_running.c has those over
 * statistics.
 *
 * op/norm/op_batch_norm.h describes how the operators work together. An activation is a matrix in memory: a row for
 * each position of each sample, a column for each channel. A block has some columns and a part of the rows of one group
 * of samples; a thread has four columns. So coefficients are in registers, and neighbouring threads read neighbouring
 * elements, four at a time where that is possible. Sums are in double, like the statistics, because a variance is a
 * small difference of large numbers. The parts of the rows are added in a second kernel, in a fixed order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { BN_FOLD = 8 }; /* columns of a block that adds parts */

struct bn {
    int begin, samples, first, total, local_begin, local_end;
    i64 x_step, ddst_step, dst_step; /* elements from one row to the next, of slices too */
    int positions, channels, width, parts,
        groups;              /* width: threads of a row in a block; parts: of the rows of a group */
    int whole;               /* the four columns of a thread are read and written at once */
    int entries;             /* of a channel in the statistics: 2, or 3 */
    int counted, adds, relu; /* adds: there is a residual */
    int gates;               /* ddst counts where the result is positive; 2: y tells */
    int copies;              /* d is kept in dres */
    int scales, shifts;      /* there is a scale, a shift */
    int running;             /* normalise by given means and variances; 2: variances only */
    int dscale, dshift;      /* they are wanted */
    float eps;
};

#ifdef CVY_DEVICE

/* A thread reads so many rows before it writes the first one, because the time of a read is long. */
enum { AT_ONCE = 4 };

INLINE int group_begin(struct bn a, int g)
{
    return a.begin + (int)((u32)a.samples * (u32)(a.first + g) / (u32)a.total);
}

/* The samples of a group that are here: the first one, and how many. */
INLINE int group_first(struct bn a, int g)
{
    return MAX(group_begin(a, g), a.local_begin) - a.local_begin;
}
INLINE int group_count(struct bn a, int g)
{
    return MAX(MIN(group_begin(a, g + 1), a.local_end) - a.local_begin - group_first(a, g), 0);
}

/* The first row of a part of a group. That of the next part is its end. */
INLINE int part_begin(struct bn a, int g, int part)
{
    const int rows = group_count(a, g) * a.positions, each = (int)((u32)(rows + a.parts - 1) / (u32)a.parts);
    return group_first(a, g) * a.positions + MIN(part * each, rows);
}

/* Whether the sample of a row counts. */
INLINE int counts(struct bn a, GLOBAL const int *counted, int row)
{
    return !a.counted || counted[(u32)row / (u32)a.positions];
}

struct normaliser {
    double mean, inv_std, values;
    float middle, factor, shift; /* y = (x - middle) * factor + shift */
};

INLINE struct normaliser normaliser_of(struct bn a, int g, int c, GLOBAL const double *stats, GLOBAL const float *means,
                                       GLOBAL const float *variances, GLOBAL const float *scale,
                                       GLOBAL const float *shift)
{
    struct normaliser m;
    double variance;
    if (a.running) {
        m.values = 1;
        m.mean = a.running == 2 ? 0 : means[c];
        variance = variances[c];
    } else {
        const i64 at = (i64)g * a.entries * a.channels + c;
        m.values = a.entries == 3 ? stats[at + 2 * (i64)a.channels]
                                  : (double)(group_begin(a, g + 1) - group_begin(a, g)) * a.positions;
        m.mean = m.values > 0 ? stats[at] / m.values : 0;
        variance = m.values > 0 ? stats[at + a.channels] / m.values - m.mean * m.mean : 0;
        variance = MAX(variance, 0);
    }
    m.inv_std = 1 / SQRT_D(variance + a.eps);
    m.middle = (float)m.mean;
    m.factor = (float)(a.scales ? scale[c] * m.inv_std : m.inv_std);
    m.shift = a.shifts ? shift[c] : 0.0f;
    return m;
}

/* Forward and backward must agree on the sign of the result, so both use this. */
INLINE float normalised(struct normaliser m, float x)
{
    return FMA(x - m.middle, m.factor, m.shift);
}

/* The four columns of a thread. */
INLINE int first_column(struct bn a)
{
    return FOUR * (BLOCK * a.width + THREAD % a.width);
}
/* How many of them there are. */
INLINE int columns_at(struct bn a, int c)
{
    return MAX(MIN(a.channels - c, FOUR), 0);
}

/* Writes the sums of a block to part [groups, parts, 2, C], if it is the thread's turn. */
INLINE void put_sums(struct bn a, int c, const double *first, const double *second, GLOBAL double *part)
{
    const i64 at = ((i64)BLOCK_Z * a.parts + BLOCK_Y) * 2 * a.channels + c;
    for (int k = 0; k < FOUR; k++)
        if (THREAD < a.width && k < columns_at(a, c)) {
            part[at + k] = first[k];
            part[at + a.channels + k] = second[k];
        }
}

/* Sums of x and x^2 to part [groups, parts, 2, C]. Grid: columns, parts, groups. */
KERNEL(bn_sums)(GLOBAL const act *x, GLOBAL const int *counted, GLOBAL double *part, struct bn a)
{
    SHARED double s[FOUR][256];
    const int c = first_column(a), n = columns_at(a, c), step = THREADS / a.width;
    const int end = n ? part_begin(a, BLOCK_Z, BLOCK_Y + 1) : 0;
    double sum[FOUR], squares[FOUR];
    for (int k = 0; k < FOUR; k++)
        sum[k] = squares[k] = 0;
    for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end; row += AT_ONCE * step) {
        float v[AT_ONCE][FOUR];
        for (int i = 0; i < AT_ONCE; i++)
            if (row + i * step < end)
                get_four(x, (row + i * step) * a.x_step + c, n, a.whole, v[i]);
        for (int i = 0; i < AT_ONCE; i++)
            if (row + i * step < end && counts(a, counted, row + i * step))
                for (int k = 0; k < FOUR; k++) {
                    const double value = v[i][k];
                    sum[k] += value;
                    squares[k] = FMA_D(value, value, squares[k]);
                }
    }
    COLUMN_SUMS(sum, s, a.width);
    COLUMN_SUMS(squares, s, a.width);
    put_sums(a, c, sum, squares, part);
}

/* Adds the parts, for the statistics. Grid: columns, 1, groups. */
KERNEL(bn_moments)(GLOBAL const double *part, GLOBAL const int *counted, GLOBAL double *stats, struct bn a)
{
    SHARED double s[256];
    const int c = BLOCK * BN_FOLD + THREAD % BN_FOLD, lane = THREAD / BN_FOLD, lanes = THREADS / BN_FOLD;
    double sum = 0, squares = 0, samples = 0;
    for (int k = lane; k < a.parts && c < a.channels; k += lanes) {
        const i64 at = ((i64)BLOCK_Z * a.parts + k) * 2 * a.channels + c;
        sum += part[at];
        squares += part[at + a.channels];
    }
    if (a.counted)
        for (int n = lane; n < group_count(a, BLOCK_Z); n += lanes)
            samples += counted[group_first(a, BLOCK_Z) + n] != 0;
    COLUMN_SUM(sum, s, BN_FOLD);
    COLUMN_SUM(squares, s, BN_FOLD);
    COLUMN_SUM(samples, s, BN_FOLD);
    if (THREAD < BN_FOLD && c < a.channels) {
        const i64 at = (i64)BLOCK_Z * a.entries * a.channels + c;
        stats[at] = sum;
        stats[at + a.channels] = squares;
        if (a.entries == 3)
            stats[at + 2 * (i64)a.channels] = samples * (double)a.positions;
    }
}

/* The result of a sample that does not count is the residual, or 0. Grid: columns, parts, groups. */
KERNEL(bn_apply)
(GLOBAL const act *x, GLOBAL const act *residual, GLOBAL const int *counted, GLOBAL const double *stats,
 GLOBAL const float *means, GLOBAL const float *variances, GLOBAL const float *scale, GLOBAL const float *shift,
 GLOBAL act *dst, struct bn a)
{
    const int c = first_column(a), n = columns_at(a, c), step = THREADS / a.width;
    const int end = n ? part_begin(a, BLOCK_Z, BLOCK_Y + 1) : 0;
    struct normaliser m[FOUR];
    for (int k = 0; k < FOUR; k++)
        m[k] = normaliser_of(a, BLOCK_Z, MIN(c + k, a.channels - 1), stats, means, variances, scale, shift);
    for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end; row += AT_ONCE * step) {
        float v[AT_ONCE][FOUR], other[AT_ONCE][FOUR];
        for (int i = 0; i < AT_ONCE; i++)
            if (row + i * step < end) {
                get_four(x, (row + i * step) * a.x_step + c, n, a.whole, v[i]);
                if (a.adds)
                    get_four(residual, (row + i * step) * (i64)a.channels + c, n, a.whole, other[i]);
            }
        for (int i = 0; i < AT_ONCE && row + i * step < end; i++) {
            const int r = row + i * step, is_counted = counts(a, counted, r);
            for (int k = 0; k < FOUR; k++) {
                const float y = (is_counted ? normalised(m[k], v[i][k]) : 0.0f) + (a.adds ? other[i][k] : 0.0f);
                v[i][k] = a.relu && y < 0 ? 0.0f : y;
            }
            set_four(dst, r * a.dst_step + c, n, a.whole, v[i]);
        }
    }
}

/* d stays where the result was positive, and becomes 0 elsewhere. kept: the result, if y tells. */
INLINE void pass(struct bn a, const struct normaliser *m, const float *v, const float *kept, float *d)
{
    for (int k = 0; k < FOUR && a.gates; k++)
        if (!((a.gates == 2 ? kept[k] : normalised(m[k], v[k])) > 0))
            d[k] = 0;
}

/* What a gradient reads of the rows that a thread reads at once. */
INLINE void get_rows(struct bn a, GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const act *y, int c, int row,
                     int step, int end, float (*v)[FOUR], float (*d)[FOUR], float (*kept)[FOUR])
{
    const int n = columns_at(a, c);
    for (int i = 0; i < AT_ONCE; i++)
        if (row + i * step < end) {
            get_four(x, (row + i * step) * a.x_step + c, n, a.whole, v[i]);
            get_four(ddst, (row + i * step) * a.ddst_step + c, n, a.whole, d[i]);
            if (a.gates == 2)
                get_four(y, (row + i * step) * (i64)a.channels + c, n, a.whole, kept[i]);
        }
}

/* Sums of d and d * (x - mean) to part. d is ddst where the result is positive, and goes to dres if it is wanted.
 * Grid: columns, parts, groups. */
KERNEL(bn_grad_sums)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const act *y, GLOBAL const int *counted,
 GLOBAL const double *stats, GLOBAL const float *means, GLOBAL const float *variances, GLOBAL const float *scale,
 GLOBAL const float *shift, GLOBAL act *dres, GLOBAL double *part, struct bn a)
{
    SHARED double s[FOUR][256];
    const int c = first_column(a), n = columns_at(a, c), step = THREADS / a.width;
    const int end = n ? part_begin(a, BLOCK_Z, BLOCK_Y + 1) : 0;
    double sum[FOUR], products[FOUR];
    struct normaliser m[FOUR];
    for (int k = 0; k < FOUR; k++) {
        sum[k] = products[k] = 0;
        m[k] = normaliser_of(a, BLOCK_Z, MIN(c + k, a.channels - 1), stats, means, variances, scale, shift);
    }
    for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end; row += AT_ONCE * step) {
        float v[AT_ONCE][FOUR], d[AT_ONCE][FOUR], kept[AT_ONCE][FOUR];
        get_rows(a, x, ddst, y, c, row, step, end, v, d, kept);
        for (int i = 0; i < AT_ONCE && row + i * step < end; i++) {
            const int r = row + i * step, is_counted = counts(a, counted, r);
            pass(a, m, v[i], kept[i], d[i]);
            if (a.copies)
                set_four(dres, (i64)r * a.channels + c, n, a.whole, d[i]);
            for (int k = 0; k < FOUR && is_counted; k++) {
                const double passed = d[i][k];
                sum[k] += passed;
                products[k] = FMA_D(passed, v[i][k] - m[k].mean, products[k]);
            }
        }
    }
    COLUMN_SUMS(sum, s, a.width);
    COLUMN_SUMS(products, s, a.width);
    put_sums(a, c, sum, products, part);
}

/* Adds the parts: gstats [groups, 2, C] get the sums of d and of d * xhat, dshift and dscale their sums over groups.
 * Grid: columns. */
KERNEL(bn_finish)
(GLOBAL const double *part, GLOBAL const double *stats, GLOBAL const float *means, GLOBAL const float *variances,
 GLOBAL double *gstats, GLOBAL float *dscale, GLOBAL float *dshift, struct bn a)
{
    SHARED double s[256];
    const int c = BLOCK * BN_FOLD + THREAD % BN_FOLD, lane = THREAD / BN_FOLD, lanes = THREADS / BN_FOLD;
    const int writes = THREAD < BN_FOLD && c < a.channels;
    double shift_sum = 0, scale_sum = 0;
    for (int g = 0; g < a.groups; g++) {
        double sum = 0, products = 0;
        for (int k = lane; k < a.parts && c < a.channels; k += lanes) {
            const i64 at = ((i64)g * a.parts + k) * 2 * a.channels + c;
            sum += part[at];
            products += part[at + a.channels];
        }
        COLUMN_SUM(sum, s, BN_FOLD);
        COLUMN_SUM(products, s, BN_FOLD);
        if (writes) {
            const struct normaliser m = normaliser_of(a, g, c, stats, means, variances, means, means);
            const i64 at = (i64)g * 2 * a.channels + c;
            products *= m.inv_std;
            gstats[at] = sum;
            gstats[at + a.channels] = products;
            shift_sum += sum;
            scale_sum += products;
        }
    }
    if (writes && a.dscale)
        dscale[c] = (float)scale_sum;
    if (writes && a.dshift)
        dshift[c] = (float)shift_sum;
}

/* The gradient for the source. If d was kept in dres, ddst is dres and nothing is gated. Grid: columns, parts,
 * groups. */
KERNEL(bn_grad_apply)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const act *y, GLOBAL const int *counted,
 GLOBAL const double *stats, GLOBAL const double *gstats, GLOBAL const float *scale, GLOBAL const float *shift,
 GLOBAL act *dsrc, struct bn a)
{
    const int c = first_column(a), n = columns_at(a, c), step = THREADS / a.width;
    const int end = n ? part_begin(a, BLOCK_Z, BLOCK_Y + 1) : 0;
    float mean_d[FOUR], slope[FOUR];
    struct normaliser m[FOUR];
    for (int k = 0; k < FOUR; k++) {
        const int channel = MIN(c + k, a.channels - 1);
        const i64 at = (i64)BLOCK_Z * 2 * a.channels + channel;
        m[k] = normaliser_of(a, BLOCK_Z, channel, stats, shift, shift, scale, shift);
        const double by = m[k].values > 0 ? 1 / m[k].values : 0;
        mean_d[k] = (float)(gstats[at] * by);
        slope[k] = (float)(-m[k].factor * m[k].inv_std * gstats[at + a.channels] * by);
    }
    for (int row = part_begin(a, BLOCK_Z, BLOCK_Y) + THREAD / a.width; row < end; row += AT_ONCE * step) {
        float v[AT_ONCE][FOUR], d[AT_ONCE][FOUR], kept[AT_ONCE][FOUR];
        get_rows(a, x, ddst, y, c, row, step, end, v, d, kept);
        for (int i = 0; i < AT_ONCE && row + i * step < end; i++) {
            const int r = row + i * step, is_counted = counts(a, counted, r);
            pass(a, m, v[i], kept[i], d[i]);
            for (int k = 0; k < FOUR; k++)
                d[i][k] = is_counted ? FMA(m[k].factor, d[i][k] - mean_d[k], slope[k] * (v[i][k] - m[k].middle)) : 0.0f;
            set_four(dsrc, r * a.dst_step + c, n, a.whole, d[i]);
        }
    }
}

#else
#include <string.h>

#include "kernel/gpu/norm/gpu_norm.h"
#include "op/norm/op_batch_norm.h"

CVY_GPU_SOURCE_DECLARE(gpu_batch_norm);

/* The kernels that an operator launches, in this order. */
enum { SUMS, MOMENTS, APPLY, GRAD_SUMS, FINISH, GRAD_APPLY, STEPS };
static const char *const step_names[STEPS] = {"bn_sums",      "bn_moments", "bn_apply",
                                              "bn_grad_sums", "bn_finish",  "bn_grad_apply"};

/* Indices of sources; -1: the operator has none. */
struct places {
    int ddst, y, residual, counted, stats, gstats, scale, shift, means, variances;
};

struct batch_norm {
    cvy_gpu_kernel kernel[STEPS];
    unsigned steps; /* a bit for each kernel */
    struct places at;
    struct bn a;
    cvy_dtype act;
    int64_t part_doubles;
    int owns_gstats; /* they are in scratch memory, after the parts */
};

static unsigned steps_of(const cvy_node *node)
{
    static const struct {
        const char *op;
        unsigned steps;
    } of[] = {
        {"bn_stats", 1 << SUMS | 1 << MOMENTS},
        {"bn_train", 1 << SUMS | 1 << MOMENTS | 1 << APPLY},
        {"bn_apply", 1 << APPLY},
        {"bn_infer", 1 << APPLY},
        {"bn_infer_grad", 1 << APPLY},
        {"bn_grad_stats", 1 << GRAD_SUMS | 1 << FINISH},
        {"bn_infer_grad_params", 1 << GRAD_SUMS | 1 << FINISH},
        {"bn_grad_apply", 1 << GRAD_APPLY},
        {"bn_train_grad", 1 << GRAD_SUMS | 1 << FINISH | 1 << GRAD_APPLY},
    };
    int i = 0;
    while (strcmp(of[i].op, node->op->name) != 0)
        i++;
    return of[i].steps;
}

static int is(const cvy_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

static struct places places_of(const cvy_node *node)
{
    const cvy_batch_norm_opts *o = node->options; /* NULL for bn_stats */
    const int has = cvy_bn_has_counted(node), scaled = o && o->scale_shift;
    struct places at = {-1, -1, -1, has ? cvy_bn_counted(node) : -1, -1, -1, -1, -1, -1, -1};
    if (is(node, "bn_train")) {
        at.residual = cvy_bn_train_has_residual(node) ? 1 : -1;
        at.scale = node->nsrc - 2;
    } else if (is(node, "bn_apply")) {
        at.stats = 1;
        at.scale = 2 + has;
    } else if (is(node, "bn_infer")) {
        at.residual = cvy_bn_infer_residual(node);
        at.scale = 1;
        at.means = cvy_bn_infer_mean(node);
    } else if (is(node, "bn_infer_grad")) {
        at.variances = 1;
        at.scale = 2;
    } else if (is(node, "bn_grad_stats")) {
        at.stats = 1;
        at.ddst = 2;
    } else if (is(node, "bn_infer_grad_params")) {
        at.ddst = 1;
        at.means = 2;
    } else if (is(node, "bn_grad_apply")) {
        at.stats = 1;
        at.gstats = 2;
        at.ddst = 3;
        at.scale = 4 + has;
    } else if (is(node, "bn_train_grad")) {
        at.stats = 1;
        at.ddst = 2;
        at.scale = 3 + has;
        at.y = cvy_bn_train_grad_dst(node) ? cvy_bn_train_grad_dst(node) : -1;
    }
    if (at.means >= 0)
        at.variances = at.means + 1;
    if (!scaled)
        at.scale = -1;
    const int has_shift = at.scale >= 0 && !is(node, "bn_grad_apply") && !is(node, "bn_infer_grad");
    at.shift = has_shift ? at.scale + 1 : -1;
    return at;
}

/* Without groups all local samples are one, as running statistics are those of all samples. */
static cvy_bn_groups groups_of(const cvy_node *node)
{
    cvy_bn_groups b = cvy_bn_groups_of(node);
    if (strncmp(node->op->name, "bn_infer", 8) == 0) {
        b.begin = b.local_begin;
        b.samples = b.local_end - b.local_begin;
        b.first = 0;
        b.total = b.count = 1;
    }
    return b;
}

static struct bn call_of(const cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const cvy_batch_norm_opts *o = node->options;
    const cvy_shape *shape = &node->src[0]->shape;
    const struct places at = places_of(node);
    const cvy_bn_groups groups = groups_of(node);
    struct bn a = {.positions = (int)cvy_bn_positions(shape),
                   .begin = (int)groups.begin,
                   .samples = (int)groups.samples,
                   .first = (int)groups.first,
                   .total = (int)groups.total,
                   .local_begin = (int)groups.local_begin,
                   .local_end = (int)groups.local_end,
                   .x_step = shape->dim[1],
                   .channels = (int)shape->dim[1],
                   .groups = (int)groups.count,
                   .entries = 2 + cvy_bn_has_counted(node),
                   .counted = at.counted >= 0,
                   .adds = at.residual >= 0,
                   .scales = at.scale >= 0,
                   .shifts = at.shift >= 0,
                   .running = at.means >= 0       ? 1
                              : at.variances >= 0 ? 2
                                                  : 0,
                   .eps = o ? (float)o->eps : 1.0f};
    a.ddst_step = cvy_gpu_row_step(shape, at.ddst >= 0 ? &ask->src[at.ddst] : &ask->src[0]);
    a.dst_step = cvy_gpu_row_step(shape, &ask->dst[0]);
    const int64_t quads = cvy_gpu_tiles(a.channels, FOUR);
    a.width = cvy_gpu_columns(quads);
    a.parts = cvy_gpu_row_parts(shape->dim[0] * (int64_t)a.positions / CVY_MAX(a.groups, 1), quads, a.width, a.groups);
    if (steps_of(node) & 1 << APPLY)
        a.relu = o->relu && !is(node, "bn_infer_grad");
    if (is(node, "bn_train_grad")) {
        a.gates = !o->relu ? 0 : at.y >= 0 ? 2 : 1;
        a.copies = node->ndst > 3 && node->dst[3] != NULL;
    }
    const int params = is(node, "bn_infer_grad_params") ? 0 : 1; /* the index of dscale */
    if (steps_of(node) & 1 << FINISH) {
        a.dscale = node->ndst > params && node->dst[params] != NULL;
        a.dshift = node->ndst > params + 1 && node->dst[params + 1] != NULL;
    }
    return a;
}

static cvy_status make(const cvy_kernel_ask *ask, struct batch_norm *s)
{
    *s = (struct batch_norm){.steps = steps_of(ask->node), .at = places_of(ask->node)};
    CVY_TRY(cvy_gpu_act(ask->node, &s->act));
    const cvy_bn_groups groups = groups_of(ask->node);
    CVY_TRY(cvy_gpu_groups_fit(&groups));
    CVY_TRY(cvy_gpu_rows_fit(&ask->node->src[0]->shape));
    for (int i = 0; i < STEPS; i++)
        if (s->steps >> i & 1)
            CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_batch_norm), step_names[i], s->act, &s->kernel[i]));
    s->a = call_of(ask);
    if (s->steps & (1 << SUMS | 1 << GRAD_SUMS))
        s->part_doubles = (int64_t)s->a.groups * s->a.parts * 2 * s->a.channels;
    s->owns_gstats = s->steps >> FINISH & 1 && !is(ask->node, "bn_grad_stats");
    return CVY_OK;
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const cvy_layout layout = cvy_gpu_layout(&node->src[0]->shape);
    struct batch_norm s;
    CVY_TRY(make(ask, &s));
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = i == 0 || i == s.at.ddst || i == s.at.y || i == s.at.residual ? layout : cvy_layout_plain();
    for (int i = 0; i < node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    const int gives = (s.steps & (1 << APPLY | 1 << GRAD_APPLY)) != 0; /* dst[0] is an activation */
    if (gives)
        ask->dst[0] = layout;
    if (is(node, "bn_train"))
        ask->inplace[0] = s.at.residual + 1;
    else if (gives && !(s.steps & 1 << GRAD_APPLY))
        ask->inplace[0] = 1;
    else if (gives && !s.a.copies)
        ask->inplace[0] = s.at.ddst + 1;
    if (s.a.copies) {
        ask->dst[3] = layout;
        ask->inplace[3] = s.at.ddst + 1;
    }
    ask->scratch_bytes =
        sizeof(double) * (size_t)(s.part_doubles + (s.owns_gstats ? 2 * (int64_t)s.a.groups * s.a.channels : 0));
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct batch_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    return make(ask, s);
}

/* The memory that the kernels of a call get. What an operator does not have is x, which is not read there. */
struct memory {
    void *x, *ddst, *y, *residual, *counted, *stats, *gstats, *scale, *shift, *means, *variances;
    void *dst, *dres, *dscale, *dshift, *part;
};

static void *or_x(void *const *src, int i)
{
    return src[i >= 0 ? i : 0];
}

static struct memory memory_of(const struct batch_norm *s, void *const *src, void *const *dst, void *scratch)
{
    const struct places *at = &s->at;
    struct memory m = {.x = src[0],
                       .ddst = or_x(src, at->ddst),
                       .y = or_x(src, at->y),
                       .residual = or_x(src, at->residual),
                       .counted = or_x(src, at->counted),
                       .stats = or_x(src, at->stats),
                       .gstats = or_x(src, at->gstats),
                       .scale = or_x(src, at->scale),
                       .shift = or_x(src, at->shift),
                       .means = or_x(src, at->means),
                       .variances = or_x(src, at->variances),
                       .dst = dst[0],
                       .part = scratch};
    if (s->steps >> MOMENTS & 1)
        m.stats = dst[s->steps >> APPLY & 1 ? 1 : 0];
    const int params = s->at.means >= 0 ? 0 : 1; /* the index of dscale */
    m.dscale = s->a.dscale ? dst[params] : src[0];
    m.dshift = s->a.dshift ? dst[params + 1] : src[0];
    m.dres = s->a.copies ? dst[3] : src[0];
    if (s->owns_gstats)
        m.gstats = (double *)scratch + s->part_doubles;
    else if (s->steps >> FINISH & 1)
        m.gstats = dst[0];
    return m;
}

static cvy_status run_forward(const struct batch_norm *s, const struct memory *m)
{
    const struct bn *a = &s->a;
    const int64_t columns = cvy_gpu_tiles(a->channels, FOUR * a->width), folds = cvy_gpu_tiles(a->channels, BN_FOLD);
    if (s->steps >> SUMS & 1)
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel[SUMS], columns, a->parts, a->groups, CVY_GPU_THREADS, CVY_GPU_POINTER(m->x),
                               CVY_GPU_POINTER(m->counted), CVY_GPU_POINTER(m->part), CVY_GPU_VALUE(*a)));
    if (s->steps >> MOMENTS & 1)
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel[MOMENTS], folds, 1, a->groups, CVY_GPU_THREADS, CVY_GPU_POINTER(m->part),
                               CVY_GPU_POINTER(m->counted), CVY_GPU_POINTER(m->stats), CVY_GPU_VALUE(*a)));
    if (s->steps >> APPLY & 1)
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel[APPLY], columns, a->parts, a->groups, CVY_GPU_THREADS, CVY_GPU_POINTER(m->x),
                               CVY_GPU_POINTER(m->residual), CVY_GPU_POINTER(m->counted), CVY_GPU_POINTER(m->stats),
                               CVY_GPU_POINTER(m->means), CVY_GPU_POINTER(m->variances), CVY_GPU_POINTER(m->scale),
                               CVY_GPU_POINTER(m->shift), CVY_GPU_POINTER(m->dst), CVY_GPU_VALUE(*a)));
    return CVY_OK;
}

static cvy_status run_backward(const struct batch_norm *s, const struct memory *m)
{
    const struct bn *a = &s->a;
    const int64_t columns = cvy_gpu_tiles(a->channels, FOUR * a->width), folds = cvy_gpu_tiles(a->channels, BN_FOLD);
    struct bn kept = *a; /* for the second walk: d is in dres already */
    if (a->copies) {
        kept.gates = 0;
        kept.ddst_step = a->channels;
    }
    const void *d = a->copies ? m->dres : m->ddst;
    if (s->steps >> GRAD_SUMS & 1)
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel[GRAD_SUMS], columns, a->parts, a->groups, CVY_GPU_THREADS,
                               CVY_GPU_POINTER(m->x), CVY_GPU_POINTER(m->ddst), CVY_GPU_POINTER(m->y),
                               CVY_GPU_POINTER(m->counted), CVY_GPU_POINTER(m->stats), CVY_GPU_POINTER(m->means),
                               CVY_GPU_POINTER(m->variances), CVY_GPU_POINTER(m->scale), CVY_GPU_POINTER(m->shift),
                               CVY_GPU_POINTER(m->dres), CVY_GPU_POINTER(m->part), CVY_GPU_VALUE(*a)));
    if (s->steps >> FINISH & 1)
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel[FINISH], folds, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(m->part),
                               CVY_GPU_POINTER(m->stats), CVY_GPU_POINTER(m->means), CVY_GPU_POINTER(m->variances),
                               CVY_GPU_POINTER(m->gstats), CVY_GPU_POINTER(m->dscale), CVY_GPU_POINTER(m->dshift),
                               CVY_GPU_VALUE(*a)));
    if (s->steps >> GRAD_APPLY & 1)
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel[GRAD_APPLY], columns, a->parts, a->groups, CVY_GPU_THREADS,
                               CVY_GPU_POINTER(m->x), CVY_GPU_POINTER(d), CVY_GPU_POINTER(m->y),
                               CVY_GPU_POINTER(m->counted), CVY_GPU_POINTER(m->stats), CVY_GPU_POINTER(m->gstats),
                               CVY_GPU_POINTER(m->scale), CVY_GPU_POINTER(m->shift), CVY_GPU_POINTER(m->dst),
                               CVY_GPU_VALUE(kept)));
    return CVY_OK;
}

/* Whether the columns of all activations can be read and written four at a time. */
static int is_whole(const struct bn *a, cvy_dtype act, const struct memory *m)
{
    const void *const pointer[] = {m->x, m->ddst, m->y, m->residual, m->dst, m->dres};
    return a->channels % FOUR == 0 && a->x_step % FOUR == 0 && a->ddst_step % FOUR == 0 && a->dst_step % FOUR == 0 &&
           cvy_gpu_are_aligned(FOUR * cvy_dtype_bytes(act), pointer, CVY_COUNT(pointer));
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct batch_norm *s = state;
    const struct memory m = memory_of(s, src, dst, scratch);
    s->a.whole = is_whole(&s->a, s->act, &m);
    CVY_TRY(run_forward(s, &m));
    return run_backward(s, &m);
}

#define BATCH_NORM(operator) CVY_GPU_FIELDS(operator, offer, create, run, cvy_gpu_free_state), .slice_last = 1

CVY_KERNEL_DEFINE(gpu_bn_stats) = {BATCH_NORM("bn_stats")};
CVY_KERNEL_DEFINE(gpu_bn_apply) = {BATCH_NORM("bn_apply"), .slice_dst = 1};
CVY_KERNEL_DEFINE(gpu_bn_train) = {BATCH_NORM("bn_train"), .slice_dst = 1};
CVY_KERNEL_DEFINE(gpu_bn_infer) = {BATCH_NORM("bn_infer"), .slice_dst = 1};
CVY_KERNEL_DEFINE(gpu_bn_infer_grad) = {BATCH_NORM("bn_infer_grad")};
CVY_KERNEL_DEFINE(gpu_bn_grad_stats) = {BATCH_NORM("bn_grad_stats"), .slice_src = 1 << 2};
CVY_KERNEL_DEFINE(gpu_bn_infer_grad_params) = {BATCH_NORM("bn_infer_grad_params"), .slice_src = 1 << 1};
CVY_KERNEL_DEFINE(gpu_bn_grad_apply) = {BATCH_NORM("bn_grad_apply"), .slice_src = 1 << 3};
CVY_KERNEL_DEFINE(gpu_bn_train_grad) = {BATCH_NORM("bn_train_grad"), .slice_src = 1 << 2};
#endif

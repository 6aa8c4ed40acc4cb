/*
 * native_bn_train.c: bn_train and bn_train_grad on f32 and bf16: two walks over memory each, the second while a block
 * of channels is still in the cache.
 *
 * op_bn_train.c describes the operators. They are limited by memory bandwidth: a result that does not fit into the
 * cache is written with non-temporal stores, which do not read the lines first.
 *
 * An item is a block of channels (with channels last: all channels) in one group of samples. It is cut into parts,
 * which are runs of samples. If there are enough items for all threads, an item is one part, and one thread walks over
 * it twice. Otherwise all parts are summed first, and then all are applied.
 *
 * A sample of an item is a plane of memory. Its channels repeat after `step` elements, the least common multiple of the
 * block and the run of the loops; that is `cols` columns of runs. The plane is walked in tiles of several rows of
 * `step` elements. The second walk goes backwards, because what the first walk read last is still in the cache.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "kernel/native/native_simd.h"
#include "kernel/native/norm/native_bn_train.h"
#include "op/norm/op_batch_norm.h"

enum {
    SUM_ROWS = 128,          /* rows of a tile that is summed */
    APPLY_BYTES = 128 << 10, /* bytes of a tile that is written: long, so that prefetched memory is used */
};

struct bn_train {
    cvy_planes p;
    cvy_bn_groups groups;
    const cvy_bn_loops *loops;
    size_t bytes; /* of an element */
    int64_t step, cols;
    int64_t sum_tile, apply_tile; /* elements */
    int threads, relu, scale_shift;
    int counted_at; /* the source that says which samples count; 0: all do */
    int residual; /* bn_train: 1 if source 1 is a residual; bn_train_grad: the source that is bn_train's result, or 0 */
    int64_t items; /* groups.count * p.groups */
    int64_t parts; /* of an item */
    /* See cvy_planes; of the tensor that may be a slice: the result; in the gradient, ddst. */
    int64_t sliced_pitch, sliced_step;
    double eps;
    /* Of the running call. */
    const char *x, *other, *ddst; /* other: residual or bn_train's result */
    const float *scale, *shift;
    const int32_t *counted; /* of each sample, whether it counts; NULL: all do */
    const double *stats_in;
    double *stats;
    char *dst, *dres;
    int stream;
    cvy_bn_coef *coef;    /* for each item and column; in scratch memory */
    cvy_bn_coef *no_coef; /* zeros for each column, if `counted`; in scratch memory */
    cvy_bn_sums *sums;    /* for each part and column; in scratch memory */
};

/* Finds the samples of a part: *first_out .. *last_out - 1. */
static void part_samples(const struct bn_train *s, int64_t part, int64_t *first_out, int64_t *last_out)
{
    int64_t first, last;
    cvy_bn_group_local(&s->groups, part / s->parts / s->p.groups, &first, &last);
    const int64_t n = CVY_MAX(last - first, 0), i = part % s->parts;
    *first_out = first + n * i / s->parts;
    *last_out = first + n * (i + 1) / s->parts;
}

static int64_t plane_elems(const struct bn_train *s)
{
    return s->p.positions * s->p.block;
}

/* Offset of the plane of an item in sample n, in bytes. */
static size_t plane_at(const struct bn_train *s, int64_t item, int64_t n)
{
    return (size_t)((n * s->p.groups + item % s->p.groups) * plane_elems(s)) * s->bytes;
}

/* The tile that begins at element `first` of a plane, without the tensor that may be a slice. */
static cvy_bn_tile tile_at(const struct bn_train *s, int64_t item, int64_t n, int64_t first, int64_t elems)
{
    const size_t at = plane_at(s, item, n) + (size_t)first * s->bytes;
    return (cvy_bn_tile){
        .elems = CVY_MIN(elems, plane_elems(s) - first),
        .step = s->step,
        .pitch = s->sliced_step,
        .x = s->x + at,
        .other = s->other ? s->other + at : NULL,
        .dres = s->dres ? s->dres + at : NULL,
        .relu = s->relu,
        .stream = s->stream,
    };
}

/* Offset of the same element in the tensor that may be a slice, in bytes. */
static size_t sliced_at(const struct bn_train *s, int64_t item, int64_t n, int64_t first)
{
    if (s->sliced_step == s->step)
        return (size_t)((n * s->sliced_pitch + item % s->p.groups) * plane_elems(s) + first) * s->bytes;
    return (size_t)((n * s->p.positions + first / s->step) * s->sliced_step) * s->bytes; /* a row is a position */
}

/* First element of the last tile of a plane that is written. */
static int64_t last_tile(const struct bn_train *s)
{
    return CVY_MAX(0, plane_elems(s) - 1) / s->apply_tile * s->apply_tile;
}

/* Adds the sums of channel `lane` of an item over its parts. */
static void total(const struct bn_train *s, int64_t item, int64_t lane, double out[2])
{
    out[0] = out[1] = 0;
    for (int64_t part = item * s->parts; part < (item + 1) * s->parts; part++)
        for (int64_t l = lane; l < s->step; l += s->p.block) {
            const cvy_bn_sums *sums = &s->sums[part * s->cols + l / s->loops->run];
            const int64_t at = cvy_bn_lane(s->loops, l % s->loops->run);
            out[0] += (*sums)[0][at];
            out[1] += (*sums)[1][at];
        }
}

static int sample_counts(const struct bn_train *s, int64_t n)
{
    return !s->counted || s->counted[n];
}

/* The values of a channel of an item that count. */
static double item_values(const struct bn_train *s, int64_t item)
{
    int64_t first, last, samples = 0;
    if (!s->counted)
        return (double)(cvy_bn_group_samples(&s->groups, item / s->p.groups) * s->p.positions);
    cvy_bn_group_local(&s->groups, item / s->p.groups, &first, &last);
    for (int64_t n = first; n < last; n++)
        samples += s->counted[n] != 0;
    return (double)(samples * s->p.positions);
}

/* The channel of a lane of an item; -1 for padding. */
static int64_t lane_channel(const struct bn_train *s, int64_t item, int64_t lane)
{
    const int64_t c = item % s->p.groups * s->p.block + lane;
    return c < s->p.channels ? c : -1;
}

/* Entry k of a channel in the statistics. */
static int64_t stats_at(const struct bn_train *s, int64_t item, int k, int64_t c)
{
    return ((s->counted ? 3 : 2) * (item / s->p.groups) + k) * s->p.channels + c;
}

/* Sets mean, factor and shift of a lane, for n values of a channel. Returns 1 / sqrt(variance + eps). */
static double set_normaliser(const struct bn_train *s, int64_t item, int64_t lane, int64_t c, double n,
                             const double *stats)
{
    const double mean = stats[stats_at(s, item, 0, c)] / n;
    const double variance = fmax(stats[stats_at(s, item, 1, c)] / n - mean * mean, 0);
    const double inv_std = 1 / sqrt(variance + s->eps);
    for (int64_t l = lane; l < s->step; l += s->p.block) {
        cvy_bn_coef *coef = &s->coef[item * s->cols + l / s->loops->run];
        const int64_t at = cvy_bn_lane(s->loops, l % s->loops->run);
        coef->mean[at] = (float)mean;
        coef->factor[at] = (float)(s->scale ? s->scale[c] * inv_std : inv_std);
        coef->shift[at] = s->shift ? s->shift[c] : 0;
    }
    return inv_std;
}

/* ---- forward ---- */

static void clear_sums(const struct bn_train *s, int64_t part)
{
    memset(s->sums[part * s->cols], 0, (size_t)s->cols * sizeof *s->sums);
}

static void clear_coef(const struct bn_train *s, int64_t item)
{
    memset(&s->coef[item * s->cols], 0, (size_t)s->cols * sizeof *s->coef);
}

static void sum_part(const struct bn_train *s, int64_t part)
{
    const int64_t item = part / s->parts;
    int64_t begin, end;
    part_samples(s, part, &begin, &end);
    clear_sums(s, part);
    for (int64_t n = begin; n < end; n++)
        for (int64_t first = 0; first < plane_elems(s) && sample_counts(s, n); first += s->sum_tile) {
            const cvy_bn_tile t = tile_at(s, item, n, first, s->sum_tile);
            s->loops->sums(&t, &s->sums[part * s->cols]);
        }
}

static void finish_stats(const struct bn_train *s, int64_t item)
{
    const double values = item_values(s, item), n = CVY_MAX(values, 1);
    clear_coef(s, item);
    for (int64_t lane = 0; lane < s->p.block; lane++) {
        const int64_t c = lane_channel(s, item, lane);
        double sums[2];
        if (c < 0)
            continue;
        total(s, item, lane, sums);
        for (int k = 0; k < 2; k++)
            s->stats[stats_at(s, item, k, c)] = sums[k];
        if (s->counted)
            s->stats[stats_at(s, item, 2, c)] = values;
        set_normaliser(s, item, lane, c, n, s->stats);
    }
}

/* The result of a sample that does not count is the residual, or 0, whatever its values are. */
static void leave_out(const struct bn_train *s, int64_t item, int64_t n)
{
    for (int64_t first = 0; first < plane_elems(s); first += s->step) {
        cvy_bn_tile t = tile_at(s, item, n, first, s->step);
        t.dst = s->dst + sliced_at(s, item, n, first);
        t.x = t.other;
        if (t.other)
            s->loops->apply(&t, s->no_coef);
        else
            memset(t.dst, 0, (size_t)t.elems * s->bytes);
    }
}

static void apply_part(const struct bn_train *s, int64_t part)
{
    const int64_t item = part / s->parts;
    int64_t begin, end;
    part_samples(s, part, &begin, &end);
    for (int64_t n = end - 1; n >= begin; n--)
        for (int64_t first = last_tile(s); first >= 0 && sample_counts(s, n); first -= s->apply_tile) {
            cvy_bn_tile t = tile_at(s, item, n, first, s->apply_tile);
            t.dst = s->dst + sliced_at(s, item, n, first);
            s->loops->apply(&t, &s->coef[item * s->cols]);
        }
    for (int64_t n = begin; n < end && s->counted; n++)
        if (!sample_counts(s, n))
            leave_out(s, item, n);
}

/* ---- backward ---- */

static void prepare_grad(const struct bn_train *s, int64_t item)
{
    const double n = CVY_MAX(item_values(s, item), 1);
    clear_coef(s, item);
    for (int64_t lane = 0; lane < s->p.block; lane++) {
        const int64_t c = lane_channel(s, item, lane);
        if (c >= 0)
            set_normaliser(s, item, lane, c, n, s->stats_in);
    }
}

static void grad_sum_sample(const struct bn_train *s, int64_t part, int64_t n, const cvy_bn_coef *coef)
{
    const int64_t item = part / s->parts;
    for (int64_t first = 0; first < plane_elems(s); first += s->sum_tile) {
        cvy_bn_tile t = tile_at(s, item, n, first, s->sum_tile);
        t.ddst = s->ddst + sliced_at(s, item, n, first);
        s->loops->grad_sums(&t, coef, &s->sums[part * s->cols]);
    }
}

/* Samples that do not count only pass their gradient on to the residual. */
static void grad_sum_part(const struct bn_train *s, int64_t part)
{
    int64_t begin, end;
    part_samples(s, part, &begin, &end);
    for (int64_t n = begin; n < end && s->counted && s->dres; n++)
        if (!sample_counts(s, n))
            grad_sum_sample(s, part, n, s->no_coef);
    clear_sums(s, part);
    for (int64_t n = begin; n < end; n++)
        if (sample_counts(s, n))
            grad_sum_sample(s, part, n, &s->coef[part / s->parts * s->cols]);
}

/* Sets the coefficients of dsrc, and writes the totals [G, 2, C] to `stats`, as sums of d and of d * xhat. */
static void finish_grad(const struct bn_train *s, int64_t item)
{
    const double n = CVY_MAX(item_values(s, item), 1);
    for (int64_t lane = 0; lane < s->p.block; lane++) {
        const int64_t c = lane_channel(s, item, lane);
        double sums[2];
        if (c < 0)
            continue;
        total(s, item, lane, sums);
        const double inv_std = set_normaliser(s, item, lane, c, n, s->stats_in),
                     mean = s->stats_in[stats_at(s, item, 0, c)] / n;
        const double factor = s->scale ? s->scale[c] * inv_std : inv_std,
                     slope = -factor * inv_std * inv_std * sums[1] / n;
        for (int64_t l = lane; l < s->step; l += s->p.block) {
            cvy_bn_coef *coef = &s->coef[item * s->cols + l / s->loops->run];
            const int64_t at = cvy_bn_lane(s->loops, l % s->loops->run);
            coef->slope[at] = (float)slope;
            coef->offset[at] = (float)(-factor * sums[0] / n - slope * mean);
        }
        double *out = s->stats + 2 * (item / s->p.groups) * s->p.channels + c;
        out[0] = sums[0];
        out[s->p.channels] = sums[1] * inv_std;
    }
}

static void grad_apply_part(const struct bn_train *s, int64_t part)
{
    const int64_t item = part / s->parts;
    int64_t begin, end;
    part_samples(s, part, &begin, &end);
    for (int64_t n = end - 1; n >= begin; n--)
        for (int64_t first = last_tile(s); first >= 0 && sample_counts(s, n); first -= s->apply_tile) {
            cvy_bn_tile t = tile_at(s, item, n, first, s->apply_tile);
            t.ddst = s->dres ? t.dres : s->ddst + sliced_at(s, item, n, first);
            t.pitch = s->dres ? s->step : s->sliced_step;
            t.dst = s->dst + plane_at(s, item, n) + (size_t)first * s->bytes;
            t.relu = s->relu && !s->dres;
            s->loops->grad_apply(&t, &s->coef[item * s->cols]);
        }
    for (int64_t n = begin; n < end && s->counted; n++)
        if (!sample_counts(s, n))
            memset(s->dst + plane_at(s, item, n), 0, (size_t)plane_elems(s) * s->bytes);
}

/* ---- both ---- */

static void forward_items(int64_t first, int64_t end, void *arg)
{
    for (int64_t item = first; item < end; item++) {
        sum_part(arg, item);
        finish_stats(arg, item);
        apply_part(arg, item);
    }
}

static void sum_parts(int64_t first, int64_t end, void *arg)
{
    for (int64_t part = first; part < end; part++)
        sum_part(arg, part);
}

static void apply_parts(int64_t first, int64_t end, void *arg)
{
    for (int64_t part = first; part < end; part++)
        apply_part(arg, part);
}

static void grad_items(int64_t first, int64_t end, void *arg)
{
    for (int64_t item = first; item < end; item++) {
        prepare_grad(arg, item);
        grad_sum_part(arg, item);
        finish_grad(arg, item);
        grad_apply_part(arg, item);
    }
}

static void grad_sum_parts(int64_t first, int64_t end, void *arg)
{
    for (int64_t part = first; part < end; part++)
        grad_sum_part(arg, part);
}

static void grad_apply_parts(int64_t first, int64_t end, void *arg)
{
    for (int64_t part = first; part < end; part++)
        grad_apply_part(arg, part);
}

/* Whether the result may be written with non-temporal stores: it must be large, not in the memory of a source, and each
 * row must begin at a cache line. */
static int may_stream(const struct bn_train *s)
{
    const size_t plane = (size_t)plane_elems(s) * s->bytes, planes = (size_t)(s->p.n * s->p.groups);
    return plane * planes >= CVY_STREAM_BYTES && plane % CVY_LINE_BYTES == 0 &&
           (size_t)s->sliced_step * s->bytes % CVY_LINE_BYTES == 0 && (uintptr_t)s->dst % CVY_LINE_BYTES == 0 &&
           s->dst != s->x && s->dst != s->other && s->dst != s->ddst && s->dst != s->dres;
}

/* Takes the source that says which samples count, and returns 1 if there is one: sources after it have larger
 * indices. */
static int take_counted(struct bn_train *s, void *const *src)
{
    s->counted = s->counted_at ? src[s->counted_at] : NULL;
    return s->counted_at > 0;
}

/* Scratch memory, in this order: coefficients, those of samples that do not count, sums, and for the gradient its
 * totals [G, 2, C]. */
static void place_scratch(struct bn_train *s, void *scratch)
{
    s->stream = may_stream(s);
    s->coef = scratch;
    s->no_coef = s->coef + s->items * s->cols;
    if (s->counted)
        memset(s->no_coef, 0, (size_t)s->cols * sizeof *s->no_coef);
    s->sums = (cvy_bn_sums *)(s->no_coef + (s->counted ? s->cols : 0));
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct bn_train *s = state;
    const int scale_at = 1 + s->residual + take_counted(s, src);
    s->x = src[0];
    s->other = s->residual ? src[1] : NULL;
    s->scale = s->scale_shift ? src[scale_at] : NULL;
    s->shift = s->scale_shift ? src[scale_at + 1] : NULL;
    s->dst = dst[0];
    s->stats = dst[1];
    place_scratch(s, scratch);
    if (s->parts == 1) {
        cvy_parallel_for(s->threads, s->items, 1, forward_items, s);
        return CVY_OK;
    }
    cvy_parallel_for(s->threads, s->items * s->parts, 1, sum_parts, s);
    for (int64_t item = 0; item < s->items; item++)
        finish_stats(s, item);
    cvy_parallel_for(s->threads, s->items * s->parts, 1, apply_parts, s);
    return CVY_OK;
}

/* k = 0: dshift, 1: dscale. */
static void sum_groups(const struct bn_train *s, int k, float *out)
{
    for (int64_t c = 0; out && c < s->p.channels; c++) {
        double sum = 0;
        for (int64_t g = 0; g < s->groups.count; g++)
            sum += s->stats[(2 * g + k) * s->p.channels + c];
        out[c] = (float)sum;
    }
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct bn_train *s = state;
    const int scale_at = 3 + take_counted(s, src);
    s->x = src[0];
    s->stats_in = src[1];
    s->ddst = src[2];
    s->scale = s->scale_shift ? src[scale_at] : NULL;
    s->shift = s->scale_shift ? src[scale_at + 1] : NULL;
    s->other = s->residual ? src[s->residual] : NULL;
    s->dst = dst[0];
    s->dres = dst[3];
    place_scratch(s, scratch);
    s->stats = (double *)(s->sums + s->items * s->parts * s->cols);
    if (s->parts == 1) {
        cvy_parallel_for(s->threads, s->items, 1, grad_items, s);
    } else {
        for (int64_t item = 0; item < s->items; item++)
            prepare_grad(s, item);
        cvy_parallel_for(s->threads, s->items * s->parts, 1, grad_sum_parts, s);
        for (int64_t item = 0; item < s->items; item++)
            finish_grad(s, item);
        cvy_parallel_for(s->threads, s->items * s->parts, 1, grad_apply_parts, s);
    }
    if (s->scale_shift) {
        sum_groups(s, 0, dst[2]);
        sum_groups(s, 1, dst[1]);
    }
    return CVY_OK;
}

/* ---- offers ---- */

/* Number of elements after which the channels and the lanes of a plane repeat. */
static int64_t step_of(const cvy_planes *p, int64_t run)
{
    int64_t step = run;
    while (step % p->block != 0)
        step += run;
    return step;
}

static const cvy_bn_loops *loops_of(const cvy_node *node)
{
    return &cvy_simd_find(CVY_BN_RUN_F32)->bn[node->src[0]->dtype == CVY_DTYPE_BF16];
}

static int64_t count_items(const cvy_kernel_ask *ask, const cvy_planes *p)
{
    return cvy_bn_groups_of(ask->node).count * p->groups;
}

/* If there are few items, or a number that would leave threads without work, each item is cut into as many parts as
 * there are threads. In deterministic mode it is not, because sums must not depend on the number of threads. */
static int64_t count_parts(const cvy_kernel_ask *ask, const cvy_planes *p)
{
    const int64_t items = count_items(ask, p);
    return ask->deterministic || items % ask->threads == 0 || items >= 8 * ask->threads ? 1 : ask->threads;
}

/* All activations get one layout: that of the source or, if the source is plain, that of source `other`. */
static cvy_status offer(cvy_kernel_ask *ask, int other, unsigned activations)
{
    const cvy_node *node = ask->node;
    CVY_TRY(cvy_native_f32_or_bf16(node));
    if (!cvy_simd_find(CVY_BN_RUN_F32))
        return cvy_error_set(CVY_NOT_APPLICABLE, "this kernel needs a compiler with vector extensions (gcc or clang)");
    cvy_layout layout = cvy_native_activation(ask, 0);
    if (other && cvy_layout_is_plain(&layout))
        layout = cvy_native_activation(ask, other);
    const cvy_planes p = cvy_planes_make(&node->src[0]->shape, &layout);
    const int64_t run = loops_of(node)->run, cols = step_of(&p, run) / run;
    const size_t no_coefs = cvy_bn_has_counted(node) ? (size_t)cols : 0;
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = activations >> i & 1 ? layout : cvy_layout_plain();
    ask->dst[0] = layout;
    ask->scratch_bytes = (size_t)(count_items(ask, &p) * cols) *
                             (sizeof(cvy_bn_coef) + (size_t)count_parts(ask, &p) * sizeof(cvy_bn_sums)) +
                         no_coefs * sizeof(cvy_bn_coef) +
                         (size_t)(cvy_bn_groups_of(node).count * 2 * p.channels) * sizeof(double);
    return CVY_OK;
}

static cvy_status forward_offer(cvy_kernel_ask *ask)
{
    const int residual = cvy_bn_train_has_residual(ask->node);
    CVY_TRY(offer(ask, residual, residual ? 3 : 1));
    ask->inplace[0] = residual ? 2 : 0;
    return CVY_OK;
}

static cvy_status grad_offer(cvy_kernel_ask *ask)
{
    const int y = cvy_bn_train_grad_dst(ask->node);
    CVY_TRY(offer(ask, 2, 1U | 4U | (y ? 1U << y : 0)));
    ask->dst[3] = ask->dst[0];
    ask->inplace[y ? 3 : 0] = 3;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, int residual, const cvy_layout *sliced, void **state_out)
{
    const cvy_batch_norm_opts *o = ask->node->options;
    struct bn_train *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->p = cvy_planes_make(&ask->node->src[0]->shape, &ask->src[0]);
    s->groups = cvy_bn_groups_of(ask->node);
    s->loops = loops_of(ask->node);
    s->bytes = cvy_dtype_bytes(ask->node->src[0]->dtype);
    s->step = step_of(&s->p, s->loops->run);
    s->cols = s->step / s->loops->run;
    s->sum_tile = SUM_ROWS * s->step;
    s->apply_tile = CVY_MAX(1, APPLY_BYTES / (s->step * (int64_t)s->bytes)) * s->step;
    s->threads = ask->threads;
    s->relu = o->relu;
    s->scale_shift = o->scale_shift;
    s->eps = o->eps;
    s->residual = residual;
    s->counted_at = cvy_bn_counted(ask->node);
    s->items = count_items(ask, &s->p);
    s->parts = count_parts(ask, &s->p);
    const cvy_planes planes = cvy_planes_make(&ask->node->src[0]->shape, sliced);
    s->sliced_pitch = planes.pitch;
    s->sliced_step = planes.step == planes.block ? s->step : planes.step;
    *state_out = s;
    return CVY_OK;
}

static cvy_status forward_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, cvy_bn_train_has_residual(ask->node), &ask->dst[0], state_out);
}

static cvy_status grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, cvy_bn_train_grad_dst(ask->node), &ask->src[2], state_out);
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_KERNEL_DEFINE(native_bn_train) = {
    .name = "native.bn_train",
    .op = "bn_train",
    .preference = 50,
    .slice_dst = 1,
    .slice_last = 1,
    .offer = forward_offer,
    .create = forward_create,
    .run = forward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_bn_train_grad) = {
    .name = "native.bn_train_grad",
    .op = "bn_train_grad",
    .preference = 50,
    .slice_src = 1 << 2,
    .slice_last = 1,
    .offer = grad_offer,
    .create = grad_create,
    .run = grad_run,
    .destroy = destroy,
};

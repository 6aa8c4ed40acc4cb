/*
 * native_bn_train.c: bn_train and bn_train_grad on f32 and bf16: two walks over memory each, the second while a block
 * of channels is still in the cache (native_norm.h).
 *
 * op_bn_train.c describes the operators. An item is a block of channels (with channels last: all channels) in one group
 * of samples. Its parts are runs of samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "kernel/native/norm/native_norm.h"
#include "op/norm/op_batch_norm.h"

struct bn_train {
    cvy_norm n; /* the first member: walks get its address */
    cvy_bn_groups groups;
    int counted_at; /* the source that says which samples count; 0: all do */
    int residual; /* bn_train: 1 if source 1 is a residual; bn_train_grad: the source that is bn_train's result, or 0 */
    /* Of the running call. */
    const int32_t *counted; /* of each sample, whether it counts; NULL: all do */
    const double *stats_in;
    double *stats;
    cvy_bn_coef *no_coef; /* zeros for each column, if `counted`; in scratch memory */
};

static const struct bn_train *state_at(const cvy_norm *n)
{
    return (const struct bn_train *)n;
}

/* Finds the samples of a part: *first_out .. *last_out - 1. */
static void part_samples(const struct bn_train *s, int64_t item, int64_t part, int64_t *first_out, int64_t *last_out)
{
    int64_t first, last;
    cvy_bn_group_local(&s->groups, item / s->n.p.groups, &first, &last);
    const int64_t n = CVY_MAX(last - first, 0);
    *first_out = first + n * part / s->n.parts;
    *last_out = first + n * (part + 1) / s->n.parts;
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
        return (double)(cvy_bn_group_samples(&s->groups, item / s->n.p.groups) * s->n.p.positions);
    cvy_bn_group_local(&s->groups, item / s->n.p.groups, &first, &last);
    for (int64_t n = first; n < last; n++)
        samples += s->counted[n] != 0;
    return (double)(samples * s->n.p.positions);
}

/* The first channel of an item, and the number of its channels, without padding. */
static int64_t item_channels(const struct bn_train *s, int64_t item, int64_t *first_out)
{
    *first_out = item % s->n.p.groups * s->n.p.block;
    return CVY_MIN(s->n.p.block, s->n.p.channels - *first_out);
}

/* Entry k of a channel in the statistics. */
static int64_t stats_at(const struct bn_train *s, int64_t item, int k, int64_t c)
{
    return ((s->counted ? 3 : 2) * (item / s->n.p.groups) + k) * s->n.p.channels + c;
}

/* Mean, factor and shift of channel c, of n values. *inv_std_out: 1 / sqrt(variance + eps). */
static cvy_norm_channel normaliser(const struct bn_train *s, int64_t item, int64_t c, double n, const double *stats,
                                   double *inv_std_out)
{
    const double mean = stats[stats_at(s, item, 0, c)] / n;
    const double variance = fmax(stats[stats_at(s, item, 1, c)] / n - mean * mean, 0);
    const double inv_std = 1 / sqrt(variance + s->n.eps);
    *inv_std_out = inv_std;
    return (cvy_norm_channel){.mean = mean,
                              .factor = s->n.scale ? s->n.scale[c] * inv_std : inv_std,
                              .shift = s->n.shift ? s->n.shift[c] : 0};
}

/* ---- forward ---- */

static void sum_part(const cvy_norm *n, int64_t item, int64_t part, const cvy_bn_coef *coef, cvy_bn_sums *sums)
{
    const struct bn_train *s = state_at(n);
    int64_t begin, end;
    part_samples(s, item, part, &begin, &end);
    cvy_norm_clear_sums(n, sums);
    for (int64_t k = begin; k < end; k++)
        if (sample_counts(s, k))
            cvy_norm_sum_rows(n, k, item % n->p.groups, 0, n->rows, coef, sums);
}

static void finish_stats(const cvy_norm *n, int64_t item, const cvy_bn_sums *sums, cvy_bn_coef *coef)
{
    const struct bn_train *s = state_at(n);
    const double values = item_values(s, item);
    int64_t first;
    cvy_norm_clear_coef(n, coef);
    for (int64_t lane = 0; lane < item_channels(s, item, &first); lane++) {
        const int64_t c = first + lane;
        double total[2], inv_std;
        cvy_norm_total(n, sums, lane, total);
        for (int k = 0; k < 2; k++)
            s->stats[stats_at(s, item, k, c)] = total[k];
        if (s->counted)
            s->stats[stats_at(s, item, 2, c)] = values;
        const cvy_norm_channel channel = normaliser(s, item, c, CVY_MAX(values, 1), s->stats, &inv_std);
        cvy_norm_set(n, coef, lane, &channel);
    }
}

/* The result of a sample that does not count is the residual, or 0, whatever its values are. */
static void leave_out(const struct bn_train *s, int64_t n, int64_t g)
{
    for (int64_t row = 0; row < s->n.rows; row++) {
        cvy_bn_tile t = cvy_norm_tile(&s->n, n, g, row, row + 1);
        t.x = t.other;
        if (t.other)
            s->n.loops->apply(&t, s->no_coef);
        else
            memset(t.dst, 0, (size_t)t.elems * s->n.bytes);
    }
}

static void apply_part(const cvy_norm *n, int64_t item, int64_t part, const cvy_bn_coef *coef)
{
    const struct bn_train *s = state_at(n);
    int64_t begin, end;
    part_samples(s, item, part, &begin, &end);
    for (int64_t k = end - 1; k >= begin; k--)
        if (sample_counts(s, k))
            cvy_norm_apply_rows(n, k, item % n->p.groups, 0, n->rows, coef);
    for (int64_t k = begin; k < end && s->counted; k++)
        if (!sample_counts(s, k))
            leave_out(s, k, item % n->p.groups);
}

/* ---- backward ---- */

static void prepare_grad(const cvy_norm *n, int64_t item, cvy_bn_coef *coef)
{
    const struct bn_train *s = state_at(n);
    const double values = CVY_MAX(item_values(s, item), 1);
    int64_t first;
    cvy_norm_clear_coef(n, coef);
    for (int64_t lane = 0; lane < item_channels(s, item, &first); lane++) {
        double inv_std;
        const cvy_norm_channel channel = normaliser(s, item, first + lane, values, s->stats_in, &inv_std);
        cvy_norm_set(n, coef, lane, &channel);
    }
}

/* Samples that do not count only pass their gradient on to the residual. */
static void grad_sum_part(const cvy_norm *n, int64_t item, int64_t part, const cvy_bn_coef *coef, cvy_bn_sums *sums)
{
    const struct bn_train *s = state_at(n);
    int64_t begin, end;
    part_samples(s, item, part, &begin, &end);
    for (int64_t k = begin; k < end && s->counted && n->dres; k++)
        if (!sample_counts(s, k))
            cvy_norm_sum_rows(n, k, item % n->p.groups, 0, n->rows, s->no_coef, sums);
    sum_part(n, item, part, coef, sums);
}

/* Sets the coefficients of dsrc, and writes the totals [G, 2, C] to `stats`, as sums of d and of d * xhat. */
static void finish_grad(const cvy_norm *n, int64_t item, const cvy_bn_sums *sums, cvy_bn_coef *coef)
{
    const struct bn_train *s = state_at(n);
    const double values = CVY_MAX(item_values(s, item), 1);
    int64_t first;
    for (int64_t lane = 0; lane < item_channels(s, item, &first); lane++) {
        const int64_t c = first + lane;
        double total[2], inv_std;
        cvy_norm_total(n, sums, lane, total);
        cvy_norm_channel channel = normaliser(s, item, c, values, s->stats_in, &inv_std);
        channel.slope = -channel.factor * inv_std * inv_std * total[1] / values;
        channel.offset = -channel.factor * total[0] / values - channel.slope * channel.mean;
        cvy_norm_set(n, coef, lane, &channel);
        double *out = s->stats + 2 * (item / n->p.groups) * n->p.channels + c;
        out[0] = total[0];
        out[n->p.channels] = total[1] * inv_std;
    }
}

static void grad_apply_part(const cvy_norm *n, int64_t item, int64_t part, const cvy_bn_coef *coef)
{
    const struct bn_train *s = state_at(n);
    const size_t plane = (size_t)cvy_norm_plane_elems(n) * n->bytes;
    int64_t begin, end;
    part_samples(s, item, part, &begin, &end);
    for (int64_t k = end - 1; k >= begin; k--)
        if (sample_counts(s, k))
            cvy_norm_apply_rows(n, k, item % n->p.groups, 0, n->rows, coef);
    for (int64_t k = begin; k < end && s->counted; k++)
        if (!sample_counts(s, k))
            memset(n->dst + (size_t)(k * n->p.groups + item % n->p.groups) * plane, 0, plane);
}

/* ---- running ---- */

static const cvy_norm_walks forward = {.sum = sum_part, .finish = finish_stats, .apply = apply_part};
static const cvy_norm_walks grad = {prepare_grad, grad_sum_part, finish_grad, grad_apply_part};

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
    s->n.stream = cvy_norm_may_stream(&s->n);
    s->n.coef = scratch;
    s->no_coef = s->n.coef + cvy_norm_ncoef(&s->n) * s->n.cols;
    if (s->counted)
        cvy_norm_clear_coef(&s->n, s->no_coef);
    s->n.sums = (cvy_bn_sums *)(s->no_coef + (s->counted ? s->n.cols : 0));
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct bn_train *s = state;
    const int scale_at = 1 + s->residual + take_counted(s, src);
    s->n.x = src[0];
    s->n.other = s->residual ? src[1] : NULL;
    s->n.scale = s->n.scale_shift ? src[scale_at] : NULL;
    s->n.shift = s->n.scale_shift ? src[scale_at + 1] : NULL;
    s->n.dst = dst[0];
    s->stats = dst[1];
    place_scratch(s, scratch);
    cvy_norm_run(&s->n, &forward);
    return CVY_OK;
}

/* k = 0: dshift, 1: dscale. */
static void sum_groups(const struct bn_train *s, int k, float *out)
{
    for (int64_t c = 0; out && c < s->n.p.channels; c++) {
        double sum = 0;
        for (int64_t g = 0; g < s->groups.count; g++)
            sum += s->stats[(2 * g + k) * s->n.p.channels + c];
        out[c] = (float)sum;
    }
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct bn_train *s = state;
    const int scale_at = 3 + take_counted(s, src);
    s->n.x = src[0];
    s->stats_in = src[1];
    s->n.ddst = src[2];
    s->n.scale = s->n.scale_shift ? src[scale_at] : NULL;
    s->n.shift = s->n.scale_shift ? src[scale_at + 1] : NULL;
    s->n.other = s->residual ? src[s->residual] : NULL;
    s->n.dst = dst[0];
    s->n.dres = dst[3];
    place_scratch(s, scratch);
    s->stats = (double *)(s->n.sums + s->n.items * s->n.parts * s->n.cols);
    cvy_norm_run(&s->n, &grad);
    if (s->n.scale_shift) {
        sum_groups(s, 0, dst[2]);
        sum_groups(s, 1, dst[1]);
    }
    return CVY_OK;
}

/* ---- offers ---- */

static struct bn_train state_of(const cvy_kernel_ask *ask, int residual, const cvy_layout *layout,
                                const cvy_layout *sliced)
{
    const cvy_batch_norm_opts *o = ask->node->options;
    const cvy_shape *shape = &ask->node->src[0]->shape;
    const cvy_planes p = cvy_planes_make(shape, layout), of_slice = cvy_planes_make(shape, sliced);
    struct bn_train s = {.n = cvy_norm_make(ask, &p, &of_slice),
                         .groups = cvy_bn_groups_of(ask->node),
                         .residual = residual,
                         .counted_at = cvy_bn_counted(ask->node)};
    s.n.relu = o->relu;
    s.n.scale_shift = o->scale_shift;
    s.n.eps = o->eps;
    s.n.items = s.n.slots = s.groups.count * p.groups;
    cvy_norm_cut(&s.n, ask->deterministic, INT64_MAX);
    return s;
}

/* All activations get one layout: that of the source or, if the source is plain, that of source `other`. */
static cvy_status offer(cvy_kernel_ask *ask, int other, unsigned activations)
{
    const cvy_node *node = ask->node;
    CVY_TRY(cvy_norm_check(node));
    cvy_layout layout = cvy_native_activation(ask, 0);
    if (other && cvy_layout_is_plain(&layout))
        layout = cvy_native_activation(ask, other);
    const struct bn_train s = state_of(ask, 0, &layout, &layout);
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = activations >> i & 1 ? layout : cvy_layout_plain();
    ask->dst[0] = layout;
    ask->scratch_bytes = cvy_norm_scratch(&s.n) + (s.counted_at ? (size_t)s.n.cols * sizeof(cvy_bn_coef) : 0) +
                         (size_t)(s.groups.count * 2 * s.n.p.channels) * sizeof(double);
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
    struct bn_train *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = state_of(ask, residual, &ask->src[0], sliced);
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

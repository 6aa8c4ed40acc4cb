/*
 * native_group_norm.c: group_norm (also as instance_norm) and its gradient on f32 and bf16, in the frame of
 * native_norm.h.
 *
 * Batch norm sums over each channel of a group of samples. Here each channel of one sample is summed, the sums of the
 * channels of a group are added, and each channel gets its coefficients; so the loops over memory are the same, in
 * every layout.
 *
 * An item is the fewest planes of a sample that hold whole groups: one plane for each channel of a group in plain
 * layout, some blocks of channels, or with channels last the whole sample. Its parts are runs of positions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "kernel/native/norm/native_norm.h"
#include "op/norm/op_sample_norm.h"

struct group_norm {
    cvy_norm n;      /* the first member: walks get its address; its `planes` are those of an item */
    int64_t width;   /* channels of a group */
    int64_t bundles; /* items of a sample */
    /* Of the running call. */
    const float *stats_in;
    float *stats;   /* NULL: not needed */
    double *params; /* of the gradient: [N, 2, C] = dscale and dshift of each sample; in scratch memory */
};

static const struct group_norm *state_at(const cvy_norm *n)
{
    return (const struct group_norm *)n;
}

/* ---- geometry ---- */

/* The first plane of an item in its sample, and the number of its planes. */
static int64_t item_planes(const struct group_norm *s, int64_t item, int64_t *first_out)
{
    *first_out = item % s->bundles * s->n.planes;
    return CVY_MIN(s->n.planes, s->n.p.groups - *first_out);
}

/* The first channel of an item in its sample, and the number of its channels, without padding. */
static int64_t item_channels(const struct group_norm *s, int64_t item, int64_t *first_out)
{
    int64_t plane;
    const int64_t planes = item_planes(s, item, &plane);
    *first_out = plane * s->n.p.block;
    return CVY_MIN(planes * s->n.p.block, s->n.p.channels - *first_out);
}

/* Number of the group of channel `channel` of a sample, counted over all samples. */
static int64_t group_of(const struct group_norm *s, int64_t item, int64_t channel)
{
    return (item / s->bundles * s->n.p.channels + channel) / s->width;
}

static double scale_of(const struct group_norm *s, int64_t channel)
{
    return s->n.scale ? s->n.scale[channel] : 1;
}

static double shift_of(const struct group_norm *s, int64_t channel)
{
    return s->n.shift ? s->n.shift[channel] : 0;
}

/* ---- walks ---- */

static void sum_part(const cvy_norm *n, int64_t item, int64_t part, const cvy_bn_coef *coef, cvy_bn_sums *sums)
{
    const struct group_norm *s = state_at(n);
    int64_t first;
    const int64_t planes = item_planes(s, item, &first);
    cvy_norm_clear_sums(n, sums);
    for (int64_t plane = 0; plane < planes; plane++)
        cvy_norm_sum_rows(n, item / s->bundles, first + plane, n->rows * part / n->parts,
                          n->rows * (part + 1) / n->parts, coef + plane * n->cols, sums + plane * n->cols);
}

static void apply_part(const cvy_norm *n, int64_t item, int64_t part, const cvy_bn_coef *coef)
{
    const struct group_norm *s = state_at(n);
    int64_t first;
    for (int64_t plane = item_planes(s, item, &first) - 1; plane >= 0; plane--)
        cvy_norm_apply_rows(n, item / s->bundles, first + plane, n->rows * part / n->parts,
                            n->rows * (part + 1) / n->parts, coef + plane * n->cols);
}

static void finish_sums(const cvy_norm *n, int64_t item, const cvy_bn_sums *sums, cvy_bn_coef *coef)
{
    const struct group_norm *s = state_at(n);
    const double count = (double)(s->width * n->p.positions);
    int64_t first;
    const int64_t channels = item_channels(s, item, &first);
    cvy_norm_clear_coef(n, coef);
    for (int64_t c = 0; c < channels; c += s->width) {
        const int64_t group = group_of(s, item, first + c);
        double sum = 0, squares = 0, one[2];
        for (int64_t k = c; k < c + s->width; k++) {
            cvy_norm_total(n, sums, k, one);
            sum += one[0];
            squares += one[1];
        }
        const double mean = sum / count, inv_std = 1 / sqrt(fmax(squares / count - mean * mean, 0) + n->eps);
        for (int64_t k = c; k < c + s->width; k++)
            cvy_norm_set(n, coef, k,
                         &(cvy_norm_channel){.mean = mean,
                                             .factor = scale_of(s, first + k) * inv_std,
                                             .shift = shift_of(s, first + k)});
        if (s->stats) {
            s->stats[2 * group] = (float)mean;
            s->stats[2 * group + 1] = (float)inv_std;
        }
    }
}

static void prepare_grad(const cvy_norm *n, int64_t item, cvy_bn_coef *coef)
{
    const struct group_norm *s = state_at(n);
    int64_t first;
    const int64_t channels = item_channels(s, item, &first);
    cvy_norm_clear_coef(n, coef);
    for (int64_t c = 0; c < channels; c++) {
        const int64_t group = group_of(s, item, first + c);
        cvy_norm_set(n, coef, c,
                     &(cvy_norm_channel){.mean = s->stats_in[2 * group],
                                         .factor = scale_of(s, first + c) * s->stats_in[2 * group + 1],
                                         .shift = shift_of(s, first + c)});
    }
}

/* dsrc = inv_std * (d - mean(d) - xhat * mean(d * xhat)) with d = ddst * scale, as factor * ddst + slope * x + offset.
 * The sums are those of ddst and ddst * (x - mean). */
static void finish_grad(const cvy_norm *n, int64_t item, const cvy_bn_sums *sums, cvy_bn_coef *coef)
{
    const struct group_norm *s = state_at(n);
    const double count = (double)(s->width * n->p.positions);
    int64_t first;
    const int64_t channels = item_channels(s, item, &first), sample = item / s->bundles;
    double *dscale = s->params + 2 * sample * n->p.channels + first, *dshift = dscale + n->p.channels;
    for (int64_t c = 0; c < channels; c += s->width) {
        const int64_t group = group_of(s, item, first + c);
        const double mean = s->stats_in[2 * group], inv_std = s->stats_in[2 * group + 1];
        double sum = 0, product = 0, one[2];
        for (int64_t k = c; k < c + s->width; k++) {
            cvy_norm_total(n, sums, k, one);
            sum += one[0] * scale_of(s, first + k);
            product += one[1] * scale_of(s, first + k);
            dshift[k] = one[0];
            dscale[k] = one[1] * inv_std;
        }
        const double slope = -inv_std * inv_std * inv_std * product / count;
        for (int64_t k = c; k < c + s->width; k++)
            cvy_norm_set(n, coef, k,
                         &(cvy_norm_channel){.mean = mean,
                                             .factor = scale_of(s, first + k) * inv_std,
                                             .shift = shift_of(s, first + k),
                                             .slope = slope,
                                             .offset = -inv_std * sum / count - slope * mean});
    }
}

/* ---- running ---- */

static const cvy_norm_walks forward = {.sum = sum_part, .finish = finish_sums, .apply = apply_part};
static const cvy_norm_walks grad = {prepare_grad, sum_part, finish_grad, apply_part};

/* Scratch memory, in this order: coefficients, sums, and for the gradient dscale and dshift of each sample. */
static void place_scratch(struct group_norm *s, void *scratch)
{
    s->n.stream = cvy_norm_may_stream(&s->n);
    s->n.coef = scratch;
    s->n.sums = (cvy_bn_sums *)(s->n.coef + cvy_norm_ncoef(&s->n) * s->n.planes * s->n.cols);
    s->params = (double *)((char *)scratch + cvy_norm_scratch(&s->n));
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct group_norm *s = state;
    s->n.x = src[0];
    s->n.scale = s->n.scale_shift ? src[1] : NULL;
    s->n.shift = s->n.scale_shift ? src[2] : NULL;
    s->n.dst = dst[0];
    s->stats = dst[1];
    place_scratch(s, scratch);
    cvy_norm_run(&s->n, &forward);
    return CVY_OK;
}

/* k = 0: dscale, 1: dshift. */
static void sum_samples(const struct group_norm *s, int k, float *out)
{
    for (int64_t c = 0; c < s->n.p.channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < s->n.p.n; n++)
            sum += s->params[(2 * n + k) * s->n.p.channels + c];
        out[c] = (float)sum;
    }
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct group_norm *s = state;
    s->n.x = src[0];
    s->n.ddst = src[1];
    s->stats_in = src[2];
    s->n.scale = s->n.scale_shift ? src[3] : NULL;
    s->n.shift = s->n.scale_shift && s->n.relu ? src[4] : NULL;
    s->n.dst = dst[0];
    place_scratch(s, scratch);
    cvy_norm_run(&s->n, &grad);
    for (int k = 0; k < 2 && s->n.scale_shift; k++)
        sum_samples(s, k, dst[1 + k]);
    return CVY_OK;
}

/* ---- planning ---- */

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t multiple = a;
    while (multiple % b != 0)
        multiple += a;
    return multiple;
}

/* Planes of the activation. A tensor without positions is one plane of all channels for each sample. */
static cvy_planes planes_of(const cvy_shape *shape, const cvy_layout *layout)
{
    cvy_planes p = cvy_planes_make(shape, layout);
    if (p.positions == 1 && p.block == 1) {
        p.step = p.pitch;
        p.block = p.channels;
        p.groups = p.pitch = 1;
    }
    return p;
}

/* sliced: the layout of the tensor that may be a slice. */
static struct group_norm state_of(const cvy_kernel_ask *ask, const cvy_layout *layout, const cvy_layout *sliced)
{
    const cvy_sample_norm_opts *o = ask->node->options;
    const cvy_shape *shape = &ask->node->src[0]->shape;
    const cvy_planes p = planes_of(shape, layout), of_slice = planes_of(shape, sliced);
    struct group_norm s = {.n = cvy_norm_make(ask, &p, &of_slice)};
    s.n.relu = o->relu;
    s.n.scale_shift = o->scale_shift;
    s.n.eps = o->eps;
    s.width = o->groups ? p.channels / o->groups : 1;
    s.n.planes = CVY_MIN(common_multiple(s.width, p.block) / p.block, p.groups);
    s.bundles = (p.groups + s.n.planes - 1) / s.n.planes;
    s.n.items = p.n * s.bundles;
    s.n.slots = s.n.threads = cvy_shape_elems(shape) < CVY_GRAIN ? 1 : ask->threads;
    cvy_norm_cut(&s.n, ask->deterministic, s.n.rows);
    return s;
}

/* All activations get one layout: that of the source or, if the source is plain, that of source `other`. */
static cvy_status offer(cvy_kernel_ask *ask, int nactive)
{
    const cvy_node *node = ask->node;
    CVY_TRY(cvy_norm_check(node));
    cvy_layout layout = cvy_native_activation(ask, 0);
    if (nactive > 1 && cvy_layout_is_plain(&layout))
        layout = cvy_native_activation(ask, 1);
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = i < nactive ? layout : cvy_layout_plain();
    ask->dst[0] = layout;
    ask->inplace[0] = nactive; /* the last one of the activations */
    const struct group_norm s = state_of(ask, &layout, &layout);
    ask->scratch_bytes =
        cvy_norm_scratch(&s.n) + (nactive > 1 ? (size_t)(2 * s.n.p.n * s.n.p.channels) * sizeof(double) : 0);
    return CVY_OK;
}

static cvy_status forward_offer(cvy_kernel_ask *ask)
{
    return offer(ask, 1);
}

static cvy_status grad_offer(cvy_kernel_ask *ask)
{
    return offer(ask, 2);
}

static cvy_status create(const cvy_kernel_ask *ask, const cvy_layout *sliced, void **state_out)
{
    struct group_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = state_of(ask, &ask->src[0], sliced);
    *state_out = s;
    return CVY_OK;
}

static cvy_status forward_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, &ask->dst[0], state_out);
}

static cvy_status grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, &ask->src[1], state_out);
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_KERNEL_DEFINE(native_group_norm) = {
    .name = "native.group_norm",
    .op = "group_norm",
    .preference = 50,
    .slice_dst = 1,
    .slice_last = 1,
    .offer = forward_offer,
    .create = forward_create,
    .run = forward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_group_norm_grad) = {
    .name = "native.group_norm_grad",
    .op = "group_norm_grad",
    .preference = 50,
    .slice_src = 1 << 1,
    .slice_last = 1,
    .offer = grad_offer,
    .create = grad_create,
    .run = grad_run,
    .destroy = destroy,
};

/*
 * native_group_norm.c: group_norm (also as instance_norm) and its gradient on f32 and bf16, by the loops of batch norm.
 *
 * Batch norm sums over each channel of a group of samples. Here each channel of one sample is summed, the sums of the
 * channels of a group are added, and each channel gets its coefficients; so the loops over memory are the same
 * (native_bn_train.h), in every layout.
 *
 * An item is the fewest planes of a sample that hold whole groups: one plane for each channel of a group in plain
 * layout, some blocks of channels, or with channels last the whole sample. A thread walks over its items twice, the
 * second time backwards, while the item is still in the cache. If there are too few items for the threads, each is cut
 * into parts, which are runs of positions: all parts are summed first, and then all are applied.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "kernel/native/native_simd.h"
#include "op/norm/op_sample_norm.h"

enum {
    SUM_ROWS = 128,          /* rows of a tile that is summed */
    APPLY_BYTES = 128 << 10, /* bytes of a tile that is written */
};

struct group_norm {
    cvy_planes p;
    const cvy_bn_loops *loops;
    size_t bytes;                 /* of an element */
    int64_t step, cols, rows;     /* a plane has `rows` rows of `step` elements, in `cols` runs */
    int64_t sum_rows, apply_rows; /* rows of a tile */
    int64_t width;                /* channels of a group */
    int64_t bundle, bundles;      /* planes of an item; items of a sample */
    int64_t items, parts;         /* parts: of an item */
    /* See cvy_planes; of the tensor that may be a slice: the result; in the gradient, ddst. */
    int64_t sliced_pitch, sliced_step;
    int threads, relu, scale_shift;
    double eps;
    /* Of the running call. */
    const char *x, *ddst;
    const float *scale, *shift, *stats_in;
    float *stats; /* NULL: not needed */
    char *dst;
    int stream;
    cvy_bn_coef *coef; /* of a thread, or of each item if items have parts; in scratch memory */
    cvy_bn_sums *sums; /* of a thread, or of each part; in scratch memory */
    double *params;    /* of the gradient: [N, 2, C] = dscale and dshift of each sample; in scratch memory */
};

/* ---- geometry ---- */

static int64_t plane_elems(const struct group_norm *s)
{
    return s->p.positions * s->p.block;
}

/* The planes of an item. */
static int64_t item_planes(const struct group_norm *s, int64_t item)
{
    return CVY_MIN(s->bundle, s->p.groups - item % s->bundles * s->bundle);
}

/* The first channel of an item. */
static int64_t item_channel(const struct group_norm *s, int64_t item)
{
    return item % s->bundles * s->bundle * s->p.block;
}

static int64_t item_channels(const struct group_norm *s, int64_t item)
{
    return CVY_MIN(item_planes(s, item) * s->p.block, s->p.channels - item_channel(s, item));
}

/* Number of the first group of an item, counted over all samples. */
static int64_t item_group(const struct group_norm *s, int64_t item)
{
    return (item / s->bundles * s->p.channels + item_channel(s, item)) / s->width;
}

/* Offset of a row of a plane of an item, in bytes. */
static size_t row_at(const struct group_norm *s, int64_t item, int64_t plane, int64_t row)
{
    const int64_t number = item / s->bundles * s->p.groups + item % s->bundles * s->bundle + plane;
    return (size_t)(number * plane_elems(s) + row * s->step) * s->bytes;
}

/* The same in the tensor that may be a slice. If its rows are further apart, a row is a position. */
static size_t sliced_at(const struct group_norm *s, int64_t item, int64_t plane, int64_t row)
{
    const int64_t sample = item / s->bundles, number = sample * s->sliced_pitch + item % s->bundles * s->bundle + plane;
    return (size_t)(s->sliced_step == s->step ? number * plane_elems(s) + row * s->step
                                              : (sample * s->p.positions + row) * s->sliced_step) *
           s->bytes;
}

/* The tile of rows first .. end - 1 of a plane of an item. */
static cvy_bn_tile tile_at(const struct group_norm *s, int64_t item, int64_t plane, int64_t first, int64_t end)
{
    const size_t at = row_at(s, item, plane, first), sliced = sliced_at(s, item, plane, first);
    return (cvy_bn_tile){
        .elems = CVY_MIN(end * s->step, plane_elems(s)) - first * s->step,
        .step = s->step,
        .pitch = s->sliced_step,
        .x = s->x + at,
        .ddst = s->ddst ? s->ddst + sliced : NULL,
        .dst = s->dst + (s->ddst ? at : sliced),
        .relu = s->relu,
        .stream = s->stream,
    };
}

/* Adds the two sums of channel `channel` of an item over its parts. */
static void total(const struct group_norm *s, const cvy_bn_sums *sums, int64_t channel, double out[2])
{
    const int64_t plane = channel / s->p.block * s->cols;
    out[0] = out[1] = 0;
    for (int64_t part = 0; part < s->parts; part++)
        for (int64_t l = channel % s->p.block; l < s->step; l += s->p.block) {
            const cvy_bn_sums *run = &sums[part * s->bundle * s->cols + plane + l / s->loops->run];
            const int64_t at = cvy_bn_lane(s->loops, l % s->loops->run);
            out[0] += (*run)[0][at];
            out[1] += (*run)[1][at];
        }
}

/* Coefficients of one channel. */
struct channel {
    double mean, factor, shift, slope, offset;
};

static void set_coef(const struct group_norm *s, cvy_bn_coef *coef, int64_t channel, const struct channel *c)
{
    for (int64_t l = channel % s->p.block; l < s->step; l += s->p.block) {
        cvy_bn_coef *run = &coef[channel / s->p.block * s->cols + l / s->loops->run];
        const int64_t at = cvy_bn_lane(s->loops, l % s->loops->run);
        run->mean[at] = (float)c->mean;
        run->factor[at] = (float)c->factor;
        run->shift[at] = (float)c->shift;
        run->slope[at] = (float)c->slope;
        run->offset[at] = (float)c->offset;
    }
}

/* Padding lanes get zero coefficients, so that they stay zero. */
static void clear_coef(const struct group_norm *s, cvy_bn_coef *coef)
{
    memset(coef, 0, (size_t)(s->bundle * s->cols) * sizeof *coef);
}

static double scale_of(const struct group_norm *s, int64_t channel)
{
    return s->scale ? s->scale[channel] : 1;
}

static double shift_of(const struct group_norm *s, int64_t channel)
{
    return s->shift ? s->shift[channel] : 0;
}

/* ---- forward ---- */

static void sum_part(const struct group_norm *s, int64_t item, int64_t part, cvy_bn_sums *sums)
{
    const int64_t begin = s->rows * part / s->parts, end = s->rows * (part + 1) / s->parts;
    memset(sums, 0, (size_t)(s->bundle * s->cols) * sizeof *sums);
    for (int64_t plane = 0; plane < item_planes(s, item); plane++)
        for (int64_t row = begin; row < end; row += s->sum_rows) {
            const cvy_bn_tile t = tile_at(s, item, plane, row, CVY_MIN(row + s->sum_rows, end));
            s->loops->sums(&t, sums + plane * s->cols);
        }
}

static void finish_sums(const struct group_norm *s, int64_t item, const cvy_bn_sums *sums, cvy_bn_coef *coef)
{
    const double count = (double)(s->width * s->p.positions);
    const int64_t first = item_channel(s, item);
    clear_coef(s, coef);
    for (int64_t c = 0; c < item_channels(s, item); c += s->width) {
        const int64_t group = item_group(s, item) + c / s->width;
        double sum = 0, squares = 0, one[2];
        for (int64_t k = c; k < c + s->width; k++) {
            total(s, sums, k, one);
            sum += one[0];
            squares += one[1];
        }
        const double mean = sum / count, inv_std = 1 / sqrt(fmax(squares / count - mean * mean, 0) + s->eps);
        for (int64_t k = c; k < c + s->width; k++)
            set_coef(s, coef, k,
                     &(struct channel){
                         .mean = mean, .factor = scale_of(s, first + k) * inv_std, .shift = shift_of(s, first + k)});
        if (s->stats) {
            s->stats[2 * group] = (float)mean;
            s->stats[2 * group + 1] = (float)inv_std;
        }
    }
}

static void apply_part(const struct group_norm *s, int64_t item, int64_t part, const cvy_bn_coef *coef)
{
    const int64_t begin = s->rows * part / s->parts, end = s->rows * (part + 1) / s->parts;
    for (int64_t plane = item_planes(s, item) - 1; plane >= 0; plane--)
        for (int64_t row = end; row > begin; row -= s->apply_rows) {
            const cvy_bn_tile t = tile_at(s, item, plane, CVY_MAX(row - s->apply_rows, begin), row);
            s->loops->apply(&t, coef + plane * s->cols);
        }
}

/* ---- backward ---- */

static void prepare_grad(const struct group_norm *s, int64_t item, cvy_bn_coef *coef)
{
    clear_coef(s, coef);
    for (int64_t c = 0; c < item_channels(s, item); c++) {
        const int64_t group = item_group(s, item) + c / s->width, at = item_channel(s, item) + c;
        set_coef(s, coef, c,
                 &(struct channel){.mean = s->stats_in[2 * group],
                                   .factor = scale_of(s, at) * s->stats_in[2 * group + 1],
                                   .shift = shift_of(s, at)});
    }
}

static void grad_sum_part(const struct group_norm *s, int64_t item, int64_t part, const cvy_bn_coef *coef,
                          cvy_bn_sums *sums)
{
    const int64_t begin = s->rows * part / s->parts, end = s->rows * (part + 1) / s->parts;
    memset(sums, 0, (size_t)(s->bundle * s->cols) * sizeof *sums);
    for (int64_t plane = 0; plane < item_planes(s, item); plane++)
        for (int64_t row = begin; row < end; row += s->sum_rows) {
            const cvy_bn_tile t = tile_at(s, item, plane, row, CVY_MIN(row + s->sum_rows, end));
            s->loops->grad_sums(&t, coef + plane * s->cols, sums + plane * s->cols);
        }
}

/* dsrc = inv_std * (d - mean(d) - xhat * mean(d * xhat)) with d = ddst * scale, as factor * ddst + slope * x + offset.
 * The sums are those of ddst and ddst * (x - mean). */
static void finish_grad(const struct group_norm *s, int64_t item, const cvy_bn_sums *sums, cvy_bn_coef *coef)
{
    const double count = (double)(s->width * s->p.positions);
    const int64_t first = item_channel(s, item), sample = item / s->bundles;
    double *dscale = s->params + 2 * sample * s->p.channels + first, *dshift = dscale + s->p.channels;
    for (int64_t c = 0; c < item_channels(s, item); c += s->width) {
        const int64_t group = item_group(s, item) + c / s->width;
        const double mean = s->stats_in[2 * group], inv_std = s->stats_in[2 * group + 1];
        double sum = 0, product = 0, one[2];
        for (int64_t k = c; k < c + s->width; k++) {
            total(s, sums, k, one);
            sum += one[0] * scale_of(s, first + k);
            product += one[1] * scale_of(s, first + k);
            dshift[k] = one[0];
            dscale[k] = one[1] * inv_std;
        }
        const double slope = -inv_std * inv_std * inv_std * product / count;
        for (int64_t k = c; k < c + s->width; k++)
            set_coef(s, coef, k,
                     &(struct channel){.mean = mean,
                                       .factor = scale_of(s, first + k) * inv_std,
                                       .shift = shift_of(s, first + k),
                                       .slope = slope,
                                       .offset = -inv_std * sum / count - slope * mean});
    }
}

static void grad_apply_part(const struct group_norm *s, int64_t item, int64_t part, const cvy_bn_coef *coef)
{
    const int64_t begin = s->rows * part / s->parts, end = s->rows * (part + 1) / s->parts;
    for (int64_t plane = item_planes(s, item) - 1; plane >= 0; plane--)
        for (int64_t row = end; row > begin; row -= s->apply_rows) {
            const cvy_bn_tile t = tile_at(s, item, plane, CVY_MAX(row - s->apply_rows, begin), row);
            s->loops->grad_apply(&t, coef + plane * s->cols);
        }
}

/* ---- running: whole items by threads, or parts ---- */

/* Coefficients of an item, or sums of a part, by number. */
static cvy_bn_coef *coef_at(const struct group_norm *s, int64_t number)
{
    return s->coef + number * s->bundle * s->cols;
}

static cvy_bn_sums *sums_at(const struct group_norm *s, int64_t number)
{
    return s->sums + number * s->bundle * s->cols;
}

static void forward_items(int64_t first, int64_t end, void *arg)
{
    const struct group_norm *s = arg;
    for (int64_t t = first; t < end; t++)
        for (int64_t item = s->items * t / s->threads; item < s->items * (t + 1) / s->threads; item++) {
            sum_part(s, item, 0, sums_at(s, t));
            finish_sums(s, item, sums_at(s, t), coef_at(s, t));
            apply_part(s, item, 0, coef_at(s, t));
        }
}

static void sum_parts(int64_t first, int64_t end, void *arg)
{
    const struct group_norm *s = arg;
    for (int64_t i = first; i < end; i++)
        sum_part(s, i / s->parts, i % s->parts, sums_at(s, i));
}

static void apply_parts(int64_t first, int64_t end, void *arg)
{
    const struct group_norm *s = arg;
    for (int64_t i = first; i < end; i++)
        apply_part(s, i / s->parts, i % s->parts, coef_at(s, i / s->parts));
}

static void grad_items(int64_t first, int64_t end, void *arg)
{
    const struct group_norm *s = arg;
    for (int64_t t = first; t < end; t++)
        for (int64_t item = s->items * t / s->threads; item < s->items * (t + 1) / s->threads; item++) {
            prepare_grad(s, item, coef_at(s, t));
            grad_sum_part(s, item, 0, coef_at(s, t), sums_at(s, t));
            finish_grad(s, item, sums_at(s, t), coef_at(s, t));
            grad_apply_part(s, item, 0, coef_at(s, t));
        }
}

static void grad_sum_parts(int64_t first, int64_t end, void *arg)
{
    const struct group_norm *s = arg;
    for (int64_t i = first; i < end; i++)
        grad_sum_part(s, i / s->parts, i % s->parts, coef_at(s, i / s->parts), sums_at(s, i));
}

static void grad_apply_parts(int64_t first, int64_t end, void *arg)
{
    const struct group_norm *s = arg;
    for (int64_t i = first; i < end; i++)
        grad_apply_part(s, i / s->parts, i % s->parts, coef_at(s, i / s->parts));
}

/* Whether the result may be written with non-temporal stores: it must be large, not in the memory of a source, and each
 * row must begin at a cache line. */
static int may_stream(const struct group_norm *s)
{
    const size_t plane = (size_t)plane_elems(s) * s->bytes, planes = (size_t)(s->p.n * s->p.groups);
    return plane * planes >= CVY_STREAM_BYTES && plane % CVY_LINE_BYTES == 0 &&
           (size_t)s->step * s->bytes % CVY_LINE_BYTES == 0 &&
           (size_t)s->sliced_step * s->bytes % CVY_LINE_BYTES == 0 && (uintptr_t)s->dst % CVY_LINE_BYTES == 0 &&
           s->dst != s->x && s->dst != s->ddst;
}

/* Number of arrays of coefficients, and of sums. */
static int64_t count_coefs(const struct group_norm *s)
{
    return s->parts == 1 ? s->threads : s->items;
}

static int64_t count_sums(const struct group_norm *s)
{
    return s->parts == 1 ? s->threads : s->items * s->parts;
}

/* Scratch memory, in this order: coefficients, sums, and for the gradient dscale and dshift of each sample. */
static void place_scratch(struct group_norm *s, void *scratch)
{
    s->stream = may_stream(s);
    s->coef = scratch;
    s->sums = (cvy_bn_sums *)coef_at(s, count_coefs(s));
    s->params = (double *)sums_at(s, count_sums(s));
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct group_norm *s = state;
    s->x = src[0];
    s->scale = s->scale_shift ? src[1] : NULL;
    s->shift = s->scale_shift ? src[2] : NULL;
    s->dst = dst[0];
    s->stats = dst[1];
    place_scratch(s, scratch);
    if (s->parts == 1) {
        cvy_parallel_for(s->threads, s->threads, 1, forward_items, s);
        return CVY_OK;
    }
    cvy_parallel_for(s->threads, s->items * s->parts, 1, sum_parts, s);
    for (int64_t item = 0; item < s->items; item++)
        finish_sums(s, item, sums_at(s, item * s->parts), coef_at(s, item));
    cvy_parallel_for(s->threads, s->items * s->parts, 1, apply_parts, s);
    return CVY_OK;
}

/* k = 0: dscale, 1: dshift. */
static void sum_samples(const struct group_norm *s, int k, float *out)
{
    for (int64_t c = 0; c < s->p.channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < s->p.n; n++)
            sum += s->params[(2 * n + k) * s->p.channels + c];
        out[c] = (float)sum;
    }
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct group_norm *s = state;
    s->x = src[0];
    s->ddst = src[1];
    s->stats_in = src[2];
    s->scale = s->scale_shift ? src[3] : NULL;
    s->shift = s->scale_shift && s->relu ? src[4] : NULL;
    s->dst = dst[0];
    place_scratch(s, scratch);
    if (s->parts == 1) {
        cvy_parallel_for(s->threads, s->threads, 1, grad_items, s);
    } else {
        for (int64_t item = 0; item < s->items; item++)
            prepare_grad(s, item, coef_at(s, item));
        cvy_parallel_for(s->threads, s->items * s->parts, 1, grad_sum_parts, s);
        for (int64_t item = 0; item < s->items; item++)
            finish_grad(s, item, sums_at(s, item * s->parts), coef_at(s, item));
        cvy_parallel_for(s->threads, s->items * s->parts, 1, grad_apply_parts, s);
    }
    for (int k = 0; k < 2 && s->scale_shift; k++)
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

/* In deterministic mode an item has one part, because sums must not depend on the number of threads. */
static int64_t count_parts(const struct group_norm *s, int deterministic)
{
    if (deterministic || s->items == 0 || s->items % s->threads == 0 || s->items >= 8 * s->threads)
        return 1;
    return CVY_MIN(s->threads, s->rows);
}

/* sliced: the layout of the tensor that may be a slice. */
static struct group_norm state_of(const cvy_kernel_ask *ask, const cvy_layout *layout, const cvy_layout *sliced)
{
    const cvy_node *node = ask->node;
    const cvy_sample_norm_opts *o = node->options;
    const cvy_shape *shape = &node->src[0]->shape;
    struct group_norm s = {.p = planes_of(shape, layout),
                           .loops = &cvy_simd_find(CVY_BN_RUN_F32)->bn[node->src[0]->dtype == CVY_DTYPE_BF16],
                           .bytes = cvy_dtype_bytes(node->src[0]->dtype),
                           .relu = o->relu,
                           .scale_shift = o->scale_shift,
                           .eps = o->eps};
    const cvy_planes whole = planes_of(shape, sliced);
    s.step = common_multiple(s.loops->run, s.p.block);
    s.sliced_pitch = whole.pitch;
    s.sliced_step = whole.step == whole.block ? s.step : whole.step;
    s.cols = s.step / s.loops->run;
    s.rows = (plane_elems(&s) + s.step - 1) / s.step;
    s.sum_rows = SUM_ROWS;
    s.apply_rows = CVY_MAX(1, APPLY_BYTES / (s.step * (int64_t)s.bytes));
    s.width = o->groups ? s.p.channels / o->groups : 1;
    s.bundle = CVY_MIN(common_multiple(s.width, s.p.block) / s.p.block, s.p.groups);
    s.bundles = (s.p.groups + s.bundle - 1) / s.bundle;
    s.items = s.p.n * s.bundles;
    s.threads = cvy_shape_elems(shape) < CVY_GRAIN ? 1 : ask->threads;
    s.parts = count_parts(&s, ask->deterministic);
    return s;
}

/* All activations get one layout: that of the source or, if the source is plain, that of source `other`. */
static cvy_status offer(cvy_kernel_ask *ask, int nactive)
{
    const cvy_node *node = ask->node;
    CVY_TRY(cvy_native_f32_or_bf16(node));
    if (!cvy_simd_find(CVY_BN_RUN_F32))
        return cvy_error_set(CVY_NOT_APPLICABLE, "this kernel needs a compiler with vector extensions (gcc or clang)");
    cvy_layout layout = cvy_native_activation(ask, 0);
    if (nactive > 1 && cvy_layout_is_plain(&layout))
        layout = cvy_native_activation(ask, 1);
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = i < nactive ? layout : cvy_layout_plain();
    ask->dst[0] = layout;
    ask->inplace[0] = nactive; /* the last one of the activations */
    const struct group_norm s = state_of(ask, &layout, &layout);
    ask->scratch_bytes = (size_t)(s.bundle * s.cols) * ((size_t)count_coefs(&s) * sizeof(cvy_bn_coef) +
                                                        (size_t)count_sums(&s) * sizeof(cvy_bn_sums)) +
                         (nactive > 1 ? (size_t)(2 * s.p.n * s.p.channels) * sizeof(double) : 0);
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

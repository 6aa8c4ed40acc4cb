/*
 * gpu_layer_norm.c: layer_norm and its gradient on f32 and bf16.
 *
 * op/norm/op_sample_norm.h has the formulas. A block normalises one set of elements: those of one token, of one
 * position or of one sample. It reads them several times, from the cache if they fit there. Sums over all sets, for
 * dscale and dshift, are made in two steps: a block has some numbers of scale and a part of the sets, and a second
 * kernel adds the parts in a fixed order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { LAYER_FOLD = 8 }; /* columns of a block that adds parts */

/* Element i of set s is at s / per * of_hi + s % per * of_lo + i / len * to_hi + i % len * to_lo, and has number
 * i / len * k_hi + i % len * k_lo of scale and shift. */
struct layer_norm {
    i64 of_hi, of_lo, to_hi, to_lo;
    int sets, size, per, len, k_hi, k_lo;
    int scales, keeps;           /* keeps: stats are wanted */
    int width, parts, set_parts; /* columns of a block, parts of the sets, sets of a part */
    int dscale, dshift;          /* they are wanted */
    float eps;
};

#ifdef CVY_DEVICE

INLINE i64 set_at(struct layer_norm a, int s)
{
    return a.per == 1 ? s * a.of_hi : s / a.per * a.of_hi + s % a.per * a.of_lo;
}

INLINE i64 element_at(struct layer_norm a, int i)
{
    return a.len == a.size ? i * a.to_lo : i / a.len * a.to_hi + i % a.len * a.to_lo;
}

INLINE int number_of(struct layer_norm a, int i)
{
    return a.len == a.size ? i * a.k_lo : i / a.len * a.k_hi + i % a.len * a.k_lo;
}

KERNEL(layer_norm)
(GLOBAL const act *x, GLOBAL const float *scale, GLOBAL const float *shift, GLOBAL act *dst, GLOBAL float *stats,
 struct layer_norm a)
{
    SHARED double sums[256];
    const i64 set = set_at(a, BLOCK);
    double mean = 0, variance = 0;
    float middle, inv_std;
    for (int i = THREAD; i < a.size; i += THREADS)
        mean += GET(x, set + element_at(a, i));
    BLOCK_SUM(mean, sums);
    mean /= a.size;
    for (int i = THREAD; i < a.size; i += THREADS) {
        const double d = GET(x, set + element_at(a, i)) - mean;
        variance += d * d;
    }
    BLOCK_SUM(variance, sums);
    middle = (float)mean;
    inv_std = (float)(1 / SQRT_D(variance / a.size + a.eps));
    for (int i = THREAD; i < a.size; i += THREADS) {
        const i64 at = set + element_at(a, i);
        const int k = number_of(a, i);
        const float y = (GET(x, at) - middle) * inv_std;
        SET(dst, at, a.scales ? FMA(y, scale[k], shift[k]) : y);
    }
    if (THREAD == 0 && a.keeps) {
        stats[2 * (i64)BLOCK] = middle;
        stats[2 * (i64)BLOCK + 1] = inv_std;
    }
}

KERNEL(layer_norm_grad)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const float *stats, GLOBAL const float *scale, GLOBAL act *dsrc,
 struct layer_norm a)
{
    SHARED double sums[256];
    const i64 set = set_at(a, BLOCK);
    const float middle = stats[2 * (i64)BLOCK], inv_std = stats[2 * (i64)BLOCK + 1];
    double sum = 0, products = 0;
    float mean_d, mean_dx;
    for (int i = THREAD; i < a.size; i += THREADS) {
        const i64 at = set + element_at(a, i);
        const float d = a.scales ? GET(ddst, at) * scale[number_of(a, i)] : GET(ddst, at);
        sum += d;
        products += (double)d * (GET(x, at) - middle);
    }
    BLOCK_SUM(sum, sums);
    BLOCK_SUM(products, sums);
    mean_d = (float)(sum / a.size);
    mean_dx = (float)(products * inv_std / a.size);
    for (int i = THREAD; i < a.size; i += THREADS) {
        const i64 at = set + element_at(a, i);
        const float d = a.scales ? GET(ddst, at) * scale[number_of(a, i)] : GET(ddst, at);
        const float xhat = (GET(x, at) - middle) * inv_std;
        SET(dsrc, at, inv_std * (d - mean_d - xhat * mean_dx));
    }
}

/* Sums of ddst and of ddst * xhat over a part of the sets, to part [parts, 2, size]. Grid: columns, parts. */
KERNEL(layer_norm_sums)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const float *stats, GLOBAL double *part, struct layer_norm a)
{
    SHARED double sums[256];
    const int i = BLOCK * a.width + THREAD % a.width, end = MIN((BLOCK_Y + 1) * a.set_parts, a.sets);
    const i64 to = element_at(a, MIN(i, a.size - 1));
    double sum = 0, products = 0;
    for (int s = BLOCK_Y * a.set_parts + THREAD / a.width; s < end && i < a.size; s += THREADS / a.width) {
        const i64 at = set_at(a, s) + to;
        const float d = GET(ddst, at);
        sum += d;
        products += (double)d * ((GET(x, at) - stats[2 * (i64)s]) * stats[2 * (i64)s + 1]);
    }
    COLUMN_SUM(sum, sums, a.width);
    COLUMN_SUM(products, sums, a.width);
    if (THREAD < a.width && i < a.size) {
        part[(i64)BLOCK_Y * 2 * a.size + i] = sum;
        part[((i64)BLOCK_Y * 2 + 1) * a.size + i] = products;
    }
}

KERNEL(layer_norm_params)(GLOBAL const double *part, GLOBAL float *dscale, GLOBAL float *dshift, struct layer_norm a)
{
    SHARED double sums[256];
    const int i = BLOCK * LAYER_FOLD + THREAD % LAYER_FOLD, k = number_of(a, MIN(i, a.size - 1));
    double sum = 0, products = 0;
    for (int p = THREAD / LAYER_FOLD; p < a.parts && i < a.size; p += THREADS / LAYER_FOLD) {
        sum += part[(i64)p * 2 * a.size + i];
        products += part[((i64)p * 2 + 1) * a.size + i];
    }
    COLUMN_SUM(sum, sums, LAYER_FOLD);
    COLUMN_SUM(products, sums, LAYER_FOLD);
    if (THREAD < LAYER_FOLD && i < a.size && a.dscale)
        dscale[k] = (float)products;
    if (THREAD < LAYER_FOLD && i < a.size && a.dshift)
        dshift[k] = (float)sum;
}

#else
#include "kernel/gpu/norm/gpu_norm.h"
#include "op/norm/op_sample_norm.h"

CVY_GPU_SOURCE_DECLARE(gpu_layer_norm);

enum { WHOLE, SUMS, PARAMS, STEPS }; /* WHOLE: layer_norm or layer_norm_grad */

struct call {
    cvy_gpu_kernel kernel[STEPS];
    struct layer_norm a;
    int threads, is_grad;
};

/* Where the sets are in memory. last: with channels last. */
static struct layer_norm places_of(const cvy_node *node, int last)
{
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    const cvy_shape *src = &node->src[0]->shape;
    const int64_t channels = src->dim[1], positions = cvy_shape_elems(src) / CVY_MAX(src->dim[0] * channels, 1);
    struct layer_norm a = {.sets = (int)(sets.outer * sets.inner), .size = (int)sets.size};
    a.per = last ? 1 : (int)sets.inner;
    a.of_hi = sets.size * (last ? 1 : sets.inner);
    a.of_lo = 1;
    if (last && sets.size > channels) { /* all of a sample: scale and shift are plain */
        a.len = (int)channels;
        a.to_hi = channels;
        a.to_lo = a.k_hi = 1;
        a.k_lo = (int)positions;
    } else {
        a.len = a.size;
        a.to_lo = last ? 1 : sets.inner;
        a.k_lo = 1;
    }
    return a;
}

/* Sets of channels are contiguous with channels last, all of a sample in any layout, and others in plain layout. */
static cvy_layout layout_of(const cvy_kernel_ask *ask)
{
    const cvy_shape *src = &ask->node->src[0]->shape;
    const cvy_sample_sets sets = cvy_sample_sets_of(ask->node);
    const cvy_layout last = cvy_gpu_layout(src);
    const int64_t of_sample = cvy_shape_elems(src) / CVY_MAX(src->dim[0], 1);
    if (sets.outer == src->dim[0] && sets.inner * sets.size == of_sample && sets.size == src->dim[1] && sets.inner > 1)
        return last;
    if (sets.size == of_sample && sets.outer == src->dim[0])
        for (int i = 0; i < (ask->node->nsrc > 2 ? 2 : 1); i++)
            if (cvy_layout_equal(&ask->src[i], &last))
                return last;
    return cvy_layout_plain();
}

static cvy_status make(const cvy_kernel_ask *ask, const cvy_layout *layout, struct call *c)
{
    const cvy_node *node = ask->node;
    const cvy_sample_norm_opts *o = node->options;
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(node, &act));
    CVY_CHECK(cvy_shape_elems(&node->src[0]->shape) <= INT32_MAX / 2, CVY_NOT_APPLICABLE,
              "this kernel counts elements in 32 bits, and the source is %s", cvy_shape_text(&node->src[0]->shape));
    *c = (struct call){
        .a = places_of(node, !cvy_layout_is_plain(layout)), .threads = 32, .is_grad = node->op->nsrc_min > 1};
    while (c->threads < CVY_GPU_THREADS && 4 * c->threads < c->a.size)
        c->threads *= 2;
    c->a.scales = o->scale_shift;
    c->a.eps = (float)o->eps;
    if (c->is_grad) {
        c->a.dscale = o->scale_shift && node->dst[1];
        c->a.dshift = o->scale_shift && node->dst[2];
        c->a.width = cvy_gpu_columns(c->a.size);
        c->a.parts = cvy_gpu_row_parts(c->a.sets, c->a.size, c->a.width, 1);
        c->a.set_parts = (int)cvy_gpu_tiles(c->a.sets, c->a.parts);
    } else {
        c->a.keeps = node->dst[1] != NULL;
    }
    const char *const names[] = {c->is_grad ? "layer_norm_grad" : "layer_norm", "layer_norm_sums", "layer_norm_params"};
    for (int i = 0; i < (c->a.dscale || c->a.dshift ? STEPS : 1); i++)
        CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_layer_norm), names[i], act, &c->kernel[i]));
    return CVY_OK;
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_layout layout = layout_of(ask);
    struct call c;
    CVY_TRY(make(ask, &layout, &c));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = i == 0 || (i == 1 && c.is_grad) ? layout : cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = i == 0 ? layout : cvy_layout_plain();
    if (c.a.dscale || c.a.dshift)
        ask->scratch_bytes = sizeof(double) * 2 * (size_t)c.a.parts * (size_t)c.a.size;
    ask->inplace[0] = c.is_grad ? 2 : 1;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    return make(ask, &ask->src[0], c);
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *scale = c->a.scales ? src[1] : src[0], *shift = c->a.scales ? src[2] : src[0],
               *stats = c->a.keeps ? dst[1] : dst[0];
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel[WHOLE], c->a.sets, 1, 1, c->threads, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(scale), CVY_GPU_POINTER(shift), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_POINTER(stats), CVY_GPU_VALUE(c->a));
}

/* dscale and dshift come first, because dsrc may take over the memory of ddst. */
static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *scale = c->a.scales ? src[3] : src[0], *dscale = c->a.dscale ? dst[1] : scratch,
               *dshift = c->a.dshift ? dst[2] : scratch;
    if (c->a.dscale || c->a.dshift) {
        CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[SUMS], cvy_gpu_tiles(c->a.size, c->a.width), c->a.parts, 1, CVY_GPU_THREADS,
                               CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]),
                               CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(c->a)));
        CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[PARAMS], cvy_gpu_tiles(c->a.size, LAYER_FOLD), 1, 1, CVY_GPU_THREADS,
                               CVY_GPU_POINTER(scratch), CVY_GPU_POINTER(dscale), CVY_GPU_POINTER(dshift),
                               CVY_GPU_VALUE(c->a)));
    }
    return CVY_GPU_LAUNCH(&c->kernel[WHOLE], c->a.sets, 1, 1, c->threads, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(scale),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_layer_norm) = {CVY_GPU_FIELDS("layer_norm", offer, create, forward_run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_layer_norm_grad) = {
    CVY_GPU_FIELDS("layer_norm_grad", offer, create, grad_run, cvy_gpu_free_state)};
#endif

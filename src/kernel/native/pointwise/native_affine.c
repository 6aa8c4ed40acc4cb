/*
 * native_affine.c: affine and its gradients in f32: one pass over memory each.
 *
 * The trained tensors must change along adjacent axes only: then the source is [outer, size, inner], and each of the
 * `size` numbers is for `inner` adjacent elements. If they change along the channels, these may also be in blocks or
 * last. Sums are taken over runs of adjacent elements in f32, over the runs in f64, in a fixed order: the result does
 * not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_common.h"
#include "op/pointwise/op_affine.h"

enum { LANES = 16, CHUNKS = 32 };

struct affine {
    /* Rows of `size` elements, each with its own number, if inner is 1; else runs of inner * block elements, whose
     * numbers repeat with the period `block`. */
    int64_t outer, size, inner, block, groups;
    int threads, scales, shifts;
    int64_t chunks; /* of the rows, for sums */
    /* Of the running call. */
    const float *src, *other, *scale, *shift;
    float *dst;
    double *sums;
};

/* The axes first .. end - 1 along which the tensors change. */
static void axes_of(const cvy_shape *shape, int *first, int *end)
{
    *first = shape->ndim;
    *end = 0;
    for (int d = 0; d < shape->ndim; d++)
        if (shape->dim[d] > 1) {
            *first = CVY_MIN(*first, d);
            *end = d + 1;
        }
    if (*first > *end)
        *first = *end = shape->ndim;
}

static cvy_status shape_of(const cvy_node *node, const cvy_layout *layout, struct affine *s)
{
    const cvy_affine_opts *o = node->options;
    const cvy_shape *src = &node->src[0]->shape, shape = cvy_affine_shape(o, src);
    const cvy_layout last = cvy_layout_channels_last(src->ndim);
    int first, end;
    axes_of(&shape, &first, &end);
    *s = (struct affine){.outer = 1, .size = 1, .inner = 1, .block = 1, .scales = o->scale, .shifts = o->shift};
    for (int d = 0; d < src->ndim; d++) {
        CVY_CHECK(d < first || d >= end || shape.dim[d] == src->dim[d], CVY_NOT_APPLICABLE,
                  "the trained tensors do not change along an axis between two along which they do");
        *(d < first ? &s->outer : d < end ? &s->size : &s->inner) *= src->dim[d];
    }
    s->groups = s->size;
    if (cvy_layout_is_plain(layout))
        return CVY_OK;
    CVY_CHECK(first == 1 && end == 2, CVY_NOT_APPLICABLE, "with channels in blocks, only numbers for channels");
    if (cvy_layout_equal(layout, &last)) {
        s->outer *= s->inner;
        s->inner = 1;
    } else {
        s->block = cvy_layout_channel_block(layout, src->ndim);
        s->groups = (s->size + s->block - 1) / s->block;
    }
    return CVY_OK;
}

static int has_rows(const struct affine *s)
{
    return s->inner == 1 && s->block == 1;
}

/* Takes the layout of the first of nsrc sources that is not plain, if it is possible. */
static cvy_status offer_layout(cvy_kernel_ask *ask, int nsrc)
{
    struct affine s;
    CVY_TRY(cvy_native_f32(ask->node));
    cvy_layout layout = cvy_native_activation(ask, 0);
    for (int i = 1; i < nsrc && cvy_layout_is_plain(&layout); i++)
        layout = cvy_native_activation(ask, i);
    if (shape_of(ask->node, &layout, &s) != CVY_OK || LANES % s.block != 0) {
        layout = cvy_layout_plain();
        CVY_TRY(shape_of(ask->node, &layout, &s));
    }
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = i < nsrc ? layout : cvy_layout_plain();
    return CVY_OK;
}

static cvy_status affine_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(offer_layout(ask, 1));
    ask->dst[0] = ask->src[0];
    ask->inplace[0] = 1;
    return CVY_OK;
}

static int64_t chunks_of(const struct affine *s)
{
    return CVY_MIN((int64_t)CHUNKS, CVY_MAX(s->outer, 1));
}

static cvy_status weight_offer(cvy_kernel_ask *ask)
{
    struct affine s;
    CVY_TRY(offer_layout(ask, ask->node->nsrc));
    CVY_TRY(shape_of(ask->node, &ask->src[0], &s));
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    ask->scratch_bytes = sizeof(double) * 2 * (size_t)(chunks_of(&s) * s.groups * s.block);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct affine *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    const cvy_status status = shape_of(ask->node, &ask->src[0], s);
    s->threads = ask->threads;
    s->chunks = chunks_of(s);
    *state_out = s;
    return status;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_INLINE void affine_row(const struct affine *s, int64_t row)
{
    const float *src = s->src + row * s->size, *scale = s->scale, *shift = s->shift;
    float *dst = s->dst + row * s->size;
    if (scale && shift)
#pragma omp simd
        for (int64_t i = 0; i < s->size; i++)
            dst[i] = src[i] * scale[i] + shift[i];
    else if (scale)
#pragma omp simd
        for (int64_t i = 0; i < s->size; i++)
            dst[i] = src[i] * scale[i];
    else
#pragma omp simd
        for (int64_t i = 0; i < s->size; i++)
            dst[i] = src[i] + shift[i];
}

/* Padding lanes are multiplied by 0 and get 0 added. */
CVY_INLINE void affine_run(const struct affine *s, int64_t run)
{
    const int64_t n = s->inner * s->block, first = run % s->groups * s->block;
    const float *src = s->src + run * n;
    float *dst = s->dst + run * n, scale[LANES], shift[LANES];
    for (int64_t l = 0; l < LANES; l++) {
        const int64_t k = first + l % s->block;
        scale[l] = k >= s->size ? 0 : s->scale ? s->scale[k] : 1;
        shift[l] = k >= s->size || !s->shift ? 0 : s->shift[k];
    }
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            dst[i + l] = src[i + l] * scale[l] + shift[l];
    for (; i < n; i++)
        dst[i] = src[i] * scale[i % LANES] + shift[i % LANES];
}

CVY_SIMD static void affine_range(int64_t first, int64_t end, void *arg)
{
    const struct affine *s = arg;
    for (int64_t i = first; i < end; i++)
        if (has_rows(s))
            affine_row(s, i);
        else
            affine_run(s, i);
}

static cvy_status run_forward(struct affine *s, const void *src, const float *scale, const float *shift, void *dst)
{
    const int64_t n = has_rows(s) ? s->size : s->inner * s->block,
                  items = has_rows(s) ? s->outer : s->outer * s->groups;
    s->src = src;
    s->scale = scale;
    s->shift = shift;
    s->dst = dst;
    cvy_parallel_for(s->threads, items, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, n)), affine_range, s);
    return CVY_OK;
}

static cvy_status affine_run_all(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct affine *s = state;
    (void)scratch;
    return run_forward(s, src[0], s->scales ? src[1] : NULL, s->shifts ? src[s->scales ? 2 : 1] : NULL, dst[0]);
}

static cvy_status grad_src_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run_forward(state, src[0], src[1], NULL, dst[0]);
}

/* ---- sums ---- */

/* Adds a row of ddst * src and of ddst to the sums of a chunk. */
CVY_INLINE void sum_row(const struct affine *s, int64_t row, double *scale, double *shift)
{
    const float *d = s->src + row * s->size, *x = s->other ? s->other + row * s->size : NULL;
    if (x)
#pragma omp simd
        for (int64_t i = 0; i < s->size; i++)
            scale[i] += (double)d[i] * x[i];
#pragma omp simd
    for (int64_t i = 0; i < s->size; i++)
        shift[i] += d[i];
}

CVY_INLINE void sum_run(const struct affine *s, int64_t run, double *scale, double *shift)
{
    const int64_t n = s->inner * s->block, at = run % s->groups * s->block;
    const float *d = s->src + run * n, *x = s->other ? s->other + run * n : d;
    float product[LANES] = {0}, sum[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            product[l] += d[i + l] * x[i + l];
            sum[l] += d[i + l];
        }
    for (; i < n; i++) {
        product[i % LANES] += d[i] * x[i];
        sum[i % LANES] += d[i];
    }
    for (int64_t l = 0; l < LANES; l++) {
        scale[at + l % s->block] += product[l];
        shift[at + l % s->block] += sum[l];
    }
}

CVY_SIMD static void affine_sum_range(int64_t first, int64_t end, void *arg)
{
    const struct affine *s = arg;
    const int64_t numbers = s->groups * s->block;
    for (int64_t c = first; c < end; c++) {
        double *scale = s->sums + 2 * c * numbers, *shift = scale + numbers;
        const int64_t from = s->outer * c / s->chunks, to = s->outer * (c + 1) / s->chunks;
        memset(scale, 0, sizeof *scale * 2 * (size_t)numbers);
        for (int64_t o = from; o < to; o++)
            if (has_rows(s))
                sum_row(s, o, scale, shift);
            else
                for (int64_t g = 0; g < s->groups; g++)
                    sum_run(s, o * s->groups + g, scale, shift);
    }
}

static cvy_status grad_weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct affine *s = state;
    const int64_t numbers = s->groups * s->block, elems = s->outer * numbers * s->inner;
    float *dscale = s->scales ? dst[0] : NULL, *dshift = s->shifts ? dst[s->scales] : NULL;
    s->src = src[0];
    s->other = s->scales ? src[1] : NULL;
    s->sums = scratch;
    cvy_parallel_for(s->threads, s->chunks, elems > CVY_GRAIN ? 1 : s->chunks, affine_sum_range, s);
    for (int64_t k = 0; k < s->size; k++) {
        double scale = 0, shift = 0;
        for (int64_t c = 0; c < s->chunks; c++) {
            scale += s->sums[2 * c * numbers + k];
            shift += s->sums[(2 * c + 1) * numbers + k];
        }
        if (dscale)
            dscale[k] = (float)scale;
        if (dshift)
            dshift[k] = (float)shift;
    }
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_affine) = {
    .name = "native.affine",
    .op = "affine",
    .preference = 50,
    .offer = affine_offer,
    .create = create,
    .run = affine_run_all,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_affine_grad_src) = {
    .name = "native.affine_grad_src",
    .op = "affine_grad_src",
    .preference = 50,
    .offer = affine_offer,
    .create = create,
    .run = grad_src_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_affine_grad_weight) = {
    .name = "native.affine_grad_weight",
    .op = "affine_grad_weight",
    .preference = 50,
    .offer = weight_offer,
    .create = create,
    .run = grad_weight_run,
    .destroy = destroy,
};

/*
 * native_bf16_pool.c: average pooling on bf16, and its gradient.
 *
 * Work is split over samples and parts of channels; vectors run over the channels of a window. Backward gathers: each
 * source position sums in f32 over the windows that cover it, and is rounded and stored once. So nothing is cleared
 * first, and no two threads write the same memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pointwise/native_bf16.h"
#include "kernel/native/pool/native_pool.h"

struct pool {
    cvy_pool_walk w; /* only its geometry is used */
    cvy_strips src, dst;
    int threads;
    const cvy_bf16 *in; /* of the running call */
    cvy_bf16 *out;
};

/* ---- planning ---- */

static cvy_status pool_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_bf16(ask->node, 0));
    ask->src[0] = ask->dst[0] = cvy_native_strips(ask, 0);
    return CVY_OK;
}

static void destroy(void *state)
{
    struct pool *s = state;
    if (s)
        cvy_pool_walk_free(&s->w);
    cvy_mem_free(&s);
}

static cvy_status create(const cvy_pool_opts *o, const cvy_shape *src, const cvy_kernel_ask *ask, void **state_out)
{
    cvy_status status = CVY_OK;
    struct pool *s = NULL;
    cvy_window w;
    const cvy_layout plain = cvy_layout_plain();
    CVY_TRY(cvy_pool_window("avg_pool", o, src, &w));
    const cvy_shape dst = cvy_window_dst_shape(&w, src->dim[0], src->dim[1]);
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    CVY_TRY_OUT(cvy_pool_walk_make(&w, src, &plain, &s->w));
    CVY_TRY_OUT(cvy_pool_walk_average(&s->w, o->count_include_pad));
    s->src = cvy_strips_make(src, &ask->dst[0]);
    s->dst = cvy_strips_make(&dst, &ask->dst[0]);
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
out:
    destroy(s);
    return status;
}

static cvy_status avg_pool_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask->node->options, &ask->node->src[0]->shape, ask, state_out);
}

static cvy_status avg_pool_grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_pool_grad_opts *o = ask->node->options;
    return create(&o->pool, &o->src, ask, state_out);
}

/* ---- forward ---- */

/* In each dimension: the source coordinate of tap 0 of a window, and its taps first .. end - 1 that read the source. */
struct window {
    int64_t start[3], first[3], end[3];
};

CVY_INLINE struct window window_at(const cvy_pool_walk *w, int64_t place)
{
    struct window at;
    for (int d = 2; d >= 0; d--) {
        at.start[d] = cvy_pool_taps(w, d, place % w->dst[d], &at.first[d], &at.end[d]);
        place /= w->dst[d];
    }
    return at;
}

CVY_INLINE void avg_window(const struct pool *s, const struct window *at, const cvy_bf16 *src, cvy_bf16 *dst, float by,
                           const int64_t width)
{
    const cvy_pool_walk *w = &s->w;
    float sum[CVY_STRIP_LANES] = {0};
    for (int64_t i = at->first[0]; i < at->end[0]; i++)
        for (int64_t j = at->first[1]; j < at->end[1]; j++)
            for (int64_t k = at->first[2]; k < at->end[2]; k++) {
                const int64_t place =
                    ((at->start[0] + i) * w->src[1] + at->start[1] + j) * w->src[2] + at->start[2] + k;
                const cvy_bf16 *x = src + place * s->src.position;
                for (int64_t l = 0; l < width; l++)
                    sum[l] += cvy_bf16_get(x[l]);
            }
    for (int64_t l = 0; l < width; l++)
        dst[l] = cvy_bf16_of(sum[l] * by);
}

CVY_INLINE float inverse_at(const struct pool *s, int64_t place)
{
    const cvy_pool_walk *w = &s->w;
    return w->inverse[0][place / w->dst[2] / w->dst[1]] * w->inverse[1][place / w->dst[2] % w->dst[1]] *
           w->inverse[2][place % w->dst[2]];
}

CVY_INLINE void forward_item(const struct pool *s, int64_t item, const int64_t width)
{
    const int64_t n = item / s->src.parts, p = item % s->src.parts;
    const cvy_bf16 *src = s->in + n * s->src.sample + p * s->src.part;
    for (int64_t place = 0; place < s->dst.positions; place++) {
        const int64_t to = n * s->dst.sample + p * s->dst.part + place * s->dst.position;
        const struct window at = window_at(&s->w, place);
        avg_window(s, &at, src, s->out + to, inverse_at(s, place), width);
    }
}

CVY_SIMD static void pool_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct pool *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->src, item % s->src.parts), forward_item, s, item);
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct pool *s = state;
    (void)scratch;
    s->in = src[0];
    s->out = dst[0];
    cvy_parallel_for(s->threads, s->src.n * s->src.parts, 1, pool_bf16_range, s);
    return CVY_OK;
}

/* ---- backward ---- */

/* The windows that cover one source position: first .. end - 1 in each dimension. */
struct covers {
    int64_t first[3], end[3];
};

CVY_INLINE void backward_position(const struct pool *s, const struct covers *c, const cvy_bf16 *ddst, cvy_bf16 *dsrc,
                                  const int64_t width)
{
    const cvy_pool_walk *w = &s->w;
    float sum[CVY_STRIP_LANES] = {0};
    for (int64_t i = c->first[0]; i < c->end[0]; i++)
        for (int64_t j = c->first[1]; j < c->end[1]; j++)
            for (int64_t k = c->first[2]; k < c->end[2]; k++) {
                const cvy_bf16 *d = ddst + ((i * w->dst[1] + j) * w->dst[2] + k) * s->dst.position;
                const float by = w->inverse[0][i] * w->inverse[1][j] * w->inverse[2][k];
                for (int64_t l = 0; l < width; l++)
                    sum[l] += by * cvy_bf16_get(d[l]);
            }
    for (int64_t l = 0; l < width; l++)
        dsrc[l] = cvy_bf16_of(sum[l]);
}

CVY_INLINE void backward_item(const struct pool *s, int64_t item, const int64_t width)
{
    const cvy_pool_walk *w = &s->w;
    const int64_t n = item / s->src.parts, p = item % s->src.parts;
    const cvy_bf16 *ddst = s->in + n * s->dst.sample + p * s->dst.part;
    cvy_bf16 *dsrc = s->out + n * s->src.sample + p * s->src.part;
    struct covers c;
    for (int64_t z = 0; z < w->src[0]; z++) {
        cvy_pool_windows_over(w, 0, z, &c.first[0], &c.end[0]);
        for (int64_t y = 0; y < w->src[1]; y++) {
            cvy_pool_windows_over(w, 1, y, &c.first[1], &c.end[1]);
            for (int64_t x = 0; x < w->src[2]; x++, dsrc += s->src.position) {
                cvy_pool_windows_over(w, 2, x, &c.first[2], &c.end[2]);
                backward_position(s, &c, ddst, dsrc, width);
            }
        }
    }
}

CVY_SIMD static void pool_grad_bf16_range(int64_t first, int64_t end, void *arg)
{
    const struct pool *s = arg;
    for (int64_t item = first; item < end; item++)
        CVY_BY_WIDTH(cvy_strip_width(&s->src, item % s->src.parts), backward_item, s, item);
}

static cvy_status backward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct pool *s = state;
    (void)scratch;
    s->in = src[0];
    s->out = dst[0];
    cvy_parallel_for(s->threads, s->src.n * s->src.parts, 1, pool_grad_bf16_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_avg_pool_bf16) = {
    .name = "native.avg_pool_bf16",
    .op = "avg_pool",
    .preference = 50,
    .offer = pool_offer,
    .create = avg_pool_create,
    .run = forward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_avg_pool_grad_bf16) = {
    .name = "native.avg_pool_grad_bf16",
    .op = "avg_pool_grad",
    .preference = 50,
    .offer = pool_offer,
    .create = avg_pool_grad_create,
    .run = backward_run,
    .destroy = destroy,
};

/*
 * native_avg_pool.c: average pooling and its gradient in one pass each over memory.
 * In the step: between convolutions. The walk over memory is that of native_max_pool.c.
 *
 * The divisor is a product of one count for each dimension, so its inverses are three small tables.
 */
#include <string.h>

#include "kernel/native/native_pool.h"

struct avg_pool {
    cvy_pool_walk w;
    int threads;
    float *inverse[3]; /* 1 / positions that count, for each destination coordinate of a dimension */
    const float *src;  /* of the running call: forward's source, backward's ddst */
    float *dst;
};

static cvy_status avg_pool_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32(ask->node));
    ask->src[0] = ask->dst[0] = cvy_native_channels(ask, 0);
    return CVY_OK;
}

/* A plain ddst, as from a fully connected layer, is small: better to move it than to leave the larger dsrc plain. */
static cvy_status avg_pool_grad_offer(cvy_kernel_ask *ask)
{
    const cvy_pool_grad_opts *o = ask->node->options;
    CVY_TRY(cvy_native_f32(ask->node));
    const cvy_layout now = cvy_native_channels(ask, 0);
    ask->src[0] = ask->dst[0] = cvy_layout_is_plain(&now) ? cvy_native_preferred(&o->src) : now;
    return CVY_OK;
}

static void avg_pool_destroy(void *state)
{
    struct avg_pool *s = state;
    for (int d = 0; s && d < 3; d++)
        cvy_mem_free(&s->inverse[d]);
    if (s)
        cvy_pool_walk_free(&s->w);
    cvy_mem_free(&s);
}

/* PyTorch's rule, see op_avg_pool.c: a window ends where the far padding does, and with count_include_pad what is left
 * counts whole. */
static cvy_status make_inverse(const cvy_pool_walk *w, int d, int count_include_pad, float **out)
{
    float *inverse = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)w->dst[d] * sizeof *inverse, &inverse));
    for (int64_t at = 0; at < w->dst[d]; at++) {
        int64_t first, end;
        const int64_t start = cvy_pool_taps(w, d, at, &first, &end);
        const int64_t whole = CVY_MIN(start + w->kernel[d], w->src[d] + w->pad[d]) - start;
        inverse[at] = 1.0f / (float)(count_include_pad ? whole : end - first);
    }
    *out = inverse;
    return CVY_OK;
}

static cvy_status create(const cvy_pool_opts *o, const cvy_shape *src, const cvy_kernel_ask *ask, void **state_out)
{
    cvy_status status = CVY_OK;
    struct avg_pool *s = NULL;
    cvy_window w;
    CVY_TRY(cvy_pool_window("avg_pool", o, src, &w));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    CVY_TRY_OUT(cvy_pool_walk_make(&w, src, &ask->src[0], &s->w));
    for (int d = 0; d < 3; d++)
        CVY_TRY_OUT(make_inverse(&s->w, d, o->count_include_pad, &s->inverse[d]));
    s->threads = ask->threads;
    *state_out = s;
    return CVY_OK;
out:
    avg_pool_destroy(s);
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

CVY_INLINE void add_tap(const int64_t B, const float *restrict src, int64_t step, int64_t n, float *restrict sum)
{
    for (int64_t x = 0; x < n; x++)
        for (int64_t l = 0; l < B; l++)
            sum[x * B + l] += src[x * step + l];
}

CVY_INLINE void forward_row(const struct avg_pool *s, const int64_t B, const float *src, int64_t d, int64_t h,
                            float *restrict dst)
{
    const cvy_pool_walk *w = &s->w;
    int64_t d0, d1, h0, h1;
    const int64_t ds = cvy_pool_taps(w, 0, d, &d0, &d1), hs = cvy_pool_taps(w, 1, h, &h0, &h1);
    memset(dst, 0, (size_t)(w->dst[2] * B) * sizeof *dst);
    for (int64_t i = d0; i < d1; i++)
        for (int64_t j = h0; j < h1; j++)
            for (int64_t k = 0; k < w->kernel[2]; k++) {
                const struct cvy_pool_reach r = w->reach[k];
                const int64_t at = ((ds + i) * w->src[1] + hs + j) * w->src[2] + r.start;
                add_tap(B, src + at * B, w->stride[2] * B, r.end - r.first, dst + r.first * B);
            }
    const float inverse = s->inverse[0][d] * s->inverse[1][h];
    for (int64_t x = 0; x < w->dst[2]; x++)
        for (int64_t l = 0; l < B; l++)
            dst[x * B + l] *= inverse * s->inverse[2][x];
}

CVY_INLINE void forward_plane(const struct avg_pool *s, const int64_t B, int64_t plane)
{
    const cvy_pool_walk *w = &s->w;
    float *dst = s->dst + plane * w->dst_elems * B;
    for (int64_t row = 0; row < w->dst[0] * w->dst[1]; row++)
        forward_row(s, B, s->src + plane * w->src_elems * B, row / w->dst[1], row % w->dst[1],
                    dst + row * w->dst[2] * B);
}

CVY_SIMD static void avg_pool_range(int64_t first, int64_t end, void *arg)
{
    const struct avg_pool *s = arg;
    for (int64_t plane = first; plane < end; plane++)
        switch (s->w.planes.block) {
        case 16: forward_plane(s, 16, plane); break;
        case 8: forward_plane(s, 8, plane); break;
        case 4: forward_plane(s, 4, plane); break;
        default: forward_plane(s, 1, plane); break;
        }
}

static cvy_status avg_pool_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct avg_pool *s = state;
    (void)scratch;
    s->src = src[0];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->w.planes.n * s->w.planes.groups, 1, avg_pool_range, s);
    return CVY_OK;
}

/* ---- backward ---- */

CVY_INLINE void spread_tap(const int64_t B, const float *restrict ddst, const float *restrict inverse,
                           float row_inverse, int64_t n, int64_t step, float *restrict dsrc)
{
    for (int64_t x = 0; x < n; x++) {
        const float f = row_inverse * inverse[x];
        for (int64_t l = 0; l < B; l++)
            dsrc[x * step + l] += f * ddst[x * B + l];
    }
}

CVY_INLINE void backward_row(const struct avg_pool *s, const int64_t B, int64_t d, int64_t h, const float *ddst,
                             float *dsrc)
{
    const cvy_pool_walk *w = &s->w;
    int64_t d0, d1, h0, h1;
    const int64_t ds = cvy_pool_taps(w, 0, d, &d0, &d1), hs = cvy_pool_taps(w, 1, h, &h0, &h1);
    const float inverse = s->inverse[0][d] * s->inverse[1][h];
    for (int64_t i = d0; i < d1; i++)
        for (int64_t j = h0; j < h1; j++)
            for (int64_t k = 0; k < w->kernel[2]; k++) {
                const struct cvy_pool_reach r = w->reach[k];
                const int64_t at = ((ds + i) * w->src[1] + hs + j) * w->src[2] + r.start;
                spread_tap(B, ddst + r.first * B, s->inverse[2] + r.first, inverse, r.end - r.first, w->stride[2] * B,
                           dsrc + at * B);
            }
}

CVY_INLINE void backward_plane(const struct avg_pool *s, const int64_t B, int64_t plane)
{
    const cvy_pool_walk *w = &s->w;
    float *dsrc = s->dst + plane * w->src_elems * B;
    const float *ddst = s->src + plane * w->dst_elems * B;
    int64_t clear = 0; /* rows of the plane before it hold sums */
    for (int64_t row = 0; row < w->dst[0] * w->dst[1]; row++) {
        cvy_pool_clear(w, B, row, dsrc, &clear);
        backward_row(s, B, row / w->dst[1], row % w->dst[1], ddst + row * w->dst[2] * B, dsrc);
    }
    cvy_pool_clear(w, B, w->dst[0] * w->dst[1], dsrc, &clear);
}

CVY_SIMD static void avg_pool_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct avg_pool *s = arg;
    for (int64_t plane = first; plane < end; plane++)
        switch (s->w.planes.block) {
        case 16: backward_plane(s, 16, plane); break;
        case 8: backward_plane(s, 8, plane); break;
        case 4: backward_plane(s, 4, plane); break;
        default: backward_plane(s, 1, plane); break;
        }
}

static cvy_status avg_pool_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct avg_pool *s = state;
    (void)scratch;
    s->src = src[0];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->w.planes.n * s->w.planes.groups, 1, avg_pool_grad_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_avg_pool) = {
    .name = "native.avg_pool",
    .op = "avg_pool",
    .preference = 50,
    .offer = avg_pool_offer,
    .create = avg_pool_create,
    .run = avg_pool_run,
    .destroy = avg_pool_destroy,
};

CVY_KERNEL_DEFINE(native_avg_pool_grad) = {
    .name = "native.avg_pool_grad",
    .op = "avg_pool_grad",
    .preference = 50,
    .offer = avg_pool_grad_offer,
    .create = avg_pool_grad_create,
    .run = avg_pool_grad_run,
    .destroy = avg_pool_destroy,
};

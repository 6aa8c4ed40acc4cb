/*
 * native_layer_norm.c: layer_norm and its gradient on f32 and bf16.
 *
 * A set of elements that is normalised is either contiguous in memory (the last axes in plain layout, or the channels
 * with channels last), or its elements lie in blocks of channels, or one by one, with other sets between them. In the
 * first case vectors run along a set, several sets after each other (rows). In the second case vectors run over strips
 * of adjacent sets.
 *
 * The work is cut into chunks, whose number does not depend on that of the threads. Each chunk has its own sums for
 * dscale and dshift, which are added in order at the end. So the result does not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/norm/op_sample_norm.h"

enum {
    ROWS = 16,        /* sets of a work item, if they are contiguous, at most */
    ROWS_ALL = 16384, /* elements of these sets, if there is more than one */
    LANES = 16,       /* elements of a vector in a strip */
    STRIP = 256,      /* elements of a strip in one block, at most */
    STRIP_ALL = 8192, /* elements of a strip in all blocks, if it has more than one vector: they stay in the cache */
    CHUNKS = 64,
    CHUNK_SETS = 8, /* at least, so that the sums of all chunks are small against the tensor */
    RUN = 2048,     /* elements that are summed in f32; the sums of runs are added in f64 */
};

struct layer_norm {
    int64_t sets, size;    /* number of sets; elements of one */
    int64_t inner;         /* of a strip: adjacent sets, whose elements lie between each other */
    int64_t block, blocks; /* of a strip: a set lies in `blocks` blocks of `block` elements */
    int64_t width;         /* sets of a work item */
    int64_t items, chunks;
    int threads, rows, half, scale_shift; /* rows: each set is contiguous; half: values are bf16 */
    float eps, inverse;                   /* inverse: 1 / size */
    /* Of the running call. */
    const void *x, *ddst;
    void *dst;
    const float *scale, *shift, *stats_in;
    float *stats; /* NULL: not needed */
    float *lanes; /* of strips: see lanes_of; in scratch memory */
    float *sums;  /* dscale and dshift of each chunk; in scratch memory */
};

/* squares: sum of (x - mean)^2. */
CVY_INLINE float inverse_deviation(const struct layer_norm *s, float squares)
{
    return 1 / sqrtf(squares * s->inverse + s->eps);
}

CVY_INLINE void save(const struct layer_norm *s, int64_t set, float mean, float inv_std)
{
    if (!s->stats)
        return;
    s->stats[2 * set] = mean;
    s->stats[2 * set + 1] = inv_std;
}

/* ---- rows: sets first .. end - 1, which are contiguous ---- */

/* The sum of x, or with squared of (x - mean)^2, over n elements from element `at` on. */
CVY_INLINE float row_sum(const int half, const int squared, const void *x, int64_t at, int64_t n, float mean)
{
    double total = 0;
    for (int64_t from = at; from < at + n; from += RUN) {
        const int64_t end = CVY_MIN(from + RUN, at + n);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = from; i < end; i++) {
            const float v = cvy_float_get(half, x, i);
            sum += squared ? (v - mean) * (v - mean) : v;
        }
        total += sum;
    }
    return (float)total;
}

/* The steps of all rows are done together, so that a row need not wait for the square root of the one before. */
CVY_INLINE void forward_rows(const struct layer_norm *s, const int half, const int affine, int64_t first, int64_t end)
{
    const int64_t n = s->size;
    const void *x = s->x;
    void *dst = s->dst;
    const float *scale = s->scale, *shift = s->shift;
    float mean[ROWS], inv_std[ROWS];
    for (int64_t set = first; set < end; set++)
        mean[set - first] = row_sum(half, 0, x, set * n, n, 0) * s->inverse;
    for (int64_t set = first; set < end; set++)
        inv_std[set - first] = inverse_deviation(s, row_sum(half, 1, x, set * n, n, mean[set - first]));
    for (int64_t set = first; set < end; set++) {
        const float m = mean[set - first], r = inv_std[set - first];
        const int64_t at = set * n;
        save(s, set, m, r);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const float xhat = (cvy_float_get(half, x, at + i) - m) * r;
            cvy_float_put(half, dst, at + i, affine ? xhat * scale[i] + shift[i] : xhat);
        }
    }
}

/* Sums over a row of d and d * xhat, with d = ddst * scale. With affine, also adds to dscale and dshift. */
CVY_INLINE void grad_sums(const struct layer_norm *s, const int half, const int affine, int64_t set,
                          float *restrict dscale, float *restrict dshift, float out[2])
{
    const int64_t at = set * s->size;
    const float mean = s->stats_in[2 * set], inv_std = s->stats_in[2 * set + 1], *scale = s->scale;
    const void *x = s->x, *ddst = s->ddst;
    double total[2] = {0, 0};
    for (int64_t from = 0; from < s->size; from += RUN) {
        const int64_t end = CVY_MIN(from + RUN, s->size);
        float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (int64_t i = from; i < end; i++) {
            const float v = cvy_float_get(half, ddst, at + i), xhat = (cvy_float_get(half, x, at + i) - mean) * inv_std,
                        d = affine ? v * scale[i] : v;
            sum += d;
            product += d * xhat;
            if (affine) {
                dscale[i] += v * xhat;
                dshift[i] += v;
            }
        }
        total[0] += sum;
        total[1] += product;
    }
    for (int k = 0; k < 2; k++)
        out[k] = (float)total[k] * s->inverse;
}

/* means: of d and d * xhat. */
CVY_INLINE void grad_row(const struct layer_norm *s, const int half, const int affine, int64_t set,
                         const float means[2])
{
    const int64_t n = s->size, at = set * n;
    const float mean = s->stats_in[2 * set], inv_std = s->stats_in[2 * set + 1], *scale = s->scale;
    const float mean_d = means[0], mean_dx = means[1];
    const void *x = s->x, *ddst = s->ddst;
    void *dst = s->dst;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float v = cvy_float_get(half, ddst, at + i), xhat = (cvy_float_get(half, x, at + i) - mean) * inv_std,
                    d = affine ? v * scale[i] : v;
        cvy_float_put(half, dst, at + i, inv_std * (d - mean_d - xhat * mean_dx));
    }
}

CVY_INLINE void grad_rows(const struct layer_norm *s, const int half, const int affine, int64_t first, int64_t end,
                          float *sums)
{
    float means[ROWS][2];
    for (int64_t set = first; set < end; set++)
        grad_sums(s, half, affine, set, sums, sums + s->size, means[set - first]);
    for (int64_t set = first; set < end; set++)
        grad_row(s, half, affine, set, means[set - first]);
}

/* ---- strips: sets first .. end - 1, whose elements lie next to each other, in blocks of B elements of a set ---- */

/* An array of one element for each set and lane of its block. */
typedef float strip[STRIP];

/* Element 0 of block g of a set. */
CVY_INLINE int64_t block_at(const struct layer_norm *s, const int64_t B, int64_t set, int64_t g)
{
    return ((set / s->inner * s->blocks + g) * s->inner + set % s->inner) * B;
}

/* Scale, shift and `used` (0 for padding, else 1) of the lanes of block g. Blocks of one element have no table. */
struct lanes {
    const float *scale, *shift, *used;
};

CVY_INLINE struct lanes lanes_of(const struct layer_norm *s, int64_t g)
{
    const float *at = s->lanes + g * LANES;
    const int64_t all = s->blocks * LANES;
    return (struct lanes){at, at + all, at + 2 * all};
}

/* Floats of the table. */
static int64_t lane_floats(const struct layer_norm *s)
{
    return !s->rows && s->block > 1 ? 3 * s->blocks * LANES : 0;
}

static void make_lanes(const struct layer_norm *s)
{
    for (int64_t k = 0; k < lane_floats(s) / 3; k++) {
        const int64_t i = k / LANES * s->block + k % LANES % s->block, all = s->blocks * LANES;
        const int is_used = i < s->size;
        s->lanes[k] = !is_used ? 0 : s->scale ? s->scale[i] : 1;
        s->lanes[k + all] = is_used && s->shift ? s->shift[i] : 0;
        s->lanes[k + 2 * all] = (float)is_used;
    }
}

/* Runs `body` for each of n elements of a strip: i is its number, l its lane. */
#define EACH_ELEMENT(n, body)                                                                                          \
    do {                                                                                                               \
        int64_t from = 0;                                                                                              \
        for (; from + LANES <= (n); from += LANES)                                                                     \
            _Pragma("omp simd") for (int64_t l = 0; l < LANES; l++)                                                    \
            {                                                                                                          \
                const int64_t i = from + l;                                                                            \
                body;                                                                                                  \
            }                                                                                                          \
        for (int64_t i = from; i < (n); i++) {                                                                         \
            const int64_t l = i - from;                                                                                \
            body;                                                                                                      \
        }                                                                                                              \
    } while (0)

/* Gives all lanes of each set the mean of the set, from the sums of its lanes. */
CVY_INLINE void finish_means(const struct layer_norm *s, const int64_t B, int64_t n, float *x)
{
    const float inverse = s->inverse;
    if (B == 1) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] *= inverse;
        return;
    }
    for (int64_t at = 0; at < n; at += B) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t l = 0; l < B; l++)
            sum += x[at + l];
        for (int64_t l = 0; l < B; l++)
            x[at + l] = sum * inverse;
    }
}

CVY_INLINE void forward_strip(const struct layer_norm *s, const int half, const int64_t B, int64_t first, int64_t end)
{
    const int64_t n = (end - first) * B;
    const float eps = s->eps;
    const void *x = s->x;
    void *dst = s->dst;
    strip mean, inv_std;
    memset(mean, 0, (size_t)n * sizeof *mean);
    memset(inv_std, 0, (size_t)n * sizeof *inv_std);
    for (int64_t g = 0; g < s->blocks; g++) {
        const int64_t at = block_at(s, B, first, g);
        EACH_ELEMENT(n, mean[i] += cvy_float_get(half, x, at + i); (void)l);
    }
    finish_means(s, B, n, mean);
    for (int64_t g = 0; g < s->blocks; g++) {
        const int64_t at = block_at(s, B, first, g);
        const struct lanes lanes = lanes_of(s, g);
        EACH_ELEMENT(n, const float v = (cvy_float_get(half, x, at + i) - mean[i]) * (B == 1 ? 1 : lanes.used[l]);
                     inv_std[i] += v * v);
    }
    finish_means(s, B, n, inv_std);
    EACH_ELEMENT(n, inv_std[i] = 1 / sqrtf(inv_std[i] + eps); (void)l);
    for (int64_t set = first; set < end; set++)
        save(s, set, mean[(set - first) * B], inv_std[(set - first) * B]);
    for (int64_t g = 0; g < s->blocks; g++) {
        const int64_t at = block_at(s, B, first, g);
        const struct lanes lanes = lanes_of(s, g);
        const float scale = B == 1 && s->scale ? s->scale[g] : 1, shift = B == 1 && s->shift ? s->shift[g] : 0;
        EACH_ELEMENT(n, const float xhat = (cvy_float_get(half, x, at + i) - mean[i]) * inv_std[i];
                     cvy_float_put(half, dst, at + i,
                                   xhat * (B == 1 ? scale : lanes.scale[l]) + (B == 1 ? shift : lanes.shift[l])));
    }
}

/* Adds the sums of the lanes of block g to those of the elements of a set. */
CVY_INLINE void add_lanes(const struct layer_norm *s, const int64_t B, int64_t g, const float *lanes, float *sums)
{
    for (int64_t k = 0; k < LANES / B; k++)
        for (int64_t l = 0; l < CVY_MIN(B, s->size - g * B); l++)
            sums[g * B + l] += lanes[k * B + l];
}

CVY_INLINE void grad_strip(const struct layer_norm *s, const int half, const int64_t B, int64_t first, int64_t end,
                           float *sums)
{
    const int64_t n = (end - first) * B;
    const void *x = s->x, *ddst = s->ddst;
    void *dst = s->dst;
    strip mean, inv_std, sum, product;
    memset(sum, 0, (size_t)n * sizeof *sum);
    memset(product, 0, (size_t)n * sizeof *product);
    for (int64_t set = first; set < end; set++)
        for (int64_t l = 0; l < B; l++) {
            mean[(set - first) * B + l] = s->stats_in[2 * set];
            inv_std[(set - first) * B + l] = s->stats_in[2 * set + 1];
        }
    for (int64_t g = 0; g < s->blocks; g++) {
        const int64_t at = block_at(s, B, first, g);
        const struct lanes lanes = lanes_of(s, g);
        const float scale = B == 1 && s->scale ? s->scale[g] : 1;
        float dscale[LANES] = {0}, dshift[LANES] = {0};
        EACH_ELEMENT(n, const float v = cvy_float_get(half, ddst, at + i);
                     const float xhat = (cvy_float_get(half, x, at + i) - mean[i]) * inv_std[i];
                     const float d = v * (B == 1 ? scale : lanes.scale[l]); sum[i] += d; product[i] += d * xhat;
                     dscale[l] += v * xhat; dshift[l] += v);
        if (s->scale) {
            add_lanes(s, B, g, dscale, sums);
            add_lanes(s, B, g, dshift, sums + s->size);
        }
    }
    finish_means(s, B, n, sum);
    finish_means(s, B, n, product);
    for (int64_t g = 0; g < s->blocks; g++) {
        const int64_t at = block_at(s, B, first, g);
        const struct lanes lanes = lanes_of(s, g);
        const float scale = B == 1 && s->scale ? s->scale[g] : 1;
        EACH_ELEMENT(n, const float d = cvy_float_get(half, ddst, at + i) * (B == 1 ? scale : lanes.scale[l]);
                     const float xhat = (cvy_float_get(half, x, at + i) - mean[i]) * inv_std[i];
                     cvy_float_put(half, dst, at + i,
                                   inv_std[i] * (d - (sum[i] + xhat * product[i]) * (B == 1 ? 1 : lanes.used[l]))));
    }
}

/* Calls body for the block of a strip, which is passed as a constant. */
#define BY_BLOCK(body, s, half, ...)                                                                                   \
    do {                                                                                                               \
        switch ((s)->block) {                                                                                          \
        case 16: body(s, half, 16, __VA_ARGS__); break;                                                                \
        case 8: body(s, half, 8, __VA_ARGS__); break;                                                                  \
        default: body(s, half, 1, __VA_ARGS__); break;                                                                 \
        }                                                                                                              \
    } while (0)

/* ---- work items ---- */

/* The sets of an item: first .. *end_out - 1. A strip ends where its row of memory does. */
CVY_INLINE int64_t sets_of(const struct layer_norm *s, int64_t item, int64_t *end_out)
{
    const int64_t row = s->rows ? s->sets : s->inner, in_row = (row + s->width - 1) / s->width,
                  first = item / in_row * row + item % in_row * s->width;
    *end_out = CVY_MIN(first + s->width, (item / in_row + 1) * row);
    return first;
}

CVY_INLINE void forward_item(const struct layer_norm *s, const int half, int64_t first, int64_t end)
{
    if (!s->rows)
        BY_BLOCK(forward_strip, s, half, first, end);
    else if (s->scale)
        forward_rows(s, half, 1, first, end);
    else
        forward_rows(s, half, 0, first, end);
}

CVY_INLINE void grad_item(const struct layer_norm *s, const int half, int64_t first, int64_t end, float *sums)
{
    if (!s->rows)
        BY_BLOCK(grad_strip, s, half, first, end, sums);
    else if (s->scale)
        grad_rows(s, half, 1, first, end, sums);
    else
        grad_rows(s, half, 0, first, end, sums);
}

CVY_SIMD static void layer_norm_range(int64_t begin, int64_t end, void *arg)
{
    const struct layer_norm *s = arg;
    for (int64_t item = begin; item < end; item++) {
        int64_t last;
        const int64_t first = sets_of(s, item, &last);
        if (s->half)
            forward_item(s, 1, first, last);
        else
            forward_item(s, 0, first, last);
    }
}

CVY_SIMD static void layer_norm_grad_range(int64_t begin, int64_t end, void *arg)
{
    const struct layer_norm *s = arg;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        float *sums = s->sums + 2 * chunk * s->size;
        if (s->scale)
            memset(sums, 0, (size_t)(2 * s->size) * sizeof *sums);
        for (int64_t item = s->items * chunk / s->chunks; item < s->items * (chunk + 1) / s->chunks; item++) {
            int64_t last;
            const int64_t first = sets_of(s, item, &last);
            if (s->half)
                grad_item(s, 1, first, last, sums);
            else
                grad_item(s, 0, first, last, sums);
        }
    }
}

/* ---- running ---- */

/* Scratch memory, in this order: the table of lanes, and the sums of the chunks (of the gradient). */
static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct layer_norm *s = state;
    s->x = src[0];
    s->scale = s->scale_shift ? src[1] : NULL;
    s->shift = s->scale_shift ? src[2] : NULL;
    s->dst = dst[0];
    s->stats = dst[1];
    s->lanes = scratch;
    make_lanes(s);
    cvy_parallel_for(s->threads, s->items, CVY_MAX(1, CVY_GRAIN / (s->size * s->width)), layer_norm_range, s);
    return CVY_OK;
}

/* k = 0: dscale, 1: dshift. */
static void add_chunks(const struct layer_norm *s, int k, float *out)
{
    for (int64_t i = 0; i < s->size; i++) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < s->chunks; chunk++)
            sum += s->sums[(2 * chunk + k) * s->size + i];
        out[i] = (float)sum;
    }
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct layer_norm *s = state;
    s->x = src[0];
    s->ddst = src[1];
    s->stats_in = src[2];
    s->scale = s->scale_shift ? src[3] : NULL;
    s->shift = NULL;
    s->dst = dst[0];
    s->lanes = scratch;
    s->sums = s->lanes + lane_floats(s);
    make_lanes(s);
    cvy_parallel_for(s->sets * s->size < CVY_GRAIN ? 1 : s->threads, s->chunks, 1, layer_norm_grad_range, s);
    for (int k = 0; k < 2 && s->scale_shift; k++)
        add_chunks(s, k, dst[1 + k]);
    return CVY_OK;
}

/* ---- planning ---- */

/* Whether the sets run over the channels of [N, C, positions...]. */
static int is_over_channels(const cvy_sample_sets *sets, const cvy_shape *shape)
{
    return shape->ndim > 2 && sets->outer == shape->dim[0] && sets->size == shape->dim[1];
}

/* Sets of a strip, for at least one vector. */
static int64_t strip_sets(int64_t size, int64_t block)
{
    const int64_t vector = CVY_MAX(1, LANES / block), most = STRIP / block;
    return CVY_MAX(vector, CVY_MIN(most, STRIP_ALL / size / vector * vector));
}

static struct layer_norm state_of(const cvy_kernel_ask *ask, const cvy_layout *layout)
{
    const cvy_node *node = ask->node;
    const cvy_sample_norm_opts *o = node->options;
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    const cvy_planes p = cvy_planes_make(&node->src[0]->shape, layout);
    struct layer_norm s = {.sets = sets.outer * sets.inner,
                           .size = sets.size,
                           .inner = sets.inner,
                           .block = cvy_layout_is_plain(layout) ? 1 : p.block,
                           .threads = ask->threads,
                           .half = node->src[0]->dtype == CVY_DTYPE_BF16,
                           .scale_shift = o->scale_shift,
                           .eps = (float)o->eps,
                           .inverse = 1 / (float)sets.size};
    const cvy_layout last = cvy_layout_channels_last(node->src[0]->shape.ndim);
    s.rows = cvy_layout_is_plain(layout) ? sets.inner == 1 : cvy_layout_equal(layout, &last);
    s.blocks = (s.size + s.block - 1) / s.block;
    s.width = s.rows ? CVY_MAX(1, CVY_MIN(ROWS, ROWS_ALL / s.size)) : strip_sets(s.size, s.block);
    s.items = s.rows ? (s.sets + s.width - 1) / s.width : sets.outer * ((s.inner + s.width - 1) / s.width);
    s.chunks = CVY_MAX(1, CVY_MIN(CVY_MIN(CHUNKS, s.items), s.sets / CHUNK_SETS));
    return s;
}

/* All activations get one layout: that of the source or, if the source is plain, that of ddst. */
static cvy_status offer(cvy_kernel_ask *ask, int nactive)
{
    const cvy_node *node = ask->node;
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    cvy_layout layout = cvy_layout_plain();
    CVY_TRY(cvy_native_f32_or_bf16(node));
    for (int i = 0; i < nactive && cvy_layout_is_plain(&layout); i++)
        if (is_over_channels(&sets, &node->src[0]->shape))
            layout = cvy_native_activation(ask, i);
    if (cvy_layout_channel_block(&layout, node->src[0]->shape.ndim) == 4)
        layout = cvy_layout_plain();
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = i < nactive ? layout : cvy_layout_plain();
    ask->dst[0] = layout;
    ask->inplace[0] = nactive; /* the last one of the activations */
    return CVY_OK;
}

static cvy_status forward_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(offer(ask, 1));
    const struct layer_norm s = state_of(ask, &ask->src[0]);
    ask->scratch_bytes = (size_t)lane_floats(&s) * sizeof(float);
    return CVY_OK;
}

static cvy_status grad_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(offer(ask, 2));
    const struct layer_norm s = state_of(ask, &ask->src[0]);
    ask->scratch_bytes = (size_t)(lane_floats(&s) + (s.scale_shift ? 2 * s.chunks * s.size : 0)) * sizeof(float);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct layer_norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = state_of(ask, &ask->src[0]);
    *state_out = s;
    return CVY_OK;
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_KERNEL_DEFINE(native_layer_norm) = {
    .name = "native.layer_norm",
    .op = "layer_norm",
    .preference = 50,
    .offer = forward_offer,
    .create = create,
    .run = forward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_layer_norm_grad) = {
    .name = "native.layer_norm_grad",
    .op = "layer_norm_grad",
    .preference = 50,
    .offer = grad_offer,
    .create = create,
    .run = grad_run,
    .destroy = destroy,
};

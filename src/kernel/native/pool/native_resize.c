/*
 * native_resize.c: resize and its gradient on f32 and bf16.
 *
 * Both are weighted sums along rows and columns: each place of the output is the sum of a few adjacent places of the
 * input, in each dimension with weights of its own. The gradient has the transposed weights, so one kernel serves both.
 * The rows of the input that make a row of the output are added first, in the cache; then the places of that sum are
 * added. Vectors run over channels if these are in blocks or last, else over places.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/tensor/op_resize.h"

enum { LANES = 64 }; /* channels that are summed at once */

/* Along one dimension: place i of the output is the sum of weight[k * n + i] * place first[i] + k of the input. */
struct axis {
    int64_t n, taps;
    int32_t *first;
    float *weight;
};

struct resize {
    int64_t planes, block;   /* planes of rows x columns x block elements */
    int64_t rows, columns;   /* of the input */
    struct axis down, along; /* the sums of rows, and of places in a row */
    int threads, half;       /* half: values are bf16 */
    const void *src;         /* of the running call */
    void *dst;
    float *scratch; /* for each thread the sum of rows, and a row of the output */
};

/* ---- the sum of rows ---- */

/* sum = w[0] * row of n elements from element at[0] on + w[1] * that from at[1] on, plus `sum` itself if `adds`. */
CVY_INLINE void add_two(const int half, const int adds, const void *src, const int64_t at[2], const float w[2],
                        int64_t n, float *restrict sum)
{
    const int64_t a = at[0], b = at[1];
    const float v = w[0], u = w[1];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] = (adds ? sum[i] : 0) + v * cvy_float_get(half, src, a + i) + u * cvy_float_get(half, src, b + i);
}

/* Row y of the output, before the columns are summed. first: element 0 of the plane. */
CVY_INLINE void sum_rows(const struct resize *s, const int half, int64_t first, int64_t y, float *restrict sum)
{
    const int64_t n = s->columns * s->block;
    for (int64_t k = 0; k < s->down.taps; k += 2) {
        const int64_t next = CVY_MIN(k + 1, s->down.taps - 1);
        const int64_t at[2] = {first + (s->down.first[y] + k) * n, first + (s->down.first[y] + next) * n};
        const float w[2] = {s->down.weight[k * s->down.n + y], next > k ? s->down.weight[next * s->down.n + y] : 0};
        if (k == 0)
            add_two(half, 0, s->src, at, w, n, sum);
        else
            add_two(half, 1, s->src, at, w, n, sum);
    }
}

/* ---- the sum of places ---- */

/* Plain layout: vectors over places. line: a row of the output. */
CVY_INLINE void sum_places(const struct resize *s, const int half, const float *restrict sum, float *restrict line,
                           int64_t at)
{
    const int64_t n = s->along.n;
    const int32_t *first = s->along.first;
    const float *w = s->along.weight;
    void *dst = s->dst;
    if (s->along.taps == 1) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            cvy_float_put(half, dst, at + i, w[i] * sum[first[i]]);
        return;
    }
    if (s->along.taps == 2) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            cvy_float_put(half, dst, at + i, w[i] * sum[first[i]] + w[n + i] * sum[first[i] + 1]);
        return;
    }
    for (int64_t k = 0; k < s->along.taps; k++)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            line[i] = (k ? line[i] : 0) + w[k * n + i] * sum[first[i] + k];
    cvy_floats_store(half, line, n, dst, at);
}

/* One place of `width` adjacent channels. from: their sums in the first place of the input. */
CVY_INLINE void sum_channels(const struct resize *s, const int half, const float *restrict from, int64_t i,
                             int64_t width, int64_t at)
{
    const int64_t block = s->block, n = s->along.n;
    const float *w = s->along.weight;
    void *dst = s->dst;
    if (s->along.taps == 2) {
        const float v = w[i], u = w[n + i];
#pragma omp simd
        for (int64_t l = 0; l < width; l++)
            cvy_float_put(half, dst, at + l, v * from[l] + u * from[block + l]);
        return;
    }
    float sum[LANES];
    for (int64_t k = 0; k < s->along.taps; k++) {
        const float v = w[k * n + i];
#pragma omp simd
        for (int64_t l = 0; l < width; l++)
            sum[l] = (k ? sum[l] : 0) + v * from[k * block + l];
    }
    cvy_floats_store(half, sum, width, dst, at);
}

CVY_INLINE void sum_blocks(const struct resize *s, const int half, const float *restrict sum, int64_t at)
{
    for (int64_t i = 0; i < s->along.n; i++) {
        const float *from = sum + s->along.first[i] * s->block;
        const int64_t to = at + i * s->block;
        if (s->block == 16)
            sum_channels(s, half, from, i, 16, to);
        else
            for (int64_t c = 0; c < s->block; c += LANES)
                sum_channels(s, half, from + c, i, CVY_MIN(LANES, s->block - c), to + c);
    }
}

/* ---- running ---- */

/* Floats of the sum of rows, and of a row of the output; both begin at a whole vector. */
static int64_t sum_floats(const struct resize *s)
{
    return cvy_whole_lines(s->columns * s->block);
}

static int64_t line_floats(const struct resize *s)
{
    return s->block == 1 ? cvy_whole_lines(s->along.n) : 0;
}

/* A work item is a row of the output. */
CVY_INLINE void resize_rows(const struct resize *s, const int half, int64_t begin, int64_t end, float *scratch)
{
    for (int64_t item = begin; item < end; item++) {
        const int64_t plane = item / s->down.n, at = item * s->along.n * s->block;
        sum_rows(s, half, plane * s->rows * s->columns * s->block, item % s->down.n, scratch);
        if (s->block == 1)
            sum_places(s, half, scratch, scratch + sum_floats(s), at);
        else
            sum_blocks(s, half, scratch, at);
    }
}

CVY_SIMD static void resize_range(int64_t begin, int64_t end, void *arg)
{
    const struct resize *s = arg;
    const int64_t items = s->planes * s->down.n;
    for (int64_t t = begin; t < end; t++) {
        float *scratch = s->scratch + t * (sum_floats(s) + line_floats(s));
        if (s->half)
            resize_rows(s, 1, items * t / s->threads, items * (t + 1) / s->threads, scratch);
        else
            resize_rows(s, 0, items * t / s->threads, items * (t + 1) / s->threads, scratch);
    }
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct resize *s = state;
    s->src = src[0];
    s->dst = dst[0];
    s->scratch = scratch;
    cvy_parallel_for(s->threads, s->threads, 1, resize_range, s);
    return CVY_OK;
}

/* ---- planning ---- */

/* Which resize a node is, or whose gradient. */
struct task {
    const cvy_resize_opts *o;
    int is_grad;
    const cvy_shape *small, *large; /* before and after the forward operator */
};

static struct task task_of(const cvy_node *node)
{
    const cvy_resize_grad_opts *o = node->options;
    const int is_grad = strcmp(node->op->name, "resize_grad") == 0;
    const cvy_shape *src = &node->src[0]->shape;
    return is_grad ? (struct task){&o->resize, 1, &o->src, src}
                   : (struct task){node->options, 0, src, &node->dst[0]->shape};
}

/* The places first .. end - 1 of the input that make place i of the output along dimension d. */
static void places_of(const struct task *t, int d, int64_t i, int64_t *first_out, int64_t *end_out)
{
    const int64_t small = t->small->dim[2 + d], large = t->large->dim[2 + d];
    if (t->is_grad) {
        cvy_resize_places(t->o, d, small, large, i, first_out, end_out);
        return;
    }
    const cvy_resize_tap tap = cvy_resize_tap_at(t->o, d, small, large, i);
    *first_out = tap.low;
    *end_out = tap.high + 1;
}

/* The weight of place `in` of the input in place `out` of the output. */
static double weight_of(const struct task *t, int d, int64_t in, int64_t out)
{
    const int64_t small = t->small->dim[2 + d], large = t->large->dim[2 + d];
    const cvy_resize_tap tap = cvy_resize_tap_at(t->o, d, small, large, t->is_grad ? in : out);
    return cvy_resize_weight(&tap, t->is_grad ? out : in);
}

static cvy_status make_axis(const struct task *t, int d, struct axis *a)
{
    const int64_t in = (t->is_grad ? t->large : t->small)->dim[2 + d];
    int64_t first, end;
    a->n = (t->is_grad ? t->small : t->large)->dim[2 + d];
    a->taps = 1;
    CVY_TRY(cvy_mem_alloc((size_t)a->n * sizeof *a->first, &a->first));
    for (int64_t i = 0; i < a->n; i++) {
        places_of(t, d, i, &first, &end);
        a->taps = CVY_MAX(a->taps, end - first);
    }
    CVY_TRY(cvy_mem_alloc((size_t)(a->n * a->taps) * sizeof *a->weight, &a->weight));
    for (int64_t i = 0; i < a->n; i++) {
        places_of(t, d, i, &first, &end);
        first = CVY_MIN(first, in - a->taps); /* all taps are inside the input; some have no weight */
        a->first[i] = (int32_t)first;
        for (int64_t k = 0; k < a->taps; k++)
            a->weight[k * a->n + i] = (float)weight_of(t, d, first + k, i);
    }
    return CVY_OK;
}

static void axis_free(struct axis *a)
{
    cvy_mem_free(&a->first);
    cvy_mem_free(&a->weight);
}

static struct resize state_of(const cvy_kernel_ask *ask, const cvy_layout *layout)
{
    const cvy_shape *src = &ask->node->src[0]->shape, *dst = &ask->node->dst[0]->shape;
    const cvy_planes p = cvy_planes_make(src, layout);
    return (struct resize){.planes = p.n * p.groups,
                           .block = p.block,
                           .rows = src->dim[2],
                           .columns = src->dim[3],
                           .along = {.n = dst->dim[3]},
                           .threads = cvy_shape_elems(src) + cvy_shape_elems(dst) < CVY_GRAIN ? 1 : ask->threads,
                           .half = ask->node->src[0]->dtype == CVY_DTYPE_BF16};
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    const cvy_layout layout = cvy_native_activation(ask, 0);
    const struct resize s = state_of(ask, &layout);
    ask->src[0] = ask->dst[0] = layout;
    ask->scratch_bytes = (size_t)(s.threads * (sum_floats(&s) + line_floats(&s))) * sizeof(float);
    return CVY_OK;
}

static void destroy(void *state)
{
    struct resize *s = state;
    if (s) {
        axis_free(&s->down);
        axis_free(&s->along);
    }
    cvy_mem_free(&s);
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const struct task t = task_of(ask->node);
    cvy_status status = CVY_OK;
    struct resize *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = state_of(ask, &ask->src[0]);
    CVY_TRY_OUT(make_axis(&t, 0, &s->down));
    CVY_TRY_OUT(make_axis(&t, 1, &s->along));
    *state_out = s;
    return CVY_OK;
out:
    destroy(s);
    return status;
}

CVY_KERNEL_DEFINE(native_resize) = {
    .name = "native.resize",
    .op = "resize",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_resize_grad) = {
    .name = "native.resize_grad",
    .op = "resize_grad",
    .preference = 50,
    .offer = offer,
    .create = create,
    .run = run,
    .destroy = destroy,
};

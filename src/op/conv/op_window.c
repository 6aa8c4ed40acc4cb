/*
 * op_window.c: sliding windows of convolution, deconvolution and pooling: shapes, and the three plain sums of a
 * convolution. Source: Dumoulin and Visin 2016, "A guide to convolution arithmetic"; ceil mode and transposed sizes as
 * in the documentation of PyTorch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/conv/op_window.h"

static int64_t product(const int64_t dim[CVY_SPACE_MAX])
{
    return dim[0] * dim[1] * dim[2];
}

static cvy_status check_list(const char *op, const char *what, const cvy_ints *list, int nspace, const cvy_shape *src)
{
    CVY_CHECK(
        !list || list->count <= 1 || list->count == nspace, CVY_E_SHAPE,
        "%s: `%s` has %d entries, but source %s has %d spatial dimensions; give one entry for all or one for each", op,
        what, list->count, cvy_shape_text(src), nspace);
    for (int i = 0; list && i < list->count; i++)
        CVY_CHECK(list->at[i] <= INT32_MAX, CVY_E_SHAPE, "%s: `%s` is %lld, expected at most %d", op, what,
                  (long long)list->at[i], INT32_MAX);
    return CVY_OK;
}

/* Fills everything but the sizes of src and dst. */
static cvy_status fill(const char *op, const cvy_shape *src, const cvy_window_lists *lists, cvy_window *w)
{
    CVY_CHECK(src->ndim >= 3 && src->ndim <= 2 + CVY_SPACE_MAX, CVY_E_SHAPE,
              "%s needs a source [N, C, positions...] with one to three spatial dimensions, got %s", op,
              cvy_shape_text(src));
    w->nspace = src->ndim - 2;
    CVY_TRY(check_list(op, "kernel", lists->kernel, w->nspace, src));
    CVY_TRY(check_list(op, "stride", lists->stride, w->nspace, src));
    CVY_TRY(check_list(op, "pad", lists->pad, w->nspace, src));
    CVY_TRY(check_list(op, "pad_end", lists->pad_end, w->nspace, src));
    CVY_TRY(check_list(op, "dilation", lists->dilation, w->nspace, src));
    for (int d = 0; d < CVY_SPACE_MAX; d++) {
        const int real = d < w->nspace;
        w->kernel[d] = real ? cvy_ints_at(lists->kernel, d, 1) : 1;
        w->stride[d] = real ? cvy_ints_at(lists->stride, d, w->kernel[d]) : 1;
        w->pad[d] = real ? cvy_ints_at(lists->pad, d, 0) : 0;
        w->pad_end[d] = real && lists->pad_end ? cvy_ints_at(lists->pad_end, d, w->pad[d]) : w->pad[d];
        w->dilation[d] = real && lists->dilation ? cvy_ints_at(lists->dilation, d, 1) : 1;
        w->src[d] = w->dst[d] = 1;
    }
    const cvy_shape kernel = {CVY_SPACE_MAX, {w->kernel[0], w->kernel[1], w->kernel[2]}};
    CVY_CHECK(cvy_shape_fits(&kernel), CVY_E_SHAPE, "%s: a window of %s positions is too large", op,
              cvy_shape_text(&kernel));
    w->taps = product(w->kernel);
    return CVY_OK;
}

cvy_status cvy_window_make(const char *op, const cvy_shape *src, const cvy_window_lists *lists, int ceil,
                           cvy_window *out)
{
    cvy_window w;
    CVY_TRY(fill(op, src, lists, &w));
    for (int d = 0; d < w.nspace; d++) {
        const int64_t size = src->dim[2 + d], reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
        const int64_t room = size + w.pad[d] + w.pad_end[d] - reach + (ceil ? w.stride[d] - 1 : 0);
        CVY_CHECK(room >= 0, CVY_E_SHAPE,
                  "%s: a window of %lld positions does not fit spatial dimension %d of source %s with padding %lld "
                  "before and %lld after it; use a smaller kernel or more padding",
                  op, (long long)reach, d, cvy_shape_text(src), (long long)w.pad[d], (long long)w.pad_end[d]);
        w.src[d] = size;
        w.dst[d] = room / w.stride[d] + 1;
        if (ceil && (w.dst[d] - 1) * w.stride[d] >= size + w.pad[d])
            w.dst[d]--;
    }
    w.src_elems = product(w.src);
    w.dst_elems = product(w.dst);
    *out = w;
    return CVY_OK;
}

cvy_status cvy_window_make_transposed(const char *op, const cvy_shape *src, const cvy_window_lists *lists,
                                      const cvy_ints *output_pad, cvy_window *out)
{
    cvy_window w;
    CVY_TRY(fill(op, src, lists, &w));
    CVY_TRY(check_list(op, "output_pad", output_pad, w.nspace, src));
    for (int d = 0; d < w.nspace; d++) {
        const int64_t extra = cvy_ints_at(output_pad, d, 0);
        CVY_CHECK(extra < w.stride[d] || extra < w.dilation[d], CVY_E_SHAPE,
                  "%s: `output_pad` %lld must be smaller than the stride (%lld) or the dilation (%lld)", op,
                  (long long)extra, (long long)w.stride[d], (long long)w.dilation[d]);
        w.dst[d] = src->dim[2 + d];
        w.src[d] = (w.dst[d] - 1) * w.stride[d] - 2 * w.pad[d] + w.dilation[d] * (w.kernel[d] - 1) + 1 + extra;
        CVY_CHECK(w.src[d] >= 1, CVY_E_SHAPE,
                  "%s: spatial dimension %d of source %s would become %lld positions; use less padding", op, d,
                  cvy_shape_text(src), (long long)w.src[d]);
    }
    w.src_elems = product(w.src);
    w.dst_elems = product(w.dst);
    *out = w;
    return CVY_OK;
}

static cvy_shape shape_of(int nspace, const int64_t dim[CVY_SPACE_MAX], int64_t n, int64_t channels)
{
    cvy_shape s = {.ndim = 2 + nspace, .dim = {n, channels}};
    for (int d = 0; d < nspace; d++)
        s.dim[2 + d] = dim[d];
    return s;
}

cvy_shape cvy_window_src_shape(const cvy_window *w, int64_t n, int64_t channels)
{
    return shape_of(w->nspace, w->src, n, channels);
}

cvy_shape cvy_window_dst_shape(const cvy_window *w, int64_t n, int64_t channels)
{
    return shape_of(w->nspace, w->dst, n, channels);
}

/* Pairs of coordinates of two tensors that are multiplied, in one dimension: (a, b), (a + a_step, b + b_step), ... */
struct walk {
    int64_t a, a_step, b, b_step, count;
};

/* Finds the i in 0 .. count - 1 for which start + i step is in 0 .. size - 1. They are first .. last - 1; step > 0. */
static void find_inside(int64_t start, int64_t step, int64_t count, int64_t size, int64_t *first_out, int64_t *last_out)
{
    *first_out = start >= 0 ? 0 : (-start + step - 1) / step;
    *last_out = start >= size ? 0 : CVY_MIN(count, (size - 1 - start) / step + 1);
}

static struct walk make_walk(int64_t first, int64_t last, int64_t a, int64_t a_step, int64_t b, int64_t b_step)
{
    return (struct walk){a + first * a_step, a_step, b + first * b_step, b_step, CVY_MAX(last - first, 0)};
}

/* The source coordinates and taps that contribute to destination coordinate `at`. */
static struct walk walk_at_dst(const cvy_window *w, int d, int64_t at)
{
    const int64_t start = at * w->stride[d] - w->pad[d];
    int64_t first, last;
    find_inside(start, w->dilation[d], w->kernel[d], w->src[d], &first, &last);
    return make_walk(first, last, start, w->dilation[d], 0, 1);
}

/* The source and destination coordinates that tap `tap` connects. */
static struct walk walk_at_tap(const cvy_window *w, int d, int64_t tap)
{
    const int64_t start = tap * w->dilation[d] - w->pad[d];
    int64_t first, last;
    find_inside(start, w->stride[d], w->dst[d], w->src[d], &first, &last);
    return make_walk(first, last, start, w->stride[d], 0, 1);
}

/* The destination coordinates and taps that touch source coordinate `at`. Because of the stride only every tap_step-th
 * tap does. */
static struct walk walk_at_src(const cvy_window *w, int d, int64_t at)
{
    const int64_t stride = w->stride[d], dilation = w->dilation[d];
    int64_t tap = 0, tap_step = 1, first, last;
    while (tap < w->kernel[d] && (at + w->pad[d] - tap * dilation) % stride != 0)
        tap++;
    while (tap_step * dilation % stride != 0)
        tap_step++;
    const int64_t dst = (at + w->pad[d] - tap * dilation) / stride, dst_step = tap_step * dilation / stride;
    const int64_t count = (w->kernel[d] - tap + tap_step - 1) / tap_step;
    find_inside(w->dst[d] - 1 - dst, dst_step, count, w->dst[d], &first,
                &last); /* counted from the far end, so that the step is positive */
    return make_walk(first, last, dst, -dst_step, tap, tap_step);
}

#define INLINE static inline __attribute__((always_inline))

/* Sum of a * b over all pairs of positions of the walks; a0, b0: offsets of the two channels. */
INLINE double sum_of(const struct walk at[CVY_SPACE_MAX], const cvy_span *a, int64_t a0,
                     const int64_t a_dim[CVY_SPACE_MAX], const cvy_span *b, int64_t b0,
                     const int64_t b_dim[CVY_SPACE_MAX])
{
    double sum = 0;
    for (int64_t i = 0; i < at[0].count; i++)
        for (int64_t j = 0; j < at[1].count; j++) {
            const int64_t a_row = (at[0].a + i * at[0].a_step) * a_dim[1] + at[1].a + j * at[1].a_step;
            const int64_t b_row = (at[0].b + i * at[0].b_step) * b_dim[1] + at[1].b + j * at[1].b_step;
            const int64_t a1 = a0 + a_row * a_dim[2] + at[2].a, b1 = b0 + b_row * b_dim[2] + at[2].b;
            double row = 0;
            for (int64_t k = 0; k < at[2].count; k++)
                row += cvy_get(a, a1 + k * at[2].a_step) * cvy_get(b, b1 + k * at[2].b_step);
            sum += row;
        }
    return sum;
}

/* The same. The compiler makes a loop of its own for two spans of each dtype, because whole networks are checked with
 * these sums. */
static double sum_over(const struct walk at[CVY_SPACE_MAX], const cvy_span *a, int64_t a0,
                       const int64_t a_dim[CVY_SPACE_MAX], const cvy_span *b, int64_t b0,
                       const int64_t b_dim[CVY_SPACE_MAX])
{
    cvy_span x = {.data = a->data}, y = {.data = b->data};
    if (a->dtype != b->dtype)
        return sum_of(at, a, a0, a_dim, b, b0, b_dim);
    switch (a->dtype) {
    case CVY_DTYPE_F64: x.dtype = y.dtype = CVY_DTYPE_F64; return sum_of(at, &x, a0, a_dim, &y, b0, b_dim);
    case CVY_DTYPE_F32: x.dtype = y.dtype = CVY_DTYPE_F32; return sum_of(at, &x, a0, a_dim, &y, b0, b_dim);
    case CVY_DTYPE_BF16: x.dtype = y.dtype = CVY_DTYPE_BF16; return sum_of(at, &x, a0, a_dim, &y, b0, b_dim);
    default: return sum_of(at, a, a0, a_dim, b, b0, b_dim);
    }
}

/* The walks of all dimensions, for the position with this row-major offset in `dim`. */
static void make_walks(const cvy_window *w, struct walk (*walk_at)(const cvy_window *, int, int64_t),
                       const int64_t dim[CVY_SPACE_MAX], int64_t offset, struct walk out[CVY_SPACE_MAX])
{
    int64_t at[CVY_SPACE_MAX];
    cvy_window_split(dim, offset, at);
    for (int d = 0; d < CVY_SPACE_MAX; d++)
        out[d] = walk_at(w, d, at[d]);
}

void cvy_window_forward(const cvy_window *w, const cvy_window_channels *c, const cvy_span *src, const cvy_span *weight,
                        const cvy_span *bias, const cvy_span *dst)
{
    const int64_t per_src = c->nsrc / c->groups, per_dst = c->ndst / c->groups;
    for (int64_t o = 0; o < c->n * c->ndst * w->dst_elems; o++) {
        const int64_t n = o / w->dst_elems / c->ndst, k = o / w->dst_elems % c->ndst, first = k / per_dst * per_src;
        struct walk at[CVY_SPACE_MAX];
        make_walks(w, walk_at_dst, w->dst, o % w->dst_elems, at);
        double sum = bias ? cvy_get(bias, k) : 0;
        for (int64_t i = 0; i < per_src; i++)
            sum += sum_over(at, src, (n * c->nsrc + first + i) * w->src_elems, w->src, weight,
                            (k * per_src + i) * w->taps, w->kernel);
        cvy_set(dst, o, sum);
    }
}

void cvy_window_backward(const cvy_window *w, const cvy_window_channels *c, const cvy_span *dst, const cvy_span *weight,
                         const cvy_span *bias, const cvy_span *src)
{
    const int64_t per_src = c->nsrc / c->groups, per_dst = c->ndst / c->groups;
    for (int64_t s = 0; s < c->n * c->nsrc * w->src_elems; s++) {
        const int64_t n = s / w->src_elems / c->nsrc, i = s / w->src_elems % c->nsrc, first = i / per_src * per_dst;
        struct walk at[CVY_SPACE_MAX];
        make_walks(w, walk_at_src, w->src, s % w->src_elems, at);
        double sum = bias ? cvy_get(bias, i) : 0;
        for (int64_t k = first; k < first + per_dst; k++)
            sum += sum_over(at, dst, (n * c->ndst + k) * w->dst_elems, w->dst, weight,
                            (k * per_src + i % per_src) * w->taps, w->kernel);
        cvy_set(src, s, sum);
    }
}

void cvy_window_weight(const cvy_window *w, const cvy_window_channels *c, const cvy_span *src, const cvy_span *dst,
                       const cvy_span *weight)
{
    const int64_t per_src = c->nsrc / c->groups, per_dst = c->ndst / c->groups;
    for (int64_t e = 0; e < c->ndst * per_src * w->taps; e++) {
        const int64_t k = e / w->taps / per_src, i = k / per_dst * per_src + e / w->taps % per_src;
        struct walk at[CVY_SPACE_MAX];
        make_walks(w, walk_at_tap, w->kernel, e % w->taps, at);
        double sum = 0;
        for (int64_t n = 0; n < c->n; n++)
            sum += sum_over(at, src, (n * c->nsrc + i) * w->src_elems, w->src, dst, (n * c->ndst + k) * w->dst_elems,
                            w->dst);
        cvy_set(weight, e, sum);
    }
}

void cvy_window_channel_sums(const cvy_span *x, const cvy_span *sum)
{
    const int64_t positions = cvy_span_prod(x, 2, x->ndim), C = x->dim[1];
    for (int64_t c = 0; c < C; c++) {
        double total = 0;
        for (int64_t n = 0; n < x->dim[0]; n++)
            for (int64_t i = 0; i < positions; i++)
                total += cvy_get(x, (n * C + c) * positions + i);
        cvy_set(sum, c, total);
    }
}

cvy_status cvy_window_part(int ndim, const cvy_window_lists *lists, cvy_ints *pad, cvy_node_part *part)
{
    const int d = part->dim - 2, nspace = ndim - 2;
    const int64_t kernel = cvy_ints_at(lists->kernel, d, 1),
                  dilation = lists->dilation ? cvy_ints_at(lists->dilation, d, 1) : 1;
    cvy_ints own = {.count = nspace};
    CVY_EXPECT(nspace <= CVY_SPACE_MAX);
    part->slides = 1;
    part->stride = cvy_ints_at(lists->stride, d, kernel);
    part->pad = cvy_ints_at(lists->pad, d, 0);
    part->reach = dilation * (kernel - 1) + 1;
    for (int i = 0; i < nspace; i++)
        own.at[i] = i == d ? 0 : cvy_ints_at(lists->pad, i, 0);
    *pad = own;
    return CVY_OK;
}

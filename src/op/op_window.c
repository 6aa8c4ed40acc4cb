/*
 * Sliding windows: shapes, and the three plain sums of a convolution. In the step: convolution, deconvolution, pooling.
 * Source: Dumoulin and Visin 2016, "A guide to convolution arithmetic"; ceil mode and transposed sizes as PyTorch documents them.
 */
#include "op/op_window.h"

static int64_t product(const int64_t dim[CVY_SPACE_MAX])
{
    return dim[0] * dim[1] * dim[2];
}

static cvy_status check_list(const char *op, const char *what, const cvy_ints *list, int nspace, const cvy_shape *src)
{
    CVY_CHECK(!list || list->count <= 1 || list->count == nspace, CVY_E_SHAPE,
              "%s: `%s` has %d entries, but source %s has %d spatial dimensions; give one entry for all or one for each", op, what, list->count,
              cvy_shape_text(src), nspace);
    return CVY_OK;
}

/* Everything but src and dst sizes. */
static cvy_status fill(const char *op, const cvy_shape *src, const cvy_window_lists *lists, cvy_window *w)
{
    CVY_CHECK(src->ndim >= 3 && src->ndim <= 2 + CVY_SPACE_MAX, CVY_E_SHAPE,
              "%s needs a source [N, C, positions...] with one to three spatial dimensions, got %s", op, cvy_shape_text(src));
    w->nspace = src->ndim - 2;
    CVY_TRY(check_list(op, "kernel", lists->kernel, w->nspace, src));
    CVY_TRY(check_list(op, "stride", lists->stride, w->nspace, src));
    CVY_TRY(check_list(op, "pad", lists->pad, w->nspace, src));
    CVY_TRY(check_list(op, "dilation", lists->dilation, w->nspace, src));
    for (int d = 0; d < CVY_SPACE_MAX; d++) {
        const int real = d < w->nspace;
        w->kernel[d] = real ? cvy_ints_at(lists->kernel, d, 1) : 1;
        w->stride[d] = real ? cvy_ints_at(lists->stride, d, w->kernel[d]) : 1;
        w->pad[d] = real ? cvy_ints_at(lists->pad, d, 0) : 0;
        w->dilation[d] = real && lists->dilation ? cvy_ints_at(lists->dilation, d, 1) : 1;
        w->src[d] = w->dst[d] = 1;
    }
    w->taps = product(w->kernel);
    return CVY_OK;
}

cvy_status cvy_window_make(const char *op, const cvy_shape *src, const cvy_window_lists *lists, int ceil, cvy_window *out)
{
    cvy_window w;
    CVY_TRY(fill(op, src, lists, &w));
    for (int d = 0; d < w.nspace; d++) {
        const int64_t size = src->dim[2 + d], reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
        const int64_t room = size + 2 * w.pad[d] - reach + (ceil ? w.stride[d] - 1 : 0);
        CVY_CHECK(room >= 0, CVY_E_SHAPE,
                  "%s: a window of %lld positions does not fit spatial dimension %d of source %s with padding %lld; use a smaller kernel or more padding",
                  op, (long long)reach, d, cvy_shape_text(src), (long long)w.pad[d]);
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

cvy_status cvy_window_make_transposed(const char *op, const cvy_shape *src, const cvy_window_lists *lists, const cvy_ints *output_pad, cvy_window *out)
{
    cvy_window w;
    CVY_TRY(fill(op, src, lists, &w));
    CVY_TRY(check_list(op, "output_pad", output_pad, w.nspace, src));
    for (int d = 0; d < w.nspace; d++) {
        const int64_t extra = cvy_ints_at(output_pad, d, 0);
        CVY_CHECK(extra < w.stride[d] || extra < w.dilation[d], CVY_E_SHAPE,
                  "%s: `output_pad` %lld must be smaller than the stride (%lld) or the dilation (%lld)", op, (long long)extra, (long long)w.stride[d],
                  (long long)w.dilation[d]);
        w.dst[d] = src->dim[2 + d];
        w.src[d] = (w.dst[d] - 1) * w.stride[d] - 2 * w.pad[d] + w.dilation[d] * (w.kernel[d] - 1) + 1 + extra;
        CVY_CHECK(w.src[d] >= 1, CVY_E_SHAPE, "%s: spatial dimension %d of source %s would become %lld positions; use less padding", op, d,
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

/* Sum over the taps of one filter at destination position `at`; s0, w0: offsets of the source channel and of the filter. */
static double sum_at_dst(const cvy_window *w, const cvy_span *src, int64_t s0, const cvy_span *weight, int64_t w0, const int64_t at[CVY_SPACE_MAX])
{
    double sum = 0;
    for (int64_t i = 0; i < w->kernel[0]; i++) {
        const int64_t x = cvy_window_touch(w, 0, at[0], i);
        for (int64_t j = 0; x >= 0 && j < w->kernel[1]; j++) {
            const int64_t y = cvy_window_touch(w, 1, at[1], j);
            for (int64_t k = 0; y >= 0 && k < w->kernel[2]; k++) {
                const int64_t z = cvy_window_touch(w, 2, at[2], k);
                if (z >= 0)
                    sum += cvy_get(src, s0 + (x * w->src[1] + y) * w->src[2] + z) *
                           cvy_get(weight, w0 + (i * w->kernel[1] + j) * w->kernel[2] + k);
            }
        }
    }
    return sum;
}

/* The destination coordinate whose tap `tap` touches source coordinate x in dimension d; -1: none. */
static int64_t touched_by(const cvy_window *w, int d, int64_t x, int64_t tap)
{
    const int64_t start = x + w->pad[d] - tap * w->dilation[d];
    if (start < 0 || start % w->stride[d] != 0 || start / w->stride[d] >= w->dst[d])
        return -1;
    return start / w->stride[d];
}

/* Sum over the taps of one filter that touch source position `at`. */
static double sum_at_src(const cvy_window *w, const cvy_span *dst, int64_t d0, const cvy_span *weight, int64_t w0, const int64_t at[CVY_SPACE_MAX])
{
    double sum = 0;
    for (int64_t i = 0; i < w->kernel[0]; i++) {
        const int64_t x = touched_by(w, 0, at[0], i);
        for (int64_t j = 0; x >= 0 && j < w->kernel[1]; j++) {
            const int64_t y = touched_by(w, 1, at[1], j);
            for (int64_t k = 0; y >= 0 && k < w->kernel[2]; k++) {
                const int64_t z = touched_by(w, 2, at[2], k);
                if (z >= 0)
                    sum += cvy_get(dst, d0 + (x * w->dst[1] + y) * w->dst[2] + z) *
                           cvy_get(weight, w0 + (i * w->kernel[1] + j) * w->kernel[2] + k);
            }
        }
    }
    return sum;
}

/* Sum over the destination positions of one channel, seen through tap `tap`. */
static double sum_at_tap(const cvy_window *w, const cvy_span *src, int64_t s0, const cvy_span *dst, int64_t d0, const int64_t tap[CVY_SPACE_MAX])
{
    double sum = 0;
    for (int64_t i = 0; i < w->dst[0]; i++) {
        const int64_t x = cvy_window_touch(w, 0, i, tap[0]);
        for (int64_t j = 0; x >= 0 && j < w->dst[1]; j++) {
            const int64_t y = cvy_window_touch(w, 1, j, tap[1]);
            for (int64_t k = 0; y >= 0 && k < w->dst[2]; k++) {
                const int64_t z = cvy_window_touch(w, 2, k, tap[2]);
                if (z >= 0)
                    sum += cvy_get(src, s0 + (x * w->src[1] + y) * w->src[2] + z) * cvy_get(dst, d0 + (i * w->dst[1] + j) * w->dst[2] + k);
            }
        }
    }
    return sum;
}

void cvy_window_forward(const cvy_window *w, const cvy_window_channels *c, const cvy_span *src, const cvy_span *weight, const cvy_span *bias,
                        const cvy_span *dst)
{
    const int64_t per_src = c->nsrc / c->groups, per_dst = c->ndst / c->groups;
    for (int64_t o = 0; o < c->n * c->ndst * w->dst_elems; o++) {
        const int64_t n = o / w->dst_elems / c->ndst, k = o / w->dst_elems % c->ndst, first = k / per_dst * per_src;
        int64_t at[CVY_SPACE_MAX];
        cvy_window_split(w->dst, o % w->dst_elems, at);
        double sum = bias ? cvy_get(bias, k) : 0;
        for (int64_t i = 0; i < per_src; i++)
            sum += sum_at_dst(w, src, (n * c->nsrc + first + i) * w->src_elems, weight, (k * per_src + i) * w->taps, at);
        cvy_set(dst, o, sum);
    }
}

void cvy_window_backward(const cvy_window *w, const cvy_window_channels *c, const cvy_span *dst, const cvy_span *weight, const cvy_span *bias,
                         const cvy_span *src)
{
    const int64_t per_src = c->nsrc / c->groups, per_dst = c->ndst / c->groups;
    for (int64_t s = 0; s < c->n * c->nsrc * w->src_elems; s++) {
        const int64_t n = s / w->src_elems / c->nsrc, i = s / w->src_elems % c->nsrc, first = i / per_src * per_dst;
        int64_t at[CVY_SPACE_MAX];
        cvy_window_split(w->src, s % w->src_elems, at);
        double sum = bias ? cvy_get(bias, i) : 0;
        for (int64_t k = first; k < first + per_dst; k++)
            sum += sum_at_src(w, dst, (n * c->ndst + k) * w->dst_elems, weight, (k * per_src + i % per_src) * w->taps, at);
        cvy_set(src, s, sum);
    }
}

void cvy_window_weight(const cvy_window *w, const cvy_window_channels *c, const cvy_span *src, const cvy_span *dst, const cvy_span *weight)
{
    const int64_t per_src = c->nsrc / c->groups, per_dst = c->ndst / c->groups;
    for (int64_t e = 0; e < c->ndst * per_src * w->taps; e++) {
        const int64_t k = e / w->taps / per_src, i = k / per_dst * per_src + e / w->taps % per_src;
        int64_t tap[CVY_SPACE_MAX];
        cvy_window_split(w->kernel, e % w->taps, tap);
        double sum = 0;
        for (int64_t n = 0; n < c->n; n++)
            sum += sum_at_tap(w, src, (n * c->nsrc + i) * w->src_elems, dst, (n * c->ndst + k) * w->dst_elems, tap);
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

/*
 * gpu_pool.c: max_pool and avg_pool, and their gradients, of f32 and bf16 with channels last.
 *
 * A thread computes four neighbouring channels of a position: forward it goes through the positions of a window;
 * backward through the windows that touch a position, so nothing is added to memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { POOL_DIMS = 3 };
struct pool { /* of one to three spatial dimensions; missing ones have one position and a window of one */
    i64 channels, quads, count; /* quads: channels / 4, rounded up; count: of quads, in what the kernel writes */
    int src[POOL_DIMS], dst[POOL_DIMS], window[POOL_DIMS], stride[POOL_DIMS], pad[POOL_DIMS], pad_end[POOL_DIMS];
    int dilation[POOL_DIMS];
    int no_winner, relu, count_include_pad;
    int index_bytes; /* 1 or 4; 0: the index is not wanted */
    int is_small;    /* count is less than 2^31 */
    int whole;       /* four channels are read and written at once */
};

#ifdef CVY_DEVICE

/* A division of 64 bits takes several times as long as one of 32. */
#define DIVIDE(i, n, is_small) ((is_small) ? (i64)((u32)(i) / (u32)(n)) : QUOTIENT(i, n))

/* Splits quad i of a tensor with these positions into its first channel c, its place and its sample n. count_c: how
 * many channels it has; at_c: where it begins in memory. */
#define PLACES(i, p, positions, c, x, y, z, n)                                                                         \
    i64 n = DIVIDE(i, (p).quads, (p).is_small);                                                                        \
    const i64 c = FOUR * (i - n * (p).quads), at_##c = n * (p).channels + c;                                           \
    const int count_##c = (int)MIN((p).channels - c, FOUR);                                                            \
    i64 rest_ = DIVIDE(n, (p).positions[2], (p).is_small);                                                             \
    const int z = (int)(n - rest_ * (p).positions[2]);                                                                 \
    n = DIVIDE(rest_, (p).positions[1], (p).is_small);                                                                 \
    const int y = (int)(rest_ - n * (p).positions[1]);                                                                 \
    rest_ = n;                                                                                                         \
    n = DIVIDE(rest_, (p).positions[0], (p).is_small);                                                                 \
    const int x = (int)(rest_ - n * (p).positions[0])

/* The first tap of a window that begins at `start`, and the end of its taps, inside the source. */
INLINE int first_tap(struct pool p, int d, int start)
{
    return start >= 0 ? 0 : (-start + p.dilation[d] - 1) / p.dilation[d];
}
INLINE int end_tap(struct pool p, int d, int start)
{
    return start >= p.src[d] ? 0 : MIN(p.window[d], (p.src[d] - 1 - start) / p.dilation[d] + 1);
}

/* The first window that reaches source coordinate `at`, if all its taps were there, and the end of those windows. */
INLINE int first_window(struct pool p, int d, int at)
{
    const int before = at + p.pad[d] - p.dilation[d] * (p.window[d] - 1);
    return before <= 0 ? 0 : (before + p.stride[d] - 1) / p.stride[d];
}
INLINE int end_window(struct pool p, int d, int at)
{
    return MIN(p.dst[d], (at + p.pad[d]) / p.stride[d] + 1);
}

/* The tap of window `window` at source coordinate `at`; -1: it has none there. */
INLINE int tap_at(struct pool p, int d, int at, int window)
{
    const int from = at + p.pad[d] - window * p.stride[d];
    if (p.dilation[d] == 1) /* divisions take long */
        return from;
    return from % p.dilation[d] ? -1 : from / p.dilation[d];
}

/* Indices of four neighbouring elements. */
INLINE void get_index(GLOBAL const u8 *index, i64 at, int n, struct pool p, int *winner)
{
    const u32 word = p.whole && p.index_bytes == 1 ? *(GLOBAL const u32 *)(index + at) : 0;
    for (int k = 0; k < FOUR; k++)
        winner[k] = p.index_bytes == 4 ? k < n ? ((GLOBAL const int *)index)[at + k] : 0
                    : p.whole          ? (int)(word >> 8 * k & 255u)
                    : k < n            ? index[at + k]
                                       : 0;
}
INLINE void set_index(GLOBAL u8 *index, i64 at, int n, struct pool p, const int *winner)
{
    if (p.index_bytes == 1 && p.whole)
        *(GLOBAL u32 *)(index + at) =
            (u32)winner[0] | (u32)winner[1] << 8 | (u32)winner[2] << 16 | (u32)winner[3] << 24;
    for (int k = 0; k < n && p.index_bytes == 1 && !p.whole; k++)
        index[at + k] = (u8)winner[k];
    for (int k = 0; k < n && p.index_bytes == 4; k++)
        ((GLOBAL int *)index)[at + k] = winner[k];
}

/* The first of the largest elements wins; the first NaN wins over all. */
KERNEL(max_pool)(GLOBAL const act *src, GLOBAL act *dst, GLOBAL u8 *index, struct pool p)
{
    FOR_EACH (i, p.count) {
        PLACES(i, p, dst, c, ox, oy, oz, n);
        const int x = ox * p.stride[0] - p.pad[0], y = oy * p.stride[1] - p.pad[1], z = oz * p.stride[2] - p.pad[2];
        const int x0 = first_tap(p, 0, x), y0 = first_tap(p, 1, y), z0 = first_tap(p, 2, z);
        const int x1 = end_tap(p, 0, x), y1 = end_tap(p, 1, y), z1 = end_tap(p, 2, z);
        float best[FOUR], v[FOUR];
        int winner[FOUR];
        for (int k = 0; k < FOUR; k++) {
            best[k] = 0;
            winner[k] = -1;
        }
        for (int a = x0; a < x1; a++)
            for (int b = y0; b < y1; b++)
                for (int t = z0; t < z1; t++) {
                    const i64 at =
                        ((n * p.src[0] + x + a * p.dilation[0]) * p.src[1] + y + b * p.dilation[1]) * p.src[2] + z +
                        t * p.dilation[2];
                    const int tap = (a * p.window[1] + b) * p.window[2] + t;
                    get_four(src, at * p.channels + c, count_c, p.whole, v);
                    for (int k = 0; k < FOUR; k++)
                        if (winner[k] < 0 || (!(v[k] <= best[k]) && best[k] == best[k])) {
                            best[k] = v[k];
                            winner[k] = tap;
                        }
                }
        for (int k = 0; k < FOUR; k++)
            if (p.relu && best[k] <= 0) {
                best[k] = 0;
                winner[k] = p.no_winner;
            }
        set_four(dst, at_c, count_c, p.whole, best);
        if (p.index_bytes)
            set_index(index, at_c, count_c, p, winner);
    }
}

KERNEL(max_pool_grad)(GLOBAL const act *ddst, GLOBAL const u8 *index, GLOBAL act *dsrc, struct pool p)
{
    FOR_EACH (i, p.count) {
        PLACES(i, p, src, c, x, y, z, n);
        const int x1 = end_window(p, 0, x), y1 = end_window(p, 1, y), z1 = end_window(p, 2, z);
        float sum[FOUR], d[FOUR];
        int winner[FOUR];
        for (int k = 0; k < FOUR; k++)
            sum[k] = 0;
        for (int a = first_window(p, 0, x); a < x1; a++)
            for (int b = first_window(p, 1, y); b < y1; b++)
                for (int w = first_window(p, 2, z); w < z1; w++) {
                    const int ta = tap_at(p, 0, x, a), tb = tap_at(p, 1, y, b), tw = tap_at(p, 2, z, w);
                    const int tap = (ta * p.window[1] + tb) * p.window[2] + tw;
                    const i64 at = (((n * p.dst[0] + a) * p.dst[1] + b) * p.dst[2] + w) * p.channels + c;
                    get_index(index, at, count_c, p, winner);
                    get_four(ddst, at, count_c, p.whole, d);
                    for (int k = 0; k < FOUR; k++)
                        if (ta >= 0 && tb >= 0 && tw >= 0 && winner[k] == tap)
                            sum[k] += d[k];
                }
        set_four(dsrc, at_c, count_c, p.whole, sum);
    }
}

/* The divisor of a window along one dimension. */
INLINE int divisor(struct pool p, int d, int window)
{
    const int first = window * p.stride[d] - p.pad[d], last = MIN(first + p.window[d], p.src[d] + p.pad_end[d]);
    return p.count_include_pad ? last - first : MIN(last, p.src[d]) - MAX(first, 0);
}

KERNEL(avg_pool)(GLOBAL const act *src, GLOBAL act *dst, struct pool p)
{
    FOR_EACH (i, p.count) {
        PLACES(i, p, dst, c, ox, oy, oz, n);
        const int x = ox * p.stride[0] - p.pad[0], y = oy * p.stride[1] - p.pad[1], z = oz * p.stride[2] - p.pad[2];
        const int x1 = MIN(x + p.window[0], p.src[0]), y1 = MIN(y + p.window[1], p.src[1]),
                  z1 = MIN(z + p.window[2], p.src[2]);
        const float by = (float)((i64)divisor(p, 0, ox) * divisor(p, 1, oy) * divisor(p, 2, oz));
        float sum[FOUR], v[FOUR];
        for (int k = 0; k < FOUR; k++)
            sum[k] = 0;
        for (int a = MAX(x, 0); a < x1; a++)
            for (int b = MAX(y, 0); b < y1; b++)
                for (int t = MAX(z, 0); t < z1; t++) {
                    const i64 at = ((n * p.src[0] + a) * p.src[1] + b) * p.src[2] + t;
                    get_four(src, at * p.channels + c, count_c, p.whole, v);
                    for (int k = 0; k < FOUR; k++)
                        sum[k] += v[k];
                }
        for (int k = 0; k < FOUR; k++)
            sum[k] /= by;
        set_four(dst, at_c, count_c, p.whole, sum);
    }
}

KERNEL(avg_pool_grad)(GLOBAL const act *ddst, GLOBAL act *dsrc, struct pool p)
{
    FOR_EACH (i, p.count) {
        PLACES(i, p, src, c, x, y, z, n);
        const int x1 = end_window(p, 0, x), y1 = end_window(p, 1, y), z1 = end_window(p, 2, z);
        float sum[FOUR], d[FOUR];
        for (int k = 0; k < FOUR; k++)
            sum[k] = 0;
        for (int a = first_window(p, 0, x); a < x1; a++)
            for (int b = first_window(p, 1, y); b < y1; b++)
                for (int w = first_window(p, 2, z); w < z1; w++) {
                    const i64 at = ((n * p.dst[0] + a) * p.dst[1] + b) * p.dst[2] + w;
                    const float by = (float)((i64)divisor(p, 0, a) * divisor(p, 1, b) * divisor(p, 2, w));
                    get_four(ddst, at * p.channels + c, count_c, p.whole, d);
                    for (int k = 0; k < FOUR; k++)
                        sum[k] += d[k] / by;
                }
        set_four(dsrc, at_c, count_c, p.whole, sum);
    }
}

#else
#include "kernel/gpu/gpu_common.h"
#include "op/conv/op_pool.h"

CVY_GPU_SOURCE_DECLARE(gpu_pool);

struct call {
    cvy_gpu_kernel kernel;
    struct pool p;
    cvy_dtype act;
};

/* ---- planning ---- */

/* The name of the operator is that of its kernel. */
static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_pool), ask->node->op->name, act, out);
}

static int is_grad(const cvy_node *node)
{
    return node->op->options_size == sizeof(cvy_pool_grad_opts);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_gpu_layout(&ask->node->src[i]->shape);
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = ask->src[0];
    return CVY_OK;
}

static void take_window(const cvy_window *w, const cvy_pool_opts *o, struct pool *p)
{
    for (int d = 0; d < POOL_DIMS; d++) {
        p->src[d] = (int)w->src[d];
        p->dst[d] = (int)w->dst[d];
        p->window[d] = (int)w->kernel[d];
        p->stride[d] = (int)w->stride[d];
        p->pad[d] = (int)w->pad[d];
        p->pad_end[d] = (int)w->pad_end[d];
        p->dilation[d] = (int)w->dilation[d];
    }
    p->relu = o->relu;
    p->count_include_pad = o->count_include_pad;
    p->index_bytes = (int)cvy_dtype_bytes(cvy_max_pool_index_dtype(w));
    p->no_winner = cvy_max_pool_no_winner(cvy_max_pool_index_dtype(w));
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const cvy_pool_grad_opts *g = node->options;
    const cvy_pool_opts *o = is_grad(node) ? &g->pool : node->options;
    const cvy_shape *src = is_grad(node) ? &g->src : &node->src[0]->shape;
    struct call *c = NULL;
    cvy_window w;
    CVY_TRY(cvy_pool_window(node->op->name, o, src, &w));
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    take_window(&w, o, &c->p);
    c->act = node->src[0]->dtype;
    c->p.channels = src->dim[1];
    c->p.quads = cvy_gpu_tiles(c->p.channels, FOUR);
    c->p.count = cvy_shape_elems(&node->dst[0]->shape) / c->p.channels * c->p.quads;
    c->p.is_small = c->p.count <= INT32_MAX;
    return kernel(ask, &c->kernel);
}

/* ---- running ---- */

static cvy_status run(const struct call *c, const cvy_gpu_arg *args, int nargs)
{
    return cvy_gpu_launch(&c->kernel, cvy_gpu_blocks(c->p.count), 1, 1, CVY_GPU_THREADS, args, nargs);
}

static struct pool pool_of(const struct call *c, const void *src, const void *dst, const void *index)
{
    const void *const pointer[] = {src, dst};
    struct pool p = c->p;
    p.whole = p.channels % FOUR == 0 && (uintptr_t)index % FOUR == 0 &&
              cvy_gpu_are_aligned(FOUR * cvy_dtype_bytes(c->act), pointer, CVY_COUNT(pointer));
    return p;
}

static cvy_status max_pool_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    void *const index = dst[1] ? dst[1] : dst[0];
    struct pool p = pool_of(c, src[0], dst[0], index);
    const cvy_gpu_arg args[] = {CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(dst[0]), CVY_GPU_POINTER(index),
                                CVY_GPU_VALUE(p)};
    (void)scratch;
    if (!dst[1])
        p.index_bytes = 0;
    return run(c, args, CVY_COUNT(args));
}

static cvy_status max_pool_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const struct pool p = pool_of(c, src[0], dst[0], src[1]);
    const cvy_gpu_arg args[] = {CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(dst[0]),
                                CVY_GPU_VALUE(p)};
    (void)scratch;
    return run(c, args, CVY_COUNT(args));
}

static cvy_status avg_pool_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const struct pool p = pool_of(c, src[0], dst[0], dst[0]);
    const cvy_gpu_arg args[] = {CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(p)};
    (void)scratch;
    return run(c, args, CVY_COUNT(args));
}

CVY_KERNEL_DEFINE(gpu_max_pool) = {CVY_GPU_FIELDS("max_pool", offer, create, max_pool_run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_max_pool_grad) = {
    CVY_GPU_FIELDS("max_pool_grad", offer, create, max_pool_grad_run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_avg_pool) = {CVY_GPU_FIELDS("avg_pool", offer, create, avg_pool_run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_avg_pool_grad) = {
    CVY_GPU_FIELDS("avg_pool_grad", offer, create, avg_pool_run, cvy_gpu_free_state)};
#endif

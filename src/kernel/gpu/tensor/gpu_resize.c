/*
 * gpu_resize.c: resize and its gradient, of f32 and bf16, for plain layout and channels last.
 *
 * Which source positions an element of the result has, and with which weights, depends on its row and column only. The
 * host computes that once, as for its own kernels, and the device has it as two tables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct resize {
    i64 n, channels;
    i64 rows, columns, from_rows, from_columns; /* of what is written, and of what is read */
    i64 from_n, from_c, from_p;                 /* steps to the next sample, channel and position in what is read */
    i64 to_n, to_c, to_p;                       /* ... and in what is written */
    int last;                                   /* channels last */
};
/* Of a place of the result: the source positions low .. high and their weights. */
struct tap {
    int low, high;
    float weight[4];
};
/* Of a position of the source: the places of the result first .. end - 1 that have it. */
struct places {
    int first, end;
};

#ifdef CVY_DEVICE

/* Row and column of element i, its place in what is written, and the place of its channel's first element in what is
 * read. */
#define RESIZE_PLACE(i, o, row, column, to, base)                                                                      \
    i64 row, column, to, base;                                                                                         \
    {                                                                                                                  \
        const i64 at_ = (o).last ? QUOTIENT(i, (o).channels) : (i);                                                    \
        const i64 line_ = QUOTIENT(at_, (o).columns), plane_ = QUOTIENT(line_, (o).rows);                              \
        const i64 n_ = (o).last ? plane_ : QUOTIENT(plane_, (o).channels);                                             \
        const i64 c_ = (o).last ? (i)-at_ * (o).channels : plane_ - n_ * (o).channels;                                 \
        column = at_ - line_ * (o).columns;                                                                            \
        row = line_ - plane_ * (o).rows;                                                                               \
        to = n_ * (o).to_n + c_ * (o).to_c + (row * (o).columns + column) * (o).to_p;                                  \
        base = n_ * (o).from_n + c_ * (o).from_c;                                                                      \
    }

KERNEL(resize)
(GLOBAL const act *src, GLOBAL const struct tap *by_row, GLOBAL const struct tap *by_column, GLOBAL act *dst,
 struct resize o)
{
    FOR_EACH (i, o.n * o.channels * o.rows * o.columns) {
        RESIZE_PLACE(i, o, row, column, to, base)
        float sum = 0;
        for (int r = by_row[row].low; r <= by_row[row].high; r++)
            for (int c = by_column[column].low; c <= by_column[column].high; c++)
                sum += by_row[row].weight[r - by_row[row].low] * by_column[column].weight[c - by_column[column].low] *
                       GET(src, base + (r * o.from_columns + c) * o.from_p);
        SET(dst, to, sum);
    }
}

/* by_row, by_column: of the places of the result, which is read here. A place may lie between two that have the
 * position. */
KERNEL(resize_grad)
(GLOBAL const act *ddst, GLOBAL const struct tap *by_row, GLOBAL const struct tap *by_column,
 GLOBAL const struct places *of_row, GLOBAL const struct places *of_column, GLOBAL act *dsrc, struct resize o)
{
    FOR_EACH (i, o.n * o.channels * o.rows * o.columns) {
        RESIZE_PLACE(i, o, row, column, to, base)
        float sum = 0;
        for (int r = of_row[row].first; r < of_row[row].end; r++) {
            const int y = (int)row - by_row[r].low;
            if (y < 0 || row > by_row[r].high)
                continue;
            for (int c = of_column[column].first; c < of_column[column].end; c++) {
                const int x = (int)column - by_column[c].low;
                if (x >= 0 && column <= by_column[c].high)
                    sum += by_row[r].weight[y] * by_column[c].weight[x] *
                           GET(ddst, base + (r * o.from_columns + c) * o.from_p);
            }
        }
        SET(dsrc, to, sum);
    }
}

#else
#include "kernel/gpu/gpu_walk.h"
#include "op/tensor/op_resize.h"

CVY_GPU_SOURCE_DECLARE(gpu_resize);

struct call {
    cvy_gpu_kernel kernel;
    struct resize o;
    cvy_space space;
    char *tables; /* on the device: the taps of rows and columns, and in the gradient the places of both */
    size_t bytes, at[4];
};

static int is_grad(const cvy_node *node)
{
    return (node->op->flags & CVY_OP_HIDDEN) != 0;
}

static cvy_status kernel_get(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_resize), is_grad(ask->node) ? "resize_grad" : "resize", act, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->src[0] = ask->dst[0] = cvy_gpu_unblocked(ask, 0);
    return kernel_get(ask, &kernel);
}

/* The tables of dimension d (0: rows, 1: columns): of `dst` places that come from `src` positions. */
static void fill_taps(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, struct tap *taps)
{
    for (int64_t i = 0; i < dst; i++) {
        const cvy_resize_tap tap = cvy_resize_tap_at(o, d, src, dst, i);
        taps[i] = (struct tap){(int)tap.low, (int)tap.high, {0}};
        for (int k = 0; k < 4; k++)
            taps[i].weight[k] = (float)tap.weight[k];
    }
}

static void fill_places(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, struct places *places)
{
    for (int64_t i = 0; i < src; i++) {
        int64_t first, end;
        cvy_resize_places(o, d, src, dst, i, &first, &end);
        places[i] = (struct places){(int)first, (int)end};
    }
}

static cvy_status make_tables(const cvy_node *node, struct call *s)
{
    const cvy_resize_opts *o = node->options; /* those of the gradient begin with them */
    const cvy_shape *small = is_grad(node) ? cvy_node_dst(node, 0) : cvy_node_src(node, 0),
                    *large = is_grad(node) ? cvy_node_src(node, 0) : cvy_node_dst(node, 0);
    char *tables = NULL;
    for (int t = 0; t < 4; t++) {
        s->at[t] = s->bytes;
        s->bytes += t < 2           ? sizeof(struct tap) * (size_t)large->dim[2 + t]
                    : is_grad(node) ? sizeof(struct places) * (size_t)small->dim[t]
                                    : 0;
    }
    CVY_TRY(cvy_mem_alloc(s->bytes, &tables));
    for (int d = 0; d < 2; d++) {
        fill_taps(o, d, small->dim[2 + d], large->dim[2 + d], (struct tap *)(void *)(tables + s->at[d]));
        if (is_grad(node))
            fill_places(o, d, small->dim[2 + d], large->dim[2 + d], (struct places *)(void *)(tables + s->at[2 + d]));
    }
    cvy_status status = cvy_space_alloc(&s->space, s->bytes, 0, &s->tables);
    if (status == CVY_OK)
        status = cvy_space_write(&s->space, s->tables, tables, s->bytes);
    cvy_mem_free(&tables);
    return status;
}

static void set_sizes(const cvy_kernel_ask *ask, struct resize *o)
{
    const cvy_shape *src = cvy_node_src(ask->node, 0), *dst = cvy_node_dst(ask->node, 0);
    int64_t from[CVY_NDIM_MAX], to[CVY_NDIM_MAX];
    cvy_gpu_steps(src, &ask->src[0], from);
    cvy_gpu_steps(dst, &ask->dst[0], to);
    *o = (struct resize){.n = dst->dim[0], .channels = dst->dim[1], .rows = dst->dim[2], .columns = dst->dim[3]};
    o->from_rows = src->dim[2];
    o->from_columns = src->dim[3];
    o->from_n = from[0];
    o->from_c = from[1];
    o->from_p = from[3];
    o->to_n = to[0];
    o->to_c = to[1];
    o->to_p = to[3];
    o->last = to[1] == 1;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->space = *ask->space;
    set_sizes(ask, &s->o);
    CVY_TRY(kernel_get(ask, &s->kernel));
    return make_tables(ask->node, s);
}

static void destroy(void *state)
{
    struct call *s = state;
    if (s && s->tables)
        cvy_space_free(&s->space, &s->tables, s->bytes);
    cvy_mem_free(&s);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    const void *by_row = s->tables + s->at[0], *by_column = s->tables + s->at[1];
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.n * s->o.channels * s->o.rows * s->o.columns), 1, 1,
                          CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(by_row), CVY_GPU_POINTER(by_column),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->o));
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    const void *by_row = s->tables + s->at[0], *by_column = s->tables + s->at[1], *of_row = s->tables + s->at[2],
               *of_column = s->tables + s->at[3];
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.n * s->o.channels * s->o.rows * s->o.columns), 1, 1,
                          CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(by_row), CVY_GPU_POINTER(by_column),
                          CVY_GPU_POINTER(of_row), CVY_GPU_POINTER(of_column), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_resize) = {CVY_GPU_FIELDS("resize", offer, create, run, destroy), .slice_src = 1, .slice_dst = 1,
                                 .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_resize_grad) = {CVY_GPU_FIELDS("resize_grad", offer, create, grad_run, destroy), .slice_src = 1,
                                      .slice_dst = 1, .slice_last = 1};
#endif

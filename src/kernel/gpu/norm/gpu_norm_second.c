/*
 * gpu_norm_second.c: layer_norm_second and group_norm_second on f32 and bf16, for the second derivatives of a gradient
 * penalty.
 *
 * op/norm/op_sample_norm_second.c has the formulas. A block computes one set. For dscale it also keeps the means of the
 * set, with which a second kernel adds the products over all rows, in parts that a third one adds in a fixed order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { SECOND_FOLD = 8 }; /* columns of a block that adds parts */

/* An activation is a matrix of rows and columns, whose columns have a number of scale. Entry (row, col) is at
 * row / per * of_hi + row % per * of_lo + col / len * to_hi + col % len * to_lo, and column col has number
 * col / len * k_hi + col % len * k_lo. Set s has set_rows rows and set_cols columns, and there are `across` sets beside
 * each other. */
struct second {
    i64 of_hi, of_lo, to_hi, to_lo;
    int rows, cols, per, len, k_hi, k_lo;
    int set_rows, set_cols, across;
    int scales;
    int width, parts, part_rows; /* columns of a block; parts of the rows; rows of each */
};

#ifdef CVY_DEVICE

INLINE i64 place_of(struct second a, int row, int col)
{
    return row / a.per * a.of_hi + row % a.per * a.of_lo + col / a.len * a.to_hi + col % a.len * a.to_lo;
}

INLINE int number_of(struct second a, int col)
{
    return col / a.len * a.k_hi + col % a.len * a.k_lo;
}

/* means [sets, 2]: of e and of e * xhat. Grid: sets. */
KERNEL(norm_second)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const float *stats, GLOBAL const act *e, GLOBAL const float *scale,
 GLOBAL act *dsrc, GLOBAL act *dddst, GLOBAL float *means, struct second a)
{
    SHARED double s[256];
    const int row = BLOCK / a.across * a.set_rows, col = BLOCK % a.across * a.set_cols, n = a.set_rows * a.set_cols;
    const float mean = stats[2 * (i64)BLOCK], r = stats[2 * (i64)BLOCK + 1];
    double g1 = 0, e1 = 0, gx = 0, ex = 0, eg = 0;
    float mean_g, mean_e, mean_gx, mean_ex, along, q1, qx;
    for (int i = THREAD; i < n; i += THREADS) {
        const i64 at = place_of(a, row + i / a.set_cols, col + i % a.set_cols);
        const double xhat = (GET(x, at) - mean) * r, by = GET(e, at);
        const double g = a.scales ? GET(ddst, at) * scale[number_of(a, col + i % a.set_cols)] : GET(ddst, at);
        g1 += g;
        e1 += by;
        gx += g * xhat;
        ex += by * xhat;
        eg += by * g;
    }
    BLOCK_SUM(g1, s);
    BLOCK_SUM(e1, s);
    BLOCK_SUM(gx, s);
    BLOCK_SUM(ex, s);
    BLOCK_SUM(eg, s);
    mean_g = (float)(g1 / n);
    mean_e = (float)(e1 / n);
    mean_gx = (float)(gx / n);
    mean_ex = (float)(ex / n);
    along = (float)(eg / n - (double)mean_e * mean_g - (double)mean_ex * mean_gx);
    q1 = -mean_ex * mean_g - mean_gx * mean_e;
    qx = -2 * mean_ex * mean_gx;
    for (int i = THREAD; i < n; i += THREADS) {
        const i64 at = place_of(a, row + i / a.set_cols, col + i % a.set_cols);
        const float by = a.scales ? scale[number_of(a, col + i % a.set_cols)] : 1.0f;
        const float xhat = (GET(x, at) - mean) * r, g = GET(ddst, at) * by, v = GET(e, at);
        SET(dsrc, at, r * r * (-mean_ex * g - mean_gx * v - q1 - xhat * (qx + along)));
        SET(dddst, at, by * r * (v - mean_e - xhat * mean_ex));
    }
    if (THREAD == 0) {
        means[2 * (i64)BLOCK] = mean_e;
        means[2 * (i64)BLOCK + 1] = mean_ex;
    }
}

/* Sums of ddst * r * p(e) over a part of the rows, to part [parts, cols]. Grid: columns, parts. */
KERNEL(norm_second_sums)
(GLOBAL const act *x, GLOBAL const act *ddst, GLOBAL const float *stats, GLOBAL const act *e, GLOBAL const float *means,
 GLOBAL double *part, struct second a)
{
    SHARED double s[256];
    const int col = BLOCK * a.width + THREAD % a.width, end = MIN((BLOCK_Y + 1) * a.part_rows, a.rows);
    double sum = 0;
    for (int row = BLOCK_Y * a.part_rows + THREAD / a.width; row < end && col < a.cols; row += THREADS / a.width) {
        const i64 at = place_of(a, row, col), set = 2 * ((i64)(row / a.set_rows) * a.across + col / a.set_cols);
        const float xhat = (GET(x, at) - stats[set]) * stats[set + 1];
        sum += (double)GET(ddst, at) * (stats[set + 1] * (GET(e, at) - means[set] - xhat * means[set + 1]));
    }
    COLUMN_SUM(sum, s, a.width);
    if (THREAD < a.width && col < a.cols)
        part[(i64)BLOCK_Y * a.cols + col] = sum;
}

/* Grid: columns. */
KERNEL(norm_second_params)(GLOBAL const double *part, GLOBAL float *dscale, struct second a)
{
    SHARED double s[256];
    const int col = BLOCK * SECOND_FOLD + THREAD % SECOND_FOLD;
    double sum = 0;
    for (int p = THREAD / SECOND_FOLD; p < a.parts && col < a.cols; p += THREADS / SECOND_FOLD)
        sum += part[(i64)p * a.cols + col];
    COLUMN_SUM(sum, s, SECOND_FOLD);
    if (THREAD < SECOND_FOLD && col < a.cols)
        dscale[number_of(a, col)] = (float)sum;
}

#else
#include <string.h>

#include "kernel/gpu/norm/gpu_norm.h"
#include "op/norm/op_sample_norm.h"

CVY_GPU_SOURCE_DECLARE(gpu_norm_second);

enum { WHOLE, SUMS, PARAMS, STEPS };
static const char *const step_names[STEPS] = {"norm_second", "norm_second_sums", "norm_second_params"};

struct call {
    cvy_gpu_kernel kernel[STEPS];
    struct second a;
    int64_t sets, part_doubles;
};

/* Sets of group_norm are groups of channels of one sample, with channels last. */
static struct second of_groups(const cvy_shape *src, const cvy_sample_sets *sets)
{
    const int64_t each = sets->size / CVY_MAX(sets->repeat, 1);
    return (struct second){.of_hi = src->dim[1],
                           .to_lo = 1,
                           .rows = (int)(src->dim[0] * sets->repeat),
                           .cols = (int)src->dim[1],
                           .per = 1,
                           .len = (int)src->dim[1],
                           .k_lo = 1,
                           .set_rows = (int)sets->repeat,
                           .set_cols = (int)each,
                           .across = (int)(src->dim[1] / CVY_MAX(each, 1))};
}

/* Those of layer_norm are rows, in plain layout. */
static struct second of_layers(const cvy_sample_sets *sets)
{
    return (struct second){.of_hi = sets->size * sets->inner,
                           .of_lo = 1,
                           .to_lo = sets->inner,
                           .rows = (int)(sets->outer * sets->inner),
                           .cols = (int)sets->size,
                           .per = (int)sets->inner,
                           .len = (int)sets->size,
                           .k_lo = 1,
                           .set_rows = 1,
                           .set_cols = (int)sets->size,
                           .across = 1};
}

static int has_groups(const cvy_node *node)
{
    return strcmp(node->op->name, "group_norm_second") == 0;
}

static cvy_status make(const cvy_kernel_ask *ask, struct call *c)
{
    const cvy_node *node = ask->node;
    const cvy_sample_norm_opts *o = node->options;
    const cvy_shape *src = &node->src[0]->shape;
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(node, &act));
    CVY_CHECK(node->src[2]->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE, "this kernel has statistics in f32, not %s",
              cvy_dtype_text(node->src[2]->dtype));
    CVY_CHECK(cvy_shape_elems(src) <= INT32_MAX / 2, CVY_NOT_APPLICABLE,
              "this kernel counts elements in 32 bits, and the source is %s", cvy_shape_text(src));
    *c = (struct call){.a = has_groups(node) ? of_groups(src, &sets) : of_layers(&sets),
                       .sets = sets.outer * sets.inner};
    c->a.scales = o->scale_shift;
    c->a.width = cvy_gpu_columns(c->a.cols);
    c->a.parts = cvy_gpu_row_parts(c->a.rows, c->a.cols, c->a.width, 1);
    c->a.part_rows = (int)cvy_gpu_tiles(c->a.rows, c->a.parts);
    c->part_doubles = c->a.scales ? (int64_t)c->a.parts * c->a.cols : 0;
    for (int i = 0; i < (c->a.scales ? STEPS : 1); i++)
        CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_norm_second), step_names[i], act, &c->kernel[i]));
    return CVY_OK;
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_layout layout = has_groups(ask->node) ? cvy_gpu_layout(&ask->node->src[0]->shape) : cvy_layout_plain();
    struct call c;
    CVY_TRY(make(ask, &c));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = i == 2 || i == 4 ? cvy_layout_plain() : layout;
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = i == 2 ? cvy_layout_plain() : layout;
    ask->scratch_bytes = sizeof(double) * (size_t)c.part_doubles + sizeof(float) * 2 * (size_t)c.sets;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    return make(ask, c);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const struct second *a = &c->a;
    const void *scale = a->scales ? src[4] : src[0], *means = (double *)scratch + c->part_doubles;
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[WHOLE], c->sets, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(src[3]),
                           CVY_GPU_POINTER(scale), CVY_GPU_POINTER(dst[0]), CVY_GPU_POINTER(dst[1]),
                           CVY_GPU_POINTER(means), CVY_GPU_VALUE(*a)));
    if (!a->scales || !dst[2])
        return CVY_OK;
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel[SUMS], cvy_gpu_tiles(a->cols, a->width), a->parts, 1, CVY_GPU_THREADS,
                           CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]),
                           CVY_GPU_POINTER(src[3]), CVY_GPU_POINTER(means), CVY_GPU_POINTER(scratch),
                           CVY_GPU_VALUE(*a)));
    return CVY_GPU_LAUNCH(&c->kernel[PARAMS], cvy_gpu_tiles(a->cols, SECOND_FOLD), 1, 1, CVY_GPU_THREADS,
                          CVY_GPU_POINTER(scratch), CVY_GPU_POINTER(dst[2]), CVY_GPU_VALUE(*a));
}

CVY_KERNEL_DEFINE(gpu_layer_norm_second) = {
    CVY_GPU_FIELDS("layer_norm_second", offer, create, run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_group_norm_second) = {
    CVY_GPU_FIELDS("group_norm_second", offer, create, run, cvy_gpu_free_state)};
#endif

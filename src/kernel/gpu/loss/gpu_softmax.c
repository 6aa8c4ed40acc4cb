/*
 * gpu_softmax.c: softmax, log_softmax and their gradients, of f32 and bf16. src/op/pointwise/op_softmax.c has the
 * formulas.
 *
 * A row has the elements that are normalised together, `step` apart in memory. A block computes a row if it is long and
 * its elements are neighbours; else a thread does, and neighbouring threads have neighbouring rows. Every element is
 * read before it is written, so the result may take over the memory of the source.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { SOFTMAX_THREADS = 256, SOFTMAX_FEW = 64 }; /* SOFTMAX_FEW: the most elements of a row that is short */
struct softmax {
    i64 rows, length, step;
    int is_log;
};

#ifdef CVY_DEVICE

/* The first element of row r. */
INLINE i64 row_at(struct softmax a, i64 r)
{
    const i64 n = r / a.step;
    return n * a.length * a.step + r - n * a.step;
}

/* ---- parts of a row: of every lanes-th element from `lane` on ---- */

INLINE float row_top(struct softmax a, GLOBAL const act *x, i64 at, int lane, int lanes)
{
    float top = -INFINITY;
    for (i64 k = lane; k < a.length; k += lanes) {
        const float v = GET(x, at + k * a.step);
        top = v > top ? v : top;
    }
    return top;
}

INLINE double row_sum(struct softmax a, GLOBAL const act *x, i64 at, float top, int lane, int lanes)
{
    double sum = 0;
    for (i64 k = lane; k < a.length; k += lanes)
        sum += EXP(GET(x, at + k * a.step) - top);
    return sum;
}

INLINE void row_write(struct softmax a, GLOBAL const act *x, GLOBAL act *y, i64 at, float top, double sum, int lane,
                      int lanes)
{
    const float by = (float)(1 / sum), log_sum = (float)LOG_D(sum); /* top + log_sum would lose digits */
    for (i64 k = lane; k < a.length; k += lanes) {
        const float v = GET(x, at + k * a.step) - top;
        SET(y, at + k * a.step, a.is_log ? v - log_sum : EXP(v) * by);
    }
}

INLINE double grad_sum(struct softmax a, GLOBAL const act *dy, GLOBAL const act *y, i64 at, int lane, int lanes)
{
    double sum = 0;
    for (i64 k = lane; k < a.length; k += lanes) {
        const float d = GET(dy, at + k * a.step);
        sum += a.is_log ? d : (double)d * GET(y, at + k * a.step);
    }
    return sum;
}

INLINE void grad_write(struct softmax a, GLOBAL const act *dy, GLOBAL const act *y, GLOBAL act *dx, i64 at, float sum,
                       int lane, int lanes)
{
    for (i64 k = lane; k < a.length; k += lanes) {
        const float d = GET(dy, at + k * a.step), v = GET(y, at + k * a.step);
        SET(dx, at + k * a.step, a.is_log ? d - EXP(v) * sum : v * (d - sum));
    }
}

/* ---- a thread for each row ---- */

KERNEL(softmax_short)(GLOBAL const act *x, GLOBAL act *y, struct softmax a)
{
    FOR_EACH (r, a.rows) {
        const i64 at = row_at(a, r);
        const float top = row_top(a, x, at, 0, 1);
        row_write(a, x, y, at, top, row_sum(a, x, at, top, 0, 1), 0, 1);
    }
}

KERNEL(softmax_short_grad)(GLOBAL const act *dy, GLOBAL const act *y, GLOBAL act *dx, struct softmax a)
{
    FOR_EACH (r, a.rows) {
        const i64 at = row_at(a, r);
        grad_write(a, dy, y, dx, at, (float)grad_sum(a, dy, y, at, 0, 1), 0, 1);
    }
}

/* ---- a block for each row ---- */

KERNEL(softmax_long)(GLOBAL const act *x, GLOBAL act *y, struct softmax a)
{
    SHARED double s[SOFTMAX_THREADS];
    SHARED float s_top[SOFTMAX_THREADS];
    for (i64 r = BLOCK; r < a.rows; r += BLOCKS) {
        const i64 at = row_at(a, r);
        float top = row_top(a, x, at, THREAD, THREADS);
        BLOCK_MAX(top, s_top);
        double sum = row_sum(a, x, at, top, THREAD, THREADS);
        BLOCK_SUM(sum, s);
        row_write(a, x, y, at, top, sum, THREAD, THREADS);
    }
}

KERNEL(softmax_long_grad)(GLOBAL const act *dy, GLOBAL const act *y, GLOBAL act *dx, struct softmax a)
{
    SHARED double s[SOFTMAX_THREADS];
    for (i64 r = BLOCK; r < a.rows; r += BLOCKS) {
        const i64 at = row_at(a, r);
        double sum = grad_sum(a, dy, y, at, THREAD, THREADS);
        BLOCK_SUM(sum, s);
        grad_write(a, dy, y, dx, at, (float)sum, THREAD, THREADS);
    }
}

#else
#include <string.h>

#include "kernel/gpu/gpu_common.h"
#include "op/pointwise/op_softmax.h"

CVY_GPU_SOURCE_DECLARE(gpu_softmax);

struct call {
    cvy_gpu_kernel kernel;
    struct softmax a;
    int64_t blocks;
    int nsrc;
};

/* With channels last the channels are neighbours; any other axis is taken from the plain layout. */
static struct softmax rows_of(const cvy_node *node)
{
    const cvy_shape *shape = &node->src[0]->shape;
    const int axis = (int)((const cvy_softmax_opts *)node->options)->axis;
    struct softmax a = {.length = shape->dim[axis],
                        .step = 1,
                        .is_log = strncmp(node->op->name, "log", 3) == 0,
                        .rows = cvy_shape_elems(shape) / shape->dim[axis]};
    for (int d = axis + 1; d < shape->ndim && axis != 1; d++)
        a.step *= shape->dim[d];
    return a;
}

static int is_long(const struct softmax *a)
{
    return a->length > SOFTMAX_FEW && a->step == 1;
}

static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    static const char *const names[2][2] = {{"softmax_short", "softmax_short_grad"},
                                            {"softmax_long", "softmax_long_grad"}};
    const struct softmax a = rows_of(ask->node);
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_softmax), names[is_long(&a)][ask->node->nsrc > 1], act, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int by_channels = ((const cvy_softmax_opts *)node->options)->axis == 1;
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = by_channels ? cvy_gpu_layout(&node->src[i]->shape) : cvy_layout_plain();
    ask->dst[0] = ask->src[0];
    ask->inplace[0] = 1;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->a = rows_of(ask->node);
    c->blocks = is_long(&c->a) ? CVY_MIN(c->a.rows, CVY_GPU_BLOCKS_MAX) : cvy_gpu_blocks(c->a.rows);
    c->nsrc = ask->node->nsrc;
    return kernel(ask, &c->kernel);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    (void)scratch;
    if (c->nsrc == 1)
        return CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, SOFTMAX_THREADS, CVY_GPU_POINTER(src[0]),
                              CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->a));
    return CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, SOFTMAX_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_softmax) = {CVY_GPU_FIELDS("softmax", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_log_softmax) = {CVY_GPU_FIELDS("log_softmax", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_softmax_grad) = {CVY_GPU_FIELDS("softmax_grad", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_log_softmax_grad) = {CVY_GPU_FIELDS("log_softmax_grad", offer, create, run, cvy_gpu_free_state)};
#endif

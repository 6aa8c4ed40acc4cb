/*
 * gpu_clip.c: grad_norm2, clip_scale and l1_gradient: the clipping of gradients by their norm, and the gradient of an
 * L1 norm.
 *
 * A sum of squares is cut into pieces of fixed size. The sums of the pieces are added in one order, in f64, so the
 * result has the same bits each time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { PIECE = 1 << 15 }; /* elements that a block adds */

#ifdef CVY_DEVICE

KERNEL(norm_pieces)(GLOBAL const float *src, GLOBAL double *sum, i64 n)
{
    SHARED double s[256];
    const i64 first = (i64)BLOCK * PIECE, end = MIN(first + PIECE, n);
    double squares = 0;
    for (i64 i = first + THREAD; i < end; i += THREADS)
        squares += (double)src[i] * (double)src[i];
    BLOCK_SUM(squares, s);
    if (THREAD == 0)
        sum[BLOCK] = squares;
}

KERNEL(norm_total)(GLOBAL const double *sum, GLOBAL double *dst, i64 pieces)
{
    SHARED double s[256];
    double total = 0;
    for (i64 i = THREAD; i < pieces; i += THREADS)
        total += sum[i];
    BLOCK_SUM(total, s);
    if (THREAD == 0)
        dst[0] = total;
}

/* A norm that is NaN gives a factor that is NaN. */
KERNEL(clip_scale)(GLOBAL const double *norm2, GLOBAL double *dst, double max_norm)
{
    FOR_EACH (i, 1) {
        const double norm = SQRT_D(norm2[i]);
        dst[i] = norm <= max_norm ? 1.0 : max_norm / norm;
    }
}

KERNEL(l1_gradient)
(GLOBAL const act *gradient, GLOBAL const act *weight, GLOBAL const double *scale, GLOBAL act *dst, i64 n, float by)
{
    FOR_EACH (i, n) {
        const float w = GET(weight, i);
        SET(dst, i, (float)scale[0] * GET(gradient, i) + (w > 0 ? by : w < 0 ? -by : 0.0f));
    }
}

#else
#include "kernel/gpu/gpu_walk.h"
#include "op/pointwise/op_clip.h"

CVY_GPU_SOURCE_DECLARE(gpu_clip);

/* ---- grad_norm2 ---- */

struct norm {
    cvy_gpu_kernel pieces, total;
    int nsrc;
    int64_t elems[CVY_NODE_SRC_MAX], npiece[CVY_NODE_SRC_MAX], all;
};

static cvy_status norm_make(const cvy_kernel_ask *ask, struct norm *out)
{
    *out = (struct norm){.nsrc = ask->node->nsrc};
    for (int i = 0; i < out->nsrc; i++) {
        CVY_CHECK(ask->node->src[i]->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE, "this kernel takes f32, not %s",
                  cvy_dtype_text(ask->node->src[i]->dtype));
        out->elems[i] = cvy_shape_elems(cvy_node_src(ask->node, i));
        out->npiece[i] = (out->elems[i] + PIECE - 1) / PIECE;
        out->all += out->npiece[i];
    }
    CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_clip), "norm_pieces", CVY_DTYPE_F32, &out->pieces));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_clip), "norm_total", CVY_DTYPE_F32, &out->total);
}

static cvy_status norm_offer(cvy_kernel_ask *ask)
{
    struct norm s;
    CVY_TRY(norm_make(ask, &s));
    for (int i = 0; i < s.nsrc; i++)
        ask->src[i] = cvy_gpu_unblocked(ask, i);
    ask->scratch_bytes = sizeof(double) * (size_t)s.all;
    return CVY_OK;
}

static cvy_status norm_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct norm *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    return norm_make(ask, s);
}

static cvy_status norm_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct norm *s = state;
    double *sum = scratch;
    for (int i = 0; i < s->nsrc; i++) {
        CVY_TRY(CVY_GPU_LAUNCH(&s->pieces, s->npiece[i], 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[i]),
                               CVY_GPU_POINTER(sum), CVY_GPU_VALUE(s->elems[i])));
        sum += s->npiece[i];
    }
    return CVY_GPU_LAUNCH(&s->total, 1, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(scratch), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->all));
}

CVY_KERNEL_DEFINE(gpu_grad_norm2) = {
    CVY_GPU_FIELDS("grad_norm2", norm_offer, norm_create, norm_run, cvy_gpu_free_state)};

/* ---- clip_scale ---- */

struct clip_scale {
    cvy_gpu_kernel kernel;
    double max_norm;
};

static cvy_status clip_scale_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_clip), "clip_scale", CVY_DTYPE_F32, &kernel);
}

static cvy_status clip_scale_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct clip_scale *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->max_norm = ((const struct cvy_clip_scale *)ask->node->options)->max_norm;
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_clip), "clip_scale", CVY_DTYPE_F32, &s->kernel);
}

static cvy_status clip_scale_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct clip_scale *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, 1, 1, 1, 1, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->max_norm));
}

CVY_KERNEL_DEFINE(gpu_clip_scale) = {
    CVY_GPU_FIELDS("clip_scale", clip_scale_offer, clip_scale_create, clip_scale_run, cvy_gpu_free_state)};

/* ---- l1_gradient ---- */

struct l1_gradient {
    cvy_gpu_kernel kernel;
    int64_t n;
    float by;
};

static cvy_status l1_kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_clip), "l1_gradient", act, out);
}

/* The gradient comes in the layout of the weight, unless that is still free. */
static cvy_status l1_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    CVY_TRY(l1_kernel(ask, &kernel));
    ask->src[0] = ask->src[1] = ask->dst[0] = cvy_gpu_unblocked(ask, ask->src_free[1] ? 0 : 1);
    ask->inplace[0] = 1;
    return CVY_OK;
}

static cvy_status l1_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct l1_gradient *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->n = cvy_shape_elems(cvy_node_dst(ask->node, 0));
    s->by = (float)((const struct cvy_l1_gradient *)ask->node->options)->by;
    return l1_kernel(ask, &s->kernel);
}

static cvy_status l1_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct l1_gradient *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->n), CVY_GPU_VALUE(s->by));
}

CVY_KERNEL_DEFINE(gpu_l1_gradient) = {CVY_GPU_FIELDS("l1_gradient", l1_offer, l1_create, l1_run, cvy_gpu_free_state)};
#endif

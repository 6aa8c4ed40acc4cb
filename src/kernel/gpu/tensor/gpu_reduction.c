/*
 * gpu_reduction.c: reduction (mean, sum, maximum over axes of a sample) and its gradient, and the gradient of expand,
 * of f32 and bf16. Sums are those of gpu_sum.c; a maximum is found by one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct reduction {
    struct walk kept;  /* the results; a: their first element of src, b: their place in dst */
    struct walk along; /* a: the elements of one result, in the order of their axes */
};
struct spread {
    struct walk w; /* a: in the larger tensor, b: in the smaller one */
    float scale;
};

#ifdef CVY_DEVICE

/* Of equal maxima the first one counts, and of NaNs, too. */
#define PLACE_OF_MAXIMUM(x, first, along, place, most)                                                                 \
    i64 place = 0;                                                                                                     \
    float most = GET(x, first);                                                                                        \
    for (i64 r_ = 1; r_ < (along).count; r_++) {                                                                       \
        WALK(r_, along, at_, unused_)                                                                                  \
        const float v_ = GET(x, (first) + at_);                                                                        \
        if (v_ > most || (v_ != v_ && most == most)) {                                                                 \
            most = v_;                                                                                                 \
            place = at_;                                                                                               \
        }                                                                                                              \
        (void)unused_;                                                                                                 \
    }

KERNEL(maxima)(GLOBAL const act *src, GLOBAL act *dst, struct reduction o)
{
    FOR_EACH (k, o.kept.count) {
        WALK(k, o.kept, first, to)
        PLACE_OF_MAXIMUM(src, first, o.along, place, most)
        SET(dst, to, most);
        (void)place;
    }
}

KERNEL(maxima_grad)(GLOBAL const act *ddst, GLOBAL const act *src, GLOBAL act *dsrc, struct reduction o)
{
    FOR_EACH (k, o.kept.count) {
        WALK(k, o.kept, first, from)
        PLACE_OF_MAXIMUM(src, first, o.along, place, most)
        for (i64 r = 0; r < o.along.count; r++) {
            WALK(r, o.along, at, unused)
            dsrc[first + at] = at == place ? ddst[from] : 0;
            (void)unused;
        }
        (void)most;
    }
}

KERNEL(spread)(GLOBAL const act *ddst, GLOBAL act *dsrc, struct spread o)
{
    FOR_EACH (i, o.w.count) {
        WALK(i, o.w, to, from)
        SET(dsrc, to, o.scale * GET(ddst, from));
    }
}

#else
#include <string.h>

#include "kernel/gpu/tensor/gpu_sum.h"
#include "op/tensor/op_reduction.h"

CVY_GPU_SOURCE_DECLARE(gpu_reduction);

struct call {
    cvy_gpu_sum *sum; /* NULL: one of the kernels above */
    cvy_gpu_kernel kernel;
    int64_t n;
    int is_maximum;
    struct reduction maximum;
    struct spread spread;
};

/* ---- the axes: those of the larger tensor; each is an axis of the smaller one, or reduced ---- */

struct axes {
    const cvy_shape *large;
    unsigned reduced;
    int64_t step[CVY_NDIM_MAX]; /* of the smaller tensor, along the axes of the larger one; 0: reduced */
};

static int is_expand_grad(const cvy_node *node)
{
    return strcmp(node->op->name, "expand_grad") == 0;
}

static unsigned reduced_by_options(const cvy_reduction_opts *o, int ndim)
{
    unsigned axes = 0;
    for (int i = 0; i < o->axes.count; i++)
        axes |= 1U << (o->axes.at[i] < 0 ? o->axes.at[i] + ndim : o->axes.at[i]);
    return axes;
}

/* The axis of the smaller tensor that is axis d of the larger one. */
static int axis_of(const cvy_node *node, const struct axes *a, const cvy_shape *small, int d)
{
    int axis = 0;
    if (is_expand_grad(node))
        return d == 0 ? 0 : d - (a->large->ndim - small->ndim);
    if (((const cvy_reduction_opts *)node->options)->keep)
        return d;
    for (int k = 0; k < d; k++)
        axis += !(a->reduced >> k & 1);
    return axis;
}

static struct axes axes_of(const cvy_node *node, const cvy_shape *large, const cvy_shape *small,
                           const cvy_layout *small_layout)
{
    struct axes a = {.large = large};
    int64_t step[CVY_NDIM_MAX];
    cvy_gpu_steps(small, small_layout, step);
    if (!is_expand_grad(node))
        a.reduced = reduced_by_options(node->options, large->ndim);
    for (int d = 1; d < large->ndim && is_expand_grad(node); d++) {
        const int axis = axis_of(node, &a, small, d);
        a.reduced |= (unsigned)(axis < 1 || small->dim[axis] != large->dim[d]) << d;
    }
    for (int d = 0; d < large->ndim; d++)
        a.step[d] = a.reduced >> d & 1 ? 0 : step[axis_of(node, &a, small, d)];
    return a;
}

static int64_t reduced_elems(const struct axes *a)
{
    int64_t n = 1;
    for (int d = 0; d < a->large->ndim; d++)
        n *= a->reduced >> d & 1 ? a->large->dim[d] : 1;
    return n;
}

/* The results in any order, and the elements of each in the order of their axes. */
static struct reduction maximum_of(const struct axes *a, const cvy_layout *layout)
{
    cvy_gpu_axes kept = {0}, along = {0};
    int64_t step[CVY_NDIM_MAX];
    cvy_gpu_steps(a->large, layout, step);
    for (int d = 0; d < a->large->ndim; d++) {
        cvy_gpu_axes *to = a->reduced >> d & 1 ? &along : &kept;
        to->dim[to->ndim] = a->large->dim[d];
        to->a[to->ndim] = step[d];
        to->b[to->ndim++] = a->step[d];
    }
    cvy_gpu_axes_sort(&kept, 0);
    return (struct reduction){cvy_gpu_walk_make(&kept), cvy_gpu_walk_make(&along)};
}

static struct walk spread_of(const struct axes *a, const cvy_layout *layout)
{
    cvy_gpu_axes axes = {.ndim = a->large->ndim};
    cvy_gpu_steps(a->large, layout, axes.a);
    for (int d = 0; d < axes.ndim; d++) {
        axes.dim[d] = a->large->dim[d];
        axes.b[d] = a->step[d];
    }
    cvy_gpu_axes_sort(&axes, 0);
    return cvy_gpu_walk_make(&axes);
}

/* ---- reduction and the gradient of expand: from the larger tensor to the smaller one ---- */

static int is_maximum(const cvy_node *node)
{
    return !is_expand_grad(node) && ((const cvy_reduction_opts *)node->options)->method == CVY_REDUCTION_MAX;
}

static int is_mean(const cvy_node *node)
{
    return !is_expand_grad(node) && ((const cvy_reduction_opts *)node->options)->method == CVY_REDUCTION_MEAN;
}

static cvy_status reduce_sum_def(const cvy_kernel_ask *ask, const struct axes *a, cvy_gpu_sum_def *out)
{
    *out = (cvy_gpu_sum_def){.shape = a->large, .layout = &ask->src[0], .axes = a->reduced};
    out->scale = is_mean(ask->node) ? 1 / (double)reduced_elems(a) : 1;
    memcpy(out->step, a->step, sizeof out->step);
    return cvy_gpu_act(ask->node, &out->act);
}

static struct axes reduce_axes(const cvy_kernel_ask *ask)
{
    return axes_of(ask->node, cvy_node_src(ask->node, 0), cvy_node_dst(ask->node, 0), &ask->dst[0]);
}

static cvy_status reduce_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_sum_def def;
    cvy_gpu_kernel kernel;
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    ask->src[0] = cvy_gpu_unblocked(ask, 0);
    ask->dst[0] = cvy_gpu_layout(cvy_node_dst(ask->node, 0));
    if (is_maximum(ask->node))
        return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_reduction), "maxima", act, &kernel);
    const struct axes a = reduce_axes(ask);
    CVY_TRY(reduce_sum_def(ask, &a, &def));
    return cvy_gpu_sum_offer(ask, &def, &ask->scratch_bytes);
}

static cvy_status reduce_create(const cvy_kernel_ask *ask, void **state_out)
{
    const struct axes a = reduce_axes(ask);
    cvy_gpu_sum_def def;
    struct call *s = NULL;
    CVY_TRY(reduce_sum_def(ask, &a, &def));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    if (!is_maximum(ask->node))
        return cvy_gpu_sum_create(ask, &def, &s->sum);
    s->maximum = maximum_of(&a, &ask->src[0]);
    s->n = s->maximum.kept.count;
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_reduction), "maxima", def.act, &s->kernel);
}

static cvy_status reduce_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    if (s->sum)
        return cvy_gpu_sum_run(s->sum, src[0], NULL, dst[0], scratch);
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->maximum));
}

static void destroy(void *state)
{
    struct call *s = state;
    if (s)
        cvy_gpu_sum_destroy(&s->sum);
    cvy_mem_free(&s);
}

CVY_KERNEL_DEFINE(gpu_reduction) = {CVY_GPU_FIELDS("reduction", reduce_offer, reduce_create, reduce_run, destroy),
                                    .slice_src = 1, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_expand_grad) = {CVY_GPU_FIELDS("expand_grad", reduce_offer, reduce_create, reduce_run, destroy),
                                      .slice_src = 1, .slice_last = 1};

/* ---- the gradient of reduction: from the smaller tensor to the larger one ---- */

static cvy_status grad_kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_reduction), is_maximum(ask->node) ? "maxima_grad" : "spread", act,
                         out);
}

static cvy_status grad_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->src[0] = cvy_gpu_unblocked(ask, 0);
    ask->dst[0] = cvy_gpu_layout(cvy_node_dst(ask->node, 0));
    if (is_maximum(ask->node))
        ask->src[1] = ask->dst[0] = cvy_gpu_unblocked(ask, 1);
    return grad_kernel(ask, &kernel);
}

static cvy_status grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const struct axes a = axes_of(node, cvy_node_dst(node, 0), cvy_node_src(node, 0), &ask->src[0]);
    struct call *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->spread.w = spread_of(&a, &ask->dst[0]);
    s->spread.scale = is_mean(node) ? (float)(1 / (double)reduced_elems(&a)) : 1;
    s->maximum = maximum_of(&a, &ask->dst[0]);
    s->is_maximum = is_maximum(node);
    s->n = s->is_maximum ? s->maximum.kept.count : s->spread.w.count;
    return grad_kernel(ask, &s->kernel);
}

static cvy_status spread_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    if (s->is_maximum)
        return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                              CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->maximum));
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->spread));
}

CVY_KERNEL_DEFINE(gpu_reduction_grad) = {
    CVY_GPU_FIELDS("reduction_grad", grad_offer, grad_create, spread_run, destroy)};
#endif

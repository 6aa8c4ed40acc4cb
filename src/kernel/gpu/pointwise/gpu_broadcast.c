/*
 * gpu_broadcast.c: affine, multiply_channels and prelu and their gradients, of f32 and bf16: an activation and a
 * smaller tensor that is repeated along some of its axes.
 *
 * Trained tensors are f32, factors of channels have the dtype of activations. The gradients of the smaller tensors are
 * the sums of gpu_sum.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { WITH_SCALE = 1, WITH_SHIFT = 2 };
struct broadcast {
    struct walk w; /* a: in the activation, b: in the smaller tensor */
    int f;
};

#ifdef CVY_DEVICE

KERNEL(affine)
(GLOBAL const act *src, GLOBAL const float *scale, GLOBAL const float *shift, GLOBAL act *dst, struct broadcast o)
{
    FOR_EACH (i, o.w.count) {
        WALK(i, o.w, at, place)
        float x = GET(src, at);
        if (o.f & WITH_SCALE)
            x *= scale[place];
        if (o.f & WITH_SHIFT)
            x += shift[place];
        SET(dst, at, x);
    }
}

KERNEL(multiply_channels)(GLOBAL const act *src, GLOBAL const act *factor, GLOBAL act *dst, struct broadcast o)
{
    FOR_EACH (i, o.w.count) {
        WALK(i, o.w, at, place)
        SET(dst, at, GET(src, at) * GET(factor, place));
    }
}

KERNEL(prelu)(GLOBAL const act *src, GLOBAL const float *weight, GLOBAL act *dst, struct broadcast o)
{
    FOR_EACH (i, o.w.count) {
        WALK(i, o.w, at, place)
        const float x = GET(src, at);
        SET(dst, at, x > 0 ? x : weight[place] * x);
    }
}

KERNEL(prelu_grad)
(GLOBAL const act *ddst, GLOBAL const act *src, GLOBAL const float *weight, GLOBAL act *dsrc, struct broadcast o)
{
    FOR_EACH (i, o.w.count) {
        WALK(i, o.w, at, place)
        const float d = GET(ddst, at);
        SET(dsrc, at, GET(src, at) > 0 ? d : weight[place] * d);
    }
}

#else
#include "kernel/gpu/tensor/gpu_sum.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_affine.h"
#include "op/pointwise/op_multiply.h"

CVY_GPU_SOURCE_DECLARE(gpu_broadcast);

struct call {
    cvy_gpu_kernel kernel;
    struct broadcast o;
    cvy_gpu_sum *sum[2]; /* by destination, NULL: it is none, or is not needed */
};

static cvy_status kernel_get(const cvy_kernel_ask *ask, const char *name, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_broadcast), name, act, out);
}

/* The elements of a tensor of this shape in the order of memory. step: of the smaller tensor along each axis. */
static struct walk walk_of(const cvy_shape *shape, const cvy_layout *layout, const int64_t *step)
{
    cvy_gpu_axes axes = {.ndim = shape->ndim};
    cvy_gpu_steps(shape, layout, axes.a);
    for (int d = 0; d < shape->ndim; d++) {
        axes.dim[d] = shape->dim[d];
        axes.b[d] = step[d];
    }
    cvy_gpu_axes_sort(&axes, 0);
    return cvy_gpu_walk_make(&axes);
}

static cvy_status call_make(const cvy_kernel_ask *ask, const char *name, const int64_t *step, struct call **out)
{
    struct call *s = NULL;
    cvy_gpu_kernel kernel;
    CVY_TRY(kernel_get(ask, name, &kernel));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->kernel = kernel;
    s->o.w = walk_of(cvy_node_src(ask->node, 0), &ask->src[0], step);
    *out = s;
    return CVY_OK;
}

static void destroy(void *state)
{
    struct call *s = state;
    for (int i = 0; s && i < CVY_COUNT(s->sum); i++)
        cvy_gpu_sum_destroy(&s->sum[i]);
    cvy_mem_free(&s);
}

/* The axes along which the smaller tensor is repeated. */
static unsigned repeated(const cvy_shape *shape, const int64_t *step)
{
    unsigned axes = 0;
    for (int d = 0; d < shape->ndim; d++)
        axes |= (unsigned)(step[d] == 0) << d;
    return axes;
}

/* The sum that is the gradient of a smaller tensor with these steps. */
static cvy_status sum_def(const cvy_kernel_ask *ask, cvy_gpu_summand summand, const int64_t *step, int to_f32,
                          cvy_gpu_sum_def *out)
{
    const cvy_shape *shape = cvy_node_src(ask->node, 0);
    *out = (cvy_gpu_sum_def){.summand = summand, .shape = shape, .layout = &ask->src[0], .scale = 1, .to_f32 = to_f32};
    out->axes = repeated(shape, step);
    for (int d = 0; d < shape->ndim; d++)
        out->step[d] = step[d];
    return cvy_gpu_act(ask->node, &out->act);
}

/* ---- affine ---- */

/* The steps of the trained tensors, which are plain. */
static void affine_steps(const cvy_node *node, int64_t step[CVY_NDIM_MAX])
{
    const cvy_shape shape = cvy_affine_shape(node->options, cvy_node_src(node, 0));
    int64_t next = 1;
    for (int d = shape.ndim - 1; d >= 0; d--) {
        step[d] = shape.dim[d] == 1 ? 0 : next;
        next *= shape.dim[d];
    }
}

static cvy_status affine_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->src[0] = ask->dst[0] = cvy_gpu_unblocked(ask, 0);
    for (int i = 1; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->inplace[0] = 1;
    return kernel_get(ask, "affine", &kernel);
}

static cvy_status affine_make(const cvy_kernel_ask *ask, int f, void **state_out)
{
    int64_t step[CVY_NDIM_MAX];
    struct call *s = NULL;
    affine_steps(ask->node, step);
    CVY_TRY(call_make(ask, "affine", step, &s));
    s->o.f = f;
    *state_out = s;
    return CVY_OK;
}

static cvy_status affine_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_affine_opts *o = ask->node->options;
    return affine_make(ask, (o->scale ? WITH_SCALE : 0) | (o->shift ? WITH_SHIFT : 0), state_out);
}

static cvy_status affine_grad_src_create(const cvy_kernel_ask *ask, void **state_out)
{
    return affine_make(ask, WITH_SCALE, state_out);
}

static cvy_status affine_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.w.count), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[s->o.f == (WITH_SCALE | WITH_SHIFT) ? 2 : 1]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_affine) = {CVY_GPU_FIELDS("affine", affine_offer, affine_create, affine_run, destroy)};

CVY_KERNEL_DEFINE(gpu_affine_grad_src) = {
    CVY_GPU_FIELDS("affine_grad_src", affine_offer, affine_grad_src_create, affine_run, destroy)};

/* Destination i is the gradient of the scale, a sum of products, or that of the shift. */
static cvy_status affine_sum_def(const cvy_kernel_ask *ask, int i, cvy_gpu_sum_def *out)
{
    const cvy_affine_opts *o = ask->node->options;
    int64_t step[CVY_NDIM_MAX];
    affine_steps(ask->node, step);
    return sum_def(ask, o->scale && i == 0 ? CVY_GPU_SUM_OF_PRODUCTS : CVY_GPU_SUM_OF, step, 1, out);
}

static cvy_status affine_grad_weight_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_common_layout(ask, ask->node->nsrc, -1);
    for (int i = 0; i < ask->node->ndst; i++) {
        cvy_gpu_sum_def def;
        size_t scratch;
        ask->dst[i] = cvy_layout_plain();
        CVY_TRY(affine_sum_def(ask, i, &def));
        CVY_TRY(cvy_gpu_sum_offer(ask, &def, &scratch));
        ask->scratch_bytes = CVY_MAX(ask->scratch_bytes, scratch);
    }
    return CVY_OK;
}

static cvy_status affine_grad_weight_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    for (int i = 0; i < ask->node->ndst; i++) {
        cvy_gpu_sum_def def;
        CVY_TRY(affine_sum_def(ask, i, &def));
        CVY_TRY(cvy_gpu_sum_create(ask, &def, &s->sum[i]));
    }
    return CVY_OK;
}

/* Sums use the scratch memory one after the other. */
static cvy_status sums_run(const struct call *s, void *const *src, void *const *dst, void *scratch)
{
    for (int i = 0; i < CVY_COUNT(s->sum); i++)
        if (s->sum[i] && dst[i])
            CVY_TRY(cvy_gpu_sum_run(s->sum[i], src[0], src[1], dst[i], scratch));
    return CVY_OK;
}

static cvy_status affine_grad_weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    return sums_run(state, src, dst, scratch);
}

CVY_KERNEL_DEFINE(gpu_affine_grad_weight) = {CVY_GPU_FIELDS("affine_grad_weight", affine_grad_weight_offer,
                                                            affine_grad_weight_create, affine_grad_weight_run,
                                                            destroy)};

/* ---- multiply_channels ---- */

static void factor_steps(const cvy_shape *factor, const cvy_layout *layout, int ndim, int64_t step[CVY_NDIM_MAX])
{
    cvy_gpu_steps(factor, layout, step);
    for (int d = 2; d < ndim; d++)
        step[d] = 0;
}

static cvy_status multiply_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->src[0] = ask->dst[0] = cvy_gpu_unblocked(ask, 0);
    ask->src[1] = cvy_gpu_unblocked(ask, 1);
    ask->inplace[0] = 1;
    return kernel_get(ask, "multiply_channels", &kernel);
}

static cvy_status multiply_create(const cvy_kernel_ask *ask, void **state_out)
{
    int64_t step[CVY_NDIM_MAX];
    struct call *s = NULL;
    factor_steps(cvy_node_src(ask->node, 1), &ask->src[1], cvy_node_src(ask->node, 0)->ndim, step);
    CVY_TRY(call_make(ask, "multiply_channels", step, &s));
    *state_out = s;
    return CVY_OK;
}

static cvy_status multiply_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.w.count), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_multiply_channels) = {
    CVY_GPU_FIELDS("multiply_channels", multiply_offer, multiply_create, multiply_run, destroy)};

static cvy_status factor_sum_def(const cvy_kernel_ask *ask, cvy_gpu_sum_def *out)
{
    const cvy_shape *shape = cvy_node_src(ask->node, 0);
    int64_t step[CVY_NDIM_MAX];
    factor_steps(cvy_node_dst(ask->node, 0), &ask->dst[0], shape->ndim, step);
    CVY_TRY(sum_def(ask, CVY_GPU_SUM_OF_PRODUCTS, step, 0, out));
    out->axes = (1U << shape->ndim) - 4; /* all positions */
    return CVY_OK;
}

static cvy_status multiply_grad_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_sum_def def;
    cvy_gpu_common_layout(ask, 2, -1);
    ask->dst[0] = cvy_gpu_layout(cvy_node_dst(ask->node, 0));
    CVY_TRY(factor_sum_def(ask, &def));
    return cvy_gpu_sum_offer(ask, &def, &ask->scratch_bytes);
}

static cvy_status multiply_grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_gpu_sum_def def;
    struct call *s = NULL;
    CVY_TRY(factor_sum_def(ask, &def));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    return cvy_gpu_sum_create(ask, &def, &s->sum[0]);
}

static cvy_status multiply_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    return cvy_gpu_sum_run(s->sum[0], src[0], src[1], dst[0], scratch);
}

CVY_KERNEL_DEFINE(gpu_multiply_channels_grad) = {
    CVY_GPU_FIELDS("multiply_channels_grad", multiply_grad_offer, multiply_grad_create, multiply_grad_run, destroy)};

/* ---- prelu ---- */

static void prelu_steps(const cvy_node *node, int64_t step[CVY_NDIM_MAX])
{
    for (int d = 0; d < CVY_NDIM_MAX; d++)
        step[d] = d == 1 && ((const struct cvy_prelu *)node->options)->per_channel;
}

static cvy_status prelu_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->src[0] = ask->dst[0] = cvy_gpu_unblocked(ask, 0);
    ask->src[1] = cvy_layout_plain();
    ask->inplace[0] = 1;
    return kernel_get(ask, "prelu", &kernel);
}

static cvy_status prelu_create(const cvy_kernel_ask *ask, void **state_out)
{
    int64_t step[CVY_NDIM_MAX];
    struct call *s = NULL;
    prelu_steps(ask->node, step);
    CVY_TRY(call_make(ask, "prelu", step, &s));
    *state_out = s;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(gpu_prelu) = {CVY_GPU_FIELDS("prelu", prelu_offer, prelu_create, multiply_run, destroy)};

static cvy_status slope_sum_def(const cvy_kernel_ask *ask, cvy_gpu_sum_def *out)
{
    int64_t step[CVY_NDIM_MAX];
    prelu_steps(ask->node, step);
    return sum_def(ask, CVY_GPU_SUM_OF_BELOW, step, 1, out);
}

/* dsrc may take over the memory of ddst, because it is written last. */
static cvy_status prelu_grad_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_sum_def def;
    cvy_gpu_kernel kernel;
    cvy_gpu_common_layout(ask, 2, 0);
    ask->src[2] = ask->dst[1] = cvy_layout_plain();
    CVY_TRY(slope_sum_def(ask, &def));
    CVY_TRY(cvy_gpu_sum_offer(ask, &def, &ask->scratch_bytes));
    return kernel_get(ask, "prelu_grad", &kernel);
}

static cvy_status prelu_grad_create(const cvy_kernel_ask *ask, void **state_out)
{
    int64_t step[CVY_NDIM_MAX];
    cvy_gpu_sum_def def;
    struct call *s = NULL;
    prelu_steps(ask->node, step);
    CVY_TRY(call_make(ask, "prelu_grad", step, &s));
    *state_out = s;
    CVY_TRY(slope_sum_def(ask, &def));
    return cvy_gpu_sum_create(ask, &def, &s->sum[1]);
}

static cvy_status prelu_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    CVY_TRY(sums_run(s, src, dst, scratch));
    if (!dst[0])
        return CVY_OK;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.w.count), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_prelu_grad) = {
    CVY_GPU_FIELDS("prelu_grad", prelu_grad_offer, prelu_grad_create, prelu_grad_run, destroy)};
#endif

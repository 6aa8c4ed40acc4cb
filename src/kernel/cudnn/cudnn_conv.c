/*
 * cudnn_conv.c: convolutions, deconvolutions, fully connected layers and their gradients by cuDNN.
 *
 * An engine of cuDNN computes the product. Those that it has ready do no more, so a bias and a relu follow it in one
 * kernel of ours. An engine that does all of it is compiled for the problem, and is tried by `planning: measure` only.
 *
 * A gradient of weights is f32 also in bf16. The engines that cuDNN has ready write bf16 there; an engine that it
 * compiles for the problem writes f32. So there are two kernels for it: the second one takes an engine that is ready,
 * and makes its result f32. It has lost bits then, so it is taken if the first one declines, or was measured to be
 * slower.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/cudnn/cudnn_layer.h"
#include "kernel/gpu/conv/gpu_ending.h"
#include "kernel/gpu/conv/gpu_product.h"

enum { LINE = 256 }; /* cuDNN gets workspaces at multiples of it */

struct call {
    cvy_cudnn_layer layer;
    cvy_cudnn_call cudnn;
    const cvy_space *space;
    cvy_gpu_finish finish;
    cvy_gpu_sum *sum;   /* of the gradient of a bias */
    cvy_reorder *widen; /* of a gradient of weights */
    size_t narrow;      /* bytes of that gradient in bf16, at the begin of the scratch memory */
    size_t result;      /* bytes of dst[0] */
};

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static size_t bytes_of(const cvy_cudnn_tensor *t)
{
    return (size_t)(t->dim[0] * t->stride[0]) * cvy_dtype_bytes(t->dtype);
}

static int is_bf16(const cvy_cudnn_layer *l)
{
    return l->problem.dst.dtype == CVY_DTYPE_BF16;
}

/* The bf16 gradient of weights, in the scratch memory. */
static size_t narrow_bytes(const cvy_cudnn_layer *l)
{
    return l->narrow ? whole_lines(bytes_of(&l->problem.weight)) : 0;
}

/* The gradient of a bias is that of all axes but the channels: axis 1 of a convolution, the last one of fc. */
static cvy_gpu_sum_def bias_sum(const cvy_kernel_ask *ask, int is_fc)
{
    const cvy_shape *ddst = &ask->node->src[1]->shape;
    return cvy_gpu_bias_sum(ask, 1, is_fc ? ddst->ndim - 1 : 1);
}

/* ---- offers ---- */

static void set_layouts(const cvy_cudnn_layer *l, cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int is_fc = l->is_fc;
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = is_fc ? cvy_layout_plain() : cvy_gpu_layout(&node->src[i]->shape);
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            ask->dst[i] = is_fc ? cvy_layout_plain() : cvy_gpu_layout(&node->dst[i]->shape);
    if (l->weight == 1 && is_bf16(l)) {
        ask->src_dtype[1] = CVY_DTYPE_BF16;
        if (ask->src_free[1])
            ask->src_canonical[1] = ask->src[1];
    }
    if (l->problem.sum)
        ask->inplace[0] = 3;
}

static cvy_status make_finish(const cvy_kernel_ask *ask, const cvy_cudnn_layer *l, cvy_gpu_finish *out)
{
    const cvy_cudnn_tensor *result = l->src == CVY_CUDNN_RESULT ? &l->problem.src : &l->problem.dst;
    const int forward = l->pass == CVY_LAYER_FORWARD;
    return cvy_gpu_finish_make(ask, result->dim[0] * result->stride[0], l->channels, forward && l->bias,
                               forward && l->relu, out);
}

/* A kernel of this library says in its variant how it computes, and which engine of the plan it takes. */
static cvy_cudnn_way way_of(const cvy_kernel_ask *ask)
{
    return (cvy_cudnn_way)(ask->kernel->variant / CVY_CUDNN_ENGINES);
}

static cvy_status find_engine(const cvy_kernel_ask *ask, cvy_cudnn_layer *l, cvy_cudnn_device **device_out,
                              const cvy_cudnn_engine **out)
{
    CVY_TRY(cvy_cudnn_device_of(ask->space, device_out));
    CVY_TRY(cvy_cudnn_layer_of(ask, way_of(ask), l));
    return cvy_cudnn_engine_get(*device_out, &l->problem, ask->kernel->variant % CVY_CUDNN_ENGINES, out);
}

static cvy_status check_way(const cvy_kernel_ask *ask)
{
    const cvy_cudnn_way way = way_of(ask);
    CVY_CHECK(way != CVY_CUDNN_ROUNDED || ask->node->src[0]->dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "this kernel is for bf16");
    CVY_CHECK(way != CVY_CUDNN_ROUNDED || !ask->node->graph->precise, CVY_NOT_APPLICABLE,
              "train.precise excludes gradients that were rounded to bf16");
    CVY_CHECK(way != CVY_CUDNN_FUSED || ask->compiles, CVY_NOT_APPLICABLE,
              "cuDNN compiles this kernel, about a second for each shape: plan.planning: measure tries it");
    return CVY_OK;
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_cudnn_layer l;
    cvy_cudnn_device *device = NULL;
    const cvy_cudnn_engine *engine = NULL;
    cvy_gpu_finish finish;
    size_t sum = 0;
    CVY_TRY(check_way(ask));
    CVY_TRY(find_engine(ask, &l, &device, &engine));
    set_layouts(&l, ask);
    CVY_TRY(make_finish(ask, &l, &finish));
    if (l.weight == CVY_CUDNN_RESULT && l.bias) {
        const cvy_gpu_sum_def def = bias_sum(ask, l.is_fc);
        CVY_TRY(cvy_gpu_sum_offer(ask, &def, &sum));
    }
    const size_t workspace = CVY_MAX((size_t)engine->workspace, sum);
    ask->scratch_bytes = narrow_bytes(&l) + whole_lines(workspace) + (workspace || narrow_bytes(&l) ? LINE : 0);
    ask->algorithm_id = (uint64_t)engine->number + 1;
    return CVY_OK;
}

/* ---- the call ---- */

static void destroy(void *state)
{
    struct call *c = state;
    if (c) {
        cvy_cudnn_call_end(&c->cudnn);
        cvy_gpu_sum_destroy(&c->sum);
        cvy_reorder_destroy(&c->widen);
    }
    cvy_mem_free(&c);
}

static cvy_status make_gradient(const cvy_kernel_ask *ask, struct call *c)
{
    const cvy_memory_format from = {CVY_DTYPE_BF16, ask->dst[0]}, to = {CVY_DTYPE_F32, ask->dst[0]};
    const cvy_shape *shape = &ask->node->dst[0]->shape;
    if (c->layer.bias) {
        const cvy_gpu_sum_def def = bias_sum(ask, c->layer.is_fc);
        CVY_TRY(cvy_gpu_sum_create(ask, &def, &c->sum));
    }
    return c->layer.narrow ? cvy_reorder_create(ask->space, shape, &from, &to, 1, &c->widen) : CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    c->space = ask->space;
    cvy_status status = find_engine(ask, &c->layer, &c->cudnn.device, &c->cudnn.engine);
    if (status == CVY_OK)
        status = make_finish(ask, &c->layer, &c->finish);
    if (status == CVY_OK && c->layer.weight == CVY_CUDNN_RESULT)
        status = make_gradient(ask, c);
    c->cudnn.bias = c->layer.problem.bias;
    c->narrow = narrow_bytes(&c->layer);
    c->result = bytes_of(c->layer.src == CVY_CUDNN_RESULT ? &c->layer.problem.src : &c->layer.problem.dst);
    if (status == CVY_OK)
        *state_out = c;
    else
        destroy(c);
    return status;
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct call *c = state;
    const cvy_cudnn_layer *l = &c->layer;
    const size_t at = (size_t)(uintptr_t)scratch;
    char *const room = scratch ? (char *)scratch + (whole_lines(at) - at) : NULL;
    void *const work = room ? room + c->narrow : NULL;
    const cvy_cudnn_data data = {
        .src = l->src < 0 ? dst[0] : src[l->src],
        .weight = l->weight >= 0 ? src[l->weight]
                  : c->narrow    ? room
                                 : dst[0],
        .dst = l->dst < 0 ? dst[0] : src[l->dst],
        .bias = l->problem.bias ? src[2] : NULL,
        .workspace = c->cudnn.engine->workspace ? work : NULL,
    };
    if (l->problem.sum && src[2] != dst[0])
        CVY_TRY(cvy_space_copy(c->space, CVY_LANE_COMPUTE, dst[0], src[2], c->result));
    if (l->weight >= 0 || dst[0])
        CVY_TRY(cvy_cudnn_run(&c->cudnn, &data));
    if (c->widen && dst[0])
        CVY_TRY(cvy_reorder_run(c->widen, room, dst[0]));
    if (c->sum && dst[1])
        CVY_TRY(cvy_gpu_sum_run(c->sum, src[1], NULL, dst[1], work));
    return l->pass == CVY_LAYER_FORWARD ? cvy_gpu_finish_run(&c->finish, dst[0], l->bias ? src[2] : NULL) : CVY_OK;
}

/* ---- the kernels ---- */

/* One for each engine of a plan, in their order. */
#define KERNEL(operator, name_, first, way, engine)                                                                    \
    .name = "cudnn." name_, .op = operator, .preference =(first) - (engine),                                           \
    .variant = (way)*CVY_CUDNN_ENGINES + (engine), .offer = offer, .create = create, .run = run, .destroy = destroy
#define PLAIN(operator, suffix, engine) KERNEL(operator, operator suffix, 20, CVY_CUDNN_PLAIN, engine)
#define ROUNDED(operator, suffix, engine)                                                                              \
    KERNEL(operator, operator"_rounded" suffix, 15, CVY_CUDNN_ROUNDED, engine), .rounds = 1
#define FUSED(operator) KERNEL(operator, operator"_fused", 11, CVY_CUDNN_FUSED, 0)

CVY_KERNEL_DEFINE(cudnn_conv) = {PLAIN("conv", "", 0)};
CVY_KERNEL_DEFINE(cudnn_conv_2) = {PLAIN("conv", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_conv_3) = {PLAIN("conv", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_conv_4) = {PLAIN("conv", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src) = {PLAIN("conv_grad_src", "", 0)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src_2) = {PLAIN("conv_grad_src", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src_3) = {PLAIN("conv_grad_src", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src_4) = {PLAIN("conv_grad_src", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src_add) = {PLAIN("conv_grad_src_add", "", 0)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src_add_2) = {PLAIN("conv_grad_src_add", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src_add_3) = {PLAIN("conv_grad_src_add", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_src_add_4) = {PLAIN("conv_grad_src_add", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight) = {PLAIN("conv_grad_weight", "", 0)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight_2) = {PLAIN("conv_grad_weight", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight_3) = {PLAIN("conv_grad_weight", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight_4) = {PLAIN("conv_grad_weight", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_deconv) = {PLAIN("deconv", "", 0)};
CVY_KERNEL_DEFINE(cudnn_deconv_2) = {PLAIN("deconv", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_deconv_3) = {PLAIN("deconv", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_deconv_4) = {PLAIN("deconv", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_src) = {PLAIN("deconv_grad_src", "", 0)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_src_2) = {PLAIN("deconv_grad_src", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_src_3) = {PLAIN("deconv_grad_src", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_src_4) = {PLAIN("deconv_grad_src", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight) = {PLAIN("deconv_grad_weight", "", 0)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight_2) = {PLAIN("deconv_grad_weight", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight_3) = {PLAIN("deconv_grad_weight", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight_4) = {PLAIN("deconv_grad_weight", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_fc) = {PLAIN("fc", "", 0)};
CVY_KERNEL_DEFINE(cudnn_fc_2) = {PLAIN("fc", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_fc_3) = {PLAIN("fc", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_fc_4) = {PLAIN("fc", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_src) = {PLAIN("fc_grad_src", "", 0)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_src_2) = {PLAIN("fc_grad_src", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_src_3) = {PLAIN("fc_grad_src", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_src_4) = {PLAIN("fc_grad_src", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight) = {PLAIN("fc_grad_weight", "", 0)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight_2) = {PLAIN("fc_grad_weight", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight_3) = {PLAIN("fc_grad_weight", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight_4) = {PLAIN("fc_grad_weight", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight_rounded) = {ROUNDED("conv_grad_weight", "", 0)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight_rounded_2) = {ROUNDED("conv_grad_weight", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight_rounded_3) = {ROUNDED("conv_grad_weight", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_conv_grad_weight_rounded_4) = {ROUNDED("conv_grad_weight", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight_rounded) = {ROUNDED("deconv_grad_weight", "", 0)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight_rounded_2) = {ROUNDED("deconv_grad_weight", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight_rounded_3) = {ROUNDED("deconv_grad_weight", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_deconv_grad_weight_rounded_4) = {ROUNDED("deconv_grad_weight", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight_rounded) = {ROUNDED("fc_grad_weight", "", 0)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight_rounded_2) = {ROUNDED("fc_grad_weight", "_2", 1)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight_rounded_3) = {ROUNDED("fc_grad_weight", "_3", 2)};
CVY_KERNEL_DEFINE(cudnn_fc_grad_weight_rounded_4) = {ROUNDED("fc_grad_weight", "_4", 3)};
CVY_KERNEL_DEFINE(cudnn_conv_fused) = {FUSED("conv")};
CVY_KERNEL_DEFINE(cudnn_fc_fused) = {FUSED("fc")};

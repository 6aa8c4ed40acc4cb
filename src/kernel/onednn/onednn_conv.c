/*
 * onednn_conv.c: convolution, deconvolution and their gradients by oneDNN. Most networks spend most of their time here.
 *
 * The forward kernel lets oneDNN choose all layouts, which fixes that of the weights. The gradient of the weights is
 * written in the variable's layout if an optimised implementation can do that. The gradient of the source may need
 * another layout; then the planner adds a reorder of the weights, which costs little compared with the convolution.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_mem.h"
#include "base/machine/base_isa.h"
#include "kernel/onednn/onednn_layer.h"
#include "kernel/onednn/onednn_weight.h"
#include "op/conv/op_conv.h"

enum { WINOGRAD_CHANNELS = 32, COPY_GRAIN = 1 << 16 };

/* A node as these kernels see it, for all six operators. */
struct layer {
    cvy_onednn_family family;
    cvy_layer_pass pass;
    cvy_window w; /* of the convolution, or of the one that a deconvolution transposes */
    cvy_window_channels c;
    int bias, relu, winograd, sum, upcast;
    cvy_dtype dtype; /* in which oneDNN computes with the activations */
    cvy_onednn_weight weight;
};

static cvy_status layer_of(const cvy_node *node, int winograd, struct layer *out)
{
    struct layer l = {.winograd = winograd, .dtype = cvy_onednn_compute_dtype(node)};
    l.upcast = l.dtype != node->src[0]->dtype;
    l.family = node->op->transposed ? CVY_ONEDNN_DECONV : CVY_ONEDNN_CONV;
    l.pass = node->op->pass;
    const int forward = l.pass == CVY_LAYER_FORWARD;
    if (l.family == CVY_ONEDNN_CONV) {
        const cvy_conv_grad_opts *g = node->options;
        const cvy_conv_opts *o = forward ? node->options : &g->conv;
        CVY_TRY(cvy_conv_window(o, forward ? &node->src[0]->shape : &g->src, &l.w, &l.c));
        l.bias = o->bias;
        l.relu = forward && o->relu;
    } else {
        const cvy_deconv_grad_opts *g = node->options;
        const cvy_deconv_opts *o = forward ? node->options : &g->deconv;
        CVY_TRY(cvy_deconv_window(o, forward ? &node->src[0]->shape : &g->src, &l.w, &l.c));
        l.bias = o->bias;
    }
    l.weight = (cvy_onednn_weight){.ndim = 2 + l.w.nspace,
                                   .groups = l.c.groups,
                                   .outer = l.c.ndst / l.c.groups,
                                   .inner = l.c.nsrc / l.c.groups,
                                   .transposed = l.family == CVY_ONEDNN_DECONV};
    *out = l;
    return CVY_OK;
}

static int has_bias(const struct layer *l)
{
    return l->bias && l->pass != CVY_LAYER_GRAD_SRC;
}

static cvy_onednn_tensor activation(const struct layer *l, int of_window_src)
{
    cvy_onednn_tensor t = {.ndim = 2 + l->w.nspace, .any = 1};
    t.dim[0] = l->c.n;
    t.dim[1] = of_window_src ? l->c.nsrc : l->c.ndst;
    for (int d = 0; d < l->w.nspace; d++)
        t.dim[2 + d] = of_window_src ? l->w.src[d] : l->w.dst[d];
    return t;
}

static cvy_onednn_tensor weights(const struct layer *l)
{
    const int grouped = l->c.groups > 1, transposed = l->weight.transposed;
    cvy_onednn_tensor t = {.ndim = 2 + grouped + l->w.nspace, .any = 1};
    int64_t *dim = t.dim;
    if (grouped)
        *dim++ = l->c.groups;
    *dim++ = transposed ? l->weight.inner : l->weight.outer;
    *dim++ = transposed ? l->weight.outer : l->weight.inner;
    for (int d = 0; d < l->w.nspace; d++)
        *dim++ = l->w.kernel[d];
    return t;
}

/* On a CPU with tiles, channels last is used in bf16: oneDNN's tile kernels and ours work on it. */
static void prefer_channels_last(const struct layer *l, cvy_onednn_problem *p)
{
    if (l->dtype != CVY_DTYPE_BF16 || !cvy_isa_may_use(CVY_ISA_AMX_BF16))
        return;
    static const int roles[] = {CVY_ONEDNN_SRC, CVY_ONEDNN_DST};
    for (int i = 0; i < CVY_COUNT(roles); i++) {
        p->tensor[roles[i]].any = 0;
        p->tensor[roles[i]].layout = cvy_layout_channels_last(p->tensor[roles[i]].ndim);
    }
}

static cvy_onednn_problem problem_of(const struct layer *l, int threads)
{
    const int deconv = l->family == CVY_ONEDNN_DECONV;
    cvy_onednn_problem p = {.family = l->family,
                            .pass = l->pass,
                            .threads = threads,
                            .relu = l->relu,
                            .sum = l->sum,
                            .upcast = l->upcast,
                            .winograd = l->winograd};
    p.tensor[CVY_ONEDNN_SRC] = activation(l, !deconv);
    p.tensor[CVY_ONEDNN_DST] = activation(l, deconv);
    p.tensor[CVY_ONEDNN_WEIGHT] = weights(l);
    if (has_bias(l))
        p.tensor[CVY_ONEDNN_BIAS] = (cvy_onednn_tensor){.ndim = 1, .dim = {p.tensor[CVY_ONEDNN_DST].dim[1]}};
    for (int d = 0; d < l->w.nspace; d++) {
        p.stride[d] = l->w.stride[d];
        p.dilation[d] = l->w.dilation[d];
        p.pad_begin[d] = p.pad_end[d] = l->w.pad[d];
    }
    cvy_onednn_set_dtypes(&p, l->dtype);
    return p;
}

/* Winograd's F(4x4, 3x3) (Lavin and Gray 2016) needs a quarter of the multiplications. It pays if there are so many
 * channels that the transforms cost less. In training, oneDNN keeps its weights in the layout of the direct algorithm
 * and transforms them during the run, in all three passes. */
static cvy_status check_winograd(const cvy_node *node, const struct layer *l)
{
    const cvy_window *w = &l->w;
    CVY_CHECK(!node->graph->precise, CVY_NOT_APPLICABLE,
              "train.precise excludes Winograd, which rounds more than a plain sum");
    int fits = w->nspace == 2 && l->c.groups == 1;
    for (int d = 0; d < w->nspace; d++)
        fits = fits && w->kernel[d] == 3 && w->stride[d] == 1 && w->dilation[d] == 1 && w->pad[d] <= 1;
    CVY_CHECK(l->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE, "Winograd's transforms need f32; the source is %s",
              cvy_dtype_text(l->dtype));
    CVY_CHECK(fits, CVY_NOT_APPLICABLE,
              "Winograd needs a 3x3 filter, stride 1, padding 0 or 1, no dilation, and no groups");
    CVY_CHECK(l->c.nsrc >= WINOGRAD_CHANNELS && l->c.ndst >= WINOGRAD_CHANNELS, CVY_NOT_APPLICABLE,
              "Winograd needs at least %d channels; this layer has %lld and %lld", WINOGRAD_CHANNELS,
              (long long)l->c.nsrc, (long long)l->c.ndst);
    return CVY_OK;
}

static cvy_status offer_from(const struct layer *l, const cvy_onednn_call *call, cvy_kernel_ask *ask)
{
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++) {
        cvy_layout layout;
        if (role == CVY_ONEDNN_BIAS)
            continue;
        CVY_TRY(cvy_onednn_layout(call, role, &layout));
        if (role == CVY_ONEDNN_WEIGHT)
            CVY_TRY(cvy_onednn_weight_from(&l->weight, &layout, &layout));
        *cvy_onednn_ask_layout(ask, l->pass, role) = layout;
    }
    if (has_bias(l))
        *cvy_onednn_ask_layout(ask, l->pass, CVY_ONEDNN_BIAS) = cvy_layout_plain();
    ask->scratch_bytes = cvy_onednn_scratch_bytes(call);
    ask->algorithm_id = cvy_onednn_algorithm_id(call);
    return CVY_OK;
}

/* The problem with the layouts of the ask. */
static cvy_status asked_problem(const struct layer *l, const cvy_kernel_ask *ask, cvy_onednn_problem *out)
{
    cvy_kernel_ask chosen = *ask;
    *out = problem_of(l, ask->threads);
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++) {
        cvy_onednn_tensor *t = &out->tensor[role];
        t->any = 0;
        if (t->ndim)
            t->layout = *cvy_onednn_ask_layout(&chosen, l->pass, role);
    }
    cvy_layout *weight = &out->tensor[CVY_ONEDNN_WEIGHT].layout;
    return cvy_onednn_weight_to(&l->weight, weight, weight);
}

/* A dimension of one element lets oneDNN choose layouts that differ only in its stride. Their names do not say which,
 * and for the one that a name stands for there may be no implementation. Deconvolutions with one output channel are so.
 */
static int has_one_channel(const cvy_onednn_problem *p)
{
    int one = 0;
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        one |= p->tensor[role].ndim > 1 && p->tensor[role].dim[1] == 1;
    return one;
}

/* Adds the scratch memory of conversions, and declines if the layouts by their names have no implementation. */
static cvy_status finish_offer(const struct layer *l, cvy_kernel_ask *ask)
{
    cvy_onednn_problem p;
    cvy_onednn_call *call = NULL;
    CVY_TRY(asked_problem(l, ask, &p));
    CVY_TRY(cvy_onednn_ask_upcast(&p, ask));
    if (l->family != CVY_ONEDNN_DECONV && !has_one_channel(&p))
        return CVY_OK;
    const cvy_status status = cvy_onednn_describe(&p, &call);
    cvy_onednn_destroy(call);
    return status;
}

static cvy_status offer_call(const struct layer *l, const cvy_onednn_problem *p, cvy_kernel_ask *ask)
{
    cvy_onednn_call *call = NULL;
    CVY_TRY(cvy_onednn_describe(p, &call));
    const cvy_status status = offer_from(l, call, ask);
    cvy_onednn_destroy(call);
    return status == CVY_OK ? finish_offer(l, ask) : status;
}

/* The gradients use the variable's layout of the weights, unless a better implementation needs another one. */
static cvy_status keep_given(const cvy_onednn_problem *given, cvy_onednn_problem *p)
{
    cvy_onednn_call *best = NULL, *call = NULL;
    CVY_TRY(cvy_onednn_describe(p, &best));
    if (cvy_onednn_describe(given, &call) == CVY_OK &&
        strcmp(cvy_onednn_implementation(call), cvy_onednn_implementation(best)) == 0)
        *p = *given;
    cvy_onednn_destroy(call);
    cvy_onednn_destroy(best);
    return CVY_OK;
}

/* Chooses the layout of a variable of which only bf16 copies are read: that in which its gradient is written. */
static cvy_status choose_variable_layout(const struct layer *l, cvy_kernel_ask *ask)
{
    struct layer grad = *l;
    grad.pass = CVY_LAYER_GRAD_WEIGHT;
    grad.relu = 0;
    cvy_onednn_problem p = problem_of(&grad, ask->threads);
    prefer_channels_last(&grad, &p);
    p.tensor[CVY_ONEDNN_SRC].dim[0] = p.tensor[CVY_ONEDNN_DST].dim[0] = cvy_onednn_typical_n(ask->node);
    cvy_onednn_call *call = NULL;
    cvy_layout layout = cvy_layout_plain();
    cvy_status status = cvy_onednn_describe(&p, &call);
    if (status == CVY_OK)
        status = cvy_onednn_layout(call, CVY_ONEDNN_WEIGHT, &layout);
    if (status == CVY_OK)
        status = cvy_onednn_weight_from(&l->weight, &layout, &layout);
    cvy_onednn_destroy(call);
    ask->src_canonical[1] = status == CVY_OK ? layout : cvy_layout_plain();
    return status < 0 ? status : CVY_OK;
}

/* In bf16, the passes that read weights use a copy in the layout that they prefer, as it is made anyway. */
static cvy_status offer_bf16(const struct layer *l, cvy_kernel_ask *ask)
{
    cvy_onednn_problem p = problem_of(l, ask->threads), any = p;
    prefer_channels_last(l, &p);
    cvy_status status = offer_call(l, &p, ask);
    if (status == CVY_NOT_APPLICABLE)
        status = offer_call(l, &any, ask);
    if (status != CVY_OK)
        return status;
    ask->src_dtype[1] = CVY_DTYPE_BF16;
    return ask->src_free[1] ? choose_variable_layout(l, ask) : CVY_OK;
}

static cvy_status offer(cvy_kernel_ask *ask, int winograd)
{
    struct layer l;
    CVY_TRY(layer_of(ask->node, winograd, &l));
    if (winograd)
        CVY_TRY(check_winograd(ask->node, &l));
    CVY_TRY(cvy_onednn_check_dtype(ask->node));
    if (l.dtype == CVY_DTYPE_BF16 && l.pass != CVY_LAYER_GRAD_WEIGHT)
        return offer_bf16(&l, ask);
    cvy_onednn_problem p = problem_of(&l, ask->threads), given;
    prefer_channels_last(&l, &p);
    given = p;
    cvy_onednn_tensor *weight = &given.tensor[CVY_ONEDNN_WEIGHT];
    const int is_free =
        l.pass == CVY_LAYER_FORWARD ? ask->src_free[1] : l.pass == CVY_LAYER_GRAD_WEIGHT && !ask->dst_fixed[0];
    cvy_status status = CVY_OK;
    weight->any = 0;
    if (!is_free)
        status =
            cvy_onednn_weight_to(&l.weight, cvy_onednn_ask_layout(ask, l.pass, CVY_ONEDNN_WEIGHT), &weight->layout);
    else if (l.pass == CVY_LAYER_FORWARD)
        status = cvy_onednn_choose_weight(&p, cvy_onednn_typical_n(ask->node), &weight->layout);
    else
        weight->any = 1;
    if (status == CVY_OK)
        CVY_TRY(keep_given(&given, &p));
    status = offer_call(&l, &p, ask);
    if (status != CVY_NOT_APPLICABLE || winograd)
        return status;
    /* oneDNN's choice may have no name, as with transposed weights. Then plain weights are tried. */
    const cvy_layout plain = cvy_layout_plain();
    CVY_TRY(cvy_onednn_weight_to(&l.weight, &plain, &p.tensor[CVY_ONEDNN_WEIGHT].layout));
    p.tensor[CVY_ONEDNN_WEIGHT].any = 0;
    return offer_call(&l, &p, ask);
}

static cvy_status create_layer(const struct layer *l, const cvy_kernel_ask *ask, void **state_out)
{
    cvy_onednn_problem p;
    CVY_TRY(asked_problem(l, ask, &p));
    return cvy_onednn_layer_create(&p, state_out);
}

static cvy_status create(const cvy_kernel_ask *ask, int winograd, void **state_out)
{
    struct layer l;
    CVY_TRY(layer_of(ask->node, winograd, &l));
    return create_layer(&l, ask, state_out);
}

static cvy_status direct_offer(cvy_kernel_ask *ask)
{
    return offer(ask, 0);
}

static cvy_status winograd_offer(cvy_kernel_ask *ask)
{
    return offer(ask, 1);
}

static cvy_status direct_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, 0, state_out);
}

static cvy_status winograd_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, 1, state_out);
}

/* ---- the gradient of the source added to another one ----
 *
 * oneDNN's gradients cannot add to their destination, but its forward convolution can. With a filter of one position,
 * the gradient is a forward convolution with the weights transposed. */

struct sum_layer {
    void *layer;
    size_t bytes; /* of the sum */
    int threads;
    const char *from; /* of the current call */
    char *to;
};

static cvy_status sum_layer_of(const cvy_node *node, struct layer *out)
{
    struct layer l;
    CVY_TRY(layer_of(node, 0, &l));
    int fits = l.c.groups == 1;
    for (int d = 0; d < l.w.nspace; d++)
        fits = fits && l.w.kernel[d] == 1 && l.w.stride[d] == 1 && l.w.pad[d] == 0;
    CVY_CHECK(fits && node->src[0]->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE,
              "this kernel needs f32, a filter of one position, stride 1, no padding, and no groups");
    const int64_t nsrc = l.c.nsrc;
    l.c.nsrc = l.c.ndst;
    l.c.ndst = nsrc;
    l.pass = CVY_LAYER_FORWARD;
    l.weight.transposed = l.sum = 1;
    l.bias = 0;
    *out = l;
    return CVY_OK;
}

static cvy_status sum_offer(cvy_kernel_ask *ask)
{
    struct layer l;
    CVY_TRY(sum_layer_of(ask->node, &l));
    CVY_TRY(cvy_onednn_check_dtype(ask->node));
    cvy_onednn_problem p = problem_of(&l, ask->threads);
    const cvy_status status = offer_call(&l, &p, ask);
    ask->src[2] = ask->dst[0];
    ask->inplace[0] = 3;
    return status;
}

static void sum_destroy(void *state)
{
    struct sum_layer *s = state;
    if (s && s->layer)
        cvy_onednn_layer_destroy(s->layer);
    cvy_mem_free(&s);
}

static cvy_status sum_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct layer l;
    struct sum_layer *s = NULL;
    cvy_blocking b;
    CVY_TRY(sum_layer_of(ask->node, &l));
    CVY_TRY(cvy_blocking_make(&ask->dst[0], &ask->node->dst[0]->shape, &b));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->bytes = (size_t)b.elems * sizeof(float);
    s->threads = ask->threads;
    const cvy_status status = create_layer(&l, ask, &s->layer);
    if (status == CVY_OK)
        *state_out = s;
    else
        sum_destroy(s);
    return status;
}

static void copy_range(int64_t first, int64_t end, void *arg)
{
    const struct sum_layer *s = arg;
    memcpy(s->to + first, s->from + first, (size_t)(end - first));
}

/* The sum is already in the memory of the result, unless another instruction still needs it. */
static cvy_status sum_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct sum_layer *s = state;
    s->from = src[2];
    s->to = dst[0];
    if (s->from != s->to)
        cvy_parallel_for(s->threads, (int64_t)s->bytes, COPY_GRAIN, copy_range, s);
    return cvy_onednn_layer_run(s->layer, src, dst, scratch);
}

CVY_KERNEL_DEFINE(onednn_conv_grad_src_add) = {
    .name = "onednn.conv_grad_src_add",
    .op = "conv_grad_src_add",
    .preference = 100,
    .offer = sum_offer,
    .create = sum_create,
    .run = sum_run,
    .destroy = sum_destroy,
};

/* ---- by a matrix product ----
 *
 * All tensors have plain layouts. It is slower than the direct algorithm on most shapes, but needs no reorder between
 * neighbours with plain layouts. It is chosen by measurement only. */

static cvy_status offer_gemm(const struct layer *l, const cvy_onednn_problem *p, cvy_kernel_ask *ask)
{
    cvy_onednn_call *call = NULL;
    CVY_TRY(cvy_onednn_describe(p, &call));
    cvy_status status = CVY_OK;
    if (!strstr(cvy_onednn_implementation(call), "gemm"))
        status = cvy_error_set(CVY_NOT_APPLICABLE, "on plain layouts oneDNN chooses %s, not a matrix product",
                               cvy_onednn_implementation(call));
    if (status == CVY_OK)
        status = offer_from(l, call, ask);
    cvy_onednn_destroy(call);
    return status;
}

static cvy_status gemm_offer(cvy_kernel_ask *ask)
{
    struct layer l;
    const cvy_layout plain = cvy_layout_plain();
    CVY_TRY(layer_of(ask->node, 0, &l));
    CVY_CHECK(ask->node->src[0]->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE,
              "convolution by matrix product needs f32; the source is %s", cvy_dtype_text(ask->node->src[0]->dtype));
    cvy_onednn_problem p = problem_of(&l, ask->threads);
    p.tensor[CVY_ONEDNN_SRC].any = p.tensor[CVY_ONEDNN_DST].any = p.tensor[CVY_ONEDNN_WEIGHT].any = 0;
    p.tensor[CVY_ONEDNN_SRC].layout = p.tensor[CVY_ONEDNN_DST].layout = plain;
    CVY_TRY(cvy_onednn_weight_to(&l.weight, &plain, &p.tensor[CVY_ONEDNN_WEIGHT].layout));
    return offer_gemm(&l, &p, ask);
}

CVY_KERNEL_DEFINE(onednn_conv_gemm) = {
    .name = "onednn.conv_gemm",
    .op = "conv",
    .preference = 10,
    .thread_dependent = 1,
    .offer = gemm_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv_gemm_grad_src) = {
    .name = "onednn.conv_gemm_grad_src",
    .op = "conv_grad_src",
    .preference = 10,
    .thread_dependent = 1,
    .offer = gemm_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv_gemm_grad_weight) = {
    .name = "onednn.conv_gemm_grad_weight",
    .op = "conv_grad_weight",
    .preference = 10,
    .thread_dependent = 1,
    .offer = gemm_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv) = {
    .name = "onednn.conv",
    .op = "conv",
    .preference = 100,
    .offer = direct_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv_grad_src) = {
    .name = "onednn.conv_grad_src",
    .op = "conv_grad_src",
    .preference = 100,
    .thread_dependent = CVY_ONEDNN_SPLITS_GRAD_SRC,
    .offer = direct_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv_grad_weight) = {
    .name = "onednn.conv_grad_weight",
    .op = "conv_grad_weight",
    .preference = 100,
    .thread_dependent = 1,
    .offer = direct_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv_winograd) = {
    .name = "onednn.conv_winograd",
    .op = "conv",
    .preference = 120,
    .winograd = 1,
    .offer = winograd_offer,
    .create = winograd_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv_winograd_grad_src) = {
    .name = "onednn.conv_winograd_grad_src",
    .op = "conv_grad_src",
    .preference = 120,
    .winograd = 1,
    .offer = winograd_offer,
    .create = winograd_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_conv_winograd_grad_weight) = {
    .name = "onednn.conv_winograd_grad_weight",
    .op = "conv_grad_weight",
    .preference = 120,
    .winograd = 1,
    .thread_dependent = 1,
    .offer = winograd_offer,
    .create = winograd_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_deconv) = {
    .name = "onednn.deconv",
    .op = "deconv",
    .preference = 100,
    .thread_dependent = CVY_ONEDNN_SPLITS_GRAD_SRC,
    .offer = direct_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_deconv_grad_src) = {
    .name = "onednn.deconv_grad_src",
    .op = "deconv_grad_src",
    .preference = 100,
    .offer = direct_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

CVY_KERNEL_DEFINE(onednn_deconv_grad_weight) = {
    .name = "onednn.deconv_grad_weight",
    .op = "deconv_grad_weight",
    .preference = 100,
    .thread_dependent = 1,
    .offer = direct_offer,
    .create = direct_create,
    .run = cvy_onednn_layer_run,
    .destroy = cvy_onednn_layer_destroy,
};

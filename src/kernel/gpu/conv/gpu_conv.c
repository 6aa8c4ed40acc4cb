/*
 * gpu_conv.c: convolution, deconvolution and their gradients on a GPU, as windows of gpu_product.h. Activations are
 * channels last, also as slices of the channels of a wider tensor; a weight is read and its gradient written in any
 * layout without blocks.
 *
 * The gradient of the source is a window, too. With stride s, the source positions p, p + s, p + 2 s .. are touched by
 * the same taps, and neighbours among them by neighbouring windows. So there is one window for each p < s; along each
 * axis it slides over the destination with stride 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/conv/gpu_product.h"
#include "op/conv/op_conv.h"

struct layer {
    cvy_layer_pass pass;
    int transposed;
    cvy_gpu_ending ending;
    cvy_window w; /* of the convolution, or of the one that a deconvolution transposes */
    cvy_window_channels c;
    cvy_blocking src, dst, weight; /* src and dst: the sides of the window */
};

static int reads_weight(const struct layer *l)
{
    return l->pass != CVY_LAYER_GRAD_WEIGHT;
}

static cvy_status layer_of(const cvy_node *node, struct layer *out)
{
    struct layer l = {.pass = node->op->pass, .transposed = node->op->transposed};
    const int forward = l.pass == CVY_LAYER_FORWARD;
    if (l.transposed) {
        const cvy_deconv_grad_opts *g = node->options;
        const cvy_deconv_opts *o = forward ? node->options : &g->deconv;
        CVY_TRY(cvy_deconv_window(o, forward ? &node->src[0]->shape : &g->src, &l.w, &l.c));
        l.ending.bias = forward && o->bias;
    } else {
        const cvy_conv_grad_opts *g = node->options;
        const cvy_conv_opts *o = forward ? node->options : &g->conv;
        CVY_TRY(cvy_conv_window(o, forward ? &node->src[0]->shape : &g->src, &l.w, &l.c));
        l.ending.bias = forward && o->bias;
        l.ending.relu = forward && o->relu;
    }
    l.ending.add = l.pass == CVY_LAYER_GRAD_SRC && node->nsrc == 3;
    *out = l;
    return CVY_OK;
}

/* ---- windows ---- */

/* Elements from one position to the next along an axis. */
static int step_of(const struct layer *l, const cvy_blocking *b, int d)
{
    return d < l->w.nspace ? (int)b->stride[2 + d] : 0;
}

/* The window over the source of the convolution: its results, and the gradient of the weight. */
static cvy_status forward_window(const struct layer *l, cvy_gpu_window *out)
{
    const cvy_window *w = &l->w;
    const cvy_window_channels *c = &l->c;
    const int64_t in = c->nsrc / c->groups, columns = c->ndst / c->groups;
    cvy_gpu_window g = {.groups = (int)c->groups,
                        .from_sample = l->src.stride[0],
                        .to_sample = l->dst.stride[0],
                        .from_group = (int)in,
                        .to_group = (int)columns,
                        .weight_group = (int)(l->weight.stride[0] * columns),
                        .weight_column = (int)l->weight.stride[0],
                        .weight_channel = (int)l->weight.stride[1],
                        .ending = l->ending,
                        .channels = cvy_gpu_divider_make(in)};
    for (int d = 0; d < CVY_SPACE_MAX; d++)
        g.axis[d] = (cvy_gpu_axis){.rows = cvy_gpu_divider_make(w->dst[d]),
                                   .taps = cvy_gpu_divider_make(w->kernel[d]),
                                   .from = (int)w->src[d],
                                   .stride = (int)w->stride[d],
                                   .first = (int)-w->pad[d],
                                   .step = (int)w->dilation[d],
                                   .from_by = step_of(l, &l->src, d),
                                   .to_by = step_of(l, &l->dst, d),
                                   .weight_by = step_of(l, &l->weight, d)};
    *out = g;
    return cvy_gpu_window_count(out, c->n, columns);
}

/* The taps that touch the source positions p, p + stride ..: first, first + step .. */
struct taps {
    int64_t first, step, count;
};

static struct taps taps_of(const cvy_window *w, int d, int64_t p)
{
    struct taps t = {.step = 1};
    for (int64_t tap = 0; tap < w->kernel[d]; tap++) {
        if ((p + w->pad[d] - tap * w->dilation[d]) % w->stride[d] != 0)
            continue;
        if (t.count == 0)
            t.first = tap;
        else if (t.count == 1)
            t.step = tap - t.first; /* the others follow at the same distance */
        t.count++;
    }
    return t;
}

/* The window over the destination of the convolution for the source positions p + stride * row along each axis: the
 * gradient of the source. */
static cvy_status backward_window(const struct layer *l, const int64_t p[CVY_SPACE_MAX], cvy_gpu_window *out)
{
    const cvy_window *w = &l->w;
    const cvy_window_channels *c = &l->c;
    const int64_t in = c->ndst / c->groups, columns = c->nsrc / c->groups;
    cvy_gpu_window g = {.groups = (int)c->groups,
                        .from_sample = l->dst.stride[0],
                        .to_sample = l->src.stride[0],
                        .from_group = (int)in,
                        .to_group = (int)columns,
                        .weight_group = (int)(l->weight.stride[0] * in),
                        .weight_column = (int)l->weight.stride[1],
                        .weight_channel = (int)l->weight.stride[0],
                        .ending = l->ending,
                        .channels = cvy_gpu_divider_make(in)};
    for (int d = 0; d < CVY_SPACE_MAX; d++) {
        const struct taps t = taps_of(w, d, p[d]);
        const int64_t stride = w->stride[d];
        g.axis[d] = (cvy_gpu_axis){.rows = cvy_gpu_divider_make((w->src[d] - p[d] + stride - 1) / stride),
                                   .taps = cvy_gpu_divider_make(t.count),
                                   .from = (int)w->dst[d],
                                   .stride = 1,
                                   .first = (int)((p[d] + w->pad[d] - t.first * w->dilation[d]) / stride),
                                   .step = (int)(-t.step * w->dilation[d] / stride),
                                   .from_by = step_of(l, &l->dst, d),
                                   .to_by = (int)(stride * step_of(l, &l->src, d)),
                                   .weight_by = (int)(t.step * step_of(l, &l->weight, d))};
        g.to_first += p[d] * step_of(l, &l->src, d);
        g.weight_first += (int)(t.first * step_of(l, &l->weight, d));
    }
    *out = g;
    return cvy_gpu_window_count(out, c->n, columns);
}

/* The windows of a layer, in new memory. */
static cvy_status windows_of(const struct layer *l, cvy_gpu_window **out, int *n_out)
{
    const int backward = reads_weight(l) && (l->pass == CVY_LAYER_GRAD_SRC) != l->transposed;
    int64_t count[CVY_SPACE_MAX], n = 1;
    for (int d = 0; d < CVY_SPACE_MAX; d++) {
        count[d] = backward ? CVY_MIN(l->w.stride[d], l->w.src[d]) : 1;
        n *= count[d];
    }
    cvy_status status = CVY_OK;
    cvy_gpu_window *windows = NULL;
    CVY_CHECK(n <= 1 << 16, CVY_NOT_APPLICABLE, "this kernel is for strides of up to 65536 positions; there are %lld",
              (long long)n);
    CVY_TRY(cvy_mem_alloc(sizeof *windows * (size_t)n, &windows));
    for (int64_t i = 0; i < n && status == CVY_OK; i++) {
        int64_t p[CVY_SPACE_MAX];
        cvy_window_split(count, i, p);
        status = backward ? backward_window(l, p, &windows[i]) : forward_window(l, &windows[i]);
    }
    if (status != CVY_OK)
        cvy_mem_free(&windows);
    *out = windows;
    *n_out = (int)n;
    return status;
}

/* ---- the kernels ---- */

/* The strides of both sides and of the weight, by the layouts of the ask. */
static cvy_status take_strides(const cvy_kernel_ask *ask, struct layer *l)
{
    const cvy_node *node = ask->node;
    /* A gradient of the weight reads both sides; the other passes read one and write one. */
    const cvy_layout *other = reads_weight(l) ? &ask->dst[0] : &ask->src[1],
                     *weight = reads_weight(l) ? &ask->src[1] : &ask->dst[0];
    const cvy_shape *other_shape = &(reads_weight(l) ? node->dst[0] : node->src[1])->shape,
                    *weight_shape = &(reads_weight(l) ? node->src[1] : node->dst[0])->shape;
    cvy_blocking first, second;
    CVY_TRY(cvy_blocking_make(&ask->src[0], &node->src[0]->shape, &first));
    CVY_TRY(cvy_blocking_make(other, other_shape, &second));
    const int first_is_src = (l->pass != CVY_LAYER_GRAD_SRC) != l->transposed;
    l->src = first_is_src ? first : second;
    l->dst = first_is_src ? second : first;
    return cvy_blocking_make(weight, weight_shape, &l->weight);
}

/* The layouts that the layer needs, where it has the choice. */
static cvy_status take_layouts(cvy_kernel_ask *ask, struct layer *l)
{
    const cvy_node *node = ask->node;
    cvy_layout *weight = reads_weight(l) ? &ask->src[1] : &ask->dst[0];
    const cvy_shape *shape = reads_weight(l) ? &node->src[1]->shape : &node->dst[0]->shape;
    const int given = reads_weight(l) ? !ask->src_free[1] : ask->dst_fixed[0];
    for (int i = 0; i < node->nsrc; i++)
        if (i != 1 || !reads_weight(l))
            ask->src[i] = cvy_gpu_layout(&node->src[i]->shape);
    if (reads_weight(l))
        ask->dst[0] = cvy_gpu_layout(&node->dst[0]->shape);
    if (l->ending.add)
        ask->inplace[0] = 3;
    return cvy_gpu_weight_strides(shape, given, weight, &l->weight);
}

static cvy_status conv_offer(cvy_kernel_ask *ask)
{
    struct layer l;
    cvy_gpu_window *windows = NULL;
    int n = 0;
    CVY_TRY(layer_of(ask->node, &l));
    CVY_TRY(take_layouts(ask, &l));
    CVY_TRY(take_strides(ask, &l));
    CVY_TRY(windows_of(&l, &windows, &n));
    const cvy_status status =
        reads_weight(&l) ? cvy_gpu_window_offer(ask, windows, n) : cvy_gpu_filter_offer(ask, windows, 1);
    cvy_mem_free(&windows);
    return status;
}

static cvy_status conv_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct layer l;
    cvy_gpu_window *windows = NULL;
    int n = 0;
    CVY_TRY(layer_of(ask->node, &l));
    CVY_TRY(take_strides(ask, &l));
    CVY_TRY(windows_of(&l, &windows, &n));
    const cvy_status status = reads_weight(&l) ? cvy_gpu_window_create(ask, windows, n, state_out)
                                               : cvy_gpu_filter_create(ask, windows, l.transposed, 1, state_out);
    cvy_mem_free(&windows);
    return status;
}

CVY_KERNEL_DEFINE(gpu_conv) = {CVY_GPU_FIELDS("conv", conv_offer, conv_create, cvy_gpu_window_run, cvy_gpu_free_state),
                               .slice_src = 1 << 0, .slice_dst = 1 << 0, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_conv_grad_src) = {
    CVY_GPU_FIELDS("conv_grad_src", conv_offer, conv_create, cvy_gpu_window_run, cvy_gpu_free_state),
    .slice_src = 1 << 0, .slice_dst = 1 << 0, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_conv_grad_src_add) = {
    CVY_GPU_FIELDS("conv_grad_src_add", conv_offer, conv_create, cvy_gpu_window_run, cvy_gpu_free_state),
    .slice_src = 1 << 0, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_conv_grad_weight) = {
    CVY_GPU_FIELDS("conv_grad_weight", conv_offer, conv_create, cvy_gpu_filter_run, cvy_gpu_filter_destroy),
    .slice_src = 1 << 0 | 1 << 1, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_deconv) = {
    CVY_GPU_FIELDS("deconv", conv_offer, conv_create, cvy_gpu_window_run, cvy_gpu_free_state), .slice_src = 1 << 0,
    .slice_dst = 1 << 0, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_deconv_grad_src) = {
    CVY_GPU_FIELDS("deconv_grad_src", conv_offer, conv_create, cvy_gpu_window_run, cvy_gpu_free_state),
    .slice_src = 1 << 0, .slice_dst = 1 << 0, .slice_last = 1};

CVY_KERNEL_DEFINE(gpu_deconv_grad_weight) = {
    CVY_GPU_FIELDS("deconv_grad_weight", conv_offer, conv_create, cvy_gpu_filter_run, cvy_gpu_filter_destroy),
    .slice_src = 1 << 0 | 1 << 1, .slice_last = 1};

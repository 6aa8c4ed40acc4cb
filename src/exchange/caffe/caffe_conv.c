/*
 * caffe_conv.c: layers with sliding windows, Convolution, Deconvolution and Pooling, and InnerProduct.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/caffe/caffe.h"

enum { SPACE = 3, WINDOW_MAX = 1 << 14 };

/* The sliding window of a layer: one entry for each dimension of space. */
typedef struct window {
    int n;
    int64_t kernel[SPACE], stride[SPACE], pad[SPACE], dilation[SPACE];
} window;

/* A list with one entry for all dimensions, or one for each; or the two fields for rows and columns. */
typedef struct list {
    const char *what;
    const uint32_t *at;
    size_t n;
    int has_h, has_w;
    uint32_t h, w;
    int64_t fallback; /* -1: it must be given */
} list;

static cvy_status take(const cvy_caffe_layer *layer, const list *from, int n, int64_t *out)
{
    const char *path = layer->x->build.path;
    const int pair = from->has_h || from->has_w;
    CVY_CHECK(!pair || from->n == 0, CVY_E_FORMAT, "%s: %s: %s is given for all dimensions, and for rows or columns",
              path, layer->where, from->what);
    CVY_CHECK(!pair || n == 2, CVY_E_FORMAT, "%s: %s: %s for rows and columns, but there are %d dimensions of space",
              path, layer->where, from->what, n);
    CVY_CHECK(pair || from->n > 0 || from->fallback >= 0, CVY_E_FORMAT, "%s: %s: %s is not given", path, layer->where,
              from->what);
    CVY_CHECK(from->n <= 1 || from->n == (size_t)n, CVY_E_FORMAT, "%s: %s: %s has %zu numbers, expected 1 or %d", path,
              layer->where, from->what, from->n, n);
    for (int i = 0; i < n; i++) {
        const int given = i == 0 ? from->has_h : from->has_w;
        out[i] = pair           ? (given ? (i == 0 ? from->h : from->w) : from->fallback)
                 : from->n == 0 ? from->fallback
                                : from->at[from->n > 1 ? i : 0];
        CVY_CHECK(out[i] >= 0 && out[i] <= WINDOW_MAX, CVY_E_FORMAT, "%s: %s: %s is %lld, expected 0 to %d", path,
                  layer->where, from->what, (long long)out[i], WINDOW_MAX);
    }
    return CVY_OK;
}

static int all_are(const int64_t *at, int n, int64_t value)
{
    for (int i = 0; i < n; i++)
        if (at[i] != value)
            return 0;
    return 1;
}

/* One number if all are equal. */
static void add_list(cvy_text *t, const char *name, const int64_t *at, int n)
{
    cvy_text_add(t, ", %s: ", name);
    if (all_are(at, n, at[0]))
        cvy_text_add(t, "%lld", (long long)at[0]);
    else
        cvy_text_add_ints(t, at, n);
}

static void add_window(cvy_text *t, const window *w)
{
    add_list(t, "kernel", w->kernel, w->n);
    if (!all_are(w->stride, w->n, 1))
        add_list(t, "stride", w->stride, w->n);
    if (!all_are(w->pad, w->n, 0))
        add_list(t, "pad", w->pad, w->n);
    if (!all_are(w->dilation, w->n, 1))
        add_list(t, "dilation", w->dilation, w->n);
}

static cvy_status check_space(const cvy_caffe_layer *layer, const cvy_shape *src)
{
    CVY_CAFFE_CHECK(src->ndim >= 3 && src->ndim <= 2 + SPACE, layer,
                    "a source of shape %s, expected the batch, channels, and 1 to %d dimensions of space",
                    cvy_shape_text(src), SPACE);
    return CVY_OK;
}

static cvy_status read_conv(const cvy_caffe_layer *layer, const Cvy__Caffe__ConvolutionParameter *p, window *w)
{
    const list kernel = {"kernel_size",   p->kernel_size, p->n_kernel_size, p->has_kernel_h,
                         p->has_kernel_w, p->kernel_h,    p->kernel_w,      -1};
    const list stride = {"stride",        p->stride,   p->n_stride, p->has_stride_h,
                         p->has_stride_w, p->stride_h, p->stride_w, 1};
    const list pad = {"pad", p->pad, p->n_pad, p->has_pad_h, p->has_pad_w, p->pad_h, p->pad_w, 0};
    const list dilation = {.what = "dilation", .at = p->dilation, .n = p->n_dilation, .fallback = 1};
    CVY_TRY(take(layer, &kernel, w->n, w->kernel));
    CVY_TRY(take(layer, &stride, w->n, w->stride));
    CVY_TRY(take(layer, &pad, w->n, w->pad));
    CVY_TRY(take(layer, &dilation, w->n, w->dilation));
    for (int i = 0; i < w->n; i++)
        CVY_CHECK(w->kernel[i] > 0 && w->stride[i] > 0 && w->dilation[i] > 0, CVY_E_FORMAT,
                  "%s: %s: kernel %lld, stride %lld, dilation %lld, expected at least 1", layer->x->build.path,
                  layer->where, (long long)w->kernel[i], (long long)w->stride[i], (long long)w->dilation[i]);
    return CVY_OK;
}

/* ---- bias ---- */

static cvy_status add_bias(const cvy_caffe_layer *layer, int given, const Cvy__Caffe__FillerParameter *filler,
                           cvy_text *options)
{
    double value = 0;
    CVY_TRY(cvy_caffe_constant(layer, "the bias", filler, 0, &value));
    if (!given)
        cvy_text_add(options, ", bias: false");
    else if (value != 0)
        cvy_text_add(options, ", bias_init: %.9g", value);
    return options->status;
}

/* Adds a layer with a weight and perhaps a bias on each bottom. */
static cvy_status add_weighted(const cvy_caffe_layer *layer, const char *op, const cvy_text *options, const char *from,
                               int bias, cvy_caffe_use use, const char **output_out)
{
    const char *name = NULL;
    CVY_TRY(cvy_caffe_add_trained(
        layer, &(cvy_caffe_new_layer){.op = op, .options = options->data, .from = {from}, .nfrom = 1}, 1 + bias, &name,
        output_out));
    CVY_TRY(cvy_caffe_has(layer, layer->p, 0, name, "weight", use));
    return bias ? cvy_caffe_has(layer, layer->p, 1, name, "bias", CVY_CAFFE_AS_IS) : CVY_OK;
}

/* ---- convolution ---- */

/* The blob of a convolution is [K, C / groups, kernel], that of a deconvolution [C, K / groups, kernel]. */
static cvy_status fill_conv(const cvy_caffe_layer *layer, const Cvy__Caffe__ConvolutionParameter *p, const window *w,
                            int64_t C, int transposed, cvy_text *options)
{
    const int64_t first = transposed ? C : p->num_output, second = (transposed ? p->num_output : C) / p->group;
    const Cvy__Caffe__FillerParameter *filler = p->weight_filler;
    int64_t taps = 1;
    for (int i = 0; i < w->n; i++)
        taps *= w->kernel[i];
    CVY_CHECK((double)first * (double)second * (double)taps < (double)CVY_BUILD_ELEMS, CVY_E_SHAPE,
              "%s: %s: its weight would have %g elements", layer->x->build.path, layer->where,
              (double)first * (double)second * (double)taps);
    /* our number of outputs is that of a group */
    const int by_in = filler && filler->variance_norm == CVY__CAFFE__FILLER_PARAMETER__VARIANCE_NORM__FAN_IN;
    const cvy_caffe_fans fans = {.in = second * taps,
                                 .out = first * taps,
                                 .same = !transposed && (p->group == 1 || by_in),
                                 .first = first,
                                 .positions = w->n == 2 && w->kernel[0] == w->kernel[1] ? w->kernel[0] : 1};
    return cvy_caffe_fill(layer, filler, &fans, options);
}

static cvy_status conv_on(const cvy_caffe_layer *layer, size_t i, const char *op)
{
    const Cvy__Caffe__ConvolutionParameter *p = layer->p->convolution_param;
    const int transposed = strcmp(op, "deconv") == 0;
    const char *from = NULL, *output = NULL;
    cvy_text options = {0};
    CVY_TRY(cvy_caffe_bottom(layer, i, &from));
    const cvy_shape *src = cvy_caffe_shape(layer, from);
    window w = {.n = src->ndim - 2};
    CVY_TRY(check_space(layer, src));
    CVY_CAFFE_CHECK(p->axis == 1 || p->axis == 1 - src->ndim, layer, "its channels are axis %d, expected 1", p->axis);
    CVY_CHECK(p->num_output > 0 && p->group > 0 && src->dim[1] % p->group == 0 && p->num_output % p->group == 0,
              CVY_E_FORMAT, "%s: %s: num_output %u and group %u on %lld channels", layer->x->build.path, layer->where,
              p->num_output, p->group, (long long)src->dim[1]);
    CVY_TRY(read_conv(layer, p, &w));
    cvy_text_add(&options, "channels: %u", p->num_output);
    add_window(&options, &w);
    if (p->group != 1)
        cvy_text_add(&options, ", groups: %u", p->group);
    cvy_status status = add_bias(layer, p->bias_term, p->bias_filler, &options);
    if (status == CVY_OK)
        status = fill_conv(layer, p, &w, src->dim[1], transposed, &options);
    if (status == CVY_OK)
        status = add_weighted(layer, op, &options, from, p->bias_term, CVY_CAFFE_AS_IS, &output);
    cvy_text_free(&options);
    return status == CVY_OK ? cvy_caffe_done(layer, i, output) : status;
}

static cvy_status translate_conv_as(const cvy_caffe_layer *layer, const char *op)
{
    CVY_CHECK(layer->p->convolution_param, CVY_E_FORMAT, "%s: %s has no convolution_param", layer->x->build.path,
              layer->where);
    CVY_CAFFE_CHECK(layer->p->n_bottom == 1, layer, "it has %zu bottoms, expected 1", layer->p->n_bottom);
    return conv_on(layer, 0, op);
}

static cvy_status translate_conv(const cvy_caffe_layer *layer)
{
    return translate_conv_as(layer, "conv");
}
CVY_CAFFE_DEFINE(convolution) = {"Convolution", .translate = translate_conv};

static cvy_status translate_deconv(const cvy_caffe_layer *layer)
{
    return translate_conv_as(layer, "deconv");
}
CVY_CAFFE_DEFINE(deconvolution) = {"Deconvolution", .translate = translate_deconv};

/* ---- inner product ---- */

/* The axes from `axis` on become one, the others stay. */
static cvy_status flatten_from(const cvy_caffe_layer *layer, int axis, const char **at)
{
    cvy_text shape = {0};
    const cvy_shape *src = cvy_caffe_shape(layer, *at);
    if (axis == 1 || axis == src->ndim - 1)
        return CVY_OK;
    for (int d = 1; d < axis; d++)
        cvy_text_add(&shape, "%lld, ", (long long)src->dim[d]);
    cvy_status status = shape.status;
    if (status == CVY_OK)
        status = cvy_caffe_then(layer, at, "reshape", "shape: [%s-1]", shape.data);
    cvy_text_free(&shape);
    return status;
}

static cvy_status translate_inner_product(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__InnerProductParameter *p = layer->p->inner_product_param;
    const char *at = NULL, *output = NULL;
    cvy_text options = {0};
    int axis = 0;
    int64_t width = 1;
    CVY_CHECK(p && p->num_output > 0, CVY_E_FORMAT, "%s: %s: inner_product_param has no num_output",
              layer->x->build.path, layer->where);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    const cvy_shape *src = cvy_caffe_shape(layer, at);
    CVY_TRY(cvy_caffe_axis(layer, p->axis, src->ndim, &axis));
    for (int d = axis; d < src->ndim; d++)
        width *= src->dim[d];
    CVY_CHECK((double)width * (double)p->num_output < (double)CVY_BUILD_ELEMS, CVY_E_SHAPE,
              "%s: %s: its weight would have %g elements", layer->x->build.path, layer->where,
              (double)width * (double)p->num_output);
    CVY_TRY(flatten_from(layer, axis, &at));
    cvy_text_add(&options, "channels: %u%s", p->num_output, axis > 1 ? ", flatten: false" : "");
    cvy_status status = add_bias(layer, p->bias_term, p->bias_filler, &options);
    const int64_t n = p->num_output;
    const cvy_caffe_fans fans = {.in = p->transpose ? n : width,
                                 .out = p->transpose ? width : n,
                                 .same = !p->transpose,
                                 .first = p->transpose ? width : n,
                                 .positions = 1};
    if (status == CVY_OK)
        status = cvy_caffe_fill(layer, p->weight_filler, &fans, &options);
    if (status == CVY_OK)
        status = add_weighted(layer, "fc", &options, at, p->bias_term,
                              p->transpose ? CVY_CAFFE_TRANSPOSED : CVY_CAFFE_AS_IS, &output);
    cvy_text_free(&options);
    return status == CVY_OK ? cvy_caffe_done(layer, 0, output) : status;
}
CVY_CAFFE_DEFINE(inner_product) = {"InnerProduct", .translate = translate_inner_product};

/* ---- pooling ---- */

static cvy_status read_pool(const cvy_caffe_layer *layer, const Cvy__Caffe__PoolingParameter *p, window *w)
{
    const list kernel = {"kernel_size",   &p->kernel_size, p->has_kernel_size, p->has_kernel_h,
                         p->has_kernel_w, p->kernel_h,     p->kernel_w,        -1};
    const list stride = {"stride",        &p->stride,  p->has_stride, p->has_stride_h,
                         p->has_stride_w, p->stride_h, p->stride_w,   1};
    const list pad = {"pad", &p->pad, p->has_pad, p->has_pad_h, p->has_pad_w, p->pad_h, p->pad_w, 0};
    CVY_TRY(take(layer, &kernel, w->n, w->kernel));
    CVY_TRY(take(layer, &stride, w->n, w->stride));
    CVY_TRY(take(layer, &pad, w->n, w->pad));
    for (int i = 0; i < w->n; i++) {
        w->dilation[i] = 1;
        CVY_CHECK(w->kernel[i] > 0 && w->stride[i] > 0 && w->pad[i] < w->kernel[i], CVY_E_FORMAT,
                  "%s: %s: kernel %lld, stride %lld, pad %lld; expected a pad that is smaller than the kernel",
                  layer->x->build.path, layer->where, (long long)w->kernel[i], (long long)w->stride[i],
                  (long long)w->pad[i]);
    }
    return CVY_OK;
}

/* Caffe's last window may begin after the end of the source if the stride is larger than the kernel; it then has no
 * value. */
static cvy_status check_last(const cvy_caffe_layer *layer, const window *w, const cvy_shape *src, int ceil)
{
    for (int i = 0; i < w->n; i++) {
        const int64_t room = src->dim[2 + i] + 2 * w->pad[i] - w->kernel[i];
        const int64_t last = ceil && room > 0 ? (room + w->stride[i] - 1) / w->stride[i] * w->stride[i] : 0;
        CVY_CAFFE_CHECK(w->pad[i] > 0 || last < src->dim[2 + i], layer,
                        "with kernel %lld and stride %lld its last window has no position of a source %s",
                        (long long)w->kernel[i], (long long)w->stride[i], cvy_shape_text(src));
    }
    return CVY_OK;
}

/* Ours gives [N, C]; Caffe keeps positions of length 1. */
static cvy_status global_pool(const cvy_caffe_layer *layer, const char *op, const char *at)
{
    const cvy_shape *src = cvy_caffe_shape(layer, at);
    const int64_t C = src->dim[1];
    const int n = src->ndim - 2;
    CVY_TRY(cvy_caffe_then(layer, &at, op, "%s", ""));
    CVY_TRY(cvy_caffe_then(layer, &at, "reshape", "shape: [%lld%s]", (long long)C,
                           n == 1   ? ", 1"
                           : n == 2 ? ", 1, 1"
                                    : ", 1, 1, 1"));
    return cvy_caffe_done(layer, 0, at);
}

static cvy_status translate_pooling(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__PoolingParameter *p = layer->p->pooling_param;
    const char *at = NULL;
    cvy_text options = {0};
    CVY_CHECK(p, CVY_E_FORMAT, "%s: %s has no pooling_param", layer->x->build.path, layer->where);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    const cvy_shape *src = cvy_caffe_shape(layer, at);
    window w = {.n = src->ndim - 2};
    CVY_TRY(check_space(layer, src));
    CVY_CAFFE_CHECK(p->pool != CVY__CAFFE__POOLING_PARAMETER__POOL_METHOD__STOCHASTIC, layer, "%s",
                    "stochastic pooling is not supported");
    CVY_CAFFE_CHECK(layer->p->n_top <= 1, layer, "%s",
                    "the positions of the maxima, its second top, are not supported");
    const int is_max = p->pool == CVY__CAFFE__POOLING_PARAMETER__POOL_METHOD__MAX;
    const int ceil = p->round_mode == CVY__CAFFE__POOLING_PARAMETER__ROUND_MODE__CEIL;
    if (p->global_pooling)
        return global_pool(layer, is_max ? "global_max_pool" : "global_avg_pool", at);
    CVY_TRY(read_pool(layer, p, &w));
    CVY_TRY(check_last(layer, &w, src, ceil));
    add_list(&options, "kernel", w.kernel, w.n);
    add_list(&options, "stride", w.stride, w.n); /* ours is the kernel if it is not given */
    if (!all_are(w.pad, w.n, 0))
        add_list(&options, "pad", w.pad, w.n);
    if (ceil)
        cvy_text_add(&options, ", ceil: true");
    cvy_status status = options.status;
    if (status == CVY_OK)
        status = cvy_caffe_then(layer, &at, is_max ? "max_pool" : "avg_pool", "%s", options.data + 2);
    cvy_text_free(&options);
    return status == CVY_OK ? cvy_caffe_done(layer, 0, at) : status;
}
CVY_CAFFE_DEFINE(pooling) = {"Pooling", .translate = translate_pooling};

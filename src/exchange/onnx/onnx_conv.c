/*
 * onnx_conv.c: Conv, ConvTranspose and pooling.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

enum { SPACE = 3 };

/* The sliding window of a node: one entry for each dimension of space. */
struct window {
    int n;
    int64_t kernel[SPACE], stride[SPACE], dilation[SPACE], before[SPACE], after[SPACE];
};

static cvy_status take(const cvy_onnx_node *node, const char *name, int64_t fallback, int n, int64_t *out)
{
    const int64_t *given = NULL;
    int count = 0;
    CVY_TRY(cvy_onnx_ints(node, name, -1, &given, &count));
    CVY_ONNX_CHECK(count == 0 || count == n, node, "%s has %d numbers, expected %d", name, count, n);
    for (int i = 0; i < n; i++) {
        out[i] = count ? given[i] : fallback;
        CVY_ONNX_CHECK(out[i] > -CVY_ONNX_SIZE && out[i] < CVY_ONNX_SIZE, node, "entry %d of %s is %lld", i, name,
                       (long long)out[i]);
    }
    return CVY_OK;
}

/* auto_pad: the result has ceil(size / stride) positions; an odd one is padded at the end, or at the beginning. */
static void pad_to_same(struct window *w, const cvy_shape *src, int lower)
{
    for (int i = 0; i < w->n; i++) {
        const int64_t size = src->dim[2 + i], out = (size + w->stride[i] - 1) / w->stride[i];
        const int64_t all =
            CVY_MAX((out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - size, (int64_t)0);
        w->before[i] = lower ? all - all / 2 : all / 2;
        w->after[i] = all - w->before[i];
    }
}

static cvy_status read_pads(const cvy_onnx_node *node, const cvy_shape *src, struct window *w)
{
    int64_t pads[2 * SPACE];
    const char *mode = NULL;
    CVY_TRY(take(node, "pads", 0, 2 * w->n, pads));
    for (int i = 0; i < w->n; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[w->n + i];
        CVY_ONNX_CHECK(pads[i] >= 0 && pads[w->n + i] >= 0, node, "a negative padding of %lld", (long long)pads[i]);
    }
    CVY_TRY(cvy_onnx_string(node, "auto_pad", &mode));
    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0)
        pad_to_same(w, src, strcmp(mode, "SAME_LOWER") == 0);
    return CVY_OK;
}

/* kernel: of a weight; NULL: the attribute kernel_shape. */
static cvy_status read_window(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *kernel,
                              struct window *w)
{
    w->n = src->shape.ndim - 2;
    CVY_ONNX_CHECK(w->n >= 1 && w->n <= SPACE, node, "a source of shape %s, expected [N, C, 1 to 3 dimensions]",
                   cvy_shape_text(&src->shape));
    for (int i = 0; kernel && i < w->n; i++) {
        w->kernel[i] = kernel[i];
        CVY_ONNX_CHECK(kernel[i] < CVY_ONNX_SIZE, node, "a kernel of %lld", (long long)kernel[i]);
    }
    if (!kernel)
        CVY_TRY(take(node, "kernel_shape", 0, w->n, w->kernel));
    CVY_TRY(take(node, "strides", 1, w->n, w->stride));
    CVY_TRY(take(node, "dilations", 1, w->n, w->dilation));
    for (int i = 0; i < w->n; i++)
        CVY_ONNX_CHECK(w->kernel[i] > 0 && w->stride[i] > 0 && w->dilation[i] > 0, node,
                       "kernel %lld, stride %lld, dilation %lld", (long long)w->kernel[i], (long long)w->stride[i],
                       (long long)w->dilation[i]);
    return read_pads(node, &src->shape, w);
}

static int is_symmetric(const struct window *w)
{
    for (int i = 0; i < w->n; i++)
        if (w->before[i] != w->after[i])
            return 0;
    return 1;
}

/* Pads that differ between the ends become a layer of their own, and *w has none after it. */
static cvy_status pad_before(const cvy_onnx_node *node, struct window *w, const char **from)
{
    cvy_text options = {0};
    if (is_symmetric(w))
        return CVY_OK;
    cvy_onnx_list(&options, "before", w->before, w->n);
    cvy_onnx_list(&options, "after", w->after, w->n);
    cvy_status status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_add(
            node, &(cvy_onnx_layer){.op = "pad", .options = options.data, .from = {*from}, .nfrom = 1}, NULL, from);
    cvy_text_free(&options);
    memset(w->before, 0, sizeof w->before);
    memset(w->after, 0, sizeof w->after);
    return status;
}

static void add_window(cvy_text *t, const struct window *w, int dilates)
{
    int64_t one = 1, zero = 0;
    for (int i = 0; i < w->n; i++) {
        one = w->dilation[i] == 1 ? one : 0;
        zero |= w->before[i];
    }
    cvy_onnx_list(t, "kernel", w->kernel, w->n);
    cvy_onnx_list(t, "stride", w->stride, w->n);
    if (zero)
        cvy_onnx_list(t, "pad", w->before, w->n);
    if (dilates && !one)
        cvy_onnx_list(t, "dilation", w->dilation, w->n);
}

/* ---- convolution ---- */

static cvy_status add_conv(const cvy_onnx_node *node, const char *op, const cvy_text *options, const char *from,
                           const cvy_onnx_tensor *weight, const cvy_onnx_tensor *bias)
{
    const char *name = NULL, *output = NULL;
    CVY_TRY(options->status);
    CVY_TRY(cvy_onnx_add(
        node,
        &(cvy_onnx_layer){
            .op = op, .options = options->data, .weight = weight, .more = {bias}, .from = {from}, .nfrom = 1},
        &name, &output));
    CVY_TRY(cvy_onnx_set(node, name, "weight", weight));
    if (bias)
        CVY_TRY(cvy_onnx_set(node, name, "bias", bias));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status read_weights(const cvy_onnx_node *node, const cvy_onnx_value **src, const cvy_onnx_tensor **weight,
                               const cvy_onnx_tensor **bias)
{
    CVY_TRY(cvy_onnx_activation(node, 0, src));
    CVY_TRY(cvy_onnx_constant(node, 1, weight));
    CVY_TRY(cvy_onnx_constant(node, 2, bias));
    CVY_ONNX_CHECK(*weight && (*weight)->shape.ndim == (*src)->shape.ndim, node, "a weight of shape %s for a source %s",
                   *weight ? cvy_shape_text(&(*weight)->shape) : "none", cvy_shape_text(&(*src)->shape));
    return CVY_OK;
}

static cvy_status translate_conv(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *weight = NULL, *bias = NULL;
    struct window w = {0};
    cvy_text options = {0};
    CVY_TRY(read_weights(node, &src, &weight, &bias));
    CVY_TRY(read_window(node, src, weight->shape.dim + 2, &w));
    const char *from = src->layer;
    CVY_TRY(pad_before(node, &w, &from));
    cvy_text_add(&options, "channels: %lld", (long long)weight->shape.dim[0]);
    add_window(&options, &w, 1);
    const int64_t groups = cvy_onnx_int(node, "group", 1);
    if (groups != 1)
        cvy_text_add(&options, ", groups: %lld", (long long)groups);
    if (!bias)
        cvy_text_add(&options, ", bias: false");
    const cvy_status status = add_conv(node, "conv", &options, from, weight, bias);
    cvy_text_free(&options);
    return status;
}
CVY_ONNX_DEFINE(conv) = {"Conv", .attributes = "auto_pad dilations group kernel_shape pads strides",
                         .translate = translate_conv};

/* The pads of a transposed convolution whose result has a given size, or source times stride positions. */
static cvy_status pads_of_result(const cvy_onnx_node *node, const cvy_shape *src, int64_t *extra, struct window *w)
{
    int64_t sizes[SPACE];
    const char *mode = NULL;
    CVY_TRY(take(node, "output_shape", 0, w->n, sizes));
    CVY_TRY(cvy_onnx_string(node, "auto_pad", &mode));
    const int same = strncmp(mode, "SAME_", 5) == 0;
    for (int i = 0; i < w->n && (sizes[i] > 0 || same); i++) {
        const int64_t size = sizes[i] > 0 ? sizes[i] : src->dim[2 + i] * w->stride[i];
        int64_t all = w->stride[i] * (src->dim[2 + i] - 1) + extra[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - size;
        if (all < 0) { /* positions that no window reaches are at the end */
            extra[i] -= all;
            all = 0;
        }
        w->before[i] = strcmp(mode, "SAME_UPPER") == 0 ? all / 2 : all - all / 2;
        w->after[i] = all - w->before[i];
    }
    return CVY_OK;
}

/* Pads take positions from both ends of the result. If they differ, a layer of its own cuts the rest off. */
static cvy_status cut_after(const cvy_onnx_node *node, const struct window *rest)
{
    const char *output = NULL;
    const int at = cvy_keys_find(&node->x->names, node->proto->output[0]);
    cvy_text options = {0};
    cvy_onnx_list(&options, "before", rest->before, rest->n);
    cvy_onnx_list(&options, "after", rest->after, rest->n);
    const cvy_status status = options.status == CVY_OK
                                  ? cvy_onnx_step(node, "crop", options.data, node->x->value[at].layer, &output)
                                  : options.status;
    cvy_text_free(&options);
    CVY_TRY(status);
    return cvy_onnx_done(node, 0, output);
}

static cvy_status translate_deconv(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *weight = NULL, *bias = NULL;
    struct window w = {0};
    int64_t extra[SPACE];
    cvy_text options = {0};
    CVY_TRY(read_weights(node, &src, &weight, &bias));
    CVY_TRY(read_window(node, src, weight->shape.dim + 2, &w));
    CVY_TRY(take(node, "output_padding", 0, w.n, extra));
    CVY_TRY(pads_of_result(node, &src->shape, extra, &w));
    const int cuts = !is_symmetric(&w);
    struct window rest = w;
    for (int i = 0; i < w.n && cuts; i++)
        w.before[i] = w.after[i] = 0;
    const int64_t groups = cvy_onnx_int(node, "group", 1);
    CVY_ONNX_CHECK(groups > 0 && groups < CVY_ONNX_SIZE, node, "%lld groups", (long long)groups);
    cvy_text_add(&options, "channels: %lld", (long long)(weight->shape.dim[1] * groups));
    add_window(&options, &w, 1);
    for (int i = 0; i < w.n; i++)
        if (extra[i]) {
            cvy_onnx_list(&options, "output_pad", extra, w.n);
            break;
        }
    if (groups != 1)
        cvy_text_add(&options, ", groups: %lld", (long long)groups);
    if (!bias)
        cvy_text_add(&options, ", bias: false");
    const cvy_status status = add_conv(node, "deconv", &options, src->layer, weight, bias);
    cvy_text_free(&options);
    CVY_TRY(status);
    return cuts ? cut_after(node, &rest) : CVY_OK;
}
CVY_ONNX_DEFINE(conv_transpose) = {
    "ConvTranspose", .attributes = "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
    .translate = translate_deconv};

/* ---- pooling ---- */

/* The number of windows along dimension i with the padding `before` at both ends; with `ceil` the last one may go past
 * the padding, but not begin there. */
static int64_t count_windows(const struct window *w, const cvy_shape *src, int i, int ceil)
{
    const int64_t size = src->dim[2 + i], stride = w->stride[i], room = size + 2 * w->before[i] - w->kernel[i];
    int64_t n = room < 0 ? 0 : (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (n - 1) * stride >= size + w->before[i])
        n--;
    return n;
}

/* What a window has beyond the source does not count. So pads that differ between the ends are the same as `before` at
 * both ends, if there are as many windows. */
static int fits_symmetric(const struct window *w, const cvy_shape *src, int ceil)
{
    for (int i = 0; i < w->n; i++) {
        const int64_t room = src->dim[2 + i] + w->before[i] + w->after[i] - w->kernel[i];
        if (room < 0 || count_windows(w, src, i, ceil) != room / w->stride[i] + 1)
            return 0;
    }
    return 1;
}

static cvy_status pool(const cvy_onnx_node *node, const char *op)
{
    const cvy_onnx_value *src = NULL;
    struct window w = {0};
    cvy_text options = {0};
    const int is_max = strcmp(op, "max_pool") == 0;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(read_window(node, src, NULL, &w));
    for (int i = 0; i < w.n; i++)
        CVY_ONNX_CHECK(w.dilation[i] == 1, node, "a dilation of %lld is not supported", (long long)w.dilation[i]);
    CVY_ONNX_CHECK(!is_max || !cvy_onnx_is_read(node, 1), node, "%s", "the indices of the maxima are not supported");
    const int counts = (int)cvy_onnx_int(node, "count_include_pad", 0);
    int ceils = cvy_onnx_int(node, "ceil_mode", 0) != 0;
    const char *from = src->layer;
    if (!is_symmetric(&w) && (is_max || !counts)) {
        const int fits = !ceils && fits_symmetric(&w, &src->shape, 0);
        CVY_ONNX_CHECK(!ceils && (fits || fits_symmetric(&w, &src->shape, 1)), node, "%s",
                       "pads that differ between the two ends are not supported for this size");
        ceils = !fits;
        memcpy(w.after, w.before, sizeof w.after);
    }
    CVY_TRY(pad_before(node, &w, &from));
    add_window(&options, &w, 0);
    if (ceils)
        cvy_text_add(&options, ", ceil: true");
    if (!is_max && !counts)
        cvy_text_add(&options, ", count_include_pad: false");
    cvy_status status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_add(node, &(cvy_onnx_layer){.op = op, .options = options.data, .from = {from}, .nfrom = 1},
                              NULL, &output);
    cvy_text_free(&options);
    return status == CVY_OK ? cvy_onnx_done(node, 0, output) : status;
}

static cvy_status translate_max_pool(const cvy_onnx_node *node)
{
    return pool(node, "max_pool");
}
CVY_ONNX_DEFINE(max_pool) = {"MaxPool",
                             .attributes = "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
                             .translate = translate_max_pool};

static cvy_status translate_average_pool(const cvy_onnx_node *node)
{
    return pool(node, "avg_pool");
}
CVY_ONNX_DEFINE(average_pool) = {
    "AveragePool", .attributes = "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
    .translate = translate_average_pool};

/* Ours gives [N, C]; ONNX keeps positions of length 1. */
static cvy_status global_pool(const cvy_onnx_node *node, const char *op)
{
    const cvy_onnx_value *src = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_ONNX_CHECK(src->shape.ndim >= 3, node, "a source of shape %s has no positions", cvy_shape_text(&src->shape));
    const int64_t sample[CVY_NDIM_MAX] = {src->shape.dim[1], 1, 1, 1, 1};
    CVY_TRY(cvy_onnx_step(node, op, NULL, src->layer, &output));
    CVY_TRY(cvy_onnx_reshape(node, output, sample, src->shape.ndim - 1, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status translate_global_average(const cvy_onnx_node *node)
{
    return global_pool(node, "global_avg_pool");
}
CVY_ONNX_DEFINE(global_average_pool) = {"GlobalAveragePool", .translate = translate_global_average};

static cvy_status translate_global_max(const cvy_onnx_node *node)
{
    return global_pool(node, "global_max_pool");
}
CVY_ONNX_DEFINE(global_max_pool) = {"GlobalMaxPool", .translate = translate_global_max};

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
        CVY_ONNX_CHECK(pads[i] >= 0 && pads[w->n + i] >= 0, node, "negative pads, of %lld and %lld", (long long)pads[i],
                       (long long)pads[w->n + i]);
    }
    CVY_TRY(cvy_onnx_string(node, "auto_pad", &mode));
    const int upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0,
              valid = strcmp(mode, "VALID") == 0;
    CVY_ONNX_CHECK(!*mode || upper || lower || valid || strcmp(mode, "NOTSET") == 0, node, "auto_pad %s is not known",
                   mode);
    if (upper || lower)
        pad_to_same(w, src, lower);
    for (int i = 0; valid && i < w->n; i++)
        w->before[i] = w->after[i] = 0;
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
        status = cvy_onnx_step(node, "pad", options.data, *from, from);
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
                           const cvy_onnx_tensor *weight, const cvy_onnx_tensor *bias, const char **output_out)
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
    *output_out = output;
    return cvy_onnx_done(node, 0, output);
}

/* PyTorch's newer exporter computes zeros in the graph for a convolution without a bias. They are not trained. */
static int is_no_bias(const cvy_onnx_tensor *bias)
{
    double number = 1;
    return bias && !*bias->name && cvy_onnx_is_uniform(bias, &number) && number == 0;
}

static cvy_status read_weights(const cvy_onnx_node *node, const cvy_onnx_value **src, const cvy_onnx_tensor **weight,
                               const cvy_onnx_tensor **bias)
{
    CVY_TRY(cvy_onnx_activation(node, 0, src));
    CVY_TRY(cvy_onnx_constant(node, 1, weight));
    CVY_TRY(cvy_onnx_constant(node, 2, bias));
    if (is_no_bias(*bias))
        *bias = NULL;
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
    const cvy_status status = add_conv(node, "conv", &options, from, weight, bias, &from);
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

/* Pads of a transposed convolution are positions of the result that are left out. What one end has more of is cropped
 * after the layer; *w keeps the rest. */
static void split_pads(struct window *w, struct window *crop)
{
    for (int i = 0; i < w->n; i++) {
        const int64_t both = CVY_MIN(w->before[i], w->after[i]);
        crop->before[i] = w->before[i] - both;
        crop->after[i] = w->after[i] - both;
        w->before[i] = w->after[i] = both;
    }
    crop->n = w->n;
}

static cvy_status crop_after(const cvy_onnx_node *node, const struct window *crop, const char *from)
{
    cvy_text options = {0};
    if (is_symmetric(crop))
        return CVY_OK;
    cvy_onnx_list(&options, "before", crop->before, crop->n);
    cvy_onnx_list(&options, "after", crop->after, crop->n);
    cvy_status status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_step(node, "crop", options.data, from, &from);
    cvy_text_free(&options);
    return status == CVY_OK ? cvy_onnx_done(node, 0, from) : status;
}

static cvy_status translate_deconv(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *weight = NULL, *bias = NULL;
    struct window w = {0}, crop = {0};
    int64_t extra[SPACE];
    const char *output = NULL;
    cvy_text options = {0};
    CVY_TRY(read_weights(node, &src, &weight, &bias));
    CVY_TRY(read_window(node, src, weight->shape.dim + 2, &w));
    CVY_TRY(take(node, "output_padding", 0, w.n, extra));
    CVY_TRY(pads_of_result(node, &src->shape, extra, &w));
    split_pads(&w, &crop);
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
    const cvy_status status = add_conv(node, "deconv", &options, src->layer, weight, bias, &output);
    cvy_text_free(&options);
    return status == CVY_OK ? crop_after(node, &crop, output) : status;
}
CVY_ONNX_DEFINE(conv_transpose) = {
    "ConvTranspose", .attributes = "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
    .translate = translate_deconv};

/* ---- pooling ---- */

/* The pads of a Pad before it (onnx_pad.c). */
static cvy_status take_pads(const cvy_onnx_node *node, const cvy_onnx_value *src, struct window *w)
{
    const cvy_onnx_pads *p = src->pads;
    const char *mode = NULL;
    if (!p)
        return CVY_OK;
    CVY_TRY(cvy_onnx_string(node, "auto_pad", &mode));
    CVY_ONNX_CHECK(!cvy_onnx_int(node, "ceil_mode", 0), node, "%s",
                   "ceil_mode after a Pad with numbers that never are a maximum is not supported");
    CVY_ONNX_CHECK(p->before[1] == 0 && p->after[1] == 0, node,
                   "%lld and %lld padded channels, whose maxima are not finite, are not supported",
                   (long long)p->before[1], (long long)p->after[1]);
    for (int i = 0; i < w->n; i++) {
        w->before[i] += p->before[2 + i];
        w->after[i] += p->after[2 + i];
        CVY_ONNX_CHECK(w->before[i] >= 0 && w->after[i] >= 0 && strncmp(mode, "SAME", 4) != 0, node, "%s",
                       "negative pads, or auto_pad, after a Pad with numbers that are not finite are not supported");
    }
    return CVY_OK;
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
        CVY_ONNX_CHECK(is_max || w.dilation[i] == 1, node,
                       "dilations %lld; a mean over a dilated window is not supported", (long long)w.dilation[i]);
    CVY_TRY(take_pads(node, src, &w));
    CVY_ONNX_CHECK(!is_max || !cvy_onnx_is_read(node, 1), node, "%s", "the indices of the maxima are not supported");
    add_window(&options, &w, is_max);
    if (!is_symmetric(&w))
        cvy_onnx_list(&options, "pad_end", w.after, w.n);
    if (cvy_onnx_int(node, "ceil_mode", 0))
        cvy_text_add(&options, ", ceil: true");
    if (!is_max && !cvy_onnx_int(node, "count_include_pad", 0))
        cvy_text_add(&options, ", count_include_pad: false");
    cvy_status status = options.status;
    if (status == CVY_OK)
        status = cvy_onnx_step(node, op, options.data, src->layer, &output);
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

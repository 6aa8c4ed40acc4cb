/*
 * onnx_write_conv.c: convolutions, pooling, fully connected layers and products of matrices, as ONNX nodes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx_write.h"
#include "op/conv/op_conv.h"
#include "op/conv/op_fc.h"
#include "op/conv/op_pool.h"
#include "op/tensor/op_embedding.h"
#include "op/tensor/op_matmul.h"

/* ---- windows ---- */

/* ONNX has the pads of all low ends, then those of all high ends. */
static cvy_status set_pads(cvy_onnx_writer *w, const int64_t *pad, const int64_t *pad_end, int n)
{
    int64_t both[2 * CVY_SPACE_MAX];
    for (int i = 0; i < n; i++) {
        both[i] = pad[i];
        both[n + i] = pad_end[i];
    }
    return cvy_onnxw_set_ints(w, "pads", both, 2 * n);
}

static cvy_status set_window(cvy_onnx_writer *w, const cvy_window *window)
{
    CVY_TRY(cvy_onnxw_set_ints(w, "kernel_shape", window->kernel, window->nspace));
    CVY_TRY(cvy_onnxw_set_ints(w, "strides", window->stride, window->nspace));
    return set_pads(w, window->pad, window->pad_end, window->nspace);
}

static cvy_status add_weighted(cvy_onnx_writer *w, const cvy_node *node, const char *op, const char *src, int bias)
{
    const char *weight = NULL, *b = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 1, &weight));
    if (bias)
        CVY_TRY(cvy_onnxw_src(w, node, 2, &b));
    return CVY_ONNXW_NODE(w, op, cvy_onnxw_dst(w, node), src, weight, b);
}

static cvy_status add_conv(cvy_onnx_writer *w, const cvy_node *node, const char *op, const cvy_window *window,
                           int64_t groups, int bias)
{
    const char *src = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(add_weighted(w, node, op, src, bias));
    CVY_TRY(set_window(w, window));
    CVY_TRY(cvy_onnxw_set_ints(w, "dilations", window->dilation, window->nspace));
    return cvy_onnxw_set_int(w, "group", groups);
}

static cvy_status write_conv(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_conv_opts *o = node->options;
    cvy_window window;
    cvy_window_channels channels;
    CVY_TRY(cvy_conv_window(o, &node->src[0]->shape, &window, &channels));
    return add_conv(w, node, "Conv", &window, o->groups, o->bias);
}
CVY_ONNXOP_DEFINE(conv) = {"conv", .write = write_conv};

static cvy_status write_deconv(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_deconv_opts *o = node->options;
    cvy_window window;
    cvy_window_channels channels;
    int64_t extra[CVY_SPACE_MAX];
    CVY_TRY(cvy_deconv_window(o, &node->src[0]->shape, &window, &channels));
    for (int i = 0; i < window.nspace; i++)
        extra[i] = cvy_ints_at(&o->output_pad, i, 0);
    CVY_TRY(add_conv(w, node, "ConvTranspose", &window, o->groups, o->bias));
    return cvy_onnxw_set_ints(w, "output_padding", extra, window.nspace);
}
CVY_ONNXOP_DEFINE(deconv) = {"deconv", .write = write_deconv};

static cvy_span plain_span(const cvy_shape *shape, double *data)
{
    cvy_span s = {.dtype = CVY_DTYPE_F64, .ndim = shape->ndim, .elems = cvy_shape_elems(shape), .data = data};
    memcpy(s.dim, shape->dim, sizeof s.dim);
    return s;
}

/* The weight to use is a constant of the file: what the operator makes of the variables. */
static cvy_status write_spectral_norm(cvy_onnx_writer *w, const cvy_node *node)
{
    cvy_span src[CVY_NODE_SRC_MAX], dst[2];
    for (int i = 0; i < node->nsrc; i++) {
        double *values = NULL;
        CVY_TRY(cvy_onnxw_values(w, node, i, &values));
        src[i] = plain_span(&node->src[i]->shape, values);
    }
    for (int i = 0; i < node->ndst; i++) {
        double *values = NULL;
        const int64_t n = cvy_shape_elems(&node->dst[i]->shape);
        CVY_TRY(cvy_pool_alloc(w->pool, sizeof *values * (size_t)n, &values));
        dst[i] = plain_span(&node->dst[i]->shape, values);
    }
    CVY_TRY(node->op->reference(node, src, dst));
    return cvy_onnxw_reals(w, "weight", &node->dst[0]->shape, dst[0].data, &w->name[node->dst[0]->index]);
}
CVY_ONNXOP_DEFINE(spectral_norm) = {"spectral_norm", .write = write_spectral_norm};

/* ---- pooling ---- */

/* Whether the last window goes past the padding, which is what ceil_mode is for. If `ceil` changes nothing, it is left
 * out: programs differ in how they read it. */
static int overhangs(const cvy_window *w)
{
    int any = 0;
    for (int i = 0; i < w->nspace; i++)
        any |= (w->dst[i] - 1) * w->stride[i] + w->dilation[i] * (w->kernel[i] - 1) >=
               w->src[i] + w->pad[i] + w->pad_end[i];
    return any;
}

static int is_padded(const cvy_window *w)
{
    int any = 0;
    for (int i = 0; i < w->nspace; i++)
        any |= w->pad[i] > 0 || w->pad_end[i] > 0;
    return any;
}

static cvy_status pool(cvy_onnx_writer *w, const char *op, const char *src, const char *dst, const cvy_window *window)
{
    CVY_TRY(CVY_ONNXW_NODE(w, op, dst, src));
    CVY_TRY(set_window(w, window));
    return overhangs(window) ? cvy_onnxw_set_int(w, "ceil_mode", 1) : CVY_OK;
}

static cvy_status write_max_pool(cvy_onnx_writer *w, const cvy_node *node)
{
    const char *src = NULL;
    cvy_window window;
    CVY_TRY(cvy_pool_window("max_pool", node->options, &node->src[0]->shape, &window));
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(pool(w, "MaxPool", src, cvy_onnxw_dst(w, node), &window));
    for (int i = 0; i < window.nspace; i++)
        if (window.dilation[i] > 1)
            return cvy_onnxw_set_ints(w, "dilations", window.dilation, window.nspace);
    return CVY_OK;
}
CVY_ONNXOP_DEFINE(max_pool) = {"max_pool", .write = write_max_pool};

/* A Pad of zeros in place of the window's own padding. */
static cvy_status pad_first(cvy_onnx_writer *w, int ndim, cvy_window *window, const char **src)
{
    const char *list = NULL, *padded = NULL;
    int64_t pads[2 * CVY_NDIM_MAX] = {0};
    for (int i = 0; i < window->nspace; i++) {
        pads[2 + i] = window->pad[i];
        pads[ndim + 2 + i] = window->pad_end[i];
    }
    CVY_TRY(cvy_onnxw_ints(w, "pads", pads, 2 * ndim, &list));
    CVY_TRY(cvy_onnxw_name(w, "padded", &padded));
    CVY_TRY(CVY_ONNXW_NODE(w, "Pad", padded, *src, list));
    memset(window->pad, 0, sizeof window->pad);
    memset(window->pad_end, 0, sizeof window->pad_end);
    *src = padded;
    return CVY_OK;
}

/* Padding counts if the option says so, but what is past it never does. */
static cvy_status write_avg_pool(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_pool_opts *o = node->options;
    const char *src = NULL;
    cvy_window window;
    CVY_TRY(cvy_pool_window("avg_pool", o, &node->src[0]->shape, &window));
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    const int is_past = overhangs(&window), counts = o->count_include_pad && is_padded(&window);
    if (is_past && counts)
        CVY_TRY(pad_first(w, node->src[0]->shape.ndim, &window, &src));
    CVY_TRY(pool(w, "AveragePool", src, cvy_onnxw_dst(w, node), &window));
    return cvy_onnxw_set_int(w, "count_include_pad", o->count_include_pad && !is_past);
}
CVY_ONNXOP_DEFINE(avg_pool) = {"avg_pool", .write = write_avg_pool};

/* ONNX keeps positions of length 1. */
static cvy_status global_pool(cvy_onnx_writer *w, const cvy_node *node, const char *op)
{
    const char *src = NULL, *pooled = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_name(w, "pooled", &pooled));
    CVY_TRY(CVY_ONNXW_NODE(w, op, pooled, src));
    CVY_TRY(CVY_ONNXW_NODE(w, "Flatten", cvy_onnxw_dst(w, node), pooled));
    return cvy_onnxw_set_int(w, "axis", 1);
}

static cvy_status write_global_avg_pool(cvy_onnx_writer *w, const cvy_node *node)
{
    return global_pool(w, node, "GlobalAveragePool");
}
CVY_ONNXOP_DEFINE(global_avg_pool) = {"global_avg_pool", .write = write_global_avg_pool};

static cvy_status write_global_max_pool(cvy_onnx_writer *w, const cvy_node *node)
{
    return global_pool(w, node, "GlobalMaxPool");
}
CVY_ONNXOP_DEFINE(global_max_pool) = {"global_max_pool", .write = write_global_max_pool};

/* ---- matrices ---- */

/* On the last axis: a product with the turned weight. */
static cvy_status write_fc_of_rows(cvy_onnx_writer *w, const cvy_node *node)
{
    static const int64_t turned[] = {1, 0};
    const char *src = NULL, *weight = NULL, *bias = NULL, *matrix = NULL, *product = cvy_onnxw_dst(w, node);
    const int has_bias = ((const cvy_fc_opts *)node->options)->bias;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_src(w, node, 1, &weight));
    CVY_TRY(cvy_onnxw_name(w, "matrix", &matrix));
    CVY_TRY(CVY_ONNXW_NODE(w, "Transpose", matrix, weight));
    CVY_TRY(cvy_onnxw_set_ints(w, "perm", turned, 2));
    if (has_bias)
        CVY_TRY(cvy_onnxw_name(w, "product", &product));
    CVY_TRY(CVY_ONNXW_NODE(w, "MatMul", product, src, matrix));
    if (!has_bias)
        return CVY_OK;
    CVY_TRY(cvy_onnxw_src(w, node, 2, &bias));
    return CVY_ONNXW_NODE(w, "Add", cvy_onnxw_dst(w, node), product, bias);
}

static cvy_status write_fc(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_fc_opts *o = node->options;
    const char *src = NULL, *flat = NULL;
    if (node->dst[0]->shape.ndim != 2)
        return write_fc_of_rows(w, node);
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    if (node->src[0]->shape.ndim != 2) {
        CVY_TRY(cvy_onnxw_name(w, "flat", &flat));
        CVY_TRY(CVY_ONNXW_NODE(w, "Flatten", flat, src));
        CVY_TRY(cvy_onnxw_set_int(w, "axis", 1));
        src = flat;
    }
    CVY_TRY(add_weighted(w, node, "Gemm", src, o->bias));
    return cvy_onnxw_set_int(w, "transB", 1);
}
CVY_ONNXOP_DEFINE(fc) = {"fc", .write = write_fc};

static cvy_status turn(cvy_onnx_writer *w, const cvy_node *node, int i, const char *what, const char **out)
{
    const char *src = *out;
    int64_t order[CVY_NDIM_MAX];
    const int ndim = node->src[i]->shape.ndim;
    for (int d = 0; d < ndim; d++)
        order[d] = d < ndim - 2 ? d : 2 * ndim - 3 - d;
    CVY_TRY(cvy_onnxw_name(w, what, out));
    CVY_TRY(CVY_ONNXW_NODE(w, "Transpose", *out, src));
    return cvy_onnxw_set_ints(w, "perm", order, ndim);
}

static cvy_status write_matmul(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_matmul_opts *o = node->options;
    const char *a = NULL, *b = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &a));
    CVY_TRY(cvy_onnxw_src(w, node, 1, &b));
    if (o->transpose_a)
        CVY_TRY(turn(w, node, 0, "a", &a));
    if (o->transpose_b)
        CVY_TRY(turn(w, node, 1, "b", &b));
    return CVY_ONNXW_NODE(w, "MatMul", cvy_onnxw_dst(w, node), a, b);
}
CVY_ONNXOP_DEFINE(matmul) = {"matmul", .write = write_matmul};

static cvy_status write_embedding(cvy_onnx_writer *w, const cvy_node *node)
{
    const char *src = NULL, *weight = NULL, *index = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_src(w, node, 1, &weight));
    CVY_TRY(cvy_onnxw_name(w, "index", &index));
    CVY_TRY(CVY_ONNXW_NODE(w, "Cast", index, src));
    CVY_TRY(cvy_onnxw_set_int(w, "to", CVY_ONNX_INT64));
    return CVY_ONNXW_NODE(w, "Gather", cvy_onnxw_dst(w, node), weight, index);
}
CVY_ONNXOP_DEFINE(embedding) = {"embedding", .write = write_embedding};

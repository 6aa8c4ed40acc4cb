/*
 * cudnn_graph.c: descriptors of cuDNN, and the operation graph of a convolution.
 *
 * Sources: NVIDIA, cuDNN 9 documentation, "Graph API" and "Backend Descriptor Types".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/cudnn/cudnn_graph.h"

#include <stdbool.h>

enum { ALIGNMENT = 16 }; /* of tensors; the library aligns them to 64 bytes */

static void fail(cvy_cudnn_maker *m, const char *call, cvy_cudnn_result result)
{
    char text[300] = "";
    m->device->api->cudnnGetLastErrorString(text, sizeof text);
    m->status = cvy_error_set(CVY_NOT_APPLICABLE, "cuDNN refuses this problem: %s gives %s%s%s", call,
                              m->device->api->cudnnGetErrorString(result), text[0] ? ": " : "", text);
}

cvy_cudnn_descriptor cvy_cudnn_make(cvy_cudnn_maker *m, cvy_cudnn_kind kind)
{
    cvy_cudnn_descriptor d = NULL;
    if (m->status != CVY_OK)
        return NULL;
    if (m->n == CVY_COUNT(m->made)) {
        m->status = cvy_error_set(CVY_E_INTERNAL, "more than %d descriptors of cuDNN", m->n);
        return NULL;
    }
    const cvy_cudnn_result result = m->device->api->cudnnBackendCreateDescriptor(kind, &d);
    if (result == 0)
        m->made[m->n++] = d;
    else
        fail(m, "cudnnBackendCreateDescriptor", result);
    return d;
}

void cvy_cudnn_set(cvy_cudnn_maker *m, cvy_cudnn_descriptor d, cvy_cudnn_name name, cvy_cudnn_type type, int64_t n,
                   const void *values)
{
    if (m->status != CVY_OK)
        return;
    const cvy_cudnn_result result = m->device->api->cudnnBackendSetAttribute(d, name, type, n, values);
    if (result != 0)
        fail(m, "cudnnBackendSetAttribute", result);
}

void cvy_cudnn_set_descriptor(cvy_cudnn_maker *m, cvy_cudnn_descriptor d, cvy_cudnn_name name,
                              cvy_cudnn_descriptor value)
{
    cvy_cudnn_set(m, d, name, CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void cvy_cudnn_finish(cvy_cudnn_maker *m, cvy_cudnn_descriptor d)
{
    if (m->status != CVY_OK)
        return;
    const cvy_cudnn_result result = m->device->api->cudnnBackendFinalize(d);
    if (result != 0)
        fail(m, "cudnnBackendFinalize", result);
}

void cvy_cudnn_maker_end(cvy_cudnn_maker *m)
{
    while (m->n > 0)
        (void)m->device->api->cudnnBackendDestroyDescriptor(m->made[--m->n]);
}

/* ---- the graph ---- */

static int number_of(cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_BF16 ? CVY_CUDNN_DATA_BFLOAT16 : CVY_CUDNN_DATA_FLOAT;
}

static cvy_cudnn_descriptor tensor(cvy_cudnn_maker *m, const cvy_cudnn_tensor *t, int ndim, int64_t id, int is_virtual)
{
    const int64_t align = ALIGNMENT;
    const int dtype = number_of(t->dtype);
    const bool hidden = is_virtual != 0;
    cvy_cudnn_descriptor d = cvy_cudnn_make(m, CVY_CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_TENSOR_UNIQUE_ID, CVY_CUDNN_TYPE_INT64, 1, &id);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_TENSOR_DATA_TYPE, CVY_CUDNN_TYPE_DATA_TYPE, 1, &dtype);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_TENSOR_DIMENSIONS, CVY_CUDNN_TYPE_INT64, ndim, t->dim);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_TENSOR_STRIDES, CVY_CUDNN_TYPE_INT64, ndim, t->stride);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CVY_CUDNN_TYPE_INT64, 1, &align);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_TENSOR_IS_VIRTUAL, CVY_CUDNN_TYPE_BOOLEAN, 1, &hidden);
    cvy_cudnn_finish(m, d);
    return d;
}

static cvy_cudnn_descriptor window(cvy_cudnn_maker *m, const cvy_cudnn_problem *p)
{
    const int64_t n = p->nspace;
    const int f32 = CVY_CUDNN_DATA_FLOAT, mode = CVY_CUDNN_CROSS_CORRELATION;
    cvy_cudnn_descriptor d = cvy_cudnn_make(m, CVY_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CVY_CUDNN_TYPE_INT64, 1, &n);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CVY_CUDNN_TYPE_DATA_TYPE, 1, &f32);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_CONVOLUTION_CONV_MODE, CVY_CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CVY_CUDNN_TYPE_INT64, n, p->pad);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CVY_CUDNN_TYPE_INT64, n, p->pad);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CVY_CUDNN_TYPE_INT64, n, p->stride);
    cvy_cudnn_set(m, d, CVY_CUDNN_ATTR_CONVOLUTION_DILATIONS, CVY_CUDNN_TYPE_INT64, n, p->dilation);
    cvy_cudnn_finish(m, d);
    return d;
}

/* The names of an operation's attributes. */
struct operation {
    cvy_cudnn_kind kind;
    cvy_cudnn_name src, weight, dst, window, alpha, beta;
};

static const struct operation operations[] = {
    [CVY_LAYER_FORWARD] = {CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                           CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                           CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                           CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                           CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CVY_LAYER_GRAD_SRC] = {CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                            CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                            CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                            CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                            CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                            CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                            CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CVY_LAYER_GRAD_WEIGHT] = {CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                               CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                               CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                               CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                               CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                               CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                               CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cvy_cudnn_descriptor convolution(cvy_cudnn_maker *m, const cvy_cudnn_problem *p, cvy_cudnn_descriptor src,
                                        cvy_cudnn_descriptor weight, cvy_cudnn_descriptor dst)
{
    const struct operation *o = &operations[p->pass];
    const float alpha = 1, beta = p->sum ? 1 : 0;
    cvy_cudnn_descriptor slide = window(m, p), d = cvy_cudnn_make(m, o->kind);
    cvy_cudnn_set_descriptor(m, d, o->src, src);
    cvy_cudnn_set_descriptor(m, d, o->weight, weight);
    cvy_cudnn_set_descriptor(m, d, o->dst, dst);
    cvy_cudnn_set_descriptor(m, d, o->window, slide);
    cvy_cudnn_set(m, d, o->alpha, CVY_CUDNN_TYPE_FLOAT, 1, &alpha);
    cvy_cudnn_set(m, d, o->beta, CVY_CUDNN_TYPE_FLOAT, 1, &beta);
    cvy_cudnn_finish(m, d);
    return d;
}

/* y = mode(x), or x + b. */
static cvy_cudnn_descriptor pointwise(cvy_cudnn_maker *m, int mode, cvy_cudnn_descriptor x, cvy_cudnn_descriptor b,
                                      cvy_cudnn_descriptor y)
{
    const int f32 = CVY_CUDNN_DATA_FLOAT;
    cvy_cudnn_descriptor what = cvy_cudnn_make(m, CVY_CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cvy_cudnn_set(m, what, CVY_CUDNN_ATTR_POINTWISE_MODE, CVY_CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    cvy_cudnn_set(m, what, CVY_CUDNN_ATTR_POINTWISE_MATH_PREC, CVY_CUDNN_TYPE_DATA_TYPE, 1, &f32);
    cvy_cudnn_finish(m, what);
    cvy_cudnn_descriptor d = cvy_cudnn_make(m, CVY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    cvy_cudnn_set_descriptor(m, d, CVY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    cvy_cudnn_set_descriptor(m, d, CVY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        cvy_cudnn_set_descriptor(m, d, CVY_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    cvy_cudnn_set_descriptor(m, d, CVY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    cvy_cudnn_finish(m, d);
    return d;
}

/* The operations of one problem. */
struct chain {
    cvy_cudnn_descriptor op[3];
    int64_t n;
};

/* No engine writes a gradient of weights in f32 from bf16, but one follows it with the identity into f32. */
static void widened(cvy_cudnn_maker *m, const cvy_cudnn_problem *p, cvy_cudnn_descriptor src,
                    cvy_cudnn_descriptor weight, cvy_cudnn_descriptor dst, struct chain *c)
{
    cvy_cudnn_descriptor product = tensor(m, &p->weight, 2 + p->nspace, CVY_CUDNN_ID_PRODUCT, 1);
    c->op[c->n++] = convolution(m, p, src, product, dst);
    c->op[c->n++] = pointwise(m, CVY_CUDNN_POINTWISE_IDENTITY, product, NULL, weight);
}

static void with_ending(cvy_cudnn_maker *m, const cvy_cudnn_problem *p, cvy_cudnn_descriptor src,
                        cvy_cudnn_descriptor weight, cvy_cudnn_descriptor dst, struct chain *c)
{
    const int ndim = 2 + p->nspace;
    cvy_cudnn_tensor wide = p->dst, bias = {.dtype = CVY_DTYPE_F32};
    wide.dtype = CVY_DTYPE_F32;
    for (int d = 0; d < ndim; d++) {
        bias.dim[d] = d == 1 ? p->dst.dim[1] : 1;
        bias.stride[d] = d == 1 ? 1 : p->dst.dim[1];
    }
    cvy_cudnn_descriptor value = tensor(m, &wide, ndim, CVY_CUDNN_ID_PRODUCT, 1);
    c->op[c->n++] = convolution(m, p, src, weight, value);
    if (p->bias) {
        cvy_cudnn_descriptor sum = p->relu ? tensor(m, &wide, ndim, CVY_CUDNN_ID_BIASED, 1) : dst;
        c->op[c->n++] = pointwise(m, CVY_CUDNN_POINTWISE_ADD, value, tensor(m, &bias, ndim, CVY_CUDNN_ID_BIAS, 0), sum);
        value = sum;
    }
    if (p->relu)
        c->op[c->n++] = pointwise(m, CVY_CUDNN_POINTWISE_RELU_FWD, value, NULL, dst);
}

cvy_status cvy_cudnn_graph_make(cvy_cudnn_maker *m, const cvy_cudnn_problem *p, cvy_cudnn_descriptor *out)
{
    const int ndim = 2 + p->nspace;
    cvy_cudnn_descriptor src = tensor(m, &p->src, ndim, CVY_CUDNN_ID_SRC, 0),
                         dst = tensor(m, &p->dst, ndim, CVY_CUDNN_ID_DST, 0),
                         weight = tensor(m, &p->weight, ndim, CVY_CUDNN_ID_WEIGHT, 0);
    struct chain c = {.n = 0};
    if (p->widen)
        widened(m, p, src, weight, dst, &c);
    else if (p->bias || p->relu)
        with_ending(m, p, src, weight, dst, &c);
    else
        c.op[c.n++] = convolution(m, p, src, weight, dst);
    cvy_cudnn_descriptor g = cvy_cudnn_make(m, CVY_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cvy_cudnn_set(m, g, CVY_CUDNN_ATTR_OPERATIONGRAPH_OPS, CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR, c.n, c.op);
    if (m->device->handle)
        cvy_cudnn_set(m, g, CVY_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CVY_CUDNN_TYPE_HANDLE, 1, &m->device->handle);
    cvy_cudnn_finish(m, g);
    *out = g;
    return m->status;
}

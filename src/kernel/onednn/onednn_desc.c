/*
 * onednn_desc.c: makes oneDNN's descriptors of a problem, and finds the name of a layout that oneDNN chose.
 *
 * It is used at planning time only. Version 2 has operation descriptors and public fields in memory descriptors;
 * version 3 has neither. Only this file deals with both differences.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/onednn/onednn_desc.h"

#include <stdio.h>
#include <string.h>

/* A memory descriptor that we own. */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t md_handle;
#else
typedef dnnl_memory_desc_t *md_handle;
#endif

cvy_status cvy_onednn_answer(dnnl_status_t status, const char *what)
{
    switch (status) {
    case dnnl_success: return CVY_OK;
    case dnnl_unimplemented: return cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN has no implementation for %s", what);
    case dnnl_out_of_memory: return cvy_error_set(CVY_E_MEMORY, "oneDNN: out of memory in %s", what);
    default: return cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN returned '%s' for %s", dnnl_status2str(status), what);
    }
}

/* ---- memory descriptors ---- */

static cvy_status dtype_of(cvy_dtype dtype, dnnl_data_type_t *out)
{
    switch (dtype) {
    case CVY_DTYPE_F32: *out = dnnl_f32; return CVY_OK;
    case CVY_DTYPE_BF16: *out = dnnl_bf16; return CVY_OK;
    case CVY_DTYPE_I32: *out = dnnl_s32; return CVY_OK;
    case CVY_DTYPE_U8: *out = dnnl_u8; return CVY_OK;
    default: return cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN has no dtype %s", cvy_dtype_text(dtype));
    }
}

/* oneDNN can print every tag that it knows, so its own list serves as the table. Plain layouts come first, because they
 * are the most frequent. */
static cvy_status tag_of(const cvy_layout *layout, int ndim, dnnl_format_tag_t *out)
{
    static const dnnl_format_tag_t plain[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    if (cvy_layout_is_plain(layout)) {
        *out = plain[ndim];
        return CVY_OK;
    }
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; tag++) {
        if (strcmp(dnnl_fmt_tag2str((dnnl_format_tag_t)tag), layout->tag) == 0) {
            *out = (dnnl_format_tag_t)tag;
            return CVY_OK;
        }
    }
    CVY_FAIL(CVY_NOT_APPLICABLE, "oneDNN has no layout %s", layout->tag);
}

static cvy_status md_create(int ndim, const int64_t *dim, dnnl_data_type_t dtype, dnnl_format_tag_t tag, md_handle *out)
{
    dnnl_dims_t dims = {0};
    for (int i = 0; i < ndim; i++)
        dims[i] = dim[i];
#if DNNL_VERSION_MAJOR >= 3
    return cvy_onednn_answer(dnnl_memory_desc_create_with_tag(out, ndim, dims, dtype, tag), "a memory descriptor");
#else
    md_handle md = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *md, &md));
    const cvy_status status =
        cvy_onednn_answer(dnnl_memory_desc_init_by_tag(md, ndim, dims, dtype, tag), "a memory descriptor");
    if (status != CVY_OK)
        cvy_mem_free(&md);
    *out = md;
    return status;
#endif
}

static void md_free(md_handle *md)
{
#if DNNL_VERSION_MAJOR >= 3
    if (*md)
        dnnl_memory_desc_destroy(*md);
    *md = NULL;
#else
    cvy_mem_free(md);
#endif
}

/* ---- names of layouts ---- */

static const dnnl_dim_t *md_strides(cvy_onednn_md md)
{
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_dims_t *strides = NULL;
    return dnnl_memory_desc_query(md, dnnl_query_strides, &strides) == dnnl_success ? *strides : NULL;
#else
    return md->format_desc.blocking.strides;
#endif
}

/* Compares a descriptor with a tag. Layouts that differ only in the stride of a dimension of size 1 are the same
 * memory, but oneDNN may choose another implementation for them. `to_the_stride` compares these strides too. */
static int same_layout(cvy_onednn_md md, int ndim, const int64_t *dim, dnnl_data_type_t dtype, dnnl_format_tag_t tag,
                       int to_the_stride)
{
    md_handle candidate = NULL;
    if (md_create(ndim, dim, dtype, tag, &candidate) != CVY_OK)
        return 0;
    int same = dnnl_memory_desc_equal(md, candidate);
    for (int d = 0; d < ndim && same && to_the_stride; d++)
        same = md_strides(md)[d] == md_strides(candidate)[d];
    md_free(&candidate);
    return same;
}

static int tag_ndim(const char *tag)
{
    int n = 0;
    while ((tag[n] >= 'a' && tag[n] <= 'f') || (tag[n] >= 'A' && tag[n] <= 'F'))
        n++;
    return n;
}

static int find_layout(cvy_onednn_md md, int ndim, const int64_t *dim, dnnl_data_type_t dtype, int to_the_stride,
                       cvy_layout *out)
{
    static const char *const common[] = {"", "aBcd16b", "acdb", "aBcd8b", "aBc16b", "aBcde16b"};
    for (int i = 0; i < CVY_COUNT(common); i++) {
        const cvy_layout layout = cvy_layout_make(common[i]);
        dnnl_format_tag_t tag = dnnl_format_tag_undef;
        if ((i == 0 || tag_ndim(common[i]) == ndim) && tag_of(&layout, ndim, &tag) == CVY_OK &&
            same_layout(md, ndim, dim, dtype, tag, to_the_stride)) {
            *out = layout;
            return 1;
        }
    }
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; tag++) {
        const char *text = dnnl_fmt_tag2str((dnnl_format_tag_t)tag);
        if (tag_ndim(text) == ndim && strlen(text) < sizeof out->tag &&
            same_layout(md, ndim, dim, dtype, (dnnl_format_tag_t)tag, to_the_stride)) {
            *out = cvy_layout_make(text);
            return 1;
        }
    }
    return 0;
}

int cvy_onednn_md_layout(cvy_onednn_md md, int ndim, const int64_t *dim, cvy_dtype dtype, cvy_layout *out)
{
    dnnl_data_type_t type = dnnl_f32;
    return dtype_of(dtype, &type) == CVY_OK &&
           (find_layout(md, ndim, dim, type, 1, out) || find_layout(md, ndim, dim, type, 0, out));
}

/* ---- operations ---- */

struct operation {
    dnnl_alg_kind_t alg;
    md_handle md[CVY_ONEDNN_ROLES];
    dnnl_dims_t stride, dilation, pad_begin, pad_end;
};

static cvy_status make_operation(const cvy_onednn_problem *p, struct operation *op)
{
    memset(op, 0, sizeof *op);
    op->alg = p->family == CVY_ONEDNN_DECONV ? dnnl_deconvolution_direct
              : p->winograd                  ? dnnl_convolution_winograd
                                             : dnnl_convolution_direct;
    for (int i = 0; i < 3; i++) {
        op->stride[i] = p->stride[i];
        op->dilation[i] = p->dilation[i] - 1;
        op->pad_begin[i] = p->pad_begin[i];
        op->pad_end[i] = p->pad_end[i];
    }
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++) {
        const cvy_onednn_tensor *t = &p->tensor[i];
        if (t->ndim == 0)
            continue;
        dnnl_format_tag_t tag = dnnl_format_tag_any;
        dnnl_data_type_t dtype = dnnl_data_type_undef;
        CVY_TRY(dtype_of(t->dtype, &dtype));
        if (!t->any)
            CVY_TRY(tag_of(&t->layout, t->ndim, &tag));
        CVY_TRY(md_create(t->ndim, t->dim, dtype, tag, &op->md[i]));
    }
    return CVY_OK;
}

static void free_operation(struct operation *op)
{
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++)
        md_free(&op->md[i]);
}

#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t operation_desc(const cvy_onednn_problem *p, cvy_layer_pass pass, const struct operation *o,
                                    dnnl_engine_t engine, const_dnnl_primitive_desc_t hint,
                                    const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    cvy_onednn_md src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
                  dst = o->md[CVY_ONEDNN_DST];
    const dnnl_prop_kind_t training = dnnl_forward_training;
    switch (p->family * 3 + (int)pass) {
    case CVY_ONEDNN_CONV * 3 + CVY_LAYER_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(out, engine, training, o->alg, src, weight, bias, dst,
                                                              o->stride, o->dilation, o->pad_begin, o->pad_end, attr);
    case CVY_ONEDNN_CONV * 3 + CVY_LAYER_GRAD_SRC:
        return dnnl_convolution_backward_data_primitive_desc_create(out, engine, o->alg, src, weight, dst, o->stride,
                                                                    o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_CONV * 3 + CVY_LAYER_GRAD_WEIGHT:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, o->alg, src, weight, bias, dst, o->stride, o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_DECONV * 3 + CVY_LAYER_FORWARD:
        return dnnl_deconvolution_forward_primitive_desc_create(out, engine, training, o->alg, src, weight, bias, dst,
                                                                o->stride, o->dilation, o->pad_begin, o->pad_end, attr);
    case CVY_ONEDNN_DECONV * 3 + CVY_LAYER_GRAD_SRC:
        return dnnl_deconvolution_backward_data_primitive_desc_create(
            out, engine, o->alg, src, weight, dst, o->stride, o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_DECONV * 3 + CVY_LAYER_GRAD_WEIGHT:
        return dnnl_deconvolution_backward_weights_primitive_desc_create(
            out, engine, o->alg, src, weight, bias, dst, o->stride, o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_FC * 3 + CVY_LAYER_FORWARD:
        return dnnl_inner_product_forward_primitive_desc_create(out, engine, training, src, weight, bias, dst, attr);
    case CVY_ONEDNN_FC * 3 + CVY_LAYER_GRAD_SRC:
        return dnnl_inner_product_backward_data_primitive_desc_create(out, engine, src, weight, dst, hint, attr);
    case CVY_ONEDNN_FC * 3 + CVY_LAYER_GRAD_WEIGHT:
        return dnnl_inner_product_backward_weights_primitive_desc_create(out, engine, src, weight, bias, dst, hint,
                                                                         attr);
    default: return dnnl_reorder_primitive_desc_create(out, src, engine, dst, engine, attr);
    }
}

#else

static dnnl_status_t conv_desc(cvy_layer_pass pass, const struct operation *o, dnnl_convolution_desc_t *d)
{
    cvy_onednn_md src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
                  dst = o->md[CVY_ONEDNN_DST];
    switch (pass) {
    case CVY_LAYER_FORWARD:
        return dnnl_dilated_convolution_forward_desc_init(d, dnnl_forward_training, o->alg, src, weight, bias, dst,
                                                          o->stride, o->dilation, o->pad_begin, o->pad_end);
    case CVY_LAYER_GRAD_SRC:
        return dnnl_dilated_convolution_backward_data_desc_init(d, o->alg, src, weight, dst, o->stride, o->dilation,
                                                                o->pad_begin, o->pad_end);
    default:
        return dnnl_dilated_convolution_backward_weights_desc_init(d, o->alg, src, weight, bias, dst, o->stride,
                                                                   o->dilation, o->pad_begin, o->pad_end);
    }
}

static dnnl_status_t deconv_desc(cvy_layer_pass pass, const struct operation *o, dnnl_deconvolution_desc_t *d)
{
    cvy_onednn_md src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
                  dst = o->md[CVY_ONEDNN_DST];
    switch (pass) {
    case CVY_LAYER_FORWARD:
        return dnnl_dilated_deconvolution_forward_desc_init(d, dnnl_forward_training, o->alg, src, weight, bias, dst,
                                                            o->stride, o->dilation, o->pad_begin, o->pad_end);
    case CVY_LAYER_GRAD_SRC:
        return dnnl_dilated_deconvolution_backward_data_desc_init(d, o->alg, src, weight, dst, o->stride, o->dilation,
                                                                  o->pad_begin, o->pad_end);
    default:
        return dnnl_dilated_deconvolution_backward_weights_desc_init(d, o->alg, src, weight, bias, dst, o->stride,
                                                                     o->dilation, o->pad_begin, o->pad_end);
    }
}

static dnnl_status_t fc_desc(cvy_layer_pass pass, const struct operation *o, dnnl_inner_product_desc_t *d)
{
    cvy_onednn_md src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
                  dst = o->md[CVY_ONEDNN_DST];
    switch (pass) {
    case CVY_LAYER_FORWARD:
        return dnnl_inner_product_forward_desc_init(d, dnnl_forward_training, src, weight, bias, dst);
    case CVY_LAYER_GRAD_SRC: return dnnl_inner_product_backward_data_desc_init(d, src, weight, dst);
    default: return dnnl_inner_product_backward_weights_desc_init(d, src, weight, bias, dst);
    }
}

static dnnl_status_t operation_desc(const cvy_onednn_problem *p, cvy_layer_pass pass, const struct operation *o,
                                    dnnl_engine_t engine, const_dnnl_primitive_desc_t hint,
                                    const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    union {
        dnnl_convolution_desc_t conv;
        dnnl_deconvolution_desc_t deconv;
        dnnl_inner_product_desc_t fc;
    } d;
    dnnl_status_t status;
    switch (p->family) {
    case CVY_ONEDNN_CONV: status = conv_desc(pass, o, &d.conv); break;
    case CVY_ONEDNN_DECONV: status = deconv_desc(pass, o, &d.deconv); break;
    case CVY_ONEDNN_FC: status = fc_desc(pass, o, &d.fc); break;
    default:
        return dnnl_reorder_primitive_desc_create(out, o->md[CVY_ONEDNN_SRC], engine, o->md[CVY_ONEDNN_DST], engine,
                                                  attr);
    }
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, hint) : status;
}

#endif

static dnnl_status_t append_relu(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
#endif
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f);
#endif
}

static cvy_status make_attr(const cvy_onednn_problem *p, dnnl_primitive_attr_t *out)
{
    cvy_status status = CVY_OK;
    dnnl_post_ops_t ops = NULL;
    TRY_DNNL(dnnl_primitive_attr_create(out), "attributes");
    /* All calls use one region of the arena as scratch memory. A reorder also runs outside of plans, and needs almost
     * none. */
    if (p->family != CVY_ONEDNN_REORDER)
        TRY_DNNL(dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user), "attributes");
    if (!(p->relu || p->sum) || p->pass != CVY_LAYER_FORWARD)
        return CVY_OK;
    TRY_DNNL(dnnl_post_ops_create(&ops), "a fused operation");
    if (p->sum)
        TRY_DNNL_OUT(append_sum(ops), "a fused sum");
    if (p->relu)
        TRY_DNNL_OUT(append_relu(ops), "a fused relu");
    TRY_DNNL_OUT(dnnl_primitive_attr_set_post_ops(*out, ops), "a fused operation");
out:
    dnnl_post_ops_destroy(ops);
    return status;
}

/* oneDNN makes a gradient's descriptor only with a forward descriptor as hint. Any one of the same shapes will do. */
static cvy_status forward_hint(const cvy_onednn_problem *p, dnnl_engine_t engine, dnnl_primitive_desc_t *out)
{
    cvy_status status = CVY_OK;
    struct operation op;
    cvy_onednn_problem forward = *p;
    forward.winograd = 0;
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++)
        forward.tensor[i].any = 1;
    /* Gradients of weights and biases are f32, whatever dtype the sources have. */
    forward.tensor[CVY_ONEDNN_WEIGHT].dtype = p->tensor[CVY_ONEDNN_SRC].dtype;
    CVY_TRY_OUT(make_operation(&forward, &op));
    TRY_DNNL_OUT(operation_desc(&forward, CVY_LAYER_FORWARD, &op, engine, NULL, NULL, out), "the forward pass");
out:
    free_operation(&op);
    return status;
}

const char *cvy_onednn_problem_text(const cvy_onednn_problem *p)
{
    static const char *const family[] = {"convolution", "deconvolution", "inner product", "reorder"};
    static const char *const gradient[] = {"", "gradient into the source of a ", "gradient into the weights of a "};
    static _Thread_local char text[160];
    const cvy_onednn_tensor *t = &p->tensor[CVY_ONEDNN_SRC];
    cvy_shape src = {.ndim = t->ndim};
    memcpy(src.dim, t->dim, sizeof src.dim);
    snprintf(text, sizeof text, "a %s%s of %s, source %s", gradient[p->pass], family[p->family],
             cvy_dtype_text(t->dtype), cvy_shape_text(&src));
    return text;
}

cvy_status cvy_onednn_problem_desc(const cvy_onednn_problem *p, dnnl_engine_t engine, dnnl_primitive_desc_t *out)
{
    cvy_status status = CVY_OK;
    struct operation op = {0};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL;
    CVY_TRY_OUT(make_operation(p, &op));
    CVY_TRY_OUT(make_attr(p, &attr));
    if (p->pass != CVY_LAYER_FORWARD)
        CVY_TRY_OUT(forward_hint(p, engine, &hint));
    TRY_DNNL_OUT(operation_desc(p, p->pass, &op, engine, hint, attr, out), cvy_onednn_problem_text(p));
out:
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    free_operation(&op);
    return status;
}

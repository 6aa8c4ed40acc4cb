/*
 * embedding: rows of a trained table, looked up by index, for words, categories and other discrete inputs.
 *
 *     dst[n,..,:]      = weight[src[n,..],:]
 *     dweight[row,:]   = sum of ddst[n,..,:] over the elements of src that are equal to row
 *
 * The indices are integers, or real numbers that are whole, since the data layer gives inputs as f32. As in PyTorch,
 * the table begins normally distributed with standard deviation 1. Ranks exchange the whole gradient of the table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_embedding.h"

#include <math.h>

#include "graph/graph_grad.h"

static const cvy_option embedding_rows[] = {
    {"rows", CVY_TYPE_INT, CVY_FIELD(cvy_embedding_opts, rows), NULL, "1..", "rows",
     "rows of the table; indices are 0 .. rows-1"},
    {"channels", CVY_TYPE_INT, CVY_FIELD(cvy_embedding_opts, channels), NULL, "1..", "channels",
     "numbers in a row, so in the last axis of the result"},
    {"init", CVY_TYPE_STRING, CVY_FIELD(cvy_embedding_opts, init), "gaussian", "", "", "initialiser of the table"},
    {"init_options", CVY_TYPE_STRING, CVY_FIELD(cvy_embedding_opts, init_options), "std: 1", "", "",
     "options of the initialiser"},
    {0},
};

/* The largest number below which a dtype has every whole number. */
static int64_t exact_below(cvy_dtype dtype)
{
    switch (dtype) {
    case CVY_DTYPE_U8: return 256;
    case CVY_DTYPE_BF16: return (int64_t)1 << 8;
    case CVY_DTYPE_F32: return (int64_t)1 << 24;
    default: return INT32_MAX;
    }
}

static cvy_status embedding_infer(cvy_node *node)
{
    const cvy_embedding_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0), weight = {.ndim = 2, .dim = {o->rows, o->channels}};
    const cvy_dtype dtype = node->src[0]->dtype;
    CVY_CHECK(src->ndim >= 1 && src->ndim < CVY_NDIM_MAX, CVY_E_SHAPE,
              "embedding needs a source with 1 to %d axes, got %s", CVY_NDIM_MAX - 1, cvy_shape_text(src));
    CVY_CHECK(o->rows <= exact_below(dtype), CVY_E_SHAPE,
              "embedding: indices in %s can name %lld rows, `rows` is %lld%s", cvy_dtype_text(dtype),
              (long long)exact_below(dtype), (long long)o->rows,
              dtype == CVY_DTYPE_BF16 ? "; let the layer read an input itself, which then keeps its precision" : "");
    cvy_shape dst = *src;
    dst.dim[dst.ndim++] = o->channels;
    const cvy_init init = {o->init, o->init_options, o->rows, o->channels};
    CVY_TRY(cvy_node_param(node, "weight", &weight, &init, 1));
    return cvy_node_set_dst(node, 0, node->graph->dtype, &dst);
}

static cvy_status embedding_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *const from[] = {fwd->src[0], cvy_grad_of(g, fwd->dst[0])};
    cvy_value *dweight = NULL;
    CVY_CHECK(!cvy_grad_wanted(g, fwd->src[0]), CVY_E_ARGUMENT,
              "embedding: its indices have no gradient, but a trained variable comes before them");
    if (!from[1])
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, "embedding_grad", fwd->options, from, 2, &dweight, 1));
    return cvy_grad_add(g, fwd->src[1], dweight);
}

static void embedding_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.read_elems = n + cvy_shape_elems(cvy_node_src(node, 0)), .write_elems = n};
}

cvy_status cvy_embedding_check(const cvy_node *node, const cvy_span *src)
{
    const int64_t rows = ((const cvy_embedding_opts *)node->options)->rows;
    for (int64_t i = 0; i < src->elems; i++) {
        const double index = cvy_get(src, i);
        if (!(index >= 0 && index < (double)rows && index == floor(index)))
            return cvy_error_set(CVY_E_FORMAT,
                                 "layer %s (embedding): row %lld of this rank's share has index %g, expected a whole "
                                 "number in 0 .. %lld; correct the data or `rows`",
                                 node->layer, (long long)(i / (src->elems / src->dim[0])), index,
                                 (long long)(rows - 1));
    }
    return CVY_OK;
}

static cvy_status embedding_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t channels = ((const cvy_embedding_opts *)node->options)->channels;
    CVY_TRY(cvy_embedding_check(node, src));
    for (int64_t i = 0; i < src->elems; i++)
        for (int64_t c = 0; c < channels; c++)
            cvy_set(dst, i * channels + c, cvy_get(&src[1], (int64_t)cvy_get(src, i) * channels + c));
    return CVY_OK;
}

static const cvy_sample embedding_samples[] = {
    {.src = "4x3:i32", .options = "rows: 5, channels: 7", .int_bound = 5},
    {.src = "6:i64", .options = "rows: 3, channels: 4", .int_bound = 3},
    {.src = "3x5:u8", .options = "rows: 9, channels: 33", .int_bound = 9},
    {.src = "2x2x3:f32", .options = "rows: 2, channels: 16"},
    {0},
};

CVY_OP_DEFINE(embedding) = {
    .name = "embedding",
    .summary = "rows of a trained table, looked up by index",
    .options = embedding_rows,
    .options_size = sizeof(cvy_embedding_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_INDICES,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = embedding_infer,
    .grad = embedding_grad,
    .cost = embedding_cost,
    .reference = embedding_reference,
    .samples = embedding_samples,
};

/* embedding_grad: src, ddst -> dweight. It is tested with the samples of embedding, through its gradient. */
static cvy_status embedding_grad_infer(cvy_node *node)
{
    const cvy_embedding_opts *o = node->options;
    const cvy_shape weight = {.ndim = 2, .dim = {o->rows, o->channels}};
    return cvy_node_set_dst(node, 0, cvy_graph_weight_dtype(node->graph), &weight);
}

static void embedding_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 1)), weight = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = 2 * n, .write_elems = n + weight};
}

/* All elements of src may name one row. */
static int64_t embedding_grad_summands(const cvy_node *node)
{
    return cvy_shape_elems(cvy_node_src(node, 0));
}

static cvy_status embedding_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int64_t channels = ((const cvy_embedding_opts *)node->options)->channels;
    CVY_TRY(cvy_embedding_check(node, src));
    for (int64_t e = 0; e < dst->elems; e++) {
        const int64_t row = e / channels, c = e % channels;
        double sum = 0;
        for (int64_t i = 0; i < src->elems; i++)
            sum += (int64_t)cvy_get(src, i) == row ? cvy_get(&src[1], i * channels + c) : 0;
        cvy_set(dst, e, sum);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(embedding_grad) = {
    .name = "embedding_grad",
    .summary = "gradient of embedding for its table",
    .options = embedding_rows,
    .options_size = sizeof(cvy_embedding_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN | CVY_OP_INDICES,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = embedding_grad_infer,
    .cost = embedding_grad_cost,
    .reference = embedding_grad_reference,
    .summands = embedding_grad_summands,
};

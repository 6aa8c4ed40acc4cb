/*
 * onnx_sequence.c: SplitToSequence, whose parts SequenceAt takes: PyTorch's newer exporter writes split() and chunk()
 * so if it does not optimise the graph. Each SequenceAt with a constant index becomes a slice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* Part `index` of an axis of this size. sizes: one number for all parts, or one for each; NULL: parts of 1. */
static cvy_status find_part(const cvy_onnx_node *node, const cvy_onnx_tensor *sizes, int64_t size, int64_t index,
                            int64_t *first, int64_t *count)
{
    const int each = !sizes || sizes->shape.ndim == 0;
    const int64_t all = !each ? sizes->elems : sizes ? cvy_onnx_i64(sizes)[0] : 1;
    CVY_ONNX_CHECK(all > 0, node, "parts of %lld entries", (long long)all);
    const int64_t n = each ? (size - 1) / all + 1 : all, at = index < 0 ? index + n : index;
    CVY_ONNX_CHECK(at >= 0 && at < n, node, "part %lld of %lld is read", (long long)index, (long long)n);
    *first = each ? at * all : 0;
    for (int64_t i = 0; !each && i < at; i++) {
        CVY_ONNX_CHECK(cvy_onnx_i64(sizes)[i] >= 0 && cvy_onnx_i64(sizes)[i] <= size - *first, node,
                       "part %lld has %lld entries", (long long)i, (long long)cvy_onnx_i64(sizes)[i]);
        *first += cvy_onnx_i64(sizes)[i];
    }
    *count = each ? CVY_MIN(all, size - *first) : cvy_onnx_i64(sizes)[at];
    CVY_ONNX_CHECK(*count > 0 && *first <= size - *count, node, "part %lld has %lld of %lld entries", (long long)at,
                   (long long)*count, (long long)size);
    return CVY_OK;
}

static cvy_status add_part(const cvy_onnx_node *node, const cvy_onnx_value *src, int axis, const cvy_onnx_tensor *sizes,
                           const Cvy__Onnx__NodeProto *reader)
{
    const cvy_onnx_tensor *index = reader->n_input == 2 ? cvy_onnx_find_constant(node->x, reader->input[1]) : NULL;
    const char *output = NULL;
    int64_t first = 0, count = 0;
    CVY_ONNX_CHECK(strcmp(reader->op_type, "SequenceAt") == 0 && reader->n_output == 1 && index && index->elems == 1 &&
                       index->dtype == CVY_DTYPE_I64,
                   node, "%s reads the parts, and only SequenceAt with a constant index may", reader->op_type);
    CVY_TRY(find_part(node, sizes, src->shape.dim[axis], cvy_onnx_i64(index)[0], &first, &count));
    CVY_ONNX_CHECK(first > 0 || count < src->shape.dim[axis], node, "%s", "it has one part only");
    CVY_TRY(cvy_onnx_slice(node, src->layer, axis, first, count, &output));
    return cvy_onnx_absorb(node, reader, output);
}

static cvy_status translate_split_to_sequence(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *sizes = NULL;
    int axis = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_constant(node, 1, &sizes));
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", 0), src->shape.ndim, &axis));
    CVY_ONNX_CHECK(node->nout == 1 && (sizes ? sizes->dtype == CVY_DTYPE_I64 && sizes->elems > 0
                                             : cvy_onnx_int(node, "keepdims", 1) != 0),
                   node, "%s", "it needs whole numbers as sizes, or keepdims");
    for (size_t i = 0; i < node->x->proto->n_node; i++) {
        const Cvy__Onnx__NodeProto *reader = node->x->proto->node[i];
        for (size_t k = 0; k < reader->n_input; k++)
            if (strcmp(reader->input[k], node->proto->output[0]) == 0)
                CVY_TRY(add_part(node, src, axis, sizes, reader));
    }
    return CVY_OK;
}
CVY_ONNX_DEFINE(split_to_sequence) = {"SplitToSequence", .attributes = "axis keepdims",
                                      .translate = translate_split_to_sequence};

static cvy_status translate_sequence_at(const cvy_onnx_node *node)
{
    CVY_ONNX_FAIL(node, "%s", "it is supported after SplitToSequence only");
}
CVY_ONNX_DEFINE(sequence_at) = {"SequenceAt", .translate = translate_sequence_at};

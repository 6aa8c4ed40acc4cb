/*
 * onnx_fold.h: what the files that compute constants share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONNX_FOLD_H
#define CVY_ONNX_FOLD_H

#include <string.h>

#include "exchange/onnx/onnx.h"

/* src: the constants that the node reads; NULL: left out. */
typedef cvy_status (*cvy_onnx_fold_fn)(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);

static inline void cvy_onnx_copy_elem(const cvy_onnx_tensor *to, int64_t i, const cvy_onnx_tensor *from, int64_t k)
{
    const size_t width = cvy_dtype_bytes(to->dtype);
    memcpy((char *)to->data + (size_t)i * width, (const char *)from->data + (size_t)k * width, width);
}

void cvy_onnx_set_number(const cvy_onnx_tensor *t, int64_t i, double value);
/* The shape of both by NumPy's rules. */
cvy_status cvy_onnx_common_shape(const cvy_onnx_node *node, const cvy_shape *a, const cvy_shape *b, cvy_shape *out);
/* The element of a source that belongs to element i of a result of this shape, to which the source is repeated. */
int64_t cvy_onnx_repeated(const cvy_shape *src, const cvy_shape *dst, int64_t i);
/* A shape that a constant has. The number of samples becomes 1: a constant is the same for all of them. */
cvy_status cvy_onnx_shape_from(const cvy_onnx_node *node, const cvy_onnx_tensor *t, cvy_shape *out);

/* ---- onnx_fold_tensor.c ---- */
cvy_status cvy_onnx_fold_gather(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_slice(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_concat(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_expand(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_tile(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_range(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_trilu(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_cumsum(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_where(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);
cvy_status cvy_onnx_fold_reduce(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);

/* ---- onnx_einsum_equation.c ---- */
cvy_status cvy_onnx_fold_einsum(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);

/* ---- onnx_scatter.c ---- */
cvy_status cvy_onnx_fold_scatter_nd(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src);

#endif

/*
 * onnx_sparse.c: sparse tensors of an ONNX file become ordinary ones. Their indices are offsets in row-major order, or
 * a list of positions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx_file.h"

/* The offset of value i; -1: it is outside. */
static int64_t offset_of(const cvy_onnx_tensor *indices, const cvy_shape *shape, int64_t elems, int64_t i)
{
    const int64_t *at = cvy_onnx_i64(indices);
    int64_t offset = 0;
    if (indices->shape.ndim == 1)
        return at[i] >= 0 && at[i] < elems ? at[i] : -1;
    for (int d = 0; d < shape->ndim; d++) {
        const int64_t k = at[i * shape->ndim + d];
        if (k < 0 || k >= shape->dim[d])
            return -1;
        offset = offset * shape->dim[d] + k;
    }
    return offset;
}

cvy_status cvy_onnx_sparse_read(cvy_pool *pool, const char *folder, const Cvy__Onnx__SparseTensorProto *from,
                                size_t most, cvy_onnx_tensor *out)
{
    cvy_onnx_tensor values, indices;
    size_t bytes = 0;
    CVY_CHECK(from->values && from->indices, CVY_E_FORMAT, "a sparse tensor has no values or no indices");
    CVY_TRY(cvy_onnx_tensor_read(pool, folder, from->values, &values));
    CVY_TRY(cvy_onnx_tensor_read(pool, folder, from->indices, &indices));
    CVY_CHECK(from->n_dims <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED, "sparse tensor %s has %zu dimensions, the limit is %d",
              values.name, from->n_dims, CVY_NDIM_MAX);
    *out = values;
    out->shape = (cvy_shape){.ndim = (int)from->n_dims};
    out->elems = 1;
    bytes = cvy_dtype_bytes(values.dtype);
    for (int d = 0; d < out->shape.ndim; d++) {
        const int64_t dim = out->shape.dim[d] = from->dims[d];
        CVY_CHECK(dim > 0 && (size_t)dim <= most / bytes, CVY_E_FORMAT,
                  "sparse tensor %s: with dimension %d, which is %lld, it has more than %zu bytes", values.name, d,
                  (long long)dim, most);
        bytes *= (size_t)dim;
        out->elems *= dim;
    }
    const int64_t each = indices.shape.ndim == 1 ? 1 : out->shape.ndim;
    CVY_CHECK(values.shape.ndim == 1 && indices.dtype == CVY_DTYPE_I64 && indices.shape.ndim >= 1 &&
                  indices.shape.ndim <= 2 && indices.elems == each * values.elems,
              CVY_E_FORMAT, "sparse tensor %s has %lld values and indices %s", values.name, (long long)values.elems,
              cvy_shape_text(&indices.shape));
    CVY_TRY(cvy_pool_alloc(pool, bytes, &out->data));
    memset(out->data, 0, bytes);
    for (int64_t i = 0; i < values.elems; i++) {
        const size_t width = cvy_dtype_bytes(values.dtype);
        const int64_t at = offset_of(&indices, &out->shape, out->elems, i);
        CVY_CHECK(at >= 0, CVY_E_FORMAT, "sparse tensor %s of shape %s: the index of value %lld is outside",
                  values.name, cvy_shape_text(&out->shape), (long long)i);
        memcpy((char *)out->data + (size_t)at * width, (const char *)values.data + (size_t)i * width, width);
    }
    return CVY_OK;
}

/*
 * onnx_file.h: reads an ONNX file into memory, with its tensors in a form that all of the reader uses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONNX_FILE_H
#define CVY_ONNX_FILE_H

#include "exchange/onnx/onnx.pb-c.h"
#include "graph/graph.h"

/* The numbers by which ONNX names dtypes and kinds of attributes. */
enum {
    CVY_ONNX_FLOAT = 1,
    CVY_ONNX_UINT8 = 2,
    CVY_ONNX_INT8 = 3,
    CVY_ONNX_UINT16 = 4,
    CVY_ONNX_INT16 = 5,
    CVY_ONNX_INT32 = 6,
    CVY_ONNX_INT64 = 7,
    CVY_ONNX_BOOL = 9,
    CVY_ONNX_FLOAT16 = 10,
    CVY_ONNX_DOUBLE = 11,
    CVY_ONNX_UINT32 = 12,
    CVY_ONNX_UINT64 = 13,
    CVY_ONNX_BFLOAT16 = 16,
};
enum {
    CVY_ONNX_ATTRIBUTE_FLOAT = 1,
    CVY_ONNX_ATTRIBUTE_INT = 2,
    CVY_ONNX_ATTRIBUTE_STRING = 3,
    CVY_ONNX_ATTRIBUTE_TENSOR = 4,
    CVY_ONNX_ATTRIBUTE_FLOATS = 6,
    CVY_ONNX_ATTRIBUTE_INTS = 7,
};

/* What the writer tells the reader. Nodes with such names do the work of a job's data section; the metadata name the
 * value that the layers read in place of the input "x", the output before its scaling is undone, and hold the
 * description of the network. */
#define CVY_ONNX_DATA "convoy.data:"
#define CVY_ONNX_META_X "convoy.x"
#define CVY_ONNX_META_OUTPUT "convoy.output"
#define CVY_ONNX_META_NETWORK "convoy.network"
#define CVY_ONNX_META_CONSTANTS "convoy.constants" /* initialisers that are not trained, ' ' between */

/* What is known of a constant. Of several from which one is computed, the largest number counts. */
enum {
    CVY_ONNX_COMPUTED,  /* a Constant node, or computed from shapes */
    CVY_ONNX_CONSTANT,  /* the file says that it is not trained: a buffer */
    CVY_ONNX_NAMED,     /* an initialiser of which the file says nothing */
    CVY_ONNX_PARAMETER, /* the file says that it is trained */
};

/* A constant. Real numbers are f32 or f64, all integers and truth values are i64. */
typedef struct cvy_onnx_tensor {
    const char *name;
    cvy_dtype dtype; /* CVY_DTYPE_F32, F64 or I64 */
    cvy_shape shape;
    int64_t elems;
    void *data;              /* in the pool, row-major */
    int kind;                /* CVY_ONNX_COMPUTED or another */
    const char *origin;      /* of a tensor without a name: the one from which it was computed; or NULL */
    const cvy_shape *stored; /* its shape in the file, if the reader has changed it; NULL: it is `shape` */
} cvy_onnx_tensor;

/* Reads and checks a file. The caller frees *out with cvy_onnx_file_free(). Errors: CVY_E_IO, CVY_E_FORMAT,
 * CVY_E_MEMORY. */
cvy_status cvy_onnx_file_read(const char *path, Cvy__Onnx__ModelProto **out);
void cvy_onnx_file_free(Cvy__Onnx__ModelProto **file);
/* Converts a tensor. folder: of the file, for data in other files. Errors: CVY_E_FORMAT, CVY_E_UNSUPPORTED (its dtype),
 * CVY_E_IO, CVY_E_MEMORY. */
cvy_status cvy_onnx_tensor_read(cvy_pool *pool, const char *folder, const Cvy__Onnx__TensorProto *from,
                                cvy_onnx_tensor *out);

/* The same for a sparse tensor, whose other elements are 0; its name is that of its values. most: bytes that it may
 * have. */
cvy_status cvy_onnx_sparse_read(cvy_pool *pool, const char *folder, const Cvy__Onnx__SparseTensorProto *from,
                                size_t most, cvy_onnx_tensor *out);

static inline const float *cvy_onnx_f32(const cvy_onnx_tensor *t)
{
    return t->data;
}

static inline const int64_t *cvy_onnx_i64(const cvy_onnx_tensor *t)
{
    return t->data;
}

#endif

/*
 * cudnn_api.h: what convoy uses of cuDNN 9, its graph (backend) interface alone, declared here, so that it is not
 * needed to build convoy or to start it. tests/backend/test_backend_cudnn_api.c compares these declarations with
 * cudnn.h where it is installed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CUDNN_API_H
#define CVY_CUDNN_API_H

#include "base/base_mem.h"

typedef int cvy_cudnn_result; /* 0: success */
typedef int cvy_cudnn_kind, cvy_cudnn_name, cvy_cudnn_type;
typedef void *cvy_cudnn_descriptor;
typedef struct cudnnContext *cvy_cudnn_handle;
struct CUstream_st;

/* Functions that return a result. */
#define CVY_CUDNN_FUNCTIONS(X)                                                                                         \
    X(cudnnCreate, (cvy_cudnn_handle *))                                                                               \
    X(cudnnDestroy, (cvy_cudnn_handle))                                                                                \
    X(cudnnSetStream, (cvy_cudnn_handle, struct CUstream_st *))                                                        \
    X(cudnnBackendCreateDescriptor, (cvy_cudnn_kind, cvy_cudnn_descriptor *))                                          \
    X(cudnnBackendDestroyDescriptor, (cvy_cudnn_descriptor))                                                           \
    X(cudnnBackendSetAttribute, (cvy_cudnn_descriptor, cvy_cudnn_name, cvy_cudnn_type, int64_t, const void *))         \
    X(cudnnBackendGetAttribute, (cvy_cudnn_descriptor, cvy_cudnn_name, cvy_cudnn_type, int64_t, int64_t *, void *))    \
    X(cudnnBackendFinalize, (cvy_cudnn_descriptor))                                                                    \
    X(cudnnBackendExecute, (cvy_cudnn_handle, cvy_cudnn_descriptor, cvy_cudnn_descriptor))

typedef struct cvy_cudnn_api {
#define CVY_CUDNN_MEMBER(name, parameters) cvy_cudnn_result(*name) parameters;
    CVY_CUDNN_FUNCTIONS(CVY_CUDNN_MEMBER)
#undef CVY_CUDNN_MEMBER
    const char *(*cudnnGetErrorString)(cvy_cudnn_result);
    void (*cudnnGetLastErrorString)(char *, size_t);
} cvy_cudnn_api;

/* The functions of cuDNN, which the first call loads. NULL: it cannot be used; *why_out says in a sentence why. */
const cvy_cudnn_api *cvy_cudnn(const char **why_out);

/* The numbers of cudnn_graph.h, which there have the prefix CUDNN_. */
/* clang-format off */
#define CVY_CUDNN_NUMBERS(X) \
    X(STATUS_SUCCESS, 0) \
    X(DATA_FLOAT, 0) \
    X(DATA_BFLOAT16, 9) \
    X(TYPE_DATA_TYPE, 1) \
    X(TYPE_INT64, 3) \
    X(TYPE_CHAR, 24) \
    X(TYPE_BOOLEAN, 2) \
    X(TYPE_FLOAT, 4) \
    X(TYPE_HANDLE, 0) \
    X(TYPE_VOID_PTR, 6) \
    X(TYPE_CONVOLUTION_MODE, 7) \
    X(TYPE_HEUR_MODE, 8) \
    X(TYPE_NUMERICAL_NOTE, 11) \
    X(TYPE_BEHAVIOR_NOTE, 19) \
    X(TYPE_BACKEND_DESCRIPTOR, 15) \
    X(TYPE_POINTWISE_MODE, 14) \
    X(CROSS_CORRELATION, 1) \
    X(HEUR_MODE_A, 3) \
    X(HEUR_MODE_FALLBACK, 2) \
    X(POINTWISE_ADD, 0) \
    X(POINTWISE_IDENTITY, 21) \
    X(POINTWISE_RELU_FWD, 100) \
    X(NUMERICAL_NOTE_TENSOR_CORE, 0) \
    X(NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1) \
    X(NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2) \
    X(NUMERICAL_NOTE_FFT, 3) \
    X(NUMERICAL_NOTE_NONDETERMINISTIC, 4) \
    X(NUMERICAL_NOTE_WINOGRAD, 5) \
    X(BEHAVIOR_NOTE_RUNTIME_COMPILATION, 0) \
    X(BACKEND_POINTWISE_DESCRIPTOR, 0) \
    X(BACKEND_CONVOLUTION_DESCRIPTOR, 1) \
    X(BACKEND_ENGINE_DESCRIPTOR, 2) \
    X(BACKEND_ENGINECFG_DESCRIPTOR, 3) \
    X(BACKEND_ENGINEHEUR_DESCRIPTOR, 4) \
    X(BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5) \
    X(BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10) \
    X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
    X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12) \
    X(BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13) \
    X(BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15) \
    X(BACKEND_VARIANT_PACK_DESCRIPTOR, 16) \
    X(BACKEND_TENSOR_DESCRIPTOR, 17) \
    X(BACKEND_DEVICEPROP_DESCRIPTOR, 38) \
    X(ATTR_POINTWISE_MODE, 0) \
    X(ATTR_POINTWISE_MATH_PREC, 1) \
    X(ATTR_CONVOLUTION_COMP_TYPE, 100) \
    X(ATTR_CONVOLUTION_CONV_MODE, 101) \
    X(ATTR_CONVOLUTION_DILATIONS, 102) \
    X(ATTR_CONVOLUTION_FILTER_STRIDES, 103) \
    X(ATTR_CONVOLUTION_POST_PADDINGS, 104) \
    X(ATTR_CONVOLUTION_PRE_PADDINGS, 105) \
    X(ATTR_CONVOLUTION_SPATIAL_DIMS, 106) \
    X(ATTR_ENGINEHEUR_MODE, 200) \
    X(ATTR_ENGINEHEUR_OPERATION_GRAPH, 201) \
    X(ATTR_ENGINEHEUR_RESULTS, 202) \
    X(ATTR_ENGINEHEUR_DEVICEPROP, 204) \
    X(ATTR_ENGINECFG_ENGINE, 300) \
    X(ATTR_EXECUTION_PLAN_HANDLE, 400) \
    X(ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401) \
    X(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) \
    X(ATTR_EXECUTION_PLAN_DEVICEPROP, 407) \
    X(ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) \
    X(ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701) \
    X(ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702) \
    X(ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703) \
    X(ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704) \
    X(ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716) \
    X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717) \
    X(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750) \
    X(ATTR_OPERATION_POINTWISE_XDESC, 751) \
    X(ATTR_OPERATION_POINTWISE_BDESC, 752) \
    X(ATTR_OPERATION_POINTWISE_YDESC, 753) \
    X(ATTR_OPERATIONGRAPH_HANDLE, 800) \
    X(ATTR_OPERATIONGRAPH_OPS, 801) \
    X(ATTR_TENSOR_BYTE_ALIGNMENT, 900) \
    X(ATTR_TENSOR_DATA_TYPE, 901) \
    X(ATTR_TENSOR_DIMENSIONS, 902) \
    X(ATTR_TENSOR_STRIDES, 903) \
    X(ATTR_TENSOR_UNIQUE_ID, 906) \
    X(ATTR_TENSOR_IS_VIRTUAL, 907) \
    X(ATTR_VARIANT_PACK_UNIQUE_IDS, 1000) \
    X(ATTR_VARIANT_PACK_DATA_POINTERS, 1001) \
    X(ATTR_VARIANT_PACK_WORKSPACE, 1003) \
    X(ATTR_ENGINE_GLOBAL_INDEX, 1301) \
    X(ATTR_ENGINE_NUMERICAL_NOTE, 1303) \
    X(ATTR_ENGINE_BEHAVIOR_NOTE, 1305) \
    X(ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)
/* clang-format on */

enum {
#define CVY_CUDNN_NUMBER(name, value) CVY_CUDNN_##name = value,
    CVY_CUDNN_NUMBERS(CVY_CUDNN_NUMBER)
#undef CVY_CUDNN_NUMBER
};

#endif

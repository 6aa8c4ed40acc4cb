/*
 * comm_nccl_api.h: what convoy uses of NCCL, NVIDIA's library of exchanges between GPUs, declared here, so that it is
 * not needed to build convoy or to start it. tests/backend/test_backend_nccl_api.c compares these declarations with
 * nccl.h where that is installed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_NCCL_API_H
#define CVY_COMM_NCCL_API_H

#include "backend/gpu/gpu_cuda_api.h"

typedef int cvy_nccl_result; /* 0: success */
typedef int cvy_nccl_dtype;
typedef int cvy_nccl_op;
typedef struct ncclComm *cvy_nccl_comm;
typedef struct cvy_nccl_id { /* given by value */
    char internal[128];
} cvy_nccl_id;

enum {
    CVY_NCCL_IN_PROGRESS = 7,
    CVY_NCCL_BYTE = 1, /* types of elements */
    CVY_NCCL_F32 = 7,
    CVY_NCCL_F64 = 8,
    CVY_NCCL_BF16 = 9,
    CVY_NCCL_SUM = 0,
};

#define CVY_NCCL_FUNCTIONS(X)                                                                                          \
    X(ncclGetVersion, (int *))                                                                                         \
    X(ncclGetUniqueId, (cvy_nccl_id *))                                                                                \
    X(ncclCommInitRank, (cvy_nccl_comm *, int, cvy_nccl_id, int))                                                      \
    X(ncclCommDestroy, (cvy_nccl_comm))                                                                                \
    X(ncclCommAbort, (cvy_nccl_comm))                                                                                  \
    X(ncclCommGetAsyncError, (cvy_nccl_comm, cvy_nccl_result *))                                                       \
    X(ncclAllReduce, (const void *, void *, size_t, cvy_nccl_dtype, cvy_nccl_op, cvy_nccl_comm, cvy_cu_stream))        \
    X(ncclReduceScatter, (const void *, void *, size_t, cvy_nccl_dtype, cvy_nccl_op, cvy_nccl_comm, cvy_cu_stream))    \
    X(ncclAllGather, (const void *, void *, size_t, cvy_nccl_dtype, cvy_nccl_comm, cvy_cu_stream))                     \
    X(ncclBroadcast, (const void *, void *, size_t, cvy_nccl_dtype, int, cvy_nccl_comm, cvy_cu_stream))                \
    X(ncclSend, (const void *, size_t, cvy_nccl_dtype, int, cvy_nccl_comm, cvy_cu_stream))                             \
    X(ncclRecv, (void *, size_t, cvy_nccl_dtype, int, cvy_nccl_comm, cvy_cu_stream))                                   \
    X(ncclGroupStart, (void))                                                                                          \
    X(ncclGroupEnd, (void))

#define CVY_NCCL_TEXTS(X)                                                                                              \
    X(ncclGetErrorString, (cvy_nccl_result))                                                                           \
    X(ncclGetLastError, (cvy_nccl_comm))

typedef struct cvy_nccl_api {
    int version; /* 22809: 2.28.9 */
#define CVY_NCCL_MEMBER(name, parameters) cvy_nccl_result(*name) parameters;
#define CVY_NCCL_TEXT(name, parameters) const char *(*name)parameters;
    CVY_NCCL_FUNCTIONS(CVY_NCCL_MEMBER)
    CVY_NCCL_TEXTS(CVY_NCCL_TEXT)
#undef CVY_NCCL_MEMBER
#undef CVY_NCCL_TEXT
} cvy_nccl_api;

/* The functions of the library, which the first call loads. NULL: they cannot be used; *why_out says in a sentence why,
 * and which file was looked for. */
const cvy_nccl_api *cvy_nccl_library(const char **why_out);

#endif

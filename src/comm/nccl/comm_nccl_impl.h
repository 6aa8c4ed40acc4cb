/*
 * comm_nccl_impl.h: what the files of comm/nccl share: a communicator of NCCL, and the call of a function of NCCL.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_NCCL_IMPL_H
#define CVY_COMM_NCCL_IMPL_H

#include <stdatomic.h>

#include "backend/gpu/gpu_cuda.h"
#include "comm/nccl/comm_nccl.h"
#include "comm/nccl/comm_nccl_api.h"

typedef struct cvy_nccl_memory cvy_nccl_memory;

struct cvy_nccl {
    const cvy_nccl_api *api;
    cvy_comm *comm;
    cvy_space space;
    _Atomic(cvy_nccl_comm) handle; /* NULL: there is none, or the watchdog has broken it off */
    int users;
    int is_broken;           /* a call has failed */
    char why[480];           /* "": it can be used */
    cvy_nccl_memory *narrow; /* bf16 copies, the latest first */
    struct cvy_nccl *next;
};

/* Records that a call has failed. */
cvy_status cvy_nccl_fault(cvy_nccl *n, const char *call, cvy_nccl_result result);
/* CVY_E_COMM if the communicator was broken off, or if NCCL has found since that an earlier call has failed. */
cvy_status cvy_nccl_check(cvy_nccl *n);
/* Leaves the communicator; it is broken off if a call has failed. */
void cvy_nccl_leave(cvy_nccl *n);
/* Memory of the device for bf16 copies, which all exchanges share: they follow each other in one lane. */
cvy_status cvy_nccl_take_narrow(cvy_nccl *n, size_t bytes, void **out);

/* Calls a function of NCCL, and returns its fault from the function that calls it. */
#define CVY_NCCL(n, name, ...)                                                                                         \
    do {                                                                                                               \
        const cvy_nccl_result result_ = (n)->api->name(__VA_ARGS__);                                                   \
        if (result_ != 0 && result_ != CVY_NCCL_IN_PROGRESS)                                                           \
            return cvy_nccl_fault((n), #name, result_);                                                                \
    } while (0)

#endif
